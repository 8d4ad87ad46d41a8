// Guides: a score for every particle, higher is better. tiltrm/explore/guides.py for one puzzle.

import { logSigmoid } from "./select.js";

const CELLS = 10; // a path longer by so many cells is as bad as one broken rule
const fround = Math.fround;

/** Mean over cells of the log-probability of the most likely token. */
function confidence({ logits, cells, vocabulary, particles }) {
  return particles.map((_, k) => {
    let sum = 0;
    for (let cell = 0; cell < cells; cell++) {
      const row = logits.subarray((k * cells + cell) * vocabulary, (k * cells + cell + 1) * vocabulary);
      const most = Math.max(...row);
      sum -= Math.log(row.reduce((total, value) => total + Math.exp(value - most), 0));
    }
    return sum / cells;
  });
}

/** Minus the root mean square of the last step's change. */
function residual({ state, previous, particles }) {
  const size = state.answer.length / particles.length;
  const square = (half, k) => {
    let sum = 0;
    for (let i = k * size; i < (k + 1) * size; i++) sum += (state[half][i] - previous[half][i]) ** 2;
    return sum / size;
  };
  return particles.map((_, k) => -Math.sqrt((square("answer", k) + square("latent", k)) / 2));
}

/** As `rules` where a rule is broken; else -1/10 for each cell more than the shortest path of the cloud has. */
function shortest({ puzzle, answers, task }) {
  const broken = answers.map((answer) => task.violations(puzzle, answer));
  const lengths = answers.map((answer) => task.pathLength(puzzle, answer));
  const best = Math.min(...lengths.filter((_, k) => broken[k] === 0));
  return broken.map((faults, k) => (faults ? -faults : -Math.min((lengths[k] - best) / CELLS, 1)));
}

const GUIDES = {
  halting: ({ halt }) => halt.map(logSigmoid),
  confidence,
  residual,
  rules: ({ puzzle, answers, task }) => answers.map((answer) => -task.violations(puzzle, answer)),
  shortest,
};

/** The guide of a name or of a sum such as "halting+2*rules"; throws an Error of one sentence. */
export function parseGuide(text, task) {
  const terms = text.split("+").map((term) => {
    const [name, factor] = term.split("*").map((part) => part.trim()).reverse();
    const weight = factor === undefined ? 1 : Number(factor || NaN);
    if (!Object.hasOwn(GUIDES, name) || !Number.isFinite(weight)) {
      throw new Error(`guide must be one of ${Object.keys(GUIDES).join(", ")}, or a sum such as 'halting+2*rules', got '${text}'`);
    }
    if (name === "shortest" && !task.pathLength) throw new Error("the guide 'shortest' is for mazes; try 'rules'");
    return { score: GUIDES[name], weight };
  });
  return (context) => {
    const scores = terms.map(({ score, weight }) => score(context).map((value) => weight * value));
    return context.particles.map((_, k) => fround(scores.reduce((sum, score) => sum + score[k], 0)));
  };
}

// The result in words: why it stopped, its confidence, uncertain cells, and its cost.

import { answerGrid, firstCell } from "./colours.js";
import { count, percent, plural } from "./dom.js";
import { difference, lowest } from "./grids.js";
import { place } from "./tasks.js";

const UNCERTAIN = 0.2; // nats of entropy above the lowest of all cells: as if another symbol had 5 % of the weight
const NAMED = 6; // uncertain cells named one by one
const CLUES = 17; // no Sudoku with fewer has a single solution

/** The uncertain cells, highest entropy first; of an answer in colours those of its grid. */
export function uncertain(run, result, answer) {
  const entropy = result.entropy ?? [];
  const cells = run.colours ? answerGrid(run, answer).cells : [...entropy.keys()];
  const least = lowest(cells.map((cell) => entropy[cell])), most = Math.log(Math.max(run.symbols.length, 2)); // entropies are shares of the most
  return cells
    .map((cell) => [entropy[cell] - least, cell])
    .filter(([above, cell]) => above * most > UNCERTAIN && !run.given[cell])
    .sort((a, b) => b[0] - a[0])
    .map(([, cell]) => cell);
}

/** The title and the sentences of the verdict; `good` colours it. */
export function verdict(run, result, answer) {
  if (result.error) return { title: "Not a puzzle", good: false, sentences: [result.error] };
  const outcome = [reason(run, result), confidenceWords(result)];
  const sentences = [...outcome, uncertainWords(run, result, answer), ...several(run, result)];
  if (result.abstained) return { title: "Withheld", good: false, sentences };
  if (run.colours && !answerGrid(run, answer).height) {
    return { title: "No rectangle", good: false, sentences: ["The answer has no colour in its corner, so no grid can be read from it.", ...outcome] };
  }
  if (result.solved_by_rules === null) return { title: "Answered", good: true, sentences };
  return { title: result.solved_by_rules ? "Solved" : "Not solved", good: result.solved_by_rules, sentences };
}

/** The words while it runs. */
export const waiting = ({ method }) =>
  `${method === "adaptive" ? "It stops once the answer is decided, or after its last step." : `The method “${method}” takes all its steps.`} ` +
  "You can pause or go back at any time.";

function reason({ method }, { decided_by: by, outer_steps: steps, particles }) {
  const size = `${plural(steps, "outer step")} with ${plural(particles, "particle")}`;
  const stopped = {
    halting: `Stopped by the halting head, after ${size}.`,
    agreement: `Stopped by agreement of the particles, after ${size}.`,
    rules: `Stopped at a valid solution, after ${size}.`,
  };
  if (by in stopped) return stopped[by];
  return method === "adaptive"
    ? `Not decided within its steps, ${size}; the best answer so far was taken.`
    : `The method “${method}” takes all its steps: ${size}.`;
}

function confidenceWords({ confidence, solved_by_rules: solved, abstained }) {
  const sure = `The whole answer is right with a confidence of ${percent(confidence)}`;
  if (abstained) return `${sure}; it was withheld.`;
  if (solved === null) return `${sure}; there are no rules that could check it.`;
  return solved ? `${sure}; it is a valid solution.` : `${sure}, but it breaks a rule.`;
}

function uncertainWords(run, result, answer) {
  const cells = uncertain(run, result, answer);
  if (!cells.length) return "No cell is uncertain.";
  const named = cells.slice(0, NAMED).map((cell) => place(cell - firstCell(run), run.side)).join("; ");
  const more = cells.length > NAMED ? `; and ${cells.length - NAMED} more` : "";
  return `${plural(cells.length, "uncertain cell")}: ${named}${more}.`;
}

function several({ task, given }, { solutions }) {
  if (solutions === 2) return ["The puzzle has several solutions; this is one of them at most."];
  if (task !== "sudoku" || given.filter(Boolean).length >= CLUES) return [];
  return [`Fewer than ${CLUES} clues always leave several solutions; the model learned from Sudokus that have one.`];
}

/** The figures below: [name, value]; those not known yet are dots. */
export const figures = ({ confidence, evaluations, seconds, outer_steps: steps }) => [
  ["Confidence", confidence === undefined ? "…" : percent(confidence)],
  ["Evaluations", count(evaluations)],
  ["Seconds", seconds === undefined ? "…" : seconds.toFixed(seconds < 10 ? 2 : 0)],
  ["Outer steps", count(steps)],
];

/** For a run that was decided by one trajectory: why there is no cloud; else empty. */
export const singleTrajectory = ({ method }, { particles }) =>
  method === "adaptive" && particles === 1 ? "One trajectory was enough, so there is no cloud to see." : "";

/** The deterministic run in words. */
export function baselineWords(baseline, result, answer) {
  const steps = `${plural(baseline.outer_steps, "outer step")}, ${count(baseline.evaluations)} evaluations`;
  if (baseline.solved === null) {
    const other = difference(baseline.tokens, answer).size ? "another answer" : "the same answer";
    return `The model as published, one trajectory without noise, gives ${other}: ${steps}.`;
  }
  if (!baseline.solved) {
    const apart = difference(baseline.tokens, answer).size;
    const where = apart ? ` ${plural(apart, "cell")} ${apart === 1 ? "differs" : "differ"} from the answer of the search.` : "";
    return `The model as published, one trajectory without noise, does not solve it: ${steps}.${where}`;
  }
  const times = baseline.evaluations / Math.max(result.evaluations, 1);
  const cost = times > 1.05 ? `, ${times.toFixed(1)} times the evaluations above` : "";
  return `The model as published, one trajectory without noise, solves it too: ${steps}${cost}.`;
}

/** A frame in one line, for the slider. */
export const frameWords = (frame) =>
  `outer step ${frame.step} of at most ${frame.steps}, ${plural(frame.particles, "particle")}, ` +
  `effective sample size ${frame.ess.toFixed(1)}, ${count(frame.evaluations)} evaluations`;

// The events of a run, as the server sends them (tiltrm/serve/frames.py): start, step, baseline, result.

import { decodeBoard, isAddress } from "../addresses.js";
import { entropy, marginals, probabilities } from "./beliefs.js";

const DIGITS = 4, RECORD_DIGITS = 6;
const GRIDS = 6; // particles whose own answers are shown

const round = (value, digits = DIGITS) => Number(value.toFixed(digits));
const rounded = (values) => values.map((value) => round(value));
const sigmoid = (logit) => (Number.isNaN(logit) ? 0 : 1 / (1 + Math.exp(-logit)));
const pick = (values, cells) => cells.map((cell) => values[cell]);

/** The bundled model that `tiltrm solve` takes for a puzzle without --model. */
const usualModel = (puzzle) => (isAddress(puzzle) && decodeBoard(puzzle).type !== "sudoku" ? "pencil" : "sudoku-extreme");

/** The command of the same run; a model is {name, bundled}. */
export function terminalCommand(puzzle, { name: model, bundled }, { method = "adaptive", seed, ...settings }) {
  const usual = bundled && model === usualModel(puzzle);
  const words = ["tiltrm", "solve", puzzle];
  for (const [name, value] of Object.entries({ model: usual ? null : model, method, seed: seed || null, ...settings })) {
    const flag = `--${name.replaceAll("_", "-")}`;
    if (value === true) words.push(flag);
    else if (value !== undefined && value !== null && value !== false) words.push(flag, String(value));
  }
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`)).join(" ");
}

/** `known` is the model's description. All events list the cells of the puzzle, which may be fewer than those of the board. */
export function startEvent(known, task, tokens, { method, seed, ...settings }) {
  const puzzle = task.text(tokens), type = task.type(tokens), cells = task.cells(tokens);
  return {
    puzzle, task: known.task, side: task.columns(tokens), cells: cells.length, given: pick(task.given(tokens), cells),
    symbols: known.symbols, method, seed, settings,
    command: terminalCommand(puzzle, known, { method, seed, ...settings }),
    ...(type === known.task ? {} : { type }), // where a task has several types
    ...(known.bundled ? {} : { note: `${known.name} is the model folder that this site was made from; give your own path of it.` }),
  };
}

/** Builds the `step` events of one puzzle; notes which particles are new. */
export class FrameBuilder {
  /** `cells` are those of the puzzle. */
  constructor(plan, cells) {
    Object.assign(this, { plan, cells, stage: -1, fresh: [] });
  }

  frame(info, model) {
    const particles = info.particles.length;
    this.begin(info.stage, particles);
    const weights = info.logWeights.map(Math.exp);
    const halting = rounded(info.halt.map(sigmoid));
    const whole = particles > 1 ? marginals(info.answers, weights, model) : probabilities(info.logits, 0, model);
    const belief = pick(whole, this.cells);
    const leading = belief.map((row) => row.indexOf(Math.max(...row)));
    const frame = {
      step: info.step, steps: info.steps, particles, evaluations: info.evaluations, ess: round(info.ess),
      weights: rounded(weights), scores: info.score.map((value) => (value > -Infinity ? round(value) : null)),
      halting, ancestors: info.ancestors, leading,
      confidence: belief.map((row, cell) => round(Math.min(row[leading[cell]], 1))),
      entropy: belief.map((row) => round(entropy(row))),
      grids: grids(info.answers.map((answer) => pick(answer, this.cells)), weights, halting), stage: this.stage, fresh: [...this.fresh],
    };
    this.fresh = info.ancestors.map((from) => this.fresh[from]);
    return frame;
  }

  begin(stage, particles) {
    if (stage === this.stage) return;
    const before = this.fresh.length;
    const kept = stage === 0 || this.plan.symmetric_views ? 0 : this.plan.stages[stage].continues ? before : 1;
    this.stage = stage;
    this.fresh = Array.from({ length: particles }, (_, slot) => slot >= kept);
  }
}

/** The heaviest particles; ties: higher halting first, then lower index. */
function grids(answers, weights, halting) {
  const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a] || halting[b] - halting[a] || a - b);
  return order.slice(0, GRIDS).map((particle) => ({
    particle, weight: round(weights[particle]), halting: halting[particle], tokens: answers[particle],
  }));
}

export function baselineEvent(task, tokens, result) {
  return {
    solved: task.isSolved(tokens, result.answer), outer_steps: result.outerSteps, evaluations: result.evaluations,
    tokens: pick(result.answer, task.cells(tokens)), decided: result.decidedBy === "halting",
  };
}

export function resultEvent(task, tokens, result, seconds) {
  const withheld = result.degenerate;
  return {
    puzzle: task.text(tokens), answer: withheld ? null : task.answerText(tokens, result.answer),
    solved_by_rules: withheld ? null : task.isSolved(tokens, result.answer),
    confidence: round(result.confidence, RECORD_DIGITS),
    entropy: pick(result.entropy, task.cells(tokens)).map((value) => round(value, RECORD_DIGITS)),
    halt_probability: round(result.haltProbability, RECORD_DIGITS), evaluations: result.evaluations,
    seconds: round(seconds, RECORD_DIGITS), abstained: withheld, error: null, solutions: null, // nobody counts them here
    task: task.type(tokens), address: task.address(tokens),
    decided_by: result.decidedBy, outer_steps: result.outerSteps, particles: result.particles,
  };
}

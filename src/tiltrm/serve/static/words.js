// The verdict in words: who decided, how sure, which cells to doubt, and what it cost.

import { difference, surest } from "./cloud.js";
import { count, percent, plural } from "./dom.js";
import { place } from "./tasks.js";

const DOUBTFUL = 0.02; // entropy of a cell above the surest one's, of at most 1
const NAMED = 6; // doubtful cells named one by one
const CLUES = 17; // no Sudoku with fewer has a single solution

/** The cells to doubt, most doubtful first. */
export function doubtful(run, result) {
  const entropy = result.entropy ?? [];
  const least = surest(entropy);
  return entropy
    .map((value, cell) => [value - least, cell])
    .filter(([above, cell]) => above > DOUBTFUL && !run.given[cell])
    .sort((a, b) => b[0] - a[0])
    .map(([, cell]) => cell);
}

/** The title and the sentences of the verdict; `good` colours it. */
export function verdict(run, result) {
  if (result.error) return { title: "Not a puzzle", good: false, sentences: [result.error] };
  const sentences = [who(run, result), sure(result), doubts(run, result), ...several(run)];
  if (result.abstained) return { title: "Withheld", good: false, sentences };
  return { title: result.solved_by_rules ? "Solved" : "Not solved", good: result.solved_by_rules, sentences };
}

/** What is said while it runs. */
export const waiting = ({ method }) =>
  `${method === "adaptive" ? "It ends when it is sure, or with its budget." : `The method “${method}” runs its whole budget.`} ` +
  "Pause or go back at any time.";

function who({ method }, { decided_by: by, outer_steps: steps, particles }) {
  const when = `after ${plural(steps, "outer step")} with ${plural(particles, "particle")}`;
  const said = {
    halting: `The model’s own halting head decided, ${when}.`,
    agreement: `The cloud decided by agreement, ${when}: nearly all the weight lies on one answer.`,
    rules: `The rules decided, ${when}: one of the answers breaks none of them.`,
  };
  if (by in said) return said[by];
  const budget = `${plural(steps, "outer step")} with ${plural(particles, "particle")}`;
  return method === "adaptive"
    ? `Nobody decided: it ran to the end of its budget, ${budget}, and the heaviest answer was taken.`
    : `The method “${method}” always runs its whole budget: ${budget}.`;
}

function sure({ confidence, solved_by_rules: solved, abstained }) {
  const how = `It is ${percent(confidence)} sure that the whole answer is right`;
  if (abstained) return `${how}, too little to give one.`;
  return solved ? `${how}, and the rules confirm it.` : `${how}, but the answer breaks the rules.`;
}

function doubts(run, result) {
  const cells = doubtful(run, result);
  if (!cells.length) return "There is no cell to doubt.";
  const named = cells.slice(0, NAMED).map((cell) => place(cell, run.side)).join("; ");
  const more = cells.length > NAMED ? `; and ${cells.length - NAMED} more` : "";
  return `${cells.length === 1 ? "A cell to doubt" : `${cells.length} cells to doubt`}: ${named}${more}.`;
}

function several({ task, given }) {
  if (task !== "sudoku" || given.filter(Boolean).length >= CLUES) return [];
  return [`Fewer than ${CLUES} clues always leave several solutions; the model learned from Sudokus that have one.`];
}

/** The figures beneath: [name, value]; what is not known yet is left open. */
export const figures = ({ confidence, evaluations, seconds, outer_steps: steps }) => [
  ["Confidence", confidence === undefined ? "…" : percent(confidence)],
  ["Evaluations", count(evaluations)],
  ["Seconds", seconds === undefined ? "…" : seconds.toFixed(seconds < 10 ? 2 : 0)],
  ["Outer steps", count(steps)],
];

/** Where a run decided before there was a cloud: why there is none to see. */
export const alone = ({ method }, { particles }) =>
  method === "adaptive" && particles === 1 ? "One train of thought was enough, so there was no cloud to see." : "";

/** How the deterministic run did beside it. */
export function beside(baseline, result, answer) {
  const steps = `${plural(baseline.outer_steps, "outer step")}, ${count(baseline.evaluations)} evaluations`;
  if (!baseline.solved) {
    const apart = difference(baseline.tokens, answer).size;
    const where = apart ? ` ${plural(apart, "cell")} of it ${apart === 1 ? "differs" : "differ"} from the cloud’s answer.` : "";
    return `The model as published, without noise or choice, does not solve it: ${steps}.${where}`;
  }
  const times = baseline.evaluations / Math.max(result.evaluations, 1);
  const cost = times > 1.05 ? `, ${times.toFixed(1)} times the evaluations above` : "";
  return `The model as published, without noise or choice, solves it too: ${steps}${cost}.`;
}

/** A frame in one line, for the slider. */
export const frameWords = (frame) =>
  `outer step ${frame.step} of at most ${frame.steps}, ${plural(frame.particles, "particle")}, ` +
  `effective sample size ${frame.ess.toFixed(1)}, ${count(frame.evaluations)} evaluations`;

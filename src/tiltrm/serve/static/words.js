// The verdict in words: who decided, how sure, which cells to doubt, and what it cost.

import { difference } from "./cloud.js";
import { count, percent, plural } from "./dom.js";
import { place } from "./tasks.js";

const DOUBTFUL = 0.02; // entropy of a cell, of at most 1
const NAMED = 6; // doubtful cells named one by one

/** The cells to doubt, most doubtful first. */
export const doubtful = (run, result) =>
  (result.entropy ?? [])
    .map((value, cell) => [value, cell])
    .filter(([value, cell]) => value > DOUBTFUL && !run.given[cell])
    .sort((a, b) => b[0] - a[0])
    .map(([, cell]) => cell);

/** The title and the sentences of the verdict; `good` colours it. */
export function verdict(run, result) {
  if (result.error) return { title: "Not a puzzle", good: false, sentences: [result.error] };
  const sentences = [who(run, result), sure(result), doubts(run, result)];
  if (result.abstained) return { title: "Withheld", good: false, sentences };
  return { title: result.solved_by_rules ? "Solved" : "Not solved", good: result.solved_by_rules, sentences };
}

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

/** The figures beneath: [name, value]. */
export const figures = (result) => [
  ["Confidence", percent(result.confidence)],
  ["Evaluations", count(result.evaluations)],
  ["Seconds", result.seconds < 10 ? result.seconds.toFixed(2) : result.seconds.toFixed(0)],
  ["Outer steps", count(result.outer_steps)],
];

/** How the deterministic run did beside it. */
export function beside(run, baseline, result, last) {
  const steps = `${plural(baseline.outer_steps, "outer step")}, ${count(baseline.evaluations)} evaluations`;
  if (!baseline.solved) {
    const apart = difference(baseline.tokens, last.leading).size;
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

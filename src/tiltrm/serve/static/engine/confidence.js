// The confidence that is stated for an answer: tiltrm/solving/confidence.py for one puzzle.

const UNSEEN = 0.5; // most that is said of a stopping rule that the calibration never saw
const LARGEST_LOGIT = 16;
const fround = Math.fround;

/**
 * `search` is what `buildSearch` made, with the model's `calibration` (null where there is none); `stop` says how it
 * stopped: {decidedBy, confidence, halt, outerSteps, valid}. An answer against the rules has confidence 0.
 */
export function statedConfidence({ fixed, calibration, settings }, stop) {
  if (!stop.valid) return 0;
  if (fixed) return stop.confidence;
  const halting = Math.min(stop.confidence, stop.halt);
  const own = stop.decidedBy === "budget" ? halting : stop.confidence;
  if (!calibration) return stop.decidedBy === "agreement" ? halting : own;
  const curve = calibration.curves[stop.decidedBy];
  const most = stop.decidedBy === "rules" ? calibration.right_if_valid : UNSEEN;
  const found = curve ? shareOf(curve, stop) : Math.min(own, most);
  return sameSettings(calibration.settings, settings) ? found : Math.min(found, own);
}

/** The share of right answers at the score of this stop. */
function shareOf({ weights, above, share }, { confidence, halt, outerSteps }) {
  const numbers = [logit(fround(halt)), logit(fround(confidence)), -Math.log2(Math.max(outerSteps, 1))];
  const score = numbers.reduce((sum, number, k) => sum + number * weights[k], 0);
  return share[above.filter((edge) => edge <= score).length];
}

function logit(p) {
  const value = Math.log(p) - Math.log1p(-p);
  return Number.isNaN(value) ? 0 : Math.min(Math.max(value, -LARGEST_LOGIT), LARGEST_LOGIT);
}

function sameSettings(some, other) {
  const names = Object.keys(some);
  return names.length === Object.keys(other).length && names.every((name) => some[name] === other[name]);
}

/** Everything that decides how an adaptive search stops, as a calibration records it; `stopping` is complete. */
export function searchSettings(plan, guide, stopping, puzzleId) {
  const { shortest_visited: shortest, ...rest } = stopping;
  if (rest.rules || shortest) Object.assign(rest, { halt_above: 0, settled: false });
  return {
    stages: formatStages(plan.stages), noise: plan.noise, beta: plan.beta, resample_below: plan.resample_below,
    symmetric_views: plan.symmetric_views, guide, ...rest,
    ...(shortest ? { shortest_visited: true } : {}), ...(puzzleId === null ? {} : { puzzle_id: puzzleId }),
  };
}

/** Stages as text: '1x20 2x16*4 8x24@0.6?1*4'. */
function formatStages(stages) {
  const words = stages.map(({ particles, outer_steps: steps, noise, guesses, continues }) =>
    `${particles}x${steps}${noise === null ? "" : `@${Number(noise.toPrecision(6))}`}${guesses ? `?${guesses}` : ""}${continues ? "+" : ""}`);
  const groups = [];
  for (const word of words) {
    if (groups.at(-1)?.word === word) groups.at(-1).times++;
    else groups.push({ word, times: 1 });
  }
  return groups.map(({ word, times }) => (times > 1 ? `${word}*${times}` : word)).join(" ");
}

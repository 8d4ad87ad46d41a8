// Weights of the particles in log space, their effective number, and resampling: tiltrm/explore/weights.py
// and resample.py for one puzzle. Log-weights are float32 numbers, sums and resampling are float64.

import { uniforms } from "./keys.js";

const fround = Math.fround;

/** log(sum(exp(values))). */
function logSum(values) {
  const most = Math.max(...values);
  if (most === -Infinity) return -Infinity;
  return most + Math.log(values.reduce((sum, value) => sum + Math.exp(value - most), 0));
}

/** Equal log-weights. */
export const equalWeights = (particles) => Array(particles).fill(fround(-Math.log(particles)));

/** Log-weights that sum to one; NaN and +Infinity count as weight zero, and a dead cloud stays dead. */
export function normalise(logWeights) {
  const clean = logWeights.map((value) => (value < Infinity ? value : -Infinity));
  const total = fround(logSum(clean));
  return clean.map((value) => (total > -Infinity ? fround(value - total) : -Infinity));
}

export const isDead = (logWeights) => logWeights.every((value) => value === -Infinity);

/** Effective sample size 1 / sum(w^2), 0 for a dead cloud. */
export function effectiveSize(logWeights) {
  if (isDead(logWeights)) return 0;
  const size = Math.exp(-logSum(logWeights.map((value) => 2 * value)));
  return fround(Math.min(Math.max(size, 1), logWeights.length));
}

const shares = (logWeights) => {
  const weights = logWeights.map(Math.exp);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
};

/** The first particle whose cumulative weight reaches each level. */
function invert(weights, levels) {
  let sum = 0;
  const reached = weights.map((weight) => (sum += weight));
  const last = Math.max(reached.at(-1), Number.MIN_VALUE);
  return levels.map((level) => {
    const found = reached.findIndex((value) => value / last >= level);
    return found < 0 ? weights.length - 1 : found;
  });
}

const stratifiedAt = (logWeights, offset) =>
  invert(shares(logWeights), logWeights.map((_, slot) => (slot + offset(slot)) / logWeights.length));

export const RESAMPLERS = {
  systematic(logWeights, key) {
    const [shared] = uniforms(key, 1);
    return stratifiedAt(logWeights, () => shared);
  },
  stratified(logWeights, key) {
    const own = uniforms(key, logWeights.length);
    return stratifiedAt(logWeights, (slot) => own[slot]);
  },
  multinomial: (logWeights, key) => invert(shares(logWeights), uniforms(key, logWeights.length)),
  residual(logWeights, key) {
    const particles = logWeights.length;
    const expected = shares(logWeights).map((share) => particles * share);
    const copies = expected.map((value) => Math.floor(value + 1e-9));
    const certain = copies.flatMap((times, slot) => Array(times).fill(slot));
    const drawn = invert(expected.map((value, k) => Math.max(value - copies[k], 0)), uniforms(key, particles));
    return logWeights.map((_, slot) => certain[slot] ?? drawn[slot]);
  },
};

/** Ancestors and the weights afterwards, by trigger ("ess", "always", "never") and resampler. */
export function resample(logWeights, key, { trigger, resampler, below }) {
  const stay = logWeights.map((_, slot) => slot);
  const wanted = trigger === "always" || (trigger === "ess" && effectiveSize(logWeights) < fround(below * stay.length));
  if (!wanted || isDead(logWeights)) return [stay, logWeights];
  return [RESAMPLERS[resampler](logWeights, key), equalWeights(stay.length)];
}

// The drawing of the page before the first run: an invented ancestry, as an example.

import { paintAncestry, readTheme } from "./ancestry.js";

const PARTICLES = 12, STEPS = 14;

/** Invented frames: the weights drift apart, and two steps resample. */
function madeUp() {
  let weights = Array(PARTICLES).fill(1 / PARTICLES);
  return Array.from({ length: STEPS }, (_, step) => {
    weights = weights.map((weight, slot) => weight * (1 + 0.55 * Math.sin(7.3 * slot + 1.7 * Math.floor(step / 5) + 2)));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    weights = weights.map((weight) => weight / total);
    const frame = { step, stage: 0, particles: PARTICLES, weights, fresh: weights.map(() => true) };
    frame.ancestors = weights.map((_, slot) => slot);
    if (step === 4 || step === 9) {
      frame.ancestors = systematic(weights);
      weights = Array(PARTICLES).fill(1 / PARTICLES);
    }
    return frame;
  });
}

/** Evenly spaced levels through the summed weights. */
function systematic(weights) {
  let slot = 0, reached = weights[0];
  return weights.map((_, k) => {
    while (reached < (k + 0.5) / weights.length && slot < weights.length - 1) reached += weights[++slot];
    return slot;
  });
}

/** Draw it; does nothing while the canvas is hidden. */
export function sketch(canvas) {
  readTheme();
  paintAncestry(canvas, madeUp());
}

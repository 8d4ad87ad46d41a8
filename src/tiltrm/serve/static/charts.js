// Charts over the outer steps: the weights, the effective sample size, the guide's scores.

import { make, makeSvg, plural } from "./dom.js";

export const WIDTH = 1000; // of the drawings' own coordinates; the screen stretches them
const HEIGHT = 100;
const LAYERS = 12; // heaviest weights drawn one by one; the rest are one layer

/** Where frame `at` of `total` stands, as a share of the width. */
export const across = (at, total) => (total > 1 ? 0.01 + (0.98 * at) / (total - 1) : 0.5);

const short = (value) => (Math.abs(value) >= 10 ? value.toFixed(0) : value.toFixed(2)).replace(/^-(0\.00)$/, "$1");

/** A figure with a title, its value at the cursor, and its drawing. */
export function figure(title, drawing) {
  const value = make("span", { class: "value" });
  const cursor = make("i", { class: "cursor", "aria-hidden": "true" });
  const plot = make("div", { class: "plot" }, drawing, cursor);
  const element = make("figure", {}, make("figcaption", {}, make("span", { text: title }), value), plot);
  return { element, plot, value, cursor, drawing };
}

const canvasOf = (kind) =>
  makeSvg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", class: kind });

/** The three charts: each has `draw(frames)` and `say(frame)`. */
export function makeCharts() {
  const weights = { ...figure("Weights, the heaviest at the bottom", canvasOf("weights")), draw: drawWeights, say: sayWeights };
  const ess = { ...figure("Effective sample size", canvasOf("ess")), draw: drawEss, say: sayEss };
  const scores = { ...figure("Guide scores (0 is the highest)", canvasOf("scores")), draw: drawScores, say: sayScores };
  return [weights, ess, scores];
}

/** Draw one chart and set its label for screen readers. */
export function drawChart(chart, frames) {
  const { shapes, label } = frames.length ? chart.draw(frames) : { shapes: [], label: "No outer step yet." };
  chart.drawing.setAttribute("aria-label", label);
  chart.drawing.replaceChildren(...stageLines(frames), ...shapes);
}

function stageLines(frames) {
  return frames.flatMap((frame, at) => {
    if (!at || frame.stage === frames[at - 1].stage) return [];
    const x = (WIDTH * (across(at, frames.length) + across(at - 1, frames.length))) / 2;
    return [makeSvg("line", { class: "stage-line", x1: x, x2: x, y1: 0, y2: HEIGHT })];
  });
}

/** Points of a line: a value in [0, 1] for each frame. */
const points = (values) =>
  values.map((value, at) => `${(WIDTH * across(at, values.length)).toFixed(1)},${(HEIGHT * (1 - value)).toFixed(2)}`);

const line = (values, kind) => makeSvg("polyline", { class: kind, points: points(values).join(" ") });

const area = (low, high, kind, extra = {}) =>
  makeSvg("polygon", { class: kind, points: [...points(high), ...points(low).reverse()].join(" "), ...extra });

/** Sorted weights, stacked: even layers while weights are equal, one wide layer once one dominates. */
function drawWeights(frames) {
  const sorted = frames.map((frame) => [...frame.weights].sort((a, b) => b - a));
  const shapes = [];
  let low = frames.map(() => 0);
  const most = Math.max(...sorted.map((weights) => weights.length));
  for (let rank = 0; rank <= Math.min(LAYERS, most - 1); rank++) {
    const high = low.map((from, at) => (rank === LAYERS ? 1 : from + (sorted[at][rank] ?? 0)));
    shapes.push(area(low, high, "layer", { "fill-opacity": (0.9 * 0.78 ** rank).toFixed(3) }));
    low = high;
  }
  const top = sorted.map((weights) => weights[0]);
  return { shapes, label: `Heaviest weight: ${range(top, percentage)}.` };
}

const percentage = (value) => `${Math.round(100 * value)} %`;
const sayWeights = (frame) => `heaviest ${percentage(Math.max(...frame.weights))}`;

/** ESS on a log scale, below the number of particles, which is its maximum. */
function drawEss(frames) {
  const most = Math.max(...frames.map((frame) => frame.particles), 2);
  const scale = (value) => 0.04 + (0.9 * Math.log2(Math.max(value, 1))) / Math.log2(most);
  const ess = frames.map((frame) => scale(frame.ess));
  const shapes = [
    line(frames.map((frame) => scale(frame.particles)), "limit"),
    area(frames.map(() => 0), ess, "under"),
    line(ess, "main"),
  ];
  return { shapes, label: `Effective sample size: ${range(frames.map((frame) => frame.ess), short)}, of at most ${most}.` };
}

const sayEss = (frame) => `${short(frame.ess)} of ${plural(frame.particles, "particle")}`;

const known = (scores) => scores.filter((score) => Number.isFinite(score));

function drawScores(frames) {
  const each = frames.map((frame) => known(frame.scores));
  const all = each.flat();
  if (!all.length) return { shapes: [], label: "No guide scores." };
  const bottom = Math.min(...all), top = Math.max(...all);
  const scale = (value) => 0.06 + 0.88 * (top > bottom ? (value - bottom) / (top - bottom) : 0.5);
  const high = each.map((scores) => scale(scores.length ? Math.max(...scores) : bottom));
  const low = each.map((scores) => scale(scores.length ? Math.min(...scores) : bottom));
  const best = each.map((scores) => (scores.length ? Math.max(...scores) : bottom));
  const shapes = [area(low, high, "under"), line(high, "main")];
  return { shapes, label: `Best guide score: ${range(best, short)}.` };
}

const sayScores = (frame) => {
  const scores = known(frame.scores);
  return scores.length ? `best ${short(Math.max(...scores))}` : "none";
};

/** "from 16 to 3.4 over 12 steps, lowest 2.0". */
function range(values, write) {
  const last = values.length - 1;
  return `from ${write(values[0])} to ${write(values[last])} over ${values.length} outer steps, ` +
    `lowest ${write(Math.min(...values))}, highest ${write(Math.max(...values))}`;
}

// The ancestry of the particles. Each is a band as wide as its weight; after a step that resampled,
// the drawing narrows to the chosen bands, and these split into their children.

import { across } from "./charts.js";
import { colour, isDark, pen } from "./dom.js";

const NECK = 0.42; // of the way to the next step: where the drawing is narrowest
const NARROWEST = 0.16;

/** Whether the step resampled. */
export const resampled = (frame) => frame.ancestors.some((parent, slot) => parent !== slot);

/**
 * For each frame its bands from top to bottom, each
 * {slot, founder, parent (a band of the frame before, or null), share}.
 */
export function bandsOf(frames) {
  const columns = [];
  let founders = 0;
  frames.forEach((frame, at) => {
    const before = columns[at - 1];
    const sameStage = at > 0 && frames[at - 1].stage === frame.stage;
    const bands = frame.weights.map((share, slot) => {
      const goesOn = before && (sameStage || !frame.fresh[slot]);
      const parent = goesOn ? before.find((band) => band.slot === frames[at - 1].ancestors[slot]) ?? null : null;
      return { slot, share, parent, founder: parent ? parent.founder : founders++ };
    });
    const rank = new Map(before?.map((band, place) => [band, place]));
    const place = ({ parent }) => (parent ? rank.get(parent) : Infinity); // so that no two bands cross
    bands.sort((a, b) => (place(a) === place(b) ? a.slot - b.slot : place(a) - place(b)));
    for (const band of bands) if (band.parent) (band.parent.children ??= []).push(band);
    columns.push(bands);
  });
  return columns;
}

/** In words, for screen readers. */
export function describe(frames) {
  const chosen = frames.filter(resampled);
  if (!chosen.length) return "Ancestry: no resampling; every particle went on by itself.";
  const narrow = chosen.reduce((least, frame) => Math.min(least, new Set(frame.ancestors).size), Infinity);
  const steps = chosen.map((frame) => frame.step).join(", ");
  return `Ancestry: resampled after outer step ${steps}; at its narrowest ${narrow} particles were continued.`;
}

/** Draw the ancestry onto a canvas. */
export function paintAncestry(canvas, frames) {
  const sheet = pen(canvas);
  if (!sheet || !frames.length) return;
  const { context, width, height } = sheet;
  const columns = bandsOf(frames);
  const most = Math.max(...frames.map((frame) => frame.particles));
  const x = (at) => width * across(at, frames.length);
  columns.forEach((bands, at) => stack(bands, (band) => band.share, height, fullHeight(frames[at].particles, most)));
  columns.forEach((bands, at) => {
    if (at + 1 === columns.length) return extend(context, bands, x(at), width);
    const stride = x(at + 1) - x(at);
    const neck = x(at) + NECK * stride;
    const ends = frames[at].stage === frames[at + 1].stage;
    narrow(bands, frames[at], height, fullHeight(frames[at].particles, most), ends);
    for (const band of bands) drawBand(context, band, x(at), neck, x(at + 1));
    for (const band of columns[at + 1]) if (!band.parent) begin(context, band, x(at) + 0.3 * stride, x(at + 1));
  });
}

/** The height of all bands together: logarithmic, so that one particle is still visible. */
const fullHeight = (particles, most) => 0.14 + 0.82 * (most > 1 ? Math.log2(particles) / Math.log2(most) : 0.3);

/** Set the top and bottom of every band in its column, or at the neck after it. */
function stack(bands, share, height, high, names = ["top", "bottom"]) {
  const total = bands.reduce((sum, band) => sum + share(band), 0) || 1;
  let y = (height * (1 - high)) / 2;
  for (const band of bands) {
    band[names[0]] = y;
    y += (height * high * share(band)) / total;
    band[names[1]] = y;
  }
}

/** The neck after a step that resampled: only chosen bands, as high as their share of the particles. */
function narrow(bands, frame, height, high, sameStage) {
  if (!sameStage || !resampled(frame)) return;
  const chosen = bands.filter((band) => band.children);
  const share = Math.max(NARROWEST, chosen.length / bands.length);
  stack(chosen, (band) => band.children.length, height, high * share, ["neckTop", "neckBottom"]);
}

function drawBand(context, band, left, neck, right) {
  context.fillStyle = ink(band);
  if (!band.children) return taper(context, band, left, neck);
  let from = left, top = band.top, bottom = band.bottom;
  if (band.neckTop !== undefined) {
    ribbon(context, left, top, bottom, neck, band.neckTop, band.neckBottom);
    [from, top, bottom] = [neck, band.neckTop, band.neckBottom];
  }
  const part = (bottom - top) / band.children.length;
  band.children.forEach((child, k) =>
    ribbon(context, from, top + k * part, top + (k + 1) * part, right, child.top, child.bottom));
}

/** A band without children ends before the neck. */
function taper(context, band, left, neck) {
  const middle = (band.top + band.bottom) / 2;
  ribbon(context, left, band.top, band.bottom, neck, middle, middle);
}

/** A fresh particle begins. */
function begin(context, band, left, right) {
  context.fillStyle = ink(band);
  const middle = (band.top + band.bottom) / 2;
  ribbon(context, left, middle, middle, right, band.top, band.bottom);
}

/** The last column extends to the edge. */
function extend(context, bands, left, width) {
  for (const band of bands) {
    context.fillStyle = ink(band);
    ribbon(context, left, band.top, band.bottom, width, band.top, band.bottom);
  }
}

/** A piece between two columns; only its edges have lines, so that no seam shows between pieces. */
function ribbon(context, x0, top0, bottom0, x1, top1, bottom1) {
  const half = (x0 + x1) / 2;
  const end = x1 + 0.6; // overlaps the next one, which hides the gap between them
  const edges = (connect) => {
    context.beginPath();
    context.moveTo(x0, top0);
    context.bezierCurveTo(half, top0, half, top1, end, top1);
    connect();
    context.bezierCurveTo(half, bottom1, half, bottom0, x0, bottom0);
  };
  edges(() => context.lineTo(end, bottom1));
  context.fill();
  context.strokeStyle = colours.edge;
  context.lineWidth = 0.6;
  edges(() => context.moveTo(end, bottom1));
  context.stroke();
}

const colours = { edge: "", first: "", dark: false };

/** Read the theme once for a drawing, not once for a band. */
export function readTheme() {
  Object.assign(colours, { edge: colour("sheet"), first: colour("accent"), dark: isDark() });
}

/** A hue for each founder, from green over blue to rose; the first, free of noise in `adaptive`, has the accent. */
function ink({ founder }) {
  if (founder === 0) return colours.first;
  const part = (founder * 0.618) % 1; // the golden ratio: neighbours differ, however many there are
  const light = (colours.dark ? 0.6 : 0.74) + 0.07 * ((founder * 0.37) % 1);
  return `oklch(${light.toFixed(3)} 0.075 ${(165 + 215 * part).toFixed(0)})`;
}

// Ancestry as a river. Every particle is a stream as wide as its weight; where resampling chose,
// the river narrows to the chosen, and these part into their children.

import { across } from "./charts.js";
import { colour, isDark, pen } from "./dom.js";

const GATE = 0.42; // of the way to the next step: where the river is at its narrowest
const NARROWEST = 0.16;

/** Was anybody chosen here, or does every particle simply go on? */
export const resampled = (frame) => frame.ancestors.some((parent, slot) => parent !== slot);

/**
 * The course of the river: for each frame the streams from top to bottom, each
 * {slot, founder, parent (a stream of the frame before, or null), share}.
 */
export function course(frames) {
  const columns = [];
  let founders = 0;
  frames.forEach((frame, at) => {
    const before = columns[at - 1];
    const sameStage = at > 0 && frames[at - 1].stage === frame.stage;
    const streams = frame.weights.map((share, slot) => {
      const goesOn = before && (sameStage || !frame.fresh[slot]);
      const parent = goesOn ? before.find((stream) => stream.slot === frames[at - 1].ancestors[slot]) ?? null : null;
      return { slot, share, parent, founder: parent ? parent.founder : founders++ };
    });
    const rank = new Map(before?.map((stream, place) => [stream, place]));
    const place = ({ parent }) => (parent ? rank.get(parent) : Infinity); // so that no two streams cross
    streams.sort((a, b) => (place(a) === place(b) ? a.slot - b.slot : place(a) - place(b)));
    for (const stream of streams) if (stream.parent) (stream.parent.children ??= []).push(stream);
    columns.push(streams);
  });
  return columns;
}

/** In words, for those who do not see it. */
export function describe(frames) {
  const chosen = frames.filter(resampled);
  if (!chosen.length) return "Ancestry: no resampling; every particle went its own way.";
  const narrow = chosen.reduce((least, frame) => Math.min(least, new Set(frame.ancestors).size), Infinity);
  const steps = chosen.map((frame) => frame.step).join(", ");
  return `Ancestry: resampled after outer step ${steps}; at its narrowest ${narrow} particles were continued.`;
}

/** Draw the river onto a canvas. */
export function paintRiver(canvas, frames) {
  const sheet = pen(canvas);
  if (!sheet || !frames.length) return;
  const { context, width, height } = sheet;
  const columns = course(frames);
  const most = Math.max(...frames.map((frame) => frame.particles));
  const x = (at) => width * across(at, frames.length);
  columns.forEach((streams, at) => stack(streams, (stream) => stream.share, height, breadth(frames[at].particles, most)));
  columns.forEach((streams, at) => {
    if (at + 1 === columns.length) return finish(context, streams, x(at), width);
    const stride = x(at + 1) - x(at);
    const gate = x(at) + GATE * stride;
    const ends = frames[at].stage === frames[at + 1].stage;
    narrow(streams, frames[at], height, breadth(frames[at].particles, most), ends);
    for (const stream of streams) flow(context, stream, x(at), gate, x(at + 1));
    for (const spring of columns[at + 1]) if (!spring.parent) rise(context, spring, x(at) + 0.3 * stride, x(at + 1));
  });
}

/** How broad the whole river is: by doublings of the cloud, so that one particle is still seen. */
const breadth = (particles, most) => 0.14 + 0.82 * (most > 1 ? Math.log2(particles) / Math.log2(most) : 0.3);

/** Give every stream its top and bottom in its column, or at the gate behind it. */
function stack(streams, share, height, broad, names = ["top", "bottom"]) {
  const total = streams.reduce((sum, stream) => sum + share(stream), 0) || 1;
  let y = (height * (1 - broad)) / 2;
  for (const stream of streams) {
    stream[names[0]] = y;
    y += (height * broad * share(stream)) / total;
    stream[names[1]] = y;
  }
}

/** Behind a step that resampled: only the chosen, as broad as the share of particles chosen. */
function narrow(streams, frame, height, broad, sameStage) {
  if (!sameStage || !resampled(frame)) return;
  const chosen = streams.filter((stream) => stream.children);
  const share = Math.max(NARROWEST, chosen.length / streams.length);
  stack(chosen, (stream) => stream.children.length, height, broad * share, ["gateTop", "gateBottom"]);
}

function flow(context, stream, left, gate, right) {
  context.fillStyle = ink(stream);
  if (!stream.children) return dwindle(context, stream, left, gate);
  let from = left, top = stream.top, bottom = stream.bottom;
  if (stream.gateTop !== undefined) {
    ribbon(context, left, top, bottom, gate, stream.gateTop, stream.gateBottom);
    [from, top, bottom] = [gate, stream.gateTop, stream.gateBottom];
  }
  const part = (bottom - top) / stream.children.length;
  stream.children.forEach((child, k) =>
    ribbon(context, from, top + k * part, top + (k + 1) * part, right, child.top, child.bottom));
}

/** A stream that nobody continues runs dry before the gate. */
function dwindle(context, stream, left, gate) {
  const middle = (stream.top + stream.bottom) / 2;
  ribbon(context, left, stream.top, stream.bottom, gate, middle, middle);
}

/** A fresh particle wells up. */
function rise(context, spring, left, right) {
  context.fillStyle = ink(spring);
  const middle = (spring.top + spring.bottom) / 2;
  ribbon(context, left, middle, middle, right, spring.top, spring.bottom);
}

/** The last column runs out to the edge. */
function finish(context, streams, left, width) {
  for (const stream of streams) {
    context.fillStyle = ink(stream);
    ribbon(context, left, stream.top, stream.bottom, width, stream.top, stream.bottom);
  }
}

/** Between two columns; only its banks are lined, so that no seam shows where two ribbons meet. */
function ribbon(context, x0, top0, bottom0, x1, top1, bottom1) {
  const half = (x0 + x1) / 2;
  const end = x1 + 0.6; // overlaps the next one, which hides the gap between two smooth edges
  context.beginPath();
  context.moveTo(x0, top0);
  context.bezierCurveTo(half, top0, half, top1, end, top1);
  context.lineTo(end, bottom1);
  context.bezierCurveTo(half, bottom1, half, bottom0, x0, bottom0);
  context.fill();
  context.strokeStyle = colours.edge;
  context.lineWidth = 0.6;
  context.beginPath();
  context.moveTo(x0, top0);
  context.bezierCurveTo(half, top0, half, top1, end, top1);
  context.moveTo(end, bottom1);
  context.bezierCurveTo(half, bottom1, half, bottom0, x0, bottom0);
  context.stroke();
}

const colours = { edge: "", first: "", dark: false };

/** Read the theme once for a drawing, not once for a stream. */
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

// Grids that are shown and not typed on: the cloud's, the particles', the deterministic run's.

import { decodeBoard, isAddress } from "./addresses.js";
import { NO_RECTANGLE, answerGrid, colourTokens } from "./colours.js";
import { colour, make, pen, percent, plural } from "./dom.js";
import { boxes, paintAbove, paintBelow, paintLines } from "./pencil_grid.js";

const WIDE = 14; // pixels of a cell that has room for a halo

/**
 * Draw one grid. `run` is the start event, `tokens` its content; optional are
 * `entropy` (shade of each cell), `differs` (cells to tint), `doubt` (cells to outline).
 */
export function paintGrid(canvas, run, { tokens, entropy, differs, doubt }) {
  const sheet = pen(canvas);
  if (!sheet) return;
  const { context, width } = sheet;
  context.fillStyle = colour("sheet");
  context.fillRect(0, 0, width, width);
  if (isAddress(run.puzzle)) return paintBoard(context, width, run, { tokens, entropy, differs, doubt });
  if (run.colours) return paintColours(context, width, run, { tokens, entropy, differs, doubt });
  const size = width / run.side;
  const write = run.task === "maze" ? mazeCell : gridCell;
  const blank = run.symbols[1]; // of every task but the maze
  const inks = Object.fromEntries(
    ["ink", "answer", "doubt", "wrong", "wall", "route", "start", "goal", "sheet"].map((name) => [name, colour(name)]));
  const least = entropy ? lowest(entropy) : 0;
  for (let cell = 0; cell < run.cells; cell++) {
    const box = { x: (cell % run.side) * size, y: Math.floor(cell / run.side) * size, size };
    if (entropy && !run.given[cell]) tint(context, box, inks.doubt, shade(entropy[cell], least));
    if (differs?.has(cell)) tint(context, box, inks.wrong, 0.3);
    write(context, box, { token: tokens[cell], given: run.given[cell], symbol: run.symbols[tokens[cell]] ?? "", blank, inks });
    if (doubt?.has(cell)) outline(context, box, inks.wrong);
  }
  if (run.task === "maze") return;
  gridLines(context, width, run.side, run.task.startsWith("sudoku") ? Math.sqrt(run.side) : run.side);
}

/** The grid in an answer of colours, in its own size; a ring is the wider the less sure its cell is. */
function paintColours(context, width, run, { tokens, entropy, differs, doubt }) {
  const grid = answerGrid(run, tokens), least = entropy ? lowest(grid.cells.map((cell) => entropy[cell])) : 0;
  const inks = Object.fromEntries(["sheet", "ink", "wrong", "rule"].map((name) => [name, colour(name)]));
  if (!grid.height) return writeWords(context, width, NO_RECTANGLE, inks.wrong);
  boxes(grid, width).forEach((box, k) => {
    const cell = grid.cells[k], fill = run.colours[tokens[cell]];
    if (fill) tint(context, box, fill, 1);
    const radius = entropy ? 0.45 * box.size * shade(entropy[cell], least) : 0;
    context.strokeStyle = inks.rule;
    context.lineWidth = 0.75;
    context.strokeRect(box.x, box.y, box.size, box.size);
    if (radius > 0.5) ring(context, box, radius, inks);
    if (!differs?.has(cell) && !doubt?.has(cell)) return;
    if (box.size > WIDE) outline(context, box, inks.sheet, 2); // a halo, because the cell may be red as well
    outline(context, box, inks.wrong);
  });
}

function writeWords(context, width, words, ink) {
  context.fillStyle = ink;
  context.font = `600 ${width / 9}px Inter, system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(words, width / 2, width / 2);
}

function ring(context, { x, y, size }, radius, inks) {
  context.beginPath();
  context.arc(x + size / 2, y + size / 2, radius, 0, 2 * Math.PI);
  context.fillStyle = inks.sheet;
  context.fill();
  context.strokeStyle = inks.ink;
  context.lineWidth = Math.max(0.75, size / 24);
  context.stroke();
}

/** The board of a puzzle that is an address. */
function paintBoard(context, width, run, { tokens, entropy, differs, doubt }) {
  const board = decodeBoard(run.puzzle);
  const places = boxes(board, width);
  const inks = Object.fromEntries(
    ["ink", "answer", "doubt", "wrong", "black", "on-black", "hair", "rule", "shaded", "on-shaded", "lamp"].map((name) => [name, colour(name)]));
  Object.assign(inks, { onShaded: inks["on-shaded"], onBlack: inks["on-black"] });
  const least = entropy ? lowest(entropy) : 0;
  places.forEach((box, cell) => {
    const symbol = run.symbols[tokens[cell]] ?? "";
    paintBelow(context, box, board, cell, symbol, inks);
    if (entropy && !run.given[cell]) tint(context, box, inks.doubt, shade(entropy[cell], least));
    if (differs?.has(cell)) tint(context, box, inks.wrong, 0.3);
    paintAbove(context, box, board, cell, symbol, inks);
    if (doubt?.has(cell)) outline(context, box, inks.wrong);
  });
  paintLines(context, board, places, inks);
}

/**
 * The lowest entropy of all cells. A model trained with smoothed labels never reaches 0, so cells
 * are shaded by their entropy above it.
 */
export const lowest = (entropy) => Math.min(...entropy);

/** The shade of a cell; the exponent makes small entropies visible. */
const shade = (entropy, least) => 0.85 * ((entropy - least) / Math.max(1 - least, 1e-6)) ** 0.7;

function tint(context, { x, y, size }, ink, strength) {
  if (strength < 0.01) return;
  context.globalAlpha = strength;
  context.fillStyle = ink;
  context.fillRect(x, y, size + 0.5, size + 0.5);
  context.globalAlpha = 1;
}

function outline(context, { x, y, size }, ink, wider = 1) {
  context.strokeStyle = ink;
  context.lineWidth = wider * Math.max(1.5, size / 18);
  context.strokeRect(x + size * 0.08, y + size * 0.08, size * 0.84, size * 0.84);
}

function gridCell(context, { x, y, size }, { given, symbol, blank, inks }) {
  if (!symbol || symbol === blank) return;
  context.fillStyle = given ? inks.ink : inks.answer;
  context.font = `${given ? 650 : 450} ${size * 0.56}px Inter, system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(symbol, x + size / 2, y + size * 0.54);
}

function mazeCell(context, { x, y, size }, { symbol, inks }) {
  if (symbol === "#") {
    context.fillStyle = inks.wall;
    context.fillRect(x, y, size + 0.5, size + 0.5);
  } else if (symbol === "o" || symbol === "S" || symbol === "G") {
    context.fillStyle = inks[{ o: "route", S: "start", G: "goal" }[symbol]];
    const edge = symbol === "o" ? 0.18 : 0;
    context.beginPath();
    context.roundRect(x + size * edge, y + size * edge, size * (1 - 2 * edge), size * (1 - 2 * edge), size * 0.3);
    context.fill();
    if (symbol === "o" || size < 9) return;
    context.fillStyle = inks.sheet;
    context.font = `700 ${size * 0.7}px Inter, system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(symbol, x + size / 2, y + size * 0.55);
  }
}

/** The lines of a grid, those between the boxes of a Sudoku heavier. */
function gridLines(context, width, side, box) {
  for (const heavy of [false, true]) {
    context.strokeStyle = colour(heavy ? "rule" : "hair");
    context.lineWidth = heavy ? Math.max(1, width / 260) : 0.75;
    context.beginPath();
    for (let k = 1; k < side; k++) {
      if ((k % box === 0) !== heavy) continue;
      const at = (k * width) / side;
      context.moveTo(at, 0);
      context.lineTo(at, width);
      context.moveTo(0, at);
      context.lineTo(width, at);
    }
    context.stroke();
  }
}

/** A text of the run's symbols as tokens; what is no symbol is taken from `other`. An address has clues and no tokens. */
export function tokensOf(run, text, other = []) {
  if (run.colours) return colourTokens(run, text);
  return isAddress(text) ? [] : [...text].map((symbol, cell) => {
    const token = run.symbols.indexOf(symbol);
    return token < 0 ? other[cell] : token;
  });
}

/** The cells where two grids differ. */
export const difference = (some, other) =>
  new Set(some.flatMap((token, cell) => (token === other[cell] ? [] : [cell])));

/** The heaviest particles of a frame, side by side, each with its weight. */
export function paintParticles(list, run, frame) {
  while (list.children.length > frame.grids.length) list.lastChild.remove();
  while (list.children.length < frame.grids.length) list.append(particleCard());
  const heaviest = Math.max(...frame.grids.map((grid) => grid.weight), 1e-9);
  frame.grids.forEach((grid, k) => {
    const card = list.children[k];
    const [canvas, bar, words] = card.querySelectorAll("canvas, .bar i, p");
    const differs = difference(grid.tokens, frame.leading);
    const apart = differs.size ? `${plural(differs.size, "cell")} ${differs.size === 1 ? "differs" : "differ"}` : "same answer";
    canvas.setAttribute("aria-label",
      `Particle ${grid.particle + 1}: weight ${percent(grid.weight)}, halting ${percent(grid.halting)}, ` +
      (differs.size ? `${differs.size} cells differ from the cloud` : "agrees with the cloud"));
    bar.style.width = `${(100 * grid.weight) / heaviest}%`;
    words.replaceChildren(make("b", { text: `weight ${percent(grid.weight)}` }), make("br"), apart);
    words.title = `particle ${grid.particle + 1}, halting ${percent(grid.halting)}`;
    paintGrid(canvas, run, { tokens: grid.tokens, differs });
  });
}

function particleCard() {
  return make("li", {},
    make("canvas", { class: "grid", role: "img", "aria-label": "Particle" }),
    make("div", { class: "bar", "aria-hidden": "true" }, make("i")),
    make("p"));
}

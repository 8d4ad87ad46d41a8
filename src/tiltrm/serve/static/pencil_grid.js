// A pencil puzzle on a canvas: clues, black cells, shaded cells, lights, rooms.

import { edges } from "./addresses.js";
import { clueText } from "./pencil.js";

/** Where each cell of a board stands on a square sheet of this width: {x, y, size}. */
export function boxes({ width: columns, height: rows }, width) {
  const size = width / Math.max(columns, rows);
  const left = (width - columns * size) / 2, top = (width - rows * size) / 2;
  return Array.from({ length: columns * rows }, (_, cell) => ({
    x: left + (cell % columns) * size, y: top + Math.floor(cell / columns) * size, size,
  }));
}

/** Below the tints: a black cell, or one that the answer shades. */
export function paintBelow(context, { x, y, size }, board, cell, symbol, inks) {
  const black = board.type === "lightup" && board.clues[cell].length;
  if (!black && symbol !== "#") return;
  context.fillStyle = black ? inks.black : inks.shaded;
  context.fillRect(x, y, size + 0.5, size + 0.5);
}

/** Above the tints: the light or the digit of the answer, and the clue. */
export function paintAbove(context, { x, y, size }, board, cell, symbol, inks) {
  const { type, clues } = board;
  if (symbol === "o" && type === "lightup") {
    context.fillStyle = inks.lamp;
    context.strokeStyle = inks.ink;
    context.lineWidth = Math.max(0.75, size / 40);
    context.beginPath();
    context.arc(x + size / 2, y + size / 2, size * 0.3, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }
  const clue = clueText(type, clues[cell]);
  const digit = type === "sudoku" && !clue && /[1-9]/.test(symbol) ? symbol : "";
  if (clue === "#" || !(clue || digit)) return;
  const written = type === "lightup" ? inks.onBlack : symbol === "#" ? inks.onShaded : inks.ink;
  context.fillStyle = digit ? inks.answer : written;
  const height = { 1: 0.56, 2: 0.5, 3: 0.38, 4: 0.3 }[(clue || digit).length];
  context.font = `${digit ? 450 : 650} ${size * height}px Inter, system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(clue || digit, x + size / 2, y + size * 0.54);
}

/** Thin lines between cells, thick ones between rooms or boxes, and a frame. */
export function paintLines(context, board, places, inks) {
  const { type, width, height, borders } = board;
  const heavy = ([one, other], k) =>
    type === "sudoku" ? (other === one + 1 ? other % 3 === 0 : (other / width) % 3 < 1) : borders[k];
  const pairs = edges(width, height);
  for (const thick of [false, true]) {
    context.strokeStyle = thick ? inks.ink : inks.hair;
    context.lineWidth = thick ? Math.max(1.25, places[0].size / 16) : 0.75;
    context.beginPath();
    pairs.forEach((pair, k) => {
      if (Boolean(heavy(pair, k)) !== thick) return;
      const { x, y, size } = places[pair[1]];
      context.moveTo(x, y);
      if (pair[1] === pair[0] + 1) context.lineTo(x, y + size);
      else context.lineTo(x + size, y);
    });
    context.stroke();
  }
  const { x, y, size } = places[0];
  context.strokeStyle = inks.rule;
  context.lineWidth = 1.5;
  context.strokeRect(x, y, size * width, size * height);
}

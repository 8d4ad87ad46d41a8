// The tasks on the page: reading a puzzle, and finding errors in it while one types.
// A puzzle is its text on one line. The server checks it again.

import { isAddress } from "./addresses.js";
import { COLOURS, blankColours, isColours, readColours, writeColours } from "./colours.js";
import { PENCIL, blankAddress, isPencil, parseAddress, sudokuOf } from "./pencil.js";

const MIXED = "pencil"; // the task of a model for all types of addresses
let servedTasks = []; // tasks of the loaded models

export const TASKS = {
  sudoku: {
    side: 9, cells: 81, blank: ".", symbols: ".123456789", alsoBlank: "0_*", skipped: /[\s|+\-\u2500-\u257f]/,
    expected: "digits 1 to 9 and “.” for a blank", written: "“.” or “0”",
    help: "Type the clues, a dot for a blank; arrows move. Pasting a whole puzzle works too.",
  },
  maze: {
    side: 30, cells: 900, blank: " ", symbols: "# SG",
    help: "Draw walls by dragging. Keys: arrows move, # wall, . free, S start, G goal, space the chosen tool.",
  },
  ...PENCIL,
  ...COLOURS,
};

/** The task that the server knows a task of the page by; undefined where no model is loaded for it. */
export function servedTask(task) {
  const mixed = (isPencil(task) || task === "sudoku") && servedTasks.includes(MIXED) ? MIXED : undefined;
  return servedTasks.includes(task) ? task : mixed;
}

/** A task as the page calls it. */
export const titleOf = (task) => TASKS[task]?.title ?? task;

/** Add the other tasks of the server, whose first symbol is the blank; returns the names of all that are new on the page. */
export function learn(loaded) {
  servedTasks = loaded.map(({ task }) => task);
  const known = Object.keys({ ...PENCIL, ...COLOURS }).filter(servedTask);
  for (const { task, colours } of loaded) if (isColours(task)) COLOURS[task].palette = colours.filter(Boolean); // some tokens have none
  const fresh = loaded.filter(({ task, symbols }) => symbols && task !== MIXED && !Object.hasOwn(TASKS, task));
  for (const { task, side, cells, symbols } of fresh) {
    const written = `“${symbols[0]}”`;
    TASKS[task] = {
      side, cells, symbols, written, blank: symbols[0], alsoBlank: "", skipped: /\s/,
      expected: `“${symbols.slice(1)}” and ${written} for a blank`,
      help: `Type the clues, ${written} for a blank; arrows move. Pasting a whole puzzle works too.`,
    };
  }
  return new Set([...known, ...fresh.map(({ task }) => task)]);
}

/** A puzzle with nothing in it. */
export function blankPuzzle(task) {
  if (isPencil(task)) return blankAddress(task);
  return isColours(task) ? writeColours(blankColours(task)) : TASKS[task].blank.repeat(TASKS[task].cells);
}

/** A cell in words, counted from 1. */
export const place = (cell, side) => `row ${Math.floor(cell / side) + 1}, column ${(cell % side) + 1}`;

/** Text as pasted -> the puzzle on one line; throws an Error of one sentence. */
export function parse(task, text) {
  if (isPencil(task)) return parseAddress(task, text);
  if (isColours(task)) return writeColours(readColours(task, text));
  if (task === "sudoku" && isAddress(text)) return sudokuOf(text);
  return task === "maze" ? parseMaze(text) : parseGrid(TASKS[task], text);
}

function parseGrid({ side, cells: count, blank, symbols, alsoBlank, skipped, expected, written }, text) {
  let cells = "";
  for (const character of text) {
    if (symbols.includes(character)) cells += character;
    else if (alsoBlank.includes(character)) cells += blank;
    else if (!skipped.test(character)) {
      const where = cells.length < count ? place(cells.length, side) : `cell ${cells.length + 1}`;
      throw new Error(`Expected ${expected}, got “${character}” at ${where}.`);
    }
  }
  if (cells.length !== count) throw new Error(`Expected ${count} cells, got ${cells.length}; write ${written} for a blank.`);
  return cells;
}

function parseMaze(text) {
  const { side, cells } = TASKS.maze;
  const lines = text.replaceAll("\r\n", "\n").replace(/^\n+|\n+$/g, "").split("\n");
  if (lines.length > 1) {
    if (lines.length !== side) throw new Error(`Expected ${side} lines of ${side} cells, got ${lines.length} lines.`);
    const bad = lines.findIndex((line) => line.length !== side);
    if (bad >= 0) throw new Error(`Expected ${side} cells in row ${bad + 1}, got ${lines[bad].length}; spaces at the ends are cells.`);
  }
  const line = lines.join("");
  if (line.length !== cells) throw new Error(`Expected ${cells} cells, got ${line.length}; spaces at the ends are cells.`);
  const foreign = line.search(/[^# SG]/);
  if (foreign >= 0) throw new Error(`Expected only “#”, space, “S” and “G”, got “${line[foreign]}” at ${place(foreign, side)}.`);
  return line;
}

/** The cells whose clues conflict, and one sentence that says why: {cells: Set, sentence}. */
export function faults(task, puzzle) {
  if (task === "sudoku") return sudokuFaults(puzzle);
  return task === "maze" ? mazeFaults(puzzle) : { cells: new Set(), sentence: "" }; // the server knows the rules of other tasks
}

function sudokuFaults(puzzle) {
  const cells = new Set();
  let sentence = "";
  for (const [unit, members] of units()) {
    const seen = new Map();
    for (const cell of members) {
      const digit = puzzle[cell];
      if (digit === ".") continue;
      if (seen.has(digit)) {
        cells.add(cell).add(seen.get(digit));
        sentence ||= `${digit} occurs twice in ${unit}; correct one of them.`;
      }
      seen.set(digit, cell);
    }
  }
  return { cells, sentence };
}

/** The 27 units of a Sudoku: name and cells. */
function* units() {
  const nine = [...Array(9).keys()];
  for (const n of nine) {
    yield [`row ${n + 1}`, nine.map((k) => 9 * n + k)];
    yield [`column ${n + 1}`, nine.map((k) => 9 * k + n)];
    const corner = 27 * Math.floor(n / 3) + 3 * (n % 3);
    yield [`box ${n + 1}`, nine.map((k) => corner + 9 * Math.floor(k / 3) + (k % 3))];
  }
}

function mazeFaults(puzzle) {
  const missing = ["S", "G"].filter((mark) => !puzzle.includes(mark));
  const twice = ["S", "G"].find((mark) => puzzle.indexOf(mark) !== puzzle.lastIndexOf(mark));
  const cells = new Set(twice ? [...puzzle.matchAll(twice)].map((match) => match.index) : []);
  if (twice) return { cells, sentence: `“${twice}” occurs more than once; keep one.` };
  const names = { S: "a start (S)", G: "a goal (G)" };
  const sentence = missing.length ? `The maze still needs ${missing.map((m) => names[m]).join(" and ")}.` : "";
  return { cells, sentence };
}

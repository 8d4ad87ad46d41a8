// The address <-> the state: task, puzzle and settings, so that a link shows the same.

import { TASKS, blankPuzzle, parse } from "./tasks.js";

/** Settings and the methods that have them; what is not set is the method's own. */
const GUIDED = ["particles", "noise", "beta", "resample_below", "outer_steps", "guide"];
export const METHODS = {
  adaptive: [...GUIDED, "rules"],
  guided: GUIDED,
  unguided: ["particles", "noise", "outer_steps"],
  deterministic: ["outer_steps"],
  ptrm: ["particles", "noise", "outer_steps", "guide"],
};
const NUMBERS = new Set(["seed", "particles", "noise", "beta", "resample_below", "outer_steps"]);

/** The state of a fresh page, with nothing on the board. */
export function freshState(task = "sudoku") {
  return { task, puzzle: blankPuzzle(task), settings: { method: "adaptive", seed: 0 } };
}

/** The address's hash -> the state; null where it holds none that can be read. */
export function readAddress(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const task = fields.get("task");
  if (!Object.hasOwn(TASKS, task)) return null; // `in` would find "constructor"
  const state = freshState(task);
  try {
    const packed = fields.get("puzzle") ?? "";
    if (packed) state.puzzle = task === "maze" ? unpackMaze(packed) : parse(task, packed);
  } catch {
    return null;
  }
  state.settings = readSettings(fields);
  return state;
}

/** Names and texts (of an address or a form) -> settings that the chosen method has. */
export function readSettings(fields) {
  const chosen = fields.get("method");
  const settings = { method: Object.hasOwn(METHODS, chosen) ? chosen : "adaptive", seed: 0 };
  for (const name of ["seed", ...METHODS[settings.method]]) {
    const text = fields.get(name);
    if (text == null || text === "") continue;
    const value = NUMBERS.has(name) ? Number(text) : name === "rules" ? text === "true" : text;
    if (value !== false && (!NUMBERS.has(name) || Number.isFinite(value))) settings[name] = value;
  }
  return settings;
}

/** The state -> the hash of its address. */
export function writeAddress({ task, puzzle, settings }) {
  const packed = task === "maze" ? packMaze(puzzle) : puzzle;
  return `#${new URLSearchParams({ task, puzzle: packed, ...settings })}`;
}

/** A maze as a bit for each wall, six to a letter, then the cells of S and G: 900 -> 160 letters. */
export function packMaze(puzzle) {
  let letters = "";
  for (let cell = 0; cell < puzzle.length; cell += 6) {
    let bits = 0;
    for (let k = 0; k < 6; k++) bits = 2 * bits + (puzzle[cell + k] === "#" ? 1 : 0);
    letters += LETTERS[bits];
  }
  return `${letters}.${puzzle.indexOf("S")}.${puzzle.indexOf("G")}`;
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

function unpackMaze(packed) {
  const [letters, start, goal] = packed.split(".");
  const bits = [...letters].map((letter) => LETTERS.indexOf(letter).toString(2).padStart(6, "0")).join("");
  const cells = [...bits].map((bit) => (bit === "1" ? "#" : " "));
  if (start >= 0) cells[start] = "S";
  if (goal >= 0) cells[goal] = "G";
  return parse("maze", cells.join(""));
}

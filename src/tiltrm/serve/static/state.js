// The state of the page (task, puzzle, settings), and the address that holds it, so that a link shows the same.

import { TASKS, blankPuzzle, parse } from "./tasks.js";

let table = { methods: ["adaptive"], settings: [] };

/** The seed, which every method has and which is not in the table. */
export const SEED = {
  name: "seed", kind: "int", label: "Seed", help: "seed of the noise", least: 0, most: null, choices: [], placeholder: "0",
};

/** Take over the server's table: {methods, settings: [{name, kind, least, most, choices, label, help, methods}]}. */
export const learnSettings = (found) => void (table = found);
export const methods = () => table.methods;
export const allSettings = () => table.settings;

const METHOD_WORDS = {
  adaptive: "stops when sure",
  guided: "weighted by a guide",
  unguided: "a plain vote",
  deterministic: "no noise",
  ptrm: "best score of 100",
};

/** A method with its description, for a list of choices. */
export const methodWords = (name) => (Object.hasOwn(METHOD_WORDS, name) ? `${name}: ${METHOD_WORDS[name]}` : name);

/** Whether two records of settings are equal. */
export const sameSettings = (some, other) => Object.keys({ ...some, ...other }).every((name) => some[name] === other[name]);

/** The settings that a method has. */
export const settingsOf = (method) => table.settings.filter((row) => row.methods.includes(method));

/** The state of a new page, with an empty board. */
export function freshState(task = "sudoku") {
  return { task, puzzle: blankPuzzle(task), settings: { method: "adaptive", seed: 0 } };
}

/** The address's hash -> the state; null if it holds none that can be read. */
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
  const settings = { method: table.methods.includes(chosen) ? chosen : "adaptive", seed: 0 };
  for (const { name, kind } of [SEED, ...settingsOf(settings.method)]) {
    const value = readValue(kind, fields.get(name) ?? "");
    if (value !== undefined) settings[name] = value;
  }
  return settings;
}

/** The value of a setting; undefined if there is none, or none that can be read. */
function readValue(kind, text) {
  if (text === "") return undefined;
  if (kind === "str") return text;
  if (kind === "bool") return text === "true" || undefined;
  return Number.isFinite(Number(text)) ? Number(text) : undefined;
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

// The pencil puzzles on the page: clues as text, boards, and what is wrong with one while one types.
// A puzzle is its puzz.link address.

import { LARGEST, UNKNOWN, decodeBoard, edges, encodeBoard, roomsOf } from "./addresses.js";

export const MOST_ISLAND = 45; // cells of an island
const TYPING = "Arrows move. Pasting an address works too.";

export const PENCIL = {
  lightup: { title: "Light Up", keys: "#01234", blankKey: "#", help: `# is a black cell, 0 to 4 one with its number, a dot none. ${TYPING}` },
  nurikabe: { title: "Nurikabe", keys: "?1234567890", help: `Type the sizes of the islands, ? for an unknown one. ${TYPING}` },
  heyawake: { title: "Heyawake", keys: "0123456789", help: `Click an edge, or press Shift and an arrow, for a border; type a room’s number. ${TYPING}` },
  tapa: { title: "Tapa", keys: "012345678?", help: `Type the numbers of a clue one after the other, ? for an unknown one. ${TYPING}` },
};

export const isPencil = (task) => Object.hasOwn(PENCIL, task);

/** A board with nothing on it. */
export const blankBoard = (type, width = LARGEST, height = LARGEST) => ({
  type, width, height, clues: Array.from({ length: width * height }, () => []),
  borders: type === "heyawake" ? edges(width, height).map(() => false) : [],
});

export const blankAddress = (type) => encodeBoard(blankBoard(type));

/** Text as pasted -> the address in the one form that the page has; throws an Error of one sentence. */
export function parseAddress(task, text) {
  const board = decodeBoard(text);
  if (board.type !== task) throw new Error(`Expected the address of a ${task}, got that of a ${board.type}.`);
  return encodeBoard(board);
}

/** The 81 characters of a Sudoku's address. */
export function sudokuOf(text) {
  const { clues } = decodeBoard(text);
  return clues.map(([digit]) => digit ?? ".").join("");
}

/** The address of a Sudoku of 81 characters. */
export const addressOfSudoku = (puzzle) =>
  encodeBoard({ type: "sudoku", width: 9, height: 9, clues: [...puzzle].map((mark) => (mark === "." ? [] : [Number(mark)])), borders: [] });

/** A clue as it is typed and shown; empty where there is none. */
export const clueText = (type, clue) =>
  clue.map((number) => (number === UNKNOWN ? (type === "lightup" ? "#" : "?") : number)).join("");

/** The clue of a text; null where the type has no such clue. `most` is that of a room. */
function clueOf(type, text, most) {
  if (text === "#" || (text === "?" && type !== "heyawake")) return (text === "#") === (type === "lightup") ? [UNKNOWN] : null;
  if (type === "tapa") return tapaClue([...text].map((mark) => (mark === "?" ? UNKNOWN : Number(mark))));
  const number = /^\d{1,2}$/.test(text) ? Number(text) : NaN;
  const [least, highest] = { lightup: [0, 4], nurikabe: [1, MOST_ISLAND], heyawake: [0, most] }[type];
  return number >= least && number <= highest && String(number) === text ? [number] : null;
}

/** Runs of shaded cells round a clue, with a gap after each of several. */
function tapaClue(clue) {
  const total = clue.reduce((sum, number) => sum + Math.max(number, 1), 0);
  const fits = clue.length === 1 ? clue[0] <= 8 : clue.length <= 4 && !clue.includes(0) && total + clue.length <= 8;
  return fits ? clue : null;
}

/** The clue after another key: one more digit where that is a clue, else the key alone; null for a key without meaning. */
export function typedClue(type, before, key, most) {
  if (!PENCIL[type].keys.includes(key)) return null;
  return clueOf(type, before + key, most) ?? clueOf(type, key, most);
}

/** The board of another size, with the clues and borders that still have their place. */
export function resized(board, width, height) {
  const fresh = blankBoard(board.type, width, height);
  const old = new Map(edges(board.width, board.height).map((pair, k) => [name(pair, board.width), board.borders[k]]));
  if (fresh.borders.length) fresh.borders = edges(width, height).map((pair) => old.get(name(pair, width)) ?? false);
  fresh.clues = keptCells(board.clues, board, fresh, []);
  return tidy(fresh);
}

/** The cells of a board in a board of another size; new cells are `blank`. */
export const keptCells = (cells, before, { width, height }, blank) => Array.from({ length: width * height }, (_, cell) => {
  const row = Math.floor(cell / width), column = cell % width;
  return row < before.height && column < before.width ? cells[row * before.width + column] : blank;
});

const name = ([one, other], width) => `${Math.floor(one / width)},${one % width},${other - one === 1}`;

/** A Heyawake with the number of each room in its first cell, and one of them only. */
export function tidy(board) {
  if (board.type !== "heyawake") return board;
  const rooms = roomsOf(board.borders, board.width, board.height);
  const found = new Map();
  rooms.forEach((room, cell) => {
    if (board.clues[cell].length && !found.has(room)) found.set(room, board.clues[cell]);
  });
  const sizes = (room) => rooms.filter((other) => other === room).length;
  const clues = rooms.map((room, cell) =>
    rooms.indexOf(room) === cell && (found.get(room)?.[0] ?? 0) <= sizes(room) ? found.get(room) ?? [] : []);
  return { ...board, clues };
}

/** What keeps a board from being sent, in one sentence; empty for nothing. */
export function boardFault({ type, clues }) {
  const empty = clues.every((clue) => !clue.length);
  return empty && type !== "heyawake" ? "The board has no clue yet." : "";
}

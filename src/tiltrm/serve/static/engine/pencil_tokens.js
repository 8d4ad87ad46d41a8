// The shared vocabulary of the pencil puzzles, and addresses as boards of 10 x 10 tokens: tiltrm/tasks/pencil/tokens.py.

import { LARGEST, UNKNOWN, decodeBoard, edges, encodeBoard, roomsOf } from "../addresses.js";
import { MOST_ISLAND } from "../pencil.js";
import { BLANK } from "./rules.js";

export const SIDE = LARGEST;
export const PAD = 0, UNSHADED = 11, SHADED = 12, LIGHT = 13;
const DIGITS = 1; // a Sudoku digit d is the id DIGITS + d
export const BLACK = 14; // Light Up: a black cell without a number; the number n is BLACK + 1 + n
export const ISLAND = 20; // Nurikabe: “?”; the number n is ISLAND + n
export const ROOM = 66, NUMBERS = 9, MORE = 8; // Heyawake: ROOM + NUMBERS * borders + number
export const UP = 1, LEFT = 2, RIGHT = 4, DOWN = 8; // bits of the borders of a cell
export const WALL = 210; // Tapa: WALL + the place in TAPA_CLUES
export const TYPES = ["sudoku", "lightup", "nurikabe", "heyawake", "tapa"];
const STARTS = [BLACK, ISLAND, ROOM, WALL]; // the first id of each type but Sudoku

const last = (number) => (number === UNKNOWN ? Infinity : number);
/** A Tapa clue means the same in any order: rising numbers, “?” last. */
const sortedClue = (clue) => [...clue].sort((a, b) => last(a) - last(b));

/** All clues of Tapa, in the order of their ids: runs of 8 cells with gaps between them. */
function tapaClues() {
  const numbers = [1, 2, 3, 4, 5, UNKNOWN];
  const rising = (count, from = 0) =>
    count ? numbers.slice(from).flatMap((number, k) => rising(count - 1, from + k).map((rest) => [number, ...rest])) : [[]];
  const fits = (clue) => clue.reduce((sum, number) => sum + Math.max(number, 1), clue.length) <= 8;
  return [[UNKNOWN], ...Array.from({ length: 9 }, (_, number) => [number]), ...[2, 3, 4].flatMap((count) => rising(count).filter(fits))];
}

export const TAPA_CLUES = tapaClues();
const TAPA_IDS = new Map(TAPA_CLUES.map((clue, place) => [clue.join(), WALL + place]));

/** The type of a question. */
export const typeOf = (tokens) => TYPES[STARTS.filter((first) => Math.max(...tokens) >= first).length];

/** An address, or 81 characters of a Sudoku -> {tokens, address}; throws an Error of one sentence. */
export function readPuzzle(text) {
  const plain = /^[.1-9]{81}$/.test(text);
  const board = plain
    ? { type: "sudoku", width: 9, height: 9, clues: [...text].map((mark) => (mark === "." ? [] : [Number(mark)])), borders: [] }
    : decodeBoard(text);
  if (board.type === "tapa") board.clues = board.clues.map(sortedClue);
  const ids = board.type === "heyawake" ? roomIds(board) : board.clues.map((clue) => clueId(board.type, clue));
  const tokens = new Uint8Array(SIDE * SIDE).fill(PAD);
  ids.forEach((id, cell) => (tokens[Math.floor(cell / board.width) * SIDE + (cell % board.width)] = id));
  return { tokens, address: encodeBoard(board) };
}

const ALLOWED = {
  tapa: "runs that fit round a cell", lightup: "numbers 0 to 4", nurikabe: `numbers 1 to ${MOST_ISLAND}`, sudoku: "digits 1 to 9",
};

function clueId(type, clue) {
  if (!clue.length) return BLANK;
  const [number] = clue;
  if (type === "tapa" && TAPA_IDS.has(clue.join())) return TAPA_IDS.get(clue.join());
  if (type === "lightup" && number >= UNKNOWN && number <= 4) return BLACK + 1 + number;
  if (type === "nurikabe" && (number === UNKNOWN || (number >= 1 && number <= MOST_ISLAND))) return ISLAND + Math.max(number, 0);
  if (type === "sudoku" && number >= 1 && number <= 9) return DIGITS + number;
  throw new Error(`Expected ${ALLOWED[type]} in a ${type}, got ${clue.map((each) => (each === UNKNOWN ? "?" : each)).join(" ")}.`);
}

/** Every cell of a room has its borders and its number; MORE stands for the part of a number above 6. */
function roomIds({ width, height, clues, borders }) {
  const sides = clues.map((_, cell) =>
    UP * (cell < width) | LEFT * (cell % width === 0) | RIGHT * (cell % width === width - 1) | DOWN * (cell >= width * (height - 1)));
  edges(width, height).forEach(([one, other], k) => {
    if (!borders[k]) return;
    sides[one] |= other === one + 1 ? RIGHT : DOWN;
    sides[other] |= other === one + 1 ? LEFT : UP;
  });
  const rooms = roomsOf(borders, width, height);
  const numbers = new Map(), left = new Map(); // by room: the number, and the cells that still have to show MORE
  rooms.forEach((room, cell) => {
    if (numbers.has(room)) return;
    const number = clues[cell][0] ?? UNKNOWN, size = rooms.filter((other) => other === room).length;
    if (number - (MORE - 2) > size) throw new Error(`Expected at most ${size} in a room of ${size} cells, got ${number}.`);
    numbers.set(room, number);
    left.set(room, Math.max(0, number - (MORE - 2)));
  });
  return rooms.map((room, cell) => {
    const more = left.get(room) > 0;
    if (more) left.set(room, left.get(room) - 1);
    return ROOM + NUMBERS * sides[cell] + (more ? MORE : Math.min(numbers.get(room), MORE - 2) + 1);
  });
}

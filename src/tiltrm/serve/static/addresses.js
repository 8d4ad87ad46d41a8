// puzz.link addresses, PREFIX?NAME/WIDTH/HEIGHT/BODY: the format of tiltrm/tasks/pencil/address.py.
// A board is {type, width, height, clues, borders}: a list of numbers for each cell, [] without a
// clue and UNKNOWN for “?”; borders (Heyawake only) between the pairs of `edges`.

export const UNKNOWN = -1;
export const SMALLEST = 4;
export const LARGEST = 10; // sides of a board
const PREFIX = "https://puzz.link/p?";
const NAMES = { sudoku: "sudoku", lightup: "lightup", akari: "lightup", bijutsukan: "lightup", nurikabe: "nurikabe", heyawake: "heyawake", tapa: "tapa" };
const ADDRESS = /^(?:https?:\/\/)?[\w.~:/-]+\?(?:m[+/])?([a-z]+)(?:_edit|_play)?\/(\S*)$/;
const DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz";
const RUNS = "ghijklmnopqrstuvwxyz"; // 1 .. 20 cells without a clue
const LONG = { "-": 2, "+": 3 }; // digits in base 16 after each mark
const TAPA = { 2: [360, 6], 3: [396, 4], 4: [460, 2] }; // numbers in a clue -> offset, base

/** Does a text look like the address of a puzzle, of any type? */
export const isAddress = (text) => ADDRESS.test(text.trim());

/** The board of an address; throws an Error of one sentence. */
export function decodeBoard(text) {
  const [, name, data] = ADDRESS.exec(text.trim()) ?? [];
  if (!name) throw new Error(`Expected an address like ${PREFIX}nurikabe/10/10/…`);
  if (!Object.hasOwn(NAMES, name)) throw new Error(`Expected a Sudoku, Light Up, Nurikabe, Heyawake or Tapa, got “${name}”.`);
  const type = NAMES[name];
  const parts = data.replace(/\/+$/, "").replace(/^\//, "").split("/");
  const [width, height] = parts.slice(0, 2).map((part) => (/^\d{1,4}$/.test(part) ? Number(part) : NaN));
  if (!(width > 0 && height > 0)) throw new Error(`Expected ${name}/WIDTH/HEIGHT/CLUES in the address.`);
  const fits = type === "sudoku" ? width === 9 && height === 9 : Math.min(width, height) >= SMALLEST && Math.max(width, height) <= LARGEST;
  if (!fits) {
    const sizes = type === "sudoku" ? "9 x 9" : `${SMALLEST} x ${SMALLEST} to ${LARGEST} x ${LARGEST}`;
    throw new Error(`Expected a ${type} board of ${sizes}, got ${width} x ${height}.`);
  }
  const body = parts.slice(2).join("/");
  if (type === "heyawake") return decodeRooms(width, height, body);
  const steps = { lightup: fourCells, tapa: tapaCells }[type] ?? numbers;
  return { type, width, height, clues: filled(steps(body), width * height, "cells"), borders: [] };
}

/** The address of a board. */
export function encodeBoard({ type, width, height, clues, borders }) {
  let body;
  if (type === "heyawake") {
    const right = (width - 1) * height;
    const rooms = roomsOf(borders, width, height);
    const firsts = [...Array(Math.max(...rooms) + 1).keys()].map((room) => rooms.indexOf(room));
    body = packed(borders.slice(0, right)) + packed(borders.slice(right)) + joined(firsts.map((cell) => clues[cell]), writeNumber);
  } else if (type === "lightup") body = writeFour(clues);
  else body = joined(clues, type === "tapa" ? writeTapa : writeNumber);
  return `${PREFIX}${type}/${width}/${height}/${body}${body.endsWith(".") ? "/" : ""}`;
}

/** Pairs of neighbours: those side by side, then those one above the other. */
export function edges(width, height) {
  const cells = [...Array(width * height).keys()];
  return [...cells.filter((cell) => cell % width < width - 1).map((cell) => [cell, cell + 1]),
          ...cells.slice(0, width * (height - 1)).map((cell) => [cell, cell + width])];
}

/** The room of each cell, numbered in order of their first cells. */
export function roomsOf(borders, width, height) {
  const doors = Array.from({ length: width * height }, () => []);
  edges(width, height).forEach(([one, other], k) => {
    if (borders[k]) return;
    doors[one].push(other);
    doors[other].push(one);
  });
  const rooms = Array(doors.length).fill(-1);
  let count = 0;
  for (const first of rooms.keys()) {
    if (rooms[first] >= 0) continue;
    const stack = [first];
    rooms[first] = count;
    while (stack.length) {
      for (const other of doors[stack.pop()]) {
        if (rooms[other] >= 0) continue;
        rooms[other] = count;
        stack.push(other);
      }
    }
    count++;
  }
  return rooms;
}

const strange = (character) => new Error(`Expected the clues of an address, got the character “${character}”.`);

/** Clues from steps [clue, places that it and the blanks after it take]. */
function filled(steps, count, what) {
  const clues = [];
  for (const [clue, places] of steps) {
    if (clues.length >= count || (!clue.length && clues.length + places > count)) throw new Error(`Expected clues for ${count} ${what}, got more; is the size right?`);
    clues.push(clue, ...Array.from({ length: places - 1 }, () => []));
  }
  if (clues.length < count) throw new Error(`Expected clues for ${count} ${what}, got ${clues.length}; the address seems to be cut off.`);
  return clues.slice(0, count);
}

/** The steps that all types share: “?” and cells without a clue; null for any other character. */
const common = (character) =>
  character === "." ? [[UNKNOWN], 1] : RUNS.includes(character) ? [[], 1 + RUNS.indexOf(character)] : null;

function* fourCells(body) {
  for (const character of body) {
    const value = DIGITS.indexOf(character);
    if (value >= 0 && value < 15) yield [[value % 5], 1 + Math.floor(value / 5)];
    else yield common(character) ?? fail(character);
  }
}

function* numbers(body) {
  for (let at = 0; at < body.length; at++) {
    const length = LONG[body[at]] ?? 0;
    const digits = length ? body.slice(at + 1, at + 1 + length) : body[at];
    const known = common(body[at]);
    if (known) yield known;
    else if (digits.length === (length || 1) && /^[0-9a-f]+$/.test(digits)) yield [[parseInt(digits, 16)], 1];
    else fail(body[at]);
    at += length;
  }
}

function* tapaCells(body) {
  for (let at = 0; at < body.length; at++) {
    const character = body[at], known = common(character);
    if (known) yield known;
    else if (character === "9") yield [[1, 1, 1, 1], 1];
    else if (/[0-8]/.test(character)) yield [[Number(character)], 1];
    else if (/[a-f]/.test(character)) yield [several(body.slice(at, ++at + 1)), 1];
    else fail(character);
  }
}

function fail(character) {
  throw strange(character);
}

function several(pair) {
  const value = pair.length === 2 ? parseInt(pair, 36) : 0;
  for (const [count, [offset, base]] of Object.entries(TAPA)) {
    const rest = value - offset;
    if (rest < 0 || rest >= base ** count) continue;
    return [...Array(Number(count)).keys()].map((k) => Math.floor(rest / base ** (count - 1 - k)) % base || UNKNOWN);
  }
  throw strange(pair);
}

function decodeRooms(width, height, body) {
  const right = (width - 1) * height, below = width * (height - 1);
  const first = Math.ceil(right / 5), numbered = first + Math.ceil(below / 5);
  const borders = [...bits(body.slice(0, first), right), ...bits(body.slice(first, numbered), below)];
  const rooms = roomsOf(borders, width, height);
  const found = filled(numbers(body.slice(numbered)), Math.max(...rooms) + 1, "rooms");
  const clues = rooms.map((room, cell) => (rooms.indexOf(room) === cell ? found[room] : []));
  return { type: "heyawake", width, height, clues, borders };
}

function bits(text, count) {
  if (text.length !== Math.ceil(count / 5)) throw new Error("Expected borders for all cells; the address seems to be cut off.");
  return [...text].flatMap((character) => {
    const value = DIGITS.indexOf(character);
    if (value < 0 || value > 31) throw strange(character);
    return [16, 8, 4, 2, 1].map((bit) => (value & bit) > 0);
  }).slice(0, count);
}

const packed = (borders) =>
  Array.from({ length: Math.ceil(borders.length / 5) }, (_, k) =>
    DIGITS[borders.slice(5 * k, 5 * k + 5).reduce((sum, border, place) => sum + (border ? 16 >> place : 0), 0)]).join("");

/** Letters for so many places without a clue. */
const run = (blanks) => RUNS.at(-1).repeat(Math.floor(blanks / 20)) + (blanks % 20 ? RUNS[(blanks % 20) - 1] : "");

function joined(clues, write) {
  let text = "", blanks = 0;
  for (const clue of clues) {
    if (clue.length) text += run(blanks) + write(clue);
    blanks = clue.length ? 0 : blanks + 1;
  }
  return text + run(blanks);
}

function writeNumber([number]) {
  const digits = number.toString(16);
  return number === UNKNOWN ? "." : { 1: "", 2: "-", 3: "+" }[digits.length] + digits;
}

function writeTapa(clue) {
  if (clue.length === 1) return clue[0] === UNKNOWN ? "." : String(clue[0]);
  if (clue.join("") === "1111") return "9";
  const [offset, base] = TAPA[clue.length];
  const value = clue.reduce((sum, number) => sum * base + Math.max(number, 0), 0) + offset;
  return DIGITS[Math.floor(value / 36)] + DIGITS[value % 36];
}

function writeFour(clues) {
  let text = "", blanks = 0;
  for (let at = 0; at < clues.length; at++) {
    const [number] = clues[at];
    if (number === undefined) {
      blanks++;
      continue;
    }
    text += run(blanks);
    blanks = 0;
    if (number === UNKNOWN) text += ".";
    else {
      let after = 0;
      while (after < 2 && (at + after + 1 >= clues.length || !clues[at + after + 1].length)) after++;
      text += DIGITS[number + 5 * after];
      at += after;
    }
  }
  return text + run(blanks);
}

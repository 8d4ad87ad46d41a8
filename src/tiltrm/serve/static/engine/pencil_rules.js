// The rules of the pencil puzzles on tokens: tiltrm/tasks/pencil/rules.py and boards.py for one board.

import { UNKNOWN } from "../addresses.js";
import { MOST_ISLAND } from "../pencil.js";
import {
  BLACK, DOWN, ISLAND, LEFT, LIGHT, MORE, NUMBERS, PAD, RIGHT, ROOM, SHADED, SIDE, TAPA_CLUES, UNSHADED, UP, WALL,
} from "./pencil_tokens.js";
import { BLANK } from "./rules.js";

const CELLS = [...Array(SIDE * SIDE).keys()];
const NUMBERS_OF_LINE = [...Array(SIDE).keys()];
const ROWS = NUMBERS_OF_LINE.map((row) => NUMBERS_OF_LINE.map((column) => row * SIDE + column));
const COLUMNS = NUMBERS_OF_LINE.map((column) => NUMBERS_OF_LINE.map((row) => row * SIDE + column));
const AROUND = [[-1, -1], [-1, 0], [-1, 1], [0, 1], [1, 1], [1, 0], [1, -1], [0, -1]]; // clockwise

const count = (is) => CELLS.filter(is).length;
const atRight = (cell) => (cell % SIDE < SIDE - 1 ? cell + 1 : -1);
const below = (cell) => (cell < SIDE * (SIDE - 1) ? cell + SIDE : -1);
/** What a cell of a room shows of its number: 0 for none, n + 1 for n, or MORE. */
export const roomNumber = (token) => (token - ROOM) % NUMBERS;
export const isRoom = (token) => token >= ROOM && token < WALL;

/** The cells that a question decides: clues that stand in the way, and all outside. */
export const given = (puzzle) => [...puzzle].map((token) => !isRoom(token) && token !== BLANK);

/** The least cell of the component of each cell; `joined(cell, other)` for a cell and the one to its right or below it. */
function components(joined) {
  const labels = CELLS.map(() => -1);
  for (const first of CELLS) {
    if (labels[first] >= 0) continue;
    const stack = [first];
    labels[first] = first;
    while (stack.length) {
      const cell = stack.pop();
      for (const [other, one, two] of [
        [atRight(cell), cell, cell + 1], [below(cell), cell, cell + SIDE],
        [cell % SIDE ? cell - 1 : -1, cell - 1, cell], [cell >= SIDE ? cell - SIDE : -1, cell - SIDE, cell],
      ]) {
        if (other < 0 || labels[other] >= 0 || !joined(one, two)) continue;
        labels[other] = first;
        stack.push(other);
      }
    }
  }
  return labels;
}

const groups = (cells) => components((one, other) => cells[one] && cells[other]);

/** Components of the cells that are set, beyond the first. */
function beyondFirst(cells) {
  const labels = groups(cells);
  return Math.max(count((cell) => cells[cell] && labels[cell] === cell) - 1, 0);
}

const squares = (cells) =>
  count((cell) => atRight(cell) >= 0 && below(cell) >= 0 && [cell, cell + 1, cell + SIDE, cell + SIDE + 1].every((k) => cells[k]));

const neighbours = (cells, cell) =>
  [cell % SIDE ? cell - 1 : -1, atRight(cell), cell - SIDE, below(cell)].filter((other) => cells[other]).length;

/** Cells that see a light of their line before them, with only white cells between. */
function seenFrom(lines, lights, white) {
  const seen = CELLS.map(() => false);
  for (const line of lines) {
    let carried = false;
    for (const cell of line) {
      seen[cell] = carried && white[cell];
      carried = (carried || lights[cell]) && white[cell];
    }
  }
  return seen;
}

function lightUp(puzzle, marked) {
  const black = [...puzzle].map((token) => token >= BLACK && token < ISLAND);
  const white = [...puzzle].map((token, cell) => token !== PAD && !black[cell]);
  const lights = marked.map((mark, cell) => mark && white[cell]);
  const turned = (lines) => lines.map((line) => [...line].reverse());
  const [left, above, right, under] = [ROWS, COLUMNS, turned(ROWS), turned(COLUMNS)].map((lines) => seenFrom(lines, lights, white));
  return count((cell) => lights[cell] && left[cell]) + count((cell) => lights[cell] && above[cell])
    + count((cell) => white[cell] && !(lights[cell] || left[cell] || above[cell] || right[cell] || under[cell]))
    + count((cell) => black[cell] && puzzle[cell] > BLACK && neighbours(lights, cell) !== puzzle[cell] - BLACK - 1);
}

function nurikabe(puzzle, shaded) {
  const isClue = (cell) => puzzle[cell] >= ISLAND && puzzle[cell] <= ISLAND + MOST_ISLAND;
  const island = [...puzzle].map((token, cell) => token !== PAD && !shaded[cell]);
  const labels = groups(island), islands = new Map(); // by label: cells, clues
  for (const cell of CELLS) {
    if (!island[cell]) continue;
    const own = islands.get(labels[cell]) ?? { cells: 0, clues: [] };
    own.cells++;
    if (isClue(cell)) own.clues.push(puzzle[cell] - ISLAND); // 0 for “?”
    islands.set(labels[cell], own);
  }
  const faults = [...islands.values()].map(({ cells, clues }) =>
    clues.length === 1 ? Number(clues[0] > 0 && clues[0] !== cells) : Math.abs(clues.length - 1));
  return squares(shaded) + beyondFirst(shaded) + faults.reduce((sum, fault) => sum + fault, 0);
}

/** Borders beyond the first that runs of white cells cross. */
function crossings(lines, white, bordered) {
  let extra = 0;
  for (const line of lines) {
    let crossed = false;
    for (let place = 1; place < line.length; place++) {
      const joined = white[line[place - 1]] && white[line[place]];
      const crosses = joined && bordered(line[place - 1], line[place]);
      if (crosses && crossed) extra++;
      crossed = joined && (crossed || crosses);
    }
  }
  return extra;
}

/** Whether a border lies between a cell and the one to its right or below it. */
function borderedIn(puzzle) {
  const sides = [...puzzle].map((token) => (isRoom(token) ? Math.floor((token - ROOM) / NUMBERS) : 0));
  return (one, other) =>
    other === one + 1 ? Boolean(sides[one] & RIGHT || sides[other] & LEFT) : Boolean(sides[one] & DOWN || sides[other] & UP);
}

/** The first cell of the room of each cell. */
export function roomLabels(puzzle) {
  const bordered = borderedIn(puzzle);
  return components((one, other) => !bordered(one, other) && puzzle[one] !== PAD && puzzle[other] !== PAD);
}

function heyawake(puzzle, shaded) {
  const inside = [...puzzle].map((token) => token !== PAD);
  const bordered = borderedIn(puzzle), labels = roomLabels(puzzle);
  const rooms = new Map(); // by label: the number that is shown, cells that show MORE, shaded cells
  for (const cell of CELLS) {
    const number = isRoom(puzzle[cell]) ? roomNumber(puzzle[cell]) : 0;
    const own = rooms.get(labels[cell]) ?? { shown: 0, more: 0, shaded: 0 };
    own.shown = Math.max(own.shown, Math.min(number, MORE - 1));
    own.more += Number(number === MORE);
    own.shaded += Number(shaded[cell]);
    rooms.set(labels[cell], own);
  }
  const white = inside.map((on, cell) => on && !shaded[cell]);
  return count((cell) => shaded[cell] && shaded[atRight(cell)]) + count((cell) => shaded[cell] && shaded[below(cell)])
    + beyondFirst(white)
    + [...rooms.values()].filter((own) => own.shown > 0 && own.shaded !== own.shown - 1 + own.more).length
    + crossings(ROWS, white, bordered) + crossings(COLUMNS, white, bordered);
}

/** The lengths of the shaded runs round a cell, in a circle; [0] where there is none. */
function runsRound(shaded, cell) {
  const row = Math.floor(cell / SIDE), column = cell % SIDE;
  const ring = AROUND.map(([down, right]) => {
    const r = row + down, c = column + right;
    return r >= 0 && r < SIDE && c >= 0 && c < SIDE && shaded[r * SIDE + c] ? "1" : "0";
  }).join("");
  if (!ring.includes("0")) return [8];
  const gap = ring.indexOf("0");
  const runs = (ring.slice(gap) + ring.slice(0, gap)).split("0").filter(Boolean);
  return runs.length ? runs.map((run) => run.length) : [0];
}

/** Whether runs in any order are those of a clue; “?” is any length. */
function fits(clue, runs) {
  const rest = [...runs];
  for (const number of clue) {
    if (number === UNKNOWN) continue;
    const place = rest.indexOf(number);
    if (place < 0) return false;
    rest.splice(place, 1);
  }
  return runs.length === clue.length;
}

const tapa = (puzzle, shaded) =>
  squares(shaded) + beyondFirst(shaded)
  + count((cell) => puzzle[cell] >= WALL && !fits(TAPA_CLUES[puzzle[cell] - WALL], runsRound(shaded, cell)));

const RULES = { lightup: lightUp, nurikabe, heyawake, tapa };

/** How often the rules of a type are broken; 0 exactly for a solution. Cells outside the board do not count. */
export function violations(type, puzzle, answer) {
  const mark = type === "lightup" ? LIGHT : SHADED;
  const fixed = given(puzzle);
  const decided = (token) => (token >= UNSHADED && token <= LIGHT ? token : UNSHADED);
  const wrong = count((cell) => {
    if (puzzle[cell] === PAD) return false;
    return fixed[cell] ? answer[cell] !== decided(puzzle[cell]) : answer[cell] !== mark && answer[cell] !== UNSHADED;
  });
  return wrong + RULES[type](puzzle, CELLS.map((cell) => puzzle[cell] !== PAD && answer[cell] === mark));
}

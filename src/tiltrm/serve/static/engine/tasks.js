// A task for the search: text to tokens, rules, and the cells and characters of one puzzle.

import { addressOfSudoku } from "../pencil.js";
import { CELL_CLUES } from "./guesses.js";
import { PENCIL_CLUES } from "./pencil_clues.js";
import { given, violations } from "./pencil_rules.js";
import { PAD, SIDE, readPuzzle, typeOf } from "./pencil_tokens.js";
import { rulesOf } from "./rules.js";

const NO_BOARD = 1000; // broken rules of what is no board of its type
const SYMBOLS = { 11: ".", 12: "#", 13: "o" }; // of the answers of pencil puzzles

/**
 * The task of a model's description: {encode, text, given, violations, isSolved, clues, cells, columns, answerText, type,
 * address}; mazes have pathLength, too. `clues` are those of guesses: {inAnswer, add}.
 */
export const taskOf = (known) => (known.task === "pencil" ? pencilTask() : plainTask(known));

function plainTask({ task, side, symbols }) {
  const rules = rulesOf(task, side);
  return {
    ...rules,
    clues: CELL_CLUES,
    encode: (text) => Uint8Array.from([...text], (symbol) => Math.max(symbols.indexOf(symbol), 0)),
    text: (tokens) => written(symbols, tokens),
    cells: (puzzle) => [...puzzle.keys()],
    columns: () => side,
    answerText: (_, answer) => written(symbols, answer),
    type: () => task,
    address: (puzzle) => (task === "sudoku" ? addressOfSudoku(written(symbols, puzzle)) : null),
  };
}

const written = (symbols, tokens) => [...tokens].map((token) => symbols[token] || "?").join("");

/** The five types on boards of at most 10 x 10; a Sudoku has its own rules. */
function pencilTask() {
  const sudoku = rulesOf("sudoku", 9);
  const cells = (puzzle) => [...puzzle.keys()].filter((cell) => puzzle[cell] !== PAD);
  const broken = (puzzle, answer) => {
    if (typeOf(puzzle) !== "sudoku") return violations(typeOf(puzzle), puzzle, answer);
    const own = cells(puzzle);
    if (own.length !== 81) return NO_BOARD;
    return sudoku.violations(own.map((cell) => puzzle[cell]), own.map((cell) => answer[cell]));
  };
  const character = (puzzle) =>
    typeOf(puzzle) === "sudoku" ? (token) => ".123456789"[token - 1] ?? "?" : (token) => SYMBOLS[token] ?? "?";
  const read = new Map(); // tokens -> address, of the puzzles that were encoded
  return {
    encode(text) {
      const { tokens, address } = readPuzzle(text);
      read.set(tokens.join(), address);
      return tokens;
    },
    text: (tokens) => read.get(tokens.join()),
    given, cells, violations: broken, clues: PENCIL_CLUES,
    isSolved: (puzzle, answer) => broken(puzzle, answer) === 0,
    columns: (puzzle) => Math.max(...cells(puzzle).map((cell) => cell % SIDE)) + 1,
    answerText: (puzzle, answer) => cells(puzzle).map((cell) => character(puzzle)(answer[cell])).join(""),
    type: typeOf,
    address: (tokens) => read.get(tokens.join()),
  };
}

// Guesses: fresh particles find one more clue in the puzzle, drawn from the votes so far: tiltrm/explore/guesses.py
// for one puzzle. All weights are integers below 2^53, so the draws are those of the library.

import { derive, uniforms } from "./keys.js";
import { BLANK } from "./rules.js";

export const GUESSING = (1n << 40n) + 1n; // takes a particle's place in the key of the guesses; no particle has it
const PAD = 0; // where an answer gives no clue

/** Clues that are values of blank cells; a clue that an answer gives to each cell, and a puzzle with one more. */
export const CELL_CLUES = {
  inAnswer: (puzzle, answer) => Uint8Array.from(answer, (token, cell) => (puzzle[cell] === BLANK && token > BLANK ? token : PAD)),
  add: (puzzle, cell, clue) => puzzle.map((token, other) => (other === cell ? clue : token)),
};

/** The votes (cell)(token), null before the first, and one for every clue that the answer of a living particle gives. */
export function addVotes(votes, said, alive, vocabulary) {
  const counts = votes ? votes.map((row) => [...row]) : [...said[0]].map(() => Array(vocabulary).fill(0));
  said.forEach((clues, k) => alive[k] && clues.forEach((clue, cell) => clue !== PAD && counts[cell][clue]++));
  return counts;
}

/** The puzzle as each particle finds it, with `count` more clues where votes differ. */
export function fillIn(tokens, votes, key, particles, count, clues) {
  const choices = votes.flatMap(choicesOf);
  const [shared] = uniforms(key, 1);
  return Array.from({ length: particles }, (_, slot) => {
    const spread = (slot + shared) / particles; // the first guesses are one systematic draw, so that the particles differ
    return uniforms(derive(key, slot), count).reduce((filled, own, number) => {
      const chosen = draw(choices.filter(({ cell }) => filled[cell] === tokens[cell]), number ? own : spread);
      return chosen ? clues.add(filled, chosen.cell, chosen.token) : filled;
    }, Uint8Array.from(tokens));
  });
}

/** The clues of a cell that may be chosen, each with its weight: n_d (n^2 - sum of n_d^2) for n_d of n votes. */
function choicesOf(row, cell) {
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const disagreeing = sum(row) ** 2 - sum(row.map((count) => count ** 2));
  return row.map((count, token) => ({ cell, token, weight: count * disagreeing })).filter(({ weight }) => weight > 0);
}

/** The choice at this share of the weights; undefined where no votes differ. */
function draw(choices, uniform) {
  const total = choices.reduce((sum, { weight }) => sum + weight, 0);
  let left = Math.floor(uniform * total);
  return choices.find(({ weight }) => (left -= weight) < 0);
}

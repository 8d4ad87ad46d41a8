// Guesses: fresh particles find cells of the puzzle filled in, drawn from the votes so far: tiltrm/explore/guesses.py
// for one puzzle. All weights are integers below 2^53, so the draws are those of the library.

import { marginals } from "./beliefs.js";
import { derive, uniforms } from "./keys.js";
import { BLANK } from "./rules.js";

export const GUESSING = (1n << 40n) + 1n; // takes a particle's place in the key of the guesses; no particle has it

/** The votes (cell)(token), null before the first, and one for the value of every cell in each living particle's answer. */
export function addVotes(votes, answers, alive, model) {
  const found = marginals(answers, alive.map(Number), model);
  return votes ? votes.map((row, cell) => row.map((count, token) => count + found[cell][token])) : found;
}

/** The puzzle as each particle finds it, with `count` blank cells filled in where votes differ. */
export function fillIn(tokens, votes, key, particles, count) {
  const choices = votes.flatMap(choicesOf);
  const [shared] = uniforms(key, 1);
  return Array.from({ length: particles }, (_, slot) => {
    const filled = Uint8Array.from(tokens);
    const spread = (slot + shared) / particles; // the first guesses are one systematic draw, so that the particles differ
    uniforms(derive(key, slot), count).forEach((own, number) => guess(filled, choices, number ? own : spread));
    return filled;
  });
}

/** The values of a cell that may be chosen, each with its weight: n_d (n^2 - sum of n_d^2) for n_d of n votes. */
function choicesOf(row, cell) {
  const clues = row.map((count, token) => (token > BLANK ? count : 0));
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const disagreeing = sum(clues) ** 2 - sum(clues.map((count) => count ** 2));
  return clues.map((count, token) => ({ cell, token, weight: count * disagreeing })).filter(({ weight }) => weight > 0);
}

/** Fill in the choice at this share of the weights of all blank cells; none where no votes differ. */
function guess(filled, choices, uniform) {
  const open = choices.filter(({ cell }) => filled[cell] === BLANK);
  const total = open.reduce((sum, { weight }) => sum + weight, 0);
  let left = Math.floor(uniform * total);
  const chosen = open.find(({ weight }) => (left -= weight) < 0);
  if (chosen) filled[chosen.cell] = chosen.token;
}

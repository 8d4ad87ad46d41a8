// The best answer of a puzzle among all that any particle ever gave: tiltrm/explore/bank.py for one puzzle.

import { firstBest } from "./select.js";

const BROKEN = 1e6; // the value of a path with broken rules lies below that of any without
const UNCHANGED = 0.5; // cells by which a path of the unchanged puzzle is better: of equal ones it counts

/** The value of every particle's path: the fewer cells the better; any valid path before any with broken rules. */
export const byPath = ({ violations, pathLength }) => ({ puzzle, answers, unchanged }) =>
  answers.map((answer, k) => {
    const broken = violations(puzzle, answer);
    return -(broken ? BROKEN + broken : pathLength(puzzle, answer) - (unchanged[k] ? UNCHANGED : 0));
  });

/** The bank after a step: {value, answer, halt, visited}. A strictly better answer replaces the old one. */
export function banked(bank, { logWeights, answers, halt }, values) {
  const living = logWeights.map((weight) => weight > -Infinity);
  const visited = values.map((value, k) => (living[k] ? value : -Infinity));
  const best = firstBest(visited, living);
  const better = !bank || visited[best] > bank.value;
  return { ...(better ? { value: visited[best], answer: answers[best], halt: halt[best] } : bank), visited };
}

/** Decided once `share` of the living particles, of at least `least`, have a valid path as short as any that was visited. */
export const byShortest = (share, least) => ({ logWeights, bank: { value, visited } }) => {
  const same = visited.map((own) => own > -BROKEN && Math.floor(own) >= Math.floor(value));
  const living = logWeights.filter((weight) => weight > -Infinity).length;
  const agreed = same.filter(Boolean).length / Math.max(living, 1);
  const decided = Math.fround(agreed) >= Math.fround(share) && same.includes(true) && visited.length >= least;
  return { decided, particle: Math.max(same.indexOf(true), 0), probability: agreed, fromBank: true };
};

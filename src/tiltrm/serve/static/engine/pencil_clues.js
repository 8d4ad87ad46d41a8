// Clues that a guess may add to a pencil puzzle: tiltrm/tasks/pencil/clues.py for one board.

import { CELL_CLUES } from "./guesses.js";
import { isRoom, roomLabels, roomNumber } from "./pencil_rules.js";
import { MORE, SHADED } from "./pencil_tokens.js";

/** Values of blank cells; of a Heyawake, the numbers of rooms that have none. */
export const PENCIL_CLUES = {
  /** The first cell of a room stands for all of it; a number above 6 is shown by two kinds of cells, so it is not guessed. */
  inAnswer(puzzle, answer) {
    const found = CELL_CLUES.inAnswer(puzzle, answer);
    if (!puzzle.some(isRoom)) return found;
    const labels = roomLabels(puzzle);
    const shaded = labels.map(() => 0);
    labels.forEach((first, cell) => (shaded[first] += Number(answer[cell] === SHADED)));
    puzzle.forEach((token, cell) => {
      const open = labels[cell] === cell && isRoom(token) && roomNumber(token) === 0;
      if (open && shaded[cell] < MORE - 1) found[cell] = token + 1 + shaded[cell];
    });
    return found;
  },

  /** A number is shown by every cell of its room. */
  add(puzzle, cell, clue) {
    if (!isRoom(clue)) return CELL_CLUES.add(puzzle, cell, clue);
    const labels = roomLabels(puzzle);
    return puzzle.map((token, other) => (labels[other] === labels[cell] ? token - roomNumber(token) + roomNumber(clue) : token));
  },
};

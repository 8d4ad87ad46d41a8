// The rules of Sudokus and mazes on tokens: tiltrm/tasks/sudoku.py and maze.py. Id 0 is the pad.

export const BLANK = 1; // a cell to be filled in, of all tasks but mazes; in a Sudoku, 2 is the digit 1
const WALL = 1, FREE = 2, START = 3, GOAL = 4, PATH = 5; // of a maze

const count = (cells, is) => cells.reduce((sum, value, cell) => sum + (is(value, cell) ? 1 : 0), 0);

/** The units of a Sudoku of this side: rows, columns and boxes, each a list of cells. */
function units(side) {
  const box = Math.sqrt(side), all = [...Array(side).keys()];
  return all.flatMap((n) => {
    const corner = Math.floor(n / box) * box * side + (n % box) * box;
    return [
      all.map((k) => n * side + k),
      all.map((k) => k * side + n),
      all.map((k) => corner + Math.floor(k / box) * side + (k % box)),
    ];
  });
}

function sudoku(side) {
  const lines = units(side);
  const isDigit = (token) => token > BLANK && token <= BLANK + side;
  const violations = (puzzle, answer) =>
    count(puzzle, (token, cell) => isDigit(token) && token !== answer[cell]) +
    count(answer, (token) => !isDigit(token)) +
    lines.reduce((sum, unit) => sum + side - new Set(unit.map((cell) => answer[cell]).filter(isDigit)).size, 0);
  return {
    violations,
    given: (puzzle) => [...puzzle].map(isDigit),
    isSolved: (puzzle, answer) => violations(puzzle, answer) === 0,
  };
}

/** The cells beside a cell of a square grid. */
function* beside(cell, side) {
  if (cell >= side) yield cell - side;
  if (cell < side * (side - 1)) yield cell + side;
  if (cell % side) yield cell - 1;
  if ((cell + 1) % side) yield cell + 1;
}

/** Fewest steps from some cells to every other through free ones; -1 where there is no way. */
function distances(from, free, side) {
  const steps = free.map(() => -1);
  let edge = from;
  for (const cell of from) steps[cell] = 0;
  for (let step = 1; edge.length; step++) {
    const next = [];
    for (const cell of edge) {
      for (const other of beside(cell, side)) {
        if (!free[other] || steps[other] >= 0) continue;
        steps[other] = step;
        next.push(other);
      }
    }
    edge = next;
  }
  return steps;
}

function maze(side) {
  const drawn = (puzzle, answer, cell) => puzzle[cell] === FREE && answer[cell] === PATH;
  const places = (puzzle, token) => [...puzzle.keys()].filter((cell) => puzzle[cell] === token);
  const pathLength = (puzzle, answer) => count(puzzle, (_, cell) => drawn(puzzle, answer, cell)) + 2;

  function violations(puzzle, answer) {
    const cells = [...puzzle.keys()];
    const isEnd = (cell) => puzzle[cell] === START || puzzle[cell] === GOAL;
    const path = cells.map((cell) => drawn(puzzle, answer, cell) || isEnd(cell));
    const reached = distances(places(puzzle, START), path, side);
    const changed = count(puzzle, (token, cell) => token !== answer[cell] && !drawn(puzzle, answer, cell));
    const broken = count(path, (on, cell) => on && [...beside(cell, side)].filter((k) => path[k]).length !== (isEnd(cell) ? 1 : 2));
    const lost = count(path, (on, cell) => on && reached[cell] < 0);
    const missing = [START, GOAL].filter((token) => places(puzzle, token).length !== 1).length;
    return changed + broken + lost + missing;
  }

  function shortestLength(puzzle) {
    const free = [...puzzle].map((token) => token !== WALL);
    const steps = distances(places(puzzle, START), free, side);
    const ends = places(puzzle, GOAL).map((cell) => steps[cell]).filter((step) => step >= 0);
    return (ends.length ? Math.min(...ends) : -1) + 1;
  }

  return {
    violations, pathLength,
    given: (puzzle) => [...puzzle].map((token) => token === WALL || token === START || token === GOAL),
    isSolved: (puzzle, answer) =>
      violations(puzzle, answer) === 0 && pathLength(puzzle, answer) === shortestLength(puzzle),
  };
}

/** {violations, isSolved, given} of a task by its name; mazes have pathLength, too. */
export function rulesOf(task, side) {
  if (task.startsWith("sudoku")) return sudoku(side);
  if (task.startsWith("maze")) return maze(side);
  throw new Error(`Expected a task whose rules this page knows, got ${task}.`);
}

// ARC's tasks on the page: the text of a puzzle, and the grid that an answer holds.
// A puzzle is its text, "NUMBER: 00500/01210", as in tiltrm/tasks/arc/text.py.

export const NO_RECTANGLE = "no rectangle";
const TYPING = "Type digits for colours; arrows move. The JSON of a task can be pasted: its first test input takes the number below.";

/** By task: the sides of its grids, the form of what stands before the colon, and `palette`, which the server says. */
export const COLOURS = {
  arc: { title: "ARC", least: 1, most: 30, head: /^\d{1,10}(?: \+\d{1,2}\+\d{1,2})?$/, examples: "“7” or “7 +2+5”", palette: [], help: TYPING },
  "mini-arc": { title: "Mini-ARC", least: 5, most: 5, head: /^\d{1,10}(?: t[0-7] \d{10})?$/, examples: "“7” or “7 t3 0213456789”", palette: [], help: TYPING },
};
const BLANK_SIDE = 5;

export const isColours = (task) => Object.hasOwn(COLOURS, task);

/** A board of colour 0. */
export const blankColours = (type, width = BLANK_SIDE, height = BLANK_SIDE, head = "0") =>
  ({ type, head, width, height, colours: Array(width * height).fill(0) });

/** The text of a board. */
export function writeColours({ head, width, height, colours }) {
  const rows = Array.from({ length: height }, (_, row) => colours.slice(row * width, (row + 1) * width).join(""));
  return `${head}: ${rows.join("/")}`;
}

/** Text or JSON as pasted -> the board; `number` is that of a puzzle without one. Throws an Error of one sentence. */
export function readColours(type, text, number = "0") {
  const json = /^\s*[[{]/.test(text);
  const colon = json ? -1 : text.lastIndexOf(":");
  const rows = json ? jsonRows(text) : text.slice(colon + 1).split(/[/\n]/).map((row) => [...row.trim()]).filter((row) => row.length);
  const { least, most } = COLOURS[type];
  const [width, height] = [rows[0]?.length ?? 0, rows.length];
  rows.forEach((row, k) => {
    const bad = row.find((colour) => !/^[0-9]$/.test(colour));
    if (bad !== undefined) throw new Error(`Expected colours 0 to 9, with “/” between rows, got “${bad}” in row ${k + 1}.`);
    if (row.length !== width) throw new Error(`Expected rows of one length, got ${width} cells in row 1 and ${row.length} in row ${k + 1}.`);
  });
  if (Math.min(width, height) < least || Math.max(width, height) > most) {
    const sizes = least === most ? `${most} x ${most}` : `${least} x ${least} to ${most} x ${most}`;
    throw new Error(`Expected a grid of ${sizes} cells, got ${height} rows of ${width}.`);
  }
  return { type, head: readHead(type, colon < 0 ? number : text.slice(0, colon)), width, height, colours: rows.flat().map(Number) };
}

/** What stands before the colon, in its one form; throws an Error of one sentence. */
export function readHead(type, text) {
  const head = text.trim().replace(/\s+/g, " ");
  const { head: form, examples } = COLOURS[type];
  if (!form.test(head)) throw new Error(`Expected the number of the puzzle before the colon, as in ${examples}, got “${head.slice(0, 40)}”.`);
  return head;
}

/** The rows of a grid, or of the first test input of a task. */
function jsonRows(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error("Expected the whole JSON of one ARC task, got text that is not JSON.");
  }
  const tasks = Array.isArray(found) || found.test ? [found] : Object.values(found);
  if (tasks.length !== 1) throw new Error(`Expected the JSON of one ARC task, got ${tasks.length}.`);
  const grid = Array.isArray(found) ? found : tasks[0]?.test?.[0]?.input;
  if (!Array.isArray(grid)) throw new Error("Expected the JSON of an ARC task, got one without an input under “test”.");
  return grid.map((row) => [row].flat().map(String));
}

/** The cell of a run's board at which the grids of question and answer begin. */
export function firstCell(run) {
  const [, top, left] = run.colours ? /\+(\d+)\+(\d+):/.exec(run.puzzle) ?? [] : [];
  return top ? top * run.side + Number(left) : 0;
}

/**
 * The size of the grid in an answer and its cells on the board: the largest rectangle of colours
 * from the first cell, of equal ones that with the fewest rows (answer_box of tiltrm/tasks/arc/tokens.py).
 * Height 0 if there is no rectangle. All grids of other tasks have the size of the board.
 */
export function answerGrid(run, tokens) {
  const { side } = run, first = firstCell(run);
  let best = run.task === "arc" ? { width: 0, height: 0 } : { width: side, height: run.cells / side };
  if (run.task === "arc") {
    let width = side - (first % side);
    for (let height = 1; first + (height - 1) * side < run.cells; height++) {
      const row = tokens.slice(first + (height - 1) * side).slice(0, width);
      const end = row.findIndex((token) => !run.colours[token]);
      if (end >= 0) width = end;
      if (width * height > best.width * best.height) best = { width, height };
    }
  }
  const cells = Array.from({ length: best.width * best.height }, (_, k) =>
    first + Math.floor(k / best.width) * side + (k % best.width));
  return { ...best, cells };
}

/** The answer as it is read: its colours, and 0 in all other cells. Tokens of other runs stay as they are. */
export function decoded(run, tokens) {
  if (!run.colours) return tokens;
  const inside = new Set(answerGrid(run, tokens).cells);
  return tokens.map((token, cell) => (inside.has(cell) && run.colours[token] ? token : 0));
}

/** The same for all answers of a frame. */
export const decodedFrame = (run, frame) => (!run.colours ? frame : {
  ...frame, leading: decoded(run, frame.leading),
  grids: frame.grids.map((grid) => ({ ...grid, tokens: decoded(run, grid.tokens) })),
});

/** The size of an answer in words; empty for a run without colours. */
export function sizeWords(run, tokens) {
  if (!run.colours) return "";
  const { width, height } = answerGrid(run, tokens);
  return height ? `${height} x ${width} cells` : NO_RECTANGLE;
}

/** A text as the tokens of a run with colours. */
export function colourTokens(run, text) {
  const tokens = Array(run.cells).fill(0), first = firstCell(run);
  const rows = text.slice(text.indexOf(":") + 1).trim().split("/");
  rows.forEach((row, down) => [...row].forEach((symbol, right) => {
    const token = run.symbols.indexOf(symbol);
    if (run.colours[token]) tokens[first + down * run.side + right] = token;
  }));
  return tokens;
}

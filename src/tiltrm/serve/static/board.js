// The board to type or draw on. One element has the focus and names its active cell, so that 81 or
// 900 cells are one stop of the Tab key.

import { activate, cellAfter } from "./cell_board.js";
import { byId, make } from "./dom.js";
import { TASKS, blankPuzzle, faults, parse, place } from "./tasks.js";

const MARKS = { "#": "wall", " ": "free", S: "start", G: "goal" };
const TOOLS = { "#": "Wall", " ": "Free", S: "Start", G: "Goal" };

export class Board {
  /** `changed(puzzle, sentence)` is called after every edit; the sentence names a fault or is empty. */
  constructor(host, pad, changed) {
    Object.assign(this, { host, pad, changed, task: "", puzzle: "", active: 0, tool: "#", drawing: null });
    this.grid = make("div", { role: "grid", tabindex: 0, class: "board", "aria-describedby": "board-help" });
    host.append(this.grid);
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("pointerdown", (event) => this.press(event));
    this.grid.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (this.drawing = null));
  }

  /** Show this puzzle; cells are built again only if the task changes. */
  show(task, puzzle) {
    if (task !== this.task) this.build(task);
    this.puzzle = puzzle;
    for (let cell = 0; cell < puzzle.length; cell++) this.paint(cell);
    this.mark();
    this.move(Math.min(this.active, puzzle.length - 1));
  }

  /** Forget the board, so that another one can have its place. */
  leave() {
    this.task = "";
    this.grid.replaceChildren();
  }

  /** The error of the puzzle in one sentence, or empty. */
  get fault() {
    return faults(this.task, this.puzzle).sentence;
  }

  build(task) {
    const { side, help } = TASKS[task];
    this.task = task;
    this.side = side;
    this.active = 0;
    this.drawn = task === "maze"; // all others are typed
    this.grid.className = `board ${this.drawn ? "maze" : "typed"}`;
    this.grid.classList.toggle("sudoku", task === "sudoku");
    this.grid.style.setProperty("--side", side);
    this.grid.setAttribute("aria-label", `${{ sudoku: "Sudoku", maze: "Maze" }[task] ?? task} to solve`);
    byId("board-help").textContent = help;
    this.cells = [];
    const rows = Array.from({ length: side }, (_, row) => {
      const cells = Array.from({ length: side }, (_, column) =>
        make("div", { role: "gridcell", id: `cell-${row * side + column}`, "aria-selected": "false" }));
      this.cells.push(...cells);
      return make("div", { role: "row" }, ...cells);
    });
    this.grid.replaceChildren(...rows);
    this.buildPad();
  }

  /** Buttons for use without a keyboard: the symbols, or the tools of the maze. */
  buildPad() {
    if (!this.drawn) {
      const [blank, ...symbols] = TASKS[this.task].symbols;
      const keys = symbols.map((mark) => [mark, mark, `${/[0-9]/.test(mark) ? "Digit" : "Symbol"} ${mark}`]);
      this.pad.replaceChildren(...[...keys, [blank, "⌫", "Erase"]].map(([value, text, label]) => {
        const button = make("button", { type: "button", text, "aria-label": label });
        button.addEventListener("click", () => this.set(this.active, value));
        return button;
      }));
      return;
    }
    this.pad.replaceChildren(...Object.entries(TOOLS).map(([value, text]) => {
      const button = make("button", { type: "button", text, "aria-pressed": value === this.tool });
      button.addEventListener("click", () => this.choose(value));
      return button;
    }));
    this.choose(this.tool);
  }

  choose(tool) {
    this.tool = tool;
    [...this.pad.children].forEach((button, k) =>
      button.setAttribute("aria-pressed", Object.keys(TOOLS)[k] === tool));
  }

  paint(cell) {
    const mark = this.puzzle[cell];
    const element = this.cells[cell];
    if (!this.drawn) element.textContent = mark === TASKS[this.task].blank ? "" : mark;
    else {
      element.dataset.mark = MARKS[mark];
      element.textContent = mark === "S" || mark === "G" ? mark : "";
    }
  }

  /** Mark the clues that conflict. */
  mark() {
    const { cells } = faults(this.task, this.puzzle);
    this.cells.forEach((element, cell) => {
      const wrong = cells.has(cell);
      if (wrong === element.classList.contains("wrong")) return; // most do not change
      element.classList.toggle("wrong", wrong);
      element.setAttribute("aria-invalid", wrong);
    });
    this.name(this.active);
  }

  name(cell) {
    const written = this.puzzle[cell] === TASKS[this.task].blank ? "blank" : this.puzzle[cell];
    const mark = this.drawn ? MARKS[this.puzzle[cell]] : written;
    const wrong = this.cells[cell].classList.contains("wrong") ? ", conflicts" : "";
    this.cells[cell].setAttribute("aria-label", `${place(cell, this.side)}: ${mark}${wrong}`);
  }

  move(cell) {
    activate(this, cell);
  }

  /** Put a mark into a cell, or several. A maze has one S and one G, so the old one is removed. */
  set(where, mark) {
    const cells = [...this.puzzle];
    for (const cell of [where].flat()) {
      const old = this.drawn && (mark === "S" || mark === "G") ? cells.indexOf(mark) : -1;
      if (old >= 0) cells[old] = " ";
      cells[cell] = mark;
    }
    this.replace(cells.join(""));
  }

  replace(puzzle) {
    const before = this.puzzle;
    this.puzzle = puzzle;
    for (let cell = 0; cell < puzzle.length; cell++) if (before[cell] !== puzzle[cell]) this.paint(cell);
    this.mark();
    this.changed(puzzle, this.fault);
  }

  clear() {
    this.replace(blankPuzzle(this.task));
    this.move(0);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const cell = cellAfter(event.key, this.active, this.side, this.side);
    if (cell !== null) this.move(cell);
    else if (!(this.drawn ? this.typeMark(event.key) : this.typeClue(event.key))) return;
    event.preventDefault();
  }

  /** Enter a symbol or a blank and move on, so that a puzzle can be typed in one go. */
  typeClue(key) {
    const { active } = this;
    const { blank, symbols, cells } = TASKS[this.task];
    const meant = [key, key.toLowerCase(), key.toUpperCase()].find((mark) => [...symbols].includes(mark));
    const mark = meant ?? ([".", "0", " ", "_"].includes(key) ? blank : null);
    if (mark !== null) {
      this.set(active, mark);
      this.move(Math.min(active + 1, cells - 1));
    } else if (key === "Backspace") {
      this.set(active, blank);
      this.move(Math.max(active - 1, 0));
    } else if (key === "Delete") this.set(active, blank);
    else return false;
    return true;
  }

  typeMark(key) {
    const named = { "#": "#", ".": " ", Backspace: " ", Delete: " ", s: "S", g: "G" };
    const mark = key === " " || key === "Enter" ? this.stroke(this.active) : named[key] ?? named[key.toLowerCase()];
    if (mark === undefined) return false;
    this.set(this.active, mark);
    return true;
  }

  /** The mark that the tool makes in this cell; the wall tool removes a wall. */
  stroke(cell) {
    return this.tool === "#" && this.puzzle[cell] === "#" ? " " : this.tool;
  }

  press(event) {
    const cell = this.cells.indexOf(event.target);
    if (cell < 0) return;
    this.move(cell);
    if (!this.drawn) return;
    event.target.releasePointerCapture?.(event.pointerId); // else a touch stays with its first cell
    this.drawing = this.stroke(cell);
    this.set(cell, this.drawing);
  }

  drag(event) {
    if (this.drawing === null) return;
    const cell = this.cells.indexOf(document.elementFromPoint(event.clientX, event.clientY));
    if (cell < 0 || cell === this.active) return;
    this.set(between(this.active, cell, this.side), this.drawing);
    this.move(cell);
  }

  /** Take a puzzle from text; false, with the error shown, if it cannot be read. */
  take(text) {
    try {
      this.replace(parse(this.task, text));
      return true;
    } catch (error) {
      this.changed(this.puzzle, error.message);
      return false;
    }
  }
}

/** The cells on the way from one to another without the first: a fast pointer skips some. */
function between(from, to, side) {
  const [down, right] = [Math.floor(to / side) - Math.floor(from / side), (to % side) - (from % side)];
  const steps = Math.max(Math.abs(down), Math.abs(right));
  return Array.from({ length: steps }, (_, k) => {
    const part = (k + 1) / steps;
    return from + Math.round(down * part) * side + Math.round(right * part);
  });
}

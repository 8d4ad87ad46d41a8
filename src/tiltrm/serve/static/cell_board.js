// A board of cells in rows: what the boards of pencil puzzles and of colours share. One element has
// the focus and names its active cell.
//
// A kind of board has the methods `read` (text to board), `write` (back), `parse` (text as pasted to
// text), `faultOf`, `blank`, `resized`, `words` (label, help and sides), `keys` (buttons), `paint`,
// `name`, `type` and `erase`.

import { byId, make } from "./dom.js";

export const MOVES = { ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowDown: [1, 0] };

export class CellBoard {
  /** `changed(puzzle, sentence)` is called after every edit; the sentence names a fault or is empty. */
  constructor(pad, changed, look) {
    Object.assign(this, { pad, changed, board: null, active: 0 });
    this.grid = make("div", { role: "grid", tabindex: 0, class: `board ${look}`, "aria-describedby": "board-help" });
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("pointerdown", (event) => this.press(event));
    for (const [id, side] of [["columns", "width"], ["rows", "height"]]) {
      byId(id).addEventListener("change", (event) => this.resize({ [side]: Number(event.target.value) }));
    }
  }

  /** Show this puzzle; cells are built again only if the type or the size changes. */
  show(task, puzzle) {
    const before = this.board;
    this.board = this.read(task, puzzle);
    const { type, width, height } = this.board;
    if (before?.type !== type || before.width !== width || before.height !== height) this.build();
    this.paint();
    this.move(Math.min(this.active, width * height - 1));
  }

  /** Forget the board, so that another one can have its place. */
  leave() {
    this.board = null;
    this.active = 0;
    this.grid.replaceChildren();
  }

  get puzzle() {
    return this.write(this.board);
  }

  get fault() {
    return this.faultOf(this.board);
  }

  get resizable() {
    const { least, most } = this.words(this.board.type);
    return least < most;
  }

  build() {
    const { type, width, height } = this.board;
    const { label, help, least, most } = this.words(type);
    const longer = Math.max(width, height);
    this.active = 0;
    this.grid.style.setProperty("--side", longer);
    Object.assign(this.grid.style, { width: `${(100 * width) / longer}%`, aspectRatio: `${width} / ${height}` });
    this.grid.setAttribute("aria-label", label);
    this.grid.dataset.type = type;
    byId("board-help").textContent = help;
    for (const [id, value] of [["columns", width], ["rows", height]]) {
      byId(id).replaceChildren(...Array.from({ length: most - least + 1 }, (_, k) => make("option", { text: least + k })));
      byId(id).value = value;
    }
    const rows = Array.from({ length: height }, (_, row) =>
      make("div", { role: "row" }, ...Array.from({ length: width }, (_, column) =>
        make("div", { role: "gridcell", id: `cell-${row * width + column}`, "aria-selected": "false" }))));
    this.cells = rows.flatMap((row) => [...row.children]);
    this.grid.replaceChildren(...rows);
    this.pad.replaceChildren(...this.keys(type));
  }

  move(cell) {
    activate(this, cell);
  }

  /** Another board of the same type. */
  replace(board) {
    const before = this.board;
    this.board = board;
    if (before.width !== board.width || before.height !== board.height) this.build();
    this.paint();
    this.move(Math.min(this.active, this.cells.length - 1));
    this.changed(this.puzzle, this.fault);
  }

  resize(sides) {
    if (this.board) this.replace(this.resized(this.board, sides.width ?? this.board.width, sides.height ?? this.board.height));
  }

  clear() {
    this.replace(this.blank(this.board));
    this.move(0);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { width, height } = this.board;
    const cell = cellAfter(event.key, this.active, width, height);
    if (cell !== null) this.move(cell);
    else if ([".", " ", "Backspace", "Delete"].includes(event.key)) this.erase();
    else if (!this.type(event.key)) return;
    event.preventDefault();
  }

  press(event) {
    const cell = this.cells.indexOf(event.target);
    if (cell >= 0) this.move(cell);
  }

  /** Take a puzzle from text; false, with the error shown, if it cannot be read. */
  take(text) {
    try {
      this.show(this.board.type, this.parse(text));
      this.changed(this.puzzle, this.fault);
      return true;
    } catch (error) {
      this.changed(this.puzzle, error.message);
      return false;
    }
  }
}

/** Make a cell of a board the active one, which the element with the focus names. */
export function activate(board, cell) {
  board.cells[board.active].setAttribute("aria-selected", "false");
  board.active = cell;
  board.cells[cell].setAttribute("aria-selected", "true");
  board.name(cell);
  board.grid.setAttribute("aria-activedescendant", `cell-${cell}`);
}

/** The cell to which a key moves on a board of these sides; null for a key that does not move. */
export function cellAfter(key, active, width, height) {
  const row = Math.floor(active / width), column = active % width;
  const within = (value, most) => Math.min(Math.max(value, 0), most - 1);
  if (key === "Home") return row * width;
  if (key === "End") return row * width + width - 1;
  if (key === "PageUp") return column;
  if (key === "PageDown") return (height - 1) * width + column;
  const step = MOVES[key];
  return step ? within(row + step[0], height) * width + within(column + step[1], width) : null;
}

/** A button of the pad. */
export function padButton(text, label, act) {
  const made = make("button", { type: "button", text, "aria-label": label });
  made.addEventListener("click", act);
  return made;
}

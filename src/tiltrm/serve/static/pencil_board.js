// The board of a pencil puzzle: clues are typed, borders of rooms are clicked. One element has the
// focus and names its active cell.

import { edges, decodeBoard, encodeBoard, roomsOf } from "./addresses.js";
import { byId, make } from "./dom.js";
import { PENCIL, blankBoard, boardFault, clueText, parseAddress, resized, tidy, typedClue } from "./pencil.js";
import { place } from "./tasks.js";

const MOVES = { ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowDown: [1, 0] };
const SIDES = { ArrowUp: "above", ArrowLeft: "left", ArrowRight: "right", ArrowDown: "below" };
const NEAR = 0.22; // of a cell: a click so near to an edge means the border

export class PencilBoard {
  /** `changed(puzzle, sentence)` is called after every edit; the sentence names a fault or is empty. */
  constructor(host, pad, changed) {
    Object.assign(this, { host, pad, changed, board: null, active: 0, fresh: true });
    this.grid = make("div", { role: "grid", tabindex: 0, class: "board pencil", "aria-describedby": "board-help" });
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("pointerdown", (event) => this.press(event));
    for (const [id, side] of [["columns", "width"], ["rows", "height"]]) {
      byId(id).addEventListener("change", (event) => this.resize({ [side]: Number(event.target.value) }));
    }
  }

  /** Show this puzzle; cells are built again only if the type or the size changes. */
  show(task, puzzle) {
    const before = this.board;
    this.board = decodeBoard(puzzle);
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
    return encodeBoard(this.board);
  }

  get fault() {
    return boardFault(this.board);
  }

  build() {
    const { type, width, height } = this.board;
    const most = Math.max(width, height);
    this.active = 0;
    this.grid.style.setProperty("--side", most);
    Object.assign(this.grid.style, { width: `${(100 * width) / most}%`, aspectRatio: `${width} / ${height}` });
    this.grid.setAttribute("aria-label", `${PENCIL[type].title} to solve`);
    this.grid.dataset.type = type;
    byId("board-help").textContent = PENCIL[type].help;
    byId("columns").value = width;
    byId("rows").value = height;
    const rows = Array.from({ length: height }, (_, row) =>
      make("div", { role: "row" }, ...Array.from({ length: width }, (_, column) =>
        make("div", { role: "gridcell", id: `cell-${row * width + column}`, "aria-selected": "false" }))));
    this.cells = rows.flatMap((row) => [...row.children]);
    this.grid.replaceChildren(...rows);
    this.buildPad();
  }

  /** Buttons for use without a keyboard: the keys of the type, and borders. */
  buildPad() {
    const { type } = this.board;
    const button = (text, label, act) => {
      const made = make("button", { type: "button", text, "aria-label": label });
      made.addEventListener("click", act);
      return made;
    };
    const names = { "#": "Black cell", "?": "Unknown number" };
    const keys = [...PENCIL[type].keys].map((key) => button(key, names[key] ?? `Number ${key}`, () => this.type(key)));
    const arrows = { ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", ArrowDown: "↓" };
    const walls = type !== "heyawake" ? [] : Object.entries(arrows).map(([key, sign]) =>
      button(`▏${sign}`, `Border ${SIDES[key]}`, () => this.toggle(this.active, MOVES[key])));
    this.pad.replaceChildren(...keys, button("⌫", "Erase", () => this.erase()), ...walls);
  }

  paint() {
    const { type, width, height, clues, borders } = this.board;
    const rooms = type === "heyawake" ? roomsOf(borders, width, height) : null;
    this.rooms = rooms;
    this.cells.forEach((element, cell) => {
      const text = clueText(type, clues[cell]);
      element.textContent = text === "#" ? "" : text;
      element.classList.toggle("black", type === "lightup" && Boolean(text));
      element.classList.toggle("long", text.length > 2);
      element.classList.remove("wall-right", "wall-below");
    });
    edges(width, height).forEach(([one, other], k) => {
      if (borders[k]) this.cells[one].classList.add(other === one + 1 ? "wall-right" : "wall-below");
    });
    this.name(this.active);
  }

  /** The border between a cell and its neighbour: its place in the list, or -1 at the edge of the board. */
  between(cell, [down, right]) {
    const { width, height } = this.board;
    const row = Math.floor(cell / width) + down, column = (cell % width) + right;
    if (row < 0 || column < 0 || row >= height || column >= width) return -1;
    const other = row * width + column;
    return edges(width, height).findIndex(([one, two]) => one === Math.min(cell, other) && two === Math.max(cell, other));
  }

  name(cell) {
    const { type, width, clues, borders } = this.board;
    const text = clueText(type, clues[this.holder(cell)]);
    const said = { "": "no clue", "#": "black cell", "?": "unknown number" }[text] ?? (type === "lightup" ? `black cell ${text}` : text);
    const walls = !this.rooms ? [] : Object.entries(SIDES).filter(([key]) => {
      const k = this.between(cell, MOVES[key]);
      return k < 0 || borders[k];
    }).map(([, side]) => side);
    const room = this.rooms ? `, room ${this.rooms[cell] + 1}${walls.length ? `, borders ${walls.join(", ")}` : ""}` : "";
    this.cells[cell].setAttribute("aria-label", `${place(cell, width)}: ${said}${room}`);
  }

  /** The cell that has the clue: in a Heyawake the first of the room. */
  holder(cell) {
    return this.rooms ? this.rooms.indexOf(this.rooms[cell]) : cell;
  }

  move(cell) {
    this.cells[this.active].setAttribute("aria-selected", "false");
    this.active = cell;
    this.fresh = true;
    this.cells[cell].setAttribute("aria-selected", "true");
    this.name(cell);
    this.grid.setAttribute("aria-activedescendant", `cell-${cell}`);
  }

  /** Another board of the same type. */
  replace(board) {
    const before = this.board;
    this.board = tidy(board);
    if (before.width !== board.width || before.height !== board.height) this.build();
    this.paint();
    this.move(Math.min(this.active, this.cells.length - 1));
    this.changed(this.puzzle, this.fault);
  }

  set(cell, clue) {
    this.replace({ ...this.board, clues: this.board.clues.map((old, k) => (k === cell ? clue : old)) });
  }

  /** One key: a further digit of the clue that is being typed, or a clue of its own. */
  type(key) {
    const { type, clues } = this.board;
    const cell = this.holder(this.active);
    const most = this.rooms?.filter((room) => room === this.rooms[cell]).length;
    const clue = typedClue(type, this.fresh ? "" : clueText(type, clues[cell]), key, most);
    if (!clue) return false;
    this.set(cell, clue);
    this.fresh = false;
    return true;
  }

  erase() {
    this.set(this.holder(this.active), []);
  }

  toggle(cell, step) {
    const found = this.between(cell, step);
    if (found >= 0) this.replace({ ...this.board, borders: this.board.borders.map((border, k) => (k === found ? !border : border)) });
  }

  resize(sides) {
    if (this.board) this.replace(resized(this.board, sides.width ?? this.board.width, sides.height ?? this.board.height));
  }

  clear() {
    const { type, width, height } = this.board;
    this.replace(blankBoard(type, width, height));
    this.move(0);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { width, height, type } = this.board;
    const row = Math.floor(this.active / width), column = this.active % width;
    const step = MOVES[event.key];
    if (step && event.shiftKey && type === "heyawake") this.toggle(this.active, step);
    else if (step) {
      const within = (value, most) => Math.min(Math.max(value, 0), most - 1);
      this.move(within(row + step[0], height) * width + within(column + step[1], width));
    } else if (event.key === "Home") this.move(row * width);
    else if (event.key === "End") this.move(row * width + width - 1);
    else if (event.key === "PageUp") this.move(column);
    else if (event.key === "PageDown") this.move((height - 1) * width + column);
    else if ([".", " ", "Backspace", "Delete"].includes(event.key)) this.erase();
    else if (!this.type(event.key)) return;
    event.preventDefault();
  }

  press(event) {
    const cell = this.cells.indexOf(event.target);
    if (cell < 0) return;
    this.move(cell);
    if (this.board.type !== "heyawake") return;
    const { left, top, width, height } = event.target.getBoundingClientRect();
    const x = (event.clientX - left) / width, y = (event.clientY - top) / height;
    const [distance, step] = [[y, [-1, 0]], [x, [0, -1]], [1 - x, [0, 1]], [1 - y, [1, 0]]].sort((a, b) => a[0] - b[0])[0];
    if (distance < NEAR) this.toggle(cell, step);
  }

  /** Take a puzzle from its address; false, with the error shown, if it cannot be read. */
  take(text) {
    try {
      this.show(this.board.type, parseAddress(this.board.type, text));
      this.changed(this.puzzle, this.fault);
      return true;
    } catch (error) {
      this.changed(this.puzzle, error.message);
      return false;
    }
  }
}

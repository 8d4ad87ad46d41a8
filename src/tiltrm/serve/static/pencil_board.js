// The board of a pencil puzzle: clues are typed, borders of rooms are clicked.

import { LARGEST, SMALLEST, edges, decodeBoard, encodeBoard, roomsOf } from "./addresses.js";
import { CellBoard, MOVES, padButton } from "./cell_board.js";
import { PENCIL, blankBoard, boardFault, clueText, parseAddress, resized, tidy, typedClue } from "./pencil.js";
import { place } from "./tasks.js";

const SIDES = { ArrowUp: "above", ArrowLeft: "left", ArrowRight: "right", ArrowDown: "below" };
const NEAR = 0.22; // of a cell: a click so near to an edge means the border

export class PencilBoard extends CellBoard {
  constructor(pad, changed) {
    super(pad, changed, "pencil");
    this.fresh = true; // the next digit begins a clue
  }

  read(_, text) {
    return decodeBoard(text);
  }

  write(board) {
    return encodeBoard(board);
  }

  parse(text) {
    return parseAddress(this.board.type, text);
  }

  faultOf(board) {
    return boardFault(board);
  }

  blank({ type, width, height }) {
    return blankBoard(type, width, height);
  }

  resized(board, width, height) {
    return resized(board, width, height);
  }

  words(type) {
    const { title, help } = PENCIL[type];
    return { label: `${title} to solve`, help, least: SMALLEST, most: LARGEST };
  }

  /** Buttons for use without a keyboard: the keys of the type, and borders. */
  keys(type) {
    const names = { "#": "Black cell", "?": "Unknown number" };
    const keys = [...PENCIL[type].keys].map((key) => padButton(key, names[key] ?? `Number ${key}`, () => this.type(key)));
    const arrows = { ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", ArrowDown: "↓" };
    const walls = type !== "heyawake" ? [] : Object.entries(arrows).map(([key, sign]) =>
      padButton(`▏${sign}`, `Border ${SIDES[key]}`, () => this.toggle(this.active, MOVES[key])));
    return [...keys, padButton("⌫", "Erase", () => this.erase()), ...walls];
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
    this.fresh = true;
    super.move(cell);
  }

  replace(board) {
    super.replace(tidy(board));
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

  key(event) {
    const { type } = this.board, step = MOVES[event.key];
    const border = step && event.shiftKey && type === "heyawake" && !(event.ctrlKey || event.metaKey || event.altKey);
    if (!border) return super.key(event);
    this.toggle(this.active, step);
    event.preventDefault();
  }

  press(event) {
    super.press(event);
    if (this.board.type !== "heyawake" || !this.cells.includes(event.target)) return;
    const { left, top, width, height } = event.target.getBoundingClientRect();
    const x = (event.clientX - left) / width, y = (event.clientY - top) / height;
    const [distance, step] = [[y, [-1, 0]], [x, [0, -1]], [1 - x, [0, 1]], [1 - y, [1, 0]]].sort((a, b) => a[0] - b[0])[0];
    if (distance < NEAR) this.toggle(this.active, step);
  }
}

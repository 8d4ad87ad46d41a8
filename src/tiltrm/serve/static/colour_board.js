// The board of ARC's tasks: cells in colours, and the number of the puzzle.

import { CellBoard, padButton } from "./cell_board.js";
import { COLOURS, blankColours, readColours, readHead, writeColours } from "./colours.js";
import { byId } from "./dom.js";
import { keptCells } from "./pencil.js";
import { place } from "./tasks.js";

const NAMES = ["black", "blue", "red", "green", "yellow", "grey", "magenta", "orange", "light blue", "maroon"];

export class ColourBoard extends CellBoard {
  constructor(pad, changed) {
    super(pad, changed, "colours");
    byId("number").addEventListener("change", (event) => this.renumber(event.target.value));
  }

  read(task, text) {
    return readColours(task, text);
  }

  write(board) {
    return writeColours(board);
  }

  /** Text without a number is a puzzle of the number on the board. */
  parse(text) {
    const { type, head } = this.board;
    return writeColours(readColours(type, text, head.split(" ")[0]));
  }

  faultOf() {
    return ""; // any grid may be a question
  }

  blank({ type, width, height, head }) {
    return blankColours(type, width, height, head);
  }

  resized(board, width, height) {
    return { ...board, width, height, colours: keptCells(board.colours, board, { width, height }, 0) };
  }

  words(type) {
    const { title, help, least, most } = COLOURS[type];
    return { label: `${title} input grid`, help, least, most };
  }

  keys(type) {
    return COLOURS[type].palette.map((colour, key) => {
      const button = padButton(key, `Colour ${key}, ${NAMES[key]}`, () => this.type(String(key)));
      Object.assign(button.style, { background: colour, color: inkOn(colour) });
      return button;
    });
  }

  paint() {
    const { type, colours, head } = this.board;
    this.cells.forEach((element, cell) => (element.style.background = COLOURS[type].palette[colours[cell]]));
    byId("number").value = head;
    this.name(this.active);
  }

  name(cell) {
    const { colours, width } = this.board;
    this.cells[cell].setAttribute("aria-label", `${place(cell, width)}: ${colours[cell]}, ${NAMES[colours[cell]]}`);
  }

  set(cell, colour) {
    this.replace({ ...this.board, colours: this.board.colours.map((old, k) => (k === cell ? colour : old)) });
  }

  /** Enter a colour and move on, so that a grid can be typed in one go. */
  type(key) {
    if (!/^[0-9]$/.test(key)) return false;
    this.set(this.active, Number(key));
    this.move(Math.min(this.active + 1, this.cells.length - 1));
    return true;
  }

  erase() {
    this.set(this.active, 0);
  }

  renumber(text) {
    try {
      this.replace({ ...this.board, head: readHead(this.board.type, text) });
    } catch (error) {
      byId("number").value = this.board.head;
      this.changed(this.puzzle, error.message);
    }
  }
}

/** Black or white, whichever stands out more from a colour "#rrggbb" (WCAG's relative luminance). */
function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

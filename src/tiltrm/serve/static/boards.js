// The board of the chosen task: one for grids and mazes, one for pencil puzzles, one for colours, in the same place.

import { decodeBoard, encodeBoard, isAddress } from "./addresses.js";
import { Board } from "./board.js";
import { ColourBoard } from "./colour_board.js";
import { isColours } from "./colours.js";
import { byId } from "./dom.js";
import { isPencil, sudokuOf } from "./pencil.js";
import { PencilBoard } from "./pencil_board.js";

const OF_COLOURS = "“7: 00500/01210” of the puzzle with number 7, a line for each row, or the JSON of one task";
const OF_OTHERS = "The puzzle on one line, a line for each row, or its puzz.link address";

export class AnyBoard {
  /** `changed(puzzle, sentence)` is called after every edit, `switched(task, puzzle)` for an address of another task. */
  constructor(host, pad, changed, switched) {
    Object.assign(this, { host, changed, switched });
    this.plain = new Board(host, pad, changed);
    this.pencil = new PencilBoard(pad, changed);
    this.colours = new ColourBoard(pad, changed);
    this.current = this.plain;
    for (const { grid } of [this.plain, this.pencil, this.colours]) {
      grid.addEventListener("paste", (event) => {
        event.preventDefault();
        this.take(event.clipboardData.getData("text"));
      });
      grid.addEventListener("copy", (event) => {
        event.preventDefault();
        event.clipboardData.setData("text/plain", this.current.puzzle);
      });
    }
  }

  show(task, puzzle) {
    const wanted = isPencil(task) ? this.pencil : isColours(task) ? this.colours : this.plain;
    if (wanted !== this.current) {
      this.current.leave();
      this.current.grid.replaceWith(wanted.grid);
      this.current = wanted;
    }
    byId("numbered").hidden = !isColours(task);
    byId("paste-words").textContent = isColours(task) ? OF_COLOURS : OF_OTHERS;
    this.task = task;
    wanted.show(task, puzzle);
    byId("size").hidden = !wanted.resizable;
  }

  get fault() {
    return this.current.fault;
  }

  get grid() {
    return this.current.grid;
  }

  clear() {
    this.current.clear();
  }

  /** Take a puzzle from text; an address of another task brings that task. False, with the error shown, if it cannot be read. */
  take(text) {
    if (!isAddress(text)) return this.current.take(text);
    try {
      const board = decodeBoard(text);
      if (board.type === this.task && isPencil(this.task)) return this.current.take(text);
      return this.switched(board.type, board.type === "sudoku" ? sudokuOf(text) : encodeBoard(board));
    } catch (error) {
      this.changed(this.current.puzzle, error.message);
      return false;
    }
  }
}

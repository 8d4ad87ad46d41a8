"""Pencil puzzles that people publish: Light Up, Nurikabe, Heyawake and Tapa, up to 10 x 10.

Every puzzle lies on a board of 10 x 10 cells, smaller ones in a corner of it, and all types share
one vocabulary with the task sudoku, so that one model can serve all of them:

| ids | in questions | in answers |
|---|---|---|
| 0 | outside the board (pad) | |
| 1 | a cell without a clue | outside the board |
| 2 .. 10 | the digits 1 .. 9 of a Sudoku, as in the task sudoku | the same |
| 11, 12, 13 | | not marked, shaded, light |
| 14 .. 19 | Light Up: a black cell without a number, with 0 .. 4 | |
| 20 .. 65 | Nurikabe: '?', 1 .. 45 | |
| 66 .. 209 | Heyawake: 66 + 9 x borders + number | |
| 210 .. 251 | Tapa: the 42 clues as multisets, some with '?' | |

A model has to decode the ids below 14 only. An answer says 11 in a cell with a clue; what it holds
outside the board does not count for the rules, but has an id other than the pad, so that it is
trained and particles agree on it. `given` are clues in which nothing can be marked and all cells
outside; a Heyawake question has none of the former.

Every cell of a Heyawake room shows the number of the room: 0 for none, 1 .. 7 for the numbers 0
to 6, and for the number 6 + n, n cells show 8 and the others 7. Borders are four bits (up 1, left
2, right 4, down 8), the edge of the board included, and a symmetry renames them as it moves them.
They are borders and not the colours of rooms because a border may end inside a room.

Types have numbers: sudoku 0, lightup 1, nurikabe 2, heyawake 3, tapa 4.
"""

from tiltrm.tasks.pencil.mixed import PENCIL, Pencil
from tiltrm.tasks.pencil.puzzle import PencilPuzzle
from tiltrm.tasks.pencil.task import HEYAWAKE, LIGHTUP, NURIKABE, TAPA, TASKS, PencilTask

__all__ = [
    "HEYAWAKE",
    "LIGHTUP",
    "NURIKABE",
    "PENCIL",
    "TAPA",
    "TASKS",
    "Pencil",
    "PencilPuzzle",
    "PencilTask",
]

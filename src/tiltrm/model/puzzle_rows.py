"""The row of the puzzle embedding that a model uses.

Models of several puzzle ids have a table with one row for each. A small table is a parameter of
the model, `prefix` with the shape (puzzles, prefix, width). A large one, such as that of an ARC
model with all augmentations, stays in its file, mapped into memory: `model.puzzle_table` of shape
(row, number), and `prefix` holds the one row in use. The puzzles themselves may say their rows, by
their tokens (`puzzle_starts`) or in cells of their own (`id_cells`).
Proved by tests/model/test_puzzle_rows.py and tests/model/test_id_cells.py.
"""

import copy
from typing import TypeVar

from torch import Tensor, nn

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.model.puzzle_ids import cut_rows, ids_in_cells
from tiltrm.model.trm import Recursive, TRMConfig

HELD = 1 << 22  # numbers of a table that is a parameter of the model; larger ones stay in a file
AnyModel = TypeVar("AnyModel")


def puzzle_rows(model: object) -> int:
    """Rows of the model's puzzle embedding; 1 for a model that has no table."""
    if not isinstance(model, Recursive):
        return 1
    return model.config.puzzles if model.puzzle_table is None else len(model.puzzle_table)


def chosen_puzzle(model: object) -> int | None:
    """The puzzle id that a model uses; None if it has one, or if its puzzles say theirs."""
    if not isinstance(model, Recursive) or puzzle_rows(model) == 1 or _told(model.config):
        return None
    return model.puzzle_id


def _told(config: TRMConfig) -> bool:
    """Whether the puzzles say which row they have."""
    return bool(config.puzzle_starts or config.id_cells)


def require_rows(model: object, tokens: Tensor) -> None:
    """Raise PuzzleError for a puzzle (puzzle, cell) with an id that the model does not have.

    The id is a row of the puzzle embedding, or, if the task reads ids, the place of a name.
    """
    if not isinstance(model, Recursive):
        return
    if model.config.id_cells:
        ids, count = ids_in_cells(tokens, model.config.id_cells), puzzle_rows(model)
        known = "the rows of the model's puzzle embedding"
    elif model.read_ids is not None and model.puzzle_names is not None:
        ids, count = model.read_ids(tokens), len(model.puzzle_names)
        known = "the names in the model's puzzles.json"
    else:
        return
    beyond = (ids >= count).nonzero()
    if len(beyond):
        number = int(beyond[0])
        raise PuzzleError(
            f"the id of puzzle {number + 1} must lie in 0..{count - 1}, {known}, got "
            f"{int(ids[number])}; take the model that was trained on this puzzle, or an id that it "
            "has"
        )


def with_puzzle(model: AnyModel, puzzle_id: int | None) -> AnyModel:
    """The model with this row of its puzzle embedding; the weights are shared. None: as it is."""
    if puzzle_id is None:
        return model
    rows = puzzle_rows(model)
    if not 0 <= puzzle_id < rows:
        has = f"{rows:,} rows" if rows > 1 else "one row"
        raise SettingsError(
            f"puzzle_id must lie in 0..{rows - 1}, because the model's puzzle embedding has {has}, "
            f"got {puzzle_id}; leave it out, or take the model that has it"
        )
    if not isinstance(model, Recursive) or puzzle_id == model.puzzle_id:
        return model
    if _told(model.config):
        raise SettingsError(
            "puzzle_id must be left out for this model, whose puzzles say themselves which row of "
            f" the puzzle embedding they have, got {puzzle_id}"
        )
    view = copy.copy(model)
    view.puzzle_id = puzzle_id
    if model.puzzle_table is not None:
        row = cut_rows(model.puzzle_table[puzzle_id], model.config.prefix, model.config.width)
        view._parameters = dict(model._parameters)  # its own, so that the model keeps its row
        view.prefix = nn.Parameter(row.to(model.prefix), requires_grad=False)
    return view


def is_held(rows: int, config: TRMConfig) -> bool:
    """Whether a table of so many rows becomes a parameter of a model of these sizes."""
    return rows * config.prefix * config.width <= HELD

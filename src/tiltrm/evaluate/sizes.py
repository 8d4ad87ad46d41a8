"""How much of everything is computed.

`full` is the paper's protocol (App. A), `quick` fits into minutes of one H200, `tiny` is for a CPU
and shows only that everything runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tiltrm.errors import SettingsError


@dataclass(frozen=True)
class Size:
    """How much of everything; puzzles by task, None being all of them."""

    seeds: int
    folds: int
    table: Mapping[str, int | None] = field(default_factory=dict)
    frontier: Mapping[str, int | None] = field(default_factory=dict)
    sweep: Mapping[str, int | None] = field(default_factory=dict)
    diagnose: Mapping[str, int | None] = field(default_factory=dict)
    rooted: int = 8  # puzzles whose stability is measured
    parts: int = 1  # of the frontier's puzzles, all methods on one before the next begins
    most: Mapping[str, int] = field(default_factory=dict)  # no setting beyond these


def _limits(sudoku: int | None, maze: int | None) -> dict[str, int | None]:
    return {"sudoku": sudoku, "maze": maze}


SIZES = {
    # A maze costs as much as twenty Sudokus, so its frontier and sweeps have fewer.
    "full": Size(5, 5, _limits(None, None), _limits(2000, 100), _limits(2000, 64),
                 _limits(512, 64), rooted=16, parts=5),
    "quick": Size(2, 5, _limits(1000, 60), _limits(400, 24), _limits(200, 12), _limits(64, 16)),
    "tiny": Size(2, 2, _limits(8, 4), _limits(4, 2), _limits(4, 2), _limits(4, 2), rooted=1,
                 most={"particles": 4, "outer_steps": 6, "copies": 2}),
}  # fmt: skip


def size_of(name: str) -> Size:
    """The size of this name."""
    if name not in SIZES:
        raise SettingsError(f"size must be one of {', '.join(SIZES)}, got {name!r}")
    return SIZES[name]

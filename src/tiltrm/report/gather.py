"""Who plays which part in a reproduction, and in what words a short one says so."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tiltrm.errors import TiltrmError
from tiltrm.evaluate.plans import SIZES
from tiltrm.evaluate.target import EvalTarget, eval_target
from tiltrm.report.evidence import BENCHMARKS, MAZE, SUDOKU, SWEEP

TEST, VAL = "Test", "val"
MAZE_WEIGHTS, MAZE_DATA = "maze-hard", "maze-hard/test"  # unless named


class Wanted(NamedTuple):
    """Models and puzzles by name; what is None may be missing."""

    model: str
    data: str
    val: str | None = None
    maze: str | None = None
    maze_data: str | None = None


def gather(wanted: Wanted, parts: set[str]) -> tuple[dict[str, EvalTarget], dict[str, str]]:
    """Subjects by part, of the parts that are asked for, and why one is absent.

    Mazes that nobody named may be absent; whatever was named must be there.
    """
    found: dict[str, EvalTarget] = {}
    absent: dict[str, str] = {}
    if parts & {SUDOKU, SWEEP}:
        found[SUDOKU] = eval_target(wanted.model, wanted.data, TEST)
    if SWEEP in parts:
        found[SWEEP] = eval_target(wanted.model, wanted.val, VAL) if wanted.val else found[SUDOKU]
    if MAZE in parts:
        try:
            found[MAZE] = eval_target(
                wanted.maze or MAZE_WEIGHTS, wanted.maze_data or MAZE_DATA, TEST
            )
        except TiltrmError as error:
            if wanted.maze or wanted.maze_data:
                raise
            reason = str(error).partition(";")[0]
            absent[MAZE] = (
                f"{BENCHMARKS[MAZE]} is left out, since its weights or puzzles are not here "
                f"({reason}): name them with --maze and --maze-data."
            )
    return found, absent


def described(subjects: Mapping[str, EvalTarget]) -> list[str]:
    """A sentence for each."""
    lines = [
        f"{BENCHMARKS[part]}: weights {Path(subjects[part].model).name} "
        f"({subjects[part].weights[:8]}…), {subjects[part].puzzles:,} puzzles (SHA-256 "
        f"{subjects[part].checksum[:8]}…)."
        for part in (SUDOKU, MAZE)
        if part in subjects
    ]
    sweep = subjects.get(SWEEP)
    if sweep is not None:
        lines.append(f"Sweeps of Sudoku's settings are on {sweep.split}.")
    return lines


def shortened(
    size: str, subjects: Mapping[str, EvalTarget], frontier: int | None = None
) -> list[str]:
    """What this size leaves out of the full one, in words; nothing for the full one.

    `frontier` puzzles of Sudoku's, where they are not the size's.
    """
    own, full = SIZES[size], SIZES["full"]
    if frontier is not None:
        own = replace(own, frontier={**own.frontier, SUDOKU: frontier})
    lines = []
    if (own.seeds, own.folds) != (full.seeds, full.folds):
        lines.append(
            f"{own.seeds} seeds and {own.folds} folds instead of {full.seeds} and {full.folds}."
        )
    kinds = {"Table 1 and Figures 1, 4 and 7": "table", "The frontier": "frontier",
             "Sweeps": "sweep", "Diagnostics": "diagnose"}  # fmt: skip
    for words, name in kinds.items():
        cut = "; ".join(_cut(getattr(own, name), getattr(full, name), subjects))
        if cut:
            lines.append(f"{words}: {cut}.")
    if own.rooted != full.rooted:
        lines.append(f"Stability is measured on {own.rooted} puzzles instead of {full.rooted}.")
    if own.most:
        caps = ", ".join(f"{name.replace('_', ' ')} {most}" for name, most in own.most.items())
        lines.append(f"No setting goes beyond {caps}, so these figures say only that all runs.")
    return lines


def _cut(
    own: Mapping[str, int | None],
    full: Mapping[str, int | None],
    subjects: Mapping[str, EvalTarget],
) -> Iterator[str]:
    for part in (SUDOKU, MAZE):
        if part in subjects:
            least, most = own[part], full[part]
            there = subjects[part].puzzles
            whole = there if most is None else min(most, there)
            if least is not None and least < whole:
                yield f"{least:,} of {whole:,} puzzles of {BENCHMARKS[part]}"

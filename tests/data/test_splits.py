"""Named splits and folds."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tiltrm.data import SPLITS, Puzzles, Split, checksum, folds, read, verify
from tiltrm.data.splits import token_checksum
from tiltrm.errors import DataError, SettingsError
from tiltrm.tasks import Sudoku

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
TOY = Sudoku(2)


def toy() -> Puzzles:
    pairs = [TOY.generate(seed) for seed in range(3)]
    return Puzzles(TOY, torch.stack([q for q, _ in pairs]), torch.stack([a for _, a in pairs]))


@pytest.mark.parametrize("name", SPLITS)
def test_the_public_files_are_the_named_splits(name: str) -> None:
    path = SHARED / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"needs ../shared/data/{name}.csv.gz")
    puzzles = read(path)
    verify(puzzles, name)
    assert puzzles.task.is_solved(puzzles.questions, puzzles.labels()).all()


def test_no_training_puzzle_is_tested_on() -> None:
    if not SHARED.exists():
        pytest.skip("needs ../shared/data")
    for dataset in ("sudoku-extreme", "maze-hard"):
        rows = [read(SHARED / dataset, split=part).questions for part in ("train", "test")]
        assert len(torch.cat(rows).unique(dim=0)) == sum(map(len, rows))


def test_a_checksum_is_that_of_the_lines() -> None:
    puzzles = toy()
    lines = [
        f"{TOY.decode(q)},{TOY.decode(a)}\n"
        for q, a in zip(puzzles.questions, puzzles.labels(), strict=True)
    ]
    assert checksum(puzzles) == hashlib.sha256("".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("checksum", [checksum, token_checksum])
def test_any_change_changes_the_checksum(checksum: Callable[[Puzzles], str]) -> None:
    puzzles = toy()
    changed = puzzles.questions.clone()
    changed[2, 15] = 3 if changed[2, 15] != 3 else 4
    others = [
        replace(puzzles, questions=changed),
        replace(puzzles, answers=None),
        puzzles.take(slice(2)),
        puzzles.take(torch.tensor([1, 0, 2])),
    ]
    assert len({checksum(other) for other in [puzzles, *others]}) == 5


def test_verify_says_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzles = toy()
    monkeypatch.setitem(SPLITS, "toy", Split(3, checksum(puzzles)))
    verify(puzzles, "toy")
    with pytest.raises(DataError, match="toy: expected 3 puzzles, got 2"):
        verify(puzzles.take(slice(2)), "toy")
    with pytest.raises(DataError, match="toy: expected content with SHA-256"):
        verify(puzzles.take(torch.tensor([1, 0, 2])), "toy")
    with pytest.raises(SettingsError, match="got 'other'"):
        verify(puzzles, "other")


@given(st.integers(1, 300), st.integers(1, 12))
def test_folds_partition_the_puzzles(puzzles: int, count: int) -> None:
    if count > puzzles:
        with pytest.raises(SettingsError, match="folds"):
            folds(puzzles, count)
        return
    parts = folds(puzzles, count)
    assert len(parts) == count
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(puzzles))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert [part[0] for part in parts] == list(range(count))  # results are stored by their fold

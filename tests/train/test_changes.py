"""A run may go on with other settings or other puzzles; then it says so, to people and programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tiltrm.data.splits import checksum
from tiltrm.train import state
from tiltrm.train.trainer import Trainer

from . import toys

TRAIN, VAL = slice(8, None), slice(0, 8)


def trainer(folder: Path, train: slice, val: slice, **changes: Any) -> Trainer:
    table = toys.puzzles()
    settings = toys.settings(**changes)
    return Trainer(settings, table.take(train), table.take(val), folder, device="cpu")


def resumed(folder: Path, *parts: slice, **changes: Any) -> dict[str, Any]:
    """What the record says to have changed, where a run of TRAIN and VAL goes on with these."""
    run = trainer(folder, *parts, **changes)
    assert run.resume()
    line = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert (line["kind"], line["step"]) == ("resume", 2)
    changed: dict[str, Any] = line["changed"]
    return changed


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A run at step 2."""
    run = trainer(tmp_path, TRAIN, VAL)
    toys.advance(run, 2)
    run.save()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("train", (slice(8, 39), VAL)),  # less
        ("train", (slice(7, None), VAL)),  # more
        ("train", (slice(7, 39), VAL)),  # as many, and others
        ("val", (TRAIN, slice(1, 9))),
    ],
)
def test_other_puzzles_are_said(
    saved: Path, capsys: pytest.CaptureFixture[str], name: str, parts: tuple[slice, slice]
) -> None:
    puzzles = toys.puzzles().take(parts[name == "val"])
    now = f"{len(puzzles)} puzzles, SHA-256 {checksum(puzzles)}"
    assert resumed(saved, *parts) == {name: now}
    assert capsys.readouterr().err == f"step 2: resumed with changes: {name} = {now}\n"


def test_other_settings_are_said(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert resumed(saved, TRAIN, VAL, steps=30) == {"steps": 30}
    assert capsys.readouterr().err == "step 2: resumed with changes: steps = 30\n"


def test_where_all_is_as_it_was_nothing_is_said(
    saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert resumed(saved, TRAIN, VAL) == {}
    assert capsys.readouterr().err == ""


def test_other_puzzles_are_said_until_they_are_those_of_the_state(saved: Path) -> None:
    others = (slice(9, None), VAL)
    assert list(resumed(saved, *others)) == list(resumed(saved, *others)) == ["train"]
    run = trainer(saved, *others)
    run.resume()
    run.save()
    assert resumed(saved, *others) == {}
    assert list(resumed(saved, TRAIN, VAL)) == ["train"]


def test_a_state_that_does_not_know_its_puzzles_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States of earlier releases do not."""
    run, real = trainer(tmp_path, TRAIN, VAL), state.write

    def without(folder: Path, meta: dict[str, Any], tensors: Any) -> None:
        assert meta.pop("data")
        real(folder, meta, tensors)

    monkeypatch.setattr(state, "write", without)
    toys.advance(run, 2)
    run.save()
    assert resumed(tmp_path, slice(9, None), VAL) == {}

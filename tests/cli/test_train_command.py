"""tiltrm train: what is wrong is named before anything is trained; the rest is in tests/train."""

import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tiltrm.cli import main, train_command


@pytest.fixture(autouse=True)
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_command, "Trainer", lambda *_, **__: pytest.fail("a run was begun"))


def test_the_task_is_named_not_its_presets(tiltrm: Any) -> None:
    code, out, err = tiltrm("train", "--task", "chess")
    assert (code, out) == (2, "")
    assert err == (
        "tiltrm train: expected a task among maze-unique, mini-arc, arc, sudoku, maze, lightup, "
        "nurikabe, heyawake, tapa, pencil, sudoku4, got 'chess'; for a task of your own "
        "use --task FILE.py:NAME\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "batch=1", "--set", " batch=2"), "got batch again"),
        (("--steps", "5", "--set", "steps=6"), "got steps again"),
        (("--seed", "5", "--set", "seed=6"), "got seed again"),
        (("--steps", "5", "--set", "minutes=2"), "steps or minutes plan a run, got 5 and 2"),
        (("--set", "steps=5", "--set", "minutes=2"), "steps or minutes plan a run, got 5 and 2"),
        (("--steps", "0"), "--steps must be above 0, got 0"),
        (("--steps", "-3"), "--steps must be above 0, got -3"),
    ],
)
def test_nothing_that_is_given_is_dropped(tiltrm: Any, words: tuple[str, ...], said: str) -> None:
    code, out, err = tiltrm("train", "--task", "sudoku4", "--preset", "toy", *words)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_the_help_names_every_preset(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    folder = resources.files("tiltrm.train") / "presets"
    presets = {file.name.removesuffix(".toml").rpartition("-")[2] for file in folder.iterdir()}
    listed = re.search(r"--preset PRESET ([^.]*TOML file)", words)
    assert listed is not None
    assert presets <= set(re.findall(r"\w+", listed[1]))


@pytest.mark.parametrize("place", ["set", "preset"])
def test_settings_of_another_task_are_refused(tiltrm: Any, tmp_path: Path, place: str) -> None:
    """They would give a model of one task the name of another."""
    data, preset = tmp_path / "train.csv", tmp_path / "mine.toml"
    data.write_text("question,answer\n" + "1...3..2.1....2.,1234341221434321\n" * 2)
    preset.write_text('task = "maze"\n')
    own = ("toy", "--set", "task=maze") if place == "set" else (preset,)
    code, out, err = tiltrm(
        "train", "--task", "sudoku4", "--data", data, "--out", tmp_path / "run", "--preset", *own
    )  # fmt: skip
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "expected settings for sudoku4, got some for 'maze'" in err


class BegunError(Exception):
    """Carries the puzzles that would have been trained on, and chosen by."""


def test_a_folder_trains_on_train_and_chooses_on_val(
    tiltrm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never on test, which is what every other command takes from a folder."""
    rows = {"train": 5, "val": 3, "test": 4}
    for name, count in rows.items():
        text = "question,answer\n" + "1...3..2.1....2.,1234341221434321\n" * count
        (tmp_path / f"{name}.csv").write_text(text)

    def begun_with(settings: Any, train: Any, val: Any, *_: Any, **__: Any) -> None:
        raise BegunError(len(train), len(val))

    monkeypatch.setattr(train_command, "Trainer", begun_with)
    with pytest.raises(BegunError) as begun:
        tiltrm(
            "train", "--task", "sudoku4", "--preset", "toy", "--data", tmp_path, "--val", tmp_path
        )
    assert begun.value.args == (5, 3)

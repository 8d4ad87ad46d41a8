"""A new grid task through all commands: one file is written, nothing else is touched."""

import json
from pathlib import Path
from typing import Any

import pytest

from tiltrm.tasks import registry

SPEC = f"{Path(__file__).parents[2] / 'examples/latin.py'}:LATIN"
SMALL = ("--set", "model.width=32", "--set", "model.heads=2", "--set", "batch=8", "--steps", "3")


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


def test_from_a_file_to_answers(tiltrm: Any, tmp_path: Path) -> None:
    data, run = tmp_path / "latin.csv", tmp_path / "run"
    best, own = run / "best", ("--task", SPEC, "--device", "cpu")
    code, out, _ = tiltrm("data", "--task", SPEC, "--generate", 24, "--out", data)
    assert (code, "24 puzzles of latin5, with answers" in out) == (0, True)
    code, out, err = tiltrm(
        "train", *own, "--preset", "small", "--data", data, "--out", run, *SMALL
    )
    assert code == 0, err
    assert json.loads((best / "config.json").read_text())["task"] == "latin5"
    cheap = ("--method", "deterministic", "--outer-steps", 2)
    code, out, _ = tiltrm("solve", *own, "--model", best, "--file", data, "--json", *cheap)
    assert len(out.splitlines()) == 24
    assert len(json.loads(out.splitlines()[0])["answer"]) == 25
    code, out, _ = tiltrm("diagnose", *own, "--model", best, "--data", data, "--puzzles", 2,
                          "--particles", 3, "--outer-steps", 3, "--json")  # fmt: skip
    assert (code, "verdict" in json.loads(out)) == (0, True)
    code, out, _ = tiltrm("evaluate", *own, "--model", best, "--data", data, "--limit", 4,
                          "--folds", 1, "--seeds", 1, "--set", "outer_steps=2", "--method",
                          "deterministic", "symmetry:copies=2", "adaptive")  # fmt: skip
    assert code == 0
    assert "adaptive" in out


def test_other_rules_are_computed_anew(tiltrm: Any, tmp_path: Path) -> None:
    """The store must not serve what an earlier text of the file gave."""
    data, run, path = tmp_path / "latin.csv", tmp_path / "run", tmp_path / "own.py"
    path.write_text(Path(SPEC.rpartition(":")[0]).read_text())
    own = ("--task", f"{path}:LATIN")
    tiltrm("data", *own, "--generate", 8, "--out", data)
    tiltrm("train", *own, "--preset", "small", "--data", data, "--out", run, *SMALL)
    short = ("--folds", 1, "--seeds", 1, "--set", "outer_steps=1", "--method", "deterministic")
    asked = ("evaluate", *own, "--model", run / "best", "--data", data, "--store", tmp_path / "s")
    shards = []
    for text in (path.read_text(), path.read_text(), path.read_text() + "# other rules\n"):
        path.write_text(text)
        registry._registered.clear()
        assert tiltrm(*asked, *short)[0] == 0
        shards.append(len(list((tmp_path / "s").glob("*.parquet"))))
    assert shards == [1, 1, 2]


def test_without_the_file_the_model_says_what_it_needs(
    tiltrm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, run = tmp_path / "latin.csv", tmp_path / "run"
    tiltrm("data", "--task", SPEC, "--generate", 8, "--out", data)
    tiltrm("train", "--task", SPEC, "--preset", "small", "--data", data, "--out", run, *SMALL)
    monkeypatch.setattr(registry, "_registered", {})  # another day
    code, out, err = tiltrm("solve", "--model", run / "best", "." * 25)
    assert (code, out) == (2, "")
    assert "got 'latin5'; for a task of your own use --task FILE.py:NAME" in err


def test_a_preset_of_no_task_names_those_for_all(tiltrm: Any) -> None:
    code, _, err = tiltrm("train", "--task", SPEC, "--preset", "fast")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "no preset 'fast' for latin5; expected one of small, or a file" in err


def test_data_checks_a_task_on_its_own_puzzles(tiltrm: Any) -> None:
    code, out, _ = tiltrm("data", "--task", SPEC)
    assert (code, out) == (0, "latin5: rules, texts, symmetries and pictures fit on 16 puzzles\n")
    assert json.loads(tiltrm("data", "--task", SPEC, "--json")[1])["checked"] == 16


def test_a_function_that_fails_later_is_one_sentence(tiltrm: Any, tmp_path: Path) -> None:
    """The check at registration sees one puzzle; this fails at the fourth."""
    path = tmp_path / "own.py"
    text = Path(SPEC.rpartition(":")[0]).read_text()
    late = '        if seed > 9 and not hasattr(seed, "x"):\n            raise KeyError("later")\n'
    path.write_text(
        text.replace("        chance, size = random", f"{late}        chance, size = random")
    )
    code, _, err = tiltrm(
        "data", "--task", f"{path}:LATIN", "--generate", 3, "--out", tmp_path / "o.csv"
    )
    assert (code, len(err.splitlines())) == (2, 1)
    assert "own.py: generate must not raise, got KeyError: 'later' in line" in err
    assert not (tmp_path / "o.csv").exists()

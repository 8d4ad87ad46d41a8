"""Commands that take more than some minutes say so first; here anything is long."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tiltrm.cli import forecast
from tiltrm.cli.main import COMMANDS

Run = Callable[..., tuple[int, str, str]]
QUICK = ["--particles", "3", "--outer-steps", "2", "--puzzles", "2"]


@pytest.fixture
def all_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "LONG", -1.0)
    monkeypatch.setattr(forecast, "CERTAINLY_SHORT", 0)


def told(err: str, command: str) -> list[str]:
    """The lines that say how long it will take."""
    form = rf"tiltrm {command}: .*, about \d+ (s|min|h .*) here.*"
    return [line for line in err.splitlines() if re.fullmatch(form, line)]


SHORT = {"import", "serve", "site", "export"}  # commands whose work does not grow with their input
LONG = {
    "solve": ["--model", "MODEL", "--file", "CSV", "--outer-steps", "2"],
    "data": ["--generate", "12", "--task", "sudoku4", "--out", "NEW.csv"],
    "data pencil": ["--generate", "11", "--task", "lightup", "--out", "NEW.csv"],
    "train": ["--task", "sudoku4", "--preset", "toy", "--data", "CSV", "--out", "NEW", "--set",
              "model.width=16", "--set", "batch=4", "--device", "cpu", "--steps", "8"],
    "tune": ["--model", "MODEL", "--data", "CSV", "--evaluations", "40000", "--dry-run"],
    "tune threshold": ["--model", "MODEL", "--data", "CSV", "--threshold-only", "--dry-run"],
    "fit-guide": ["--model", "MODEL", "--data", "CSV", "--out", "NEW", "--target", "rules",
                  "--puzzles", "12", "--particles", "3", "--outer-steps", "3", "--held-out", "4"],
    "fit-guide minutes": ["--model", "MODEL", "--data", "CSV", "--out", "NEW", "--target", "rules",
                          "--minutes", "0.02", "--particles", "3", "--outer-steps", "3",
                          "--held-out", "4"],
    "diagnose": ["--model", "MODEL", "--data", "CSV", *QUICK],
    "evaluate": ["--model", "MODEL", "--data", "CSV", "--method", "deterministic:outer_steps=2",
                 "--folds", "1", "--seeds", "1"],
    "reproduce": ["table1", "--tiny", "--compute-only", "--store", "NEW"],
}  # fmt: skip


def test_every_command_that_may_be_long_is_tried() -> None:
    assert {name.split()[0] for name in LONG} == set(COMMANDS) - SHORT


@pytest.mark.usefixtures("all_long", "one_thread")
@pytest.mark.parametrize("name", LONG)
def test_long_work_is_announced_once(
    tiltrm: Run, folder: str, csv: Path, tmp_path: Path, name: str
) -> None:
    if "pencil" in name:
        pytest.importorskip("ortools")
    places = {"MODEL": folder, "CSV": csv, "NEW": tmp_path / "new", "NEW.csv": tmp_path / "n.csv"}
    command = name.split()[0]
    _, _, err = tiltrm(command, *(places.get(word, word) for word in LONG[name]))
    assert len(told(err, command)) == 1, err


@pytest.mark.usefixtures("all_long")
def test_diagnose_says_its_evaluations_exactly(tiltrm: Run, folder: str, csv: Path) -> None:
    code, out, err = tiltrm("diagnose", "--model", folder, "--data", csv, *QUICK, "--json")
    assert code == 0
    (line,) = told(err, "diagnose")
    assert f"2 puzzles and {json.loads(out)['evaluations']:,} evaluations" in line


@pytest.mark.usefixtures("all_long")
@pytest.mark.parametrize("plan", [["--steps", "8"], ["--minutes", "0.05"]])
def test_train_says_it_after_a_few_steps(
    tiltrm: Run, csv: Path, tmp_path: Path, plan: list[str]
) -> None:
    code, _, err = tiltrm(
        "train", "--task", "sudoku4", "--preset", "toy", "--data", csv, "--out", tmp_path / "run",
        "--set", "model.width=16", "--set", "batch=4", "--device", "cpu", *plan,
    )  # fmt: skip
    assert code == 0
    (line,) = told(err, "train")
    assert "8 steps" in line or "0.05 minutes" in line


@pytest.mark.usefixtures("all_long")
def test_evaluate_and_reproduce_say_it(tiltrm: Run, folder: str, csv: Path, tmp_path: Path) -> None:
    jobs = ["--method", "deterministic:outer_steps=2", "--folds", "1", "--seeds", "1"]
    store = ["--store", str(tmp_path / "store")]
    for expected in (1, 0):  # the second time, nothing is left to do
        code, _, err = tiltrm("evaluate", "--model", folder, "--data", csv, *jobs, *store)
        assert (code, len(told(err, "evaluate"))) == (0, expected)
    code, _, err = tiltrm(
        "reproduce", "table1", "--tiny", "--compute-only", "--store", str(tmp_path / "r")
    )
    assert (code, len(told(err, "reproduce"))) == (0, 1)


def test_short_runs_say_nothing(tiltrm: Run, folder: str, csv: Path) -> None:
    _, _, err = tiltrm("diagnose", "--model", folder, "--data", csv, *QUICK)
    assert told(err, "diagnose") == []


@pytest.mark.parametrize("which", ["--data", "--val"])
def test_train_reads_no_more_than_it_is_told(
    tiltrm: Run, csv: Path, tmp_path: Path, which: str
) -> None:
    small = tmp_path / "small.csv"
    small.write_text("".join(csv.read_text().splitlines(keepends=True)[:3]))
    files = {"--data": small, "--val": small} | {which: csv}
    code, _, err = tiltrm(
        "train", "--task", "sudoku4", "--preset", "toy", "--out", tmp_path / "run", "--steps", "1",
        *(word for pair in files.items() for word in pair), "--max-bytes", "200",
    )  # fmt: skip
    assert (code, "200" in err) == (2, True), err
    assert not (tmp_path / "run").exists()

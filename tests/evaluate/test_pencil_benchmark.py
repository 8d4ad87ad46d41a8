"""benchmarks.pencil: every type has its row, the verdict comes first, results are stored."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from benchmarks import pencil, pencil_columns, pencil_data, pencil_frontier, pencil_seconds
from benchmarks.pencil_results import MethodResult, PencilResults, TypeColumns
from benchmarks.verdict import GuidanceEffect
from tests.tasks.pencil.pencil_samples import LINK, PUZZLES, save_random_model

from tiltrm.diagnose import FLAT, HELP
from tiltrm.errors import SettingsError


def write(path: Path, *names: str, answers: bool = True) -> Path:
    rows = [("question", "answer"), *(PUZZLES[name] for name in names)]
    rows.append((f"{LINK}nurikabe/11/4/zzj", "." * 44))
    path.write_text("".join(",".join(row[: 1 + answers]) + "\n" for row in rows))
    return path


def test_files_are_taken_together_type_by_type(tmp_path: Path) -> None:
    one = write(tmp_path / "a.csv", "tapa", "nurikabe", "tapa", "tapa")
    two = write(tmp_path / "b.csv", "lightup", "nurikabe", answers=False)
    both = pencil.read([one, two], limit=2)
    assert {name: len(own) for name, own in pencil.by_type(both).items()} == {
        "lightup": 1, "nurikabe": 2, "tapa": 2
    }  # fmt: skip
    assert both.answers is None, "answers of some puzzles only are not used"
    assert pencil.read([one]).answers is not None


def test_one_command_prints_stores_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write(tmp_path / "a.csv", *PUZZLES, *PUZZLES, answers=False)
    stored, picture = tmp_path / "r.json", tmp_path / "r.svg"

    def run(*arguments: Any) -> str:
        monkeypatch.setattr(sys, "argv", ["pencil", *map(str, arguments)])
        pencil.main()
        return capsys.readouterr().out

    out = run(
        "--model", save_random_model(tmp_path / "m"), "--data", data, "--device", "cpu",
        "--method", "deterministic:outer_steps=2", "unguided:particles=2,outer_steps=3",
        "--columns", "guided:particles=3,outer_steps=2", "--asked", data, "--ask", 1,
        "--json", stored,
    )  # fmt: skip
    assert "a.csv: 8 puzzles, 1 left out" in out
    results = PencilResults.from_json(stored.read_text())
    assert results.types == dict.fromkeys(PUZZLES, 2)
    assert [(row.type, row.puzzles) for row in results.rows[:5]] == [
        ("all", 8), *((name, 2) for name in PUZZLES)
    ]  # fmt: skip
    assert {row.evaluations for row in results.rows} == {2 * 3.0, 2 * 3 * 3.0}
    assert [row.oracle is None for row in results.rows] == [True] * 5 + [False] * 5
    assert [(row.type, row.puzzles, row.asked) for row in results.columns] == [
        (name, 2, 1) for name in PUZZLES
    ]
    first = out.index("verdicts at noise")
    assert first < out.index("| type (puzzles) |"), "said before it is measured"
    again = run("--draw", stored, "--picture", picture)
    assert results.columns_table() in out
    assert results.columns_table() in again
    assert results.line("deterministic:outer_steps=2") in again
    assert picture.read_text().count("heyawake, 2 puzzles") == 1
    with pytest.raises(SettingsError, match="a picture needs results of at least one method"):
        pencil_frontier.draw(replace(results, rows=()))


def test_tables_by_hand() -> None:
    rows = (
        MethodResult("guided", "all", 4, 0.75, 5376.0, 1.0),
        MethodResult("guided", "tapa", 4, 0.5, 10.0, None),
    )
    columns = (
        TypeColumns("tapa", 4, HELP, 0.9, 32, GuidanceEffect(0.25, 0.5, 0.75, 0.2, 0.01, 1.0)),
        TypeColumns("lightup", 4, HELP, 0.8, 32, GuidanceEffect(0.5, 0.5, 0.5)),
    )
    results = PencilResults("m", ("a.csv",), {"tapa": 4}, rows, columns)
    assert PencilResults.from_json(results.as_json()) == results
    assert results.table().endswith("| guided | 75.0 (5,376) [100.0] | 50.0 (10) |")
    tapa, lightup, _, score = results.columns_table().split("\n")[2:]
    assert tapa == (
        "| tapa (4) | will help (0.90, 32) | 25.0 | 50.0 | 100.0 | 75.0 | +20.0 +- 1.0 | yes |"
    )
    assert lightup.endswith(f"| no: {FLAT} |")
    assert score == "1 of 2 verdicts came true"


def test_columns_are_about_guided() -> None:
    with pytest.raises(
        SettingsError, match="--columns compares guided with the others, got 'ptrm'"
    ):
        pencil_columns.guided_settings("ptrm")


def test_seconds_are_of_whole_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process for every puzzle gets its address and the options; no record is an error."""
    started: list[list[str]] = []

    def command(arguments: tuple[str, ...], **_: Any) -> CompletedProcess[str]:
        started.append(list(arguments[3:]))
        record = json.dumps({"seconds": 0.5, "solved_by_rules": len(started) == 1})
        return CompletedProcess(arguments, 1, record if len(started) < 3 else "", "a sentence")

    monkeypatch.setattr(pencil_seconds.subprocess, "run", command)
    runs = [pencil_seconds.solve(PUZZLES["tapa"][0], ["--seconds", "9"]) for _ in range(2)]
    assert started[0] == [
        "solve", PUZZLES["tapa"][0], "--json", "--device", "cpu", "--seconds", "9"
    ]  # fmt: skip
    assert [run.solved for run in runs] == [True, False]
    with pytest.raises(RuntimeError, match="exit code 1; a sentence"):
        pencil_seconds.solve(PUZZLES["tapa"][0], [])
    timed = pencil_seconds.TimedCommand
    some = [timed(9.0, 1.0, True), timed(2.0, 0.5, False), timed(4.0, 2.0, True)]
    assert pencil_seconds.row("tapa", some) == "| tapa (3) | 2 | 4.0 | 1.0 | 9.0 |"


def test_shares_of_a_training_set_are_named_and_complete() -> None:
    shares = ["sudoku=0.1", "lightup=0.1", "nurikabe=0.1", "heyawake=0.6", "tapa=0.1"]
    assert pencil_data.read_shares(shares)["heyawake"] == 0.6
    for bad in (shares[:4], [*shares[:4], "tapa=0.2"], [*shares[:4], "slither=0.1"]):
        with pytest.raises(SettingsError, match=r"NAME=SHARE for sudoku, .* sum of 1"):
            pencil_data.read_shares(bad)

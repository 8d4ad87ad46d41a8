"""ARC tasks at the command line: found by their content, answered twice, written for Kaggle."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.tasks.arc.arc_samples import FULL, MINI, full_model, mini_model, write_tasks

from tiltrm.cli import arc_solving
from tiltrm.cli.main import main
from tiltrm.data.arc_submission import read_submission
from tiltrm.model import load, save

pytestmark = pytest.mark.usefixtures("one_thread", "no_progress")
QUICK = ("--method", "deterministic", "--outer-steps", "2")


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save(mini_model(), tmp_path_factory.mktemp("models") / "mini", dtype=None))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save(full_model(), tmp_path_factory.mktemp("models") / "full", dtype=None))


@pytest.fixture
def mini_file(tmp_path: Path) -> str:
    return str(write_tasks(tmp_path / "mini.json", MINI))


def objects(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The error of a command that must fail."""
    assert main(list(arguments)) == 2
    return capsys.readouterr().err


def test_all_test_inputs_are_answered(
    mini: str, mini_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "submission.json"
    command = [
        "solve",
        "--task",
        "mini-arc",
        "--model",
        mini,
        "--file",
        mini_file,
        "--json",
        *QUICK,
    ]
    assert main([*command, "--submission", str(out)]) == 0
    found = objects(capsys.readouterr().out)
    assert [(one["task_name"], one["index"]) for one in found] == [
        ("first", 0), ("second", 0), ("second", 1), ("unknown", 0)]  # fmt: skip
    for one in found:
        assert len(one["attempts"]) == 2
        assert one["evaluations"] == 4
        assert one["solved_by_rules"] is None
    back = read_submission(out)
    assert [len(inputs) for inputs in back.values()] == [1, 2, 1]
    assert json.loads(json.dumps(back["second"][1])) == found[2]["attempts"]


@pytest.mark.parametrize(("method", "compact"), [("deterministic", False), ("guided", True)])
def test_deterministic_solving_has_every_hidden_unit(
    mini: str, mini_file: str, monkeypatch: pytest.MonkeyPatch, method: str, *, compact: bool
) -> None:
    asked: dict[str, Any] = {}

    def loaded(name: str, **given: Any) -> Any:
        asked.update(given)
        return load(name)

    monkeypatch.setattr(arc_solving, "load", loaded)
    words = ("--model", mini, "--file", mini_file, "--method", method, "--outer-steps", "1")
    assert main(["solve", "--task", "mini-arc", *words]) == 0
    assert asked["compact"] is compact


def test_augmentations_are_paid_for_and_vote(
    mini: str, mini_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["solve", "--model", mini, "--file", mini_file, "--json", *QUICK]
    assert main([*command, "--augmentations", "5", "--ranking", "votes"]) == 0
    assert [one["evaluations"] for one in objects(capsys.readouterr().out)] == [20] * 4


def test_a_person_sees_grids(mini: str, mini_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "--model", mini, "--file", mini_file, *QUICK]) == 0
    out = capsys.readouterr().out
    assert "second, test 2" in out
    assert "9 9 9 9 9  ->" in out
    assert out.count("second attempt:") >= 1  # the random model's particles disagree
    assert "breaks a rule" not in out


def test_arc_with_ids(full: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(write_tasks(tmp_path / "tasks.json", FULL))
    command = ["solve", "--model", full, "--file", file, "--json", *QUICK]
    assert main([*command, "--augmentations", "3"]) == 0
    found = objects(capsys.readouterr().out)
    assert [one["evaluations"] for one in found] == [12, 4, 4]
    assert found[0]["puzzle"] == "1: 444/444"
    assert main([*command, "--augmentations", "2", "--translate"]) == 0


def test_one_puzzle_as_text(mini: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = "1: 00000/00000/00100/00000/00000"
    assert main(["solve", text, "--model", mini, "--json", *QUICK]) == 0
    (found,) = objects(capsys.readouterr().out)
    assert found["puzzle"] == text
    assert found["solved_by_rules"] is None


def test_bad_calls_are_sentences(
    mini: str, full: str, mini_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def solving(*arguments: str) -> str:
        return said(capsys, "solve", "--file", mini_file, *arguments)

    assert "stopping at a valid solution (rules) needs a task" in solving(
        "--model", mini, "--rules"
    )
    assert "for ARC tasks in JSON, got sudoku" in solving("--task", "sudoku")
    assert "--watch is for single puzzles" in solving("--model", mini, "--watch")
    assert "not among the 5 names" in solving("--model", full)
    assert "model for mini-arc" in solving("--model", full, "--task", "mini-arc")
    error = said(capsys, "solve", "--submission", str(tmp_path / "x.json"))
    assert "--submission goes with ARC tasks" in error
    large = str(write_tasks(tmp_path / "full.json", FULL))
    assert "expected --model with a model for arc" in said(capsys, "solve", "--file", large)


def test_an_id_that_the_table_does_not_have(full: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = said(capsys, "solve", "99: 012/345", "--model", full, *QUICK)
    assert "must lie in 0..4" in error


def test_a_task_number_that_the_model_was_not_trained_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = mini_model()
    model.puzzle_names = ("first", "second")
    folder = str(save(model, tmp_path / "mini", dtype=None))
    text = ": 00000/00000/00100/00000/00000"
    assert main(["solve", f"1{text}", "--model", folder, *QUICK]) == 0
    error = said(capsys, "solve", f"2{text}", "--model", folder, *QUICK)
    assert "must lie in 0..1, the names in the model's puzzles.json, got 2" in error


def test_methods_are_compared_by_pass_at_two(
    mini: str, mini_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", "--model", mini, "--data", mini_file, "--seeds", "2", "--set",
               "outer_steps=2", "--method", "deterministic", "deterministic:augmentations=3",
               "guided:particles=2"]  # fmt: skip
    assert main([*command, "--json"]) == 0
    out, err = capsys.readouterr()
    assert "1 tasks without outputs are left out" in err
    found = json.loads(out)
    assert (found["tasks"], found["test_inputs"]) == (2, 3)
    assert [row["evaluations"]["mean"] for row in found["rows"]] == [4, 12, 8]
    assert [row["runs"] for row in found["rows"]] == [1, 2, 2]
    assert {"pass_1", "pass_2", "pass_1_votes", "pass_2_votes"} <= set(found["rows"][0])
    assert [pair["split"] for pair in found["paired"]] == ["pass@1", "pass@1", "pass@2", "pass@2"]
    assert main(command) == 0
    assert "pass@2 % by votes" in capsys.readouterr().out


def test_bad_evaluations_are_sentences(
    mini: str, mini_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluating(*arguments: str) -> str:
        return said(capsys, "evaluate", "--model", mini, "--data", mini_file, *arguments)

    assert "--ray is not for ARC tasks" in evaluating("--ray")
    assert "--folds must lie in 1..2, the number of tasks, got 3" in evaluating("--folds", "3")
    assert "method must be one of" in evaluating("--method", "adaptive_rules")
    assert "got copies; leave it out" in evaluating("--set", "copies=3", "--method", "guided")
    assert "--limit must be at least 1 task" in evaluating("--limit", "0")
    asked = write_tasks(tmp_path / "asked.json", MINI[2:])
    error = said(capsys, "evaluate", "--model", mini, "--data", str(asked))
    assert "expected ARC tasks with the outputs of their tests, got none" in error


def test_a_store_is_read_again(
    mini: str, mini_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    command = ["evaluate", "--model", mini, "--data", mini_file, "--seeds", "2", "--folds", "2",
               "--set", "outer_steps=2", "--method", "deterministic", "guided:particles=2",
               "--store", str(store), "--json"]  # fmt: skip
    assert main(command) == 0
    first, made = (
        capsys.readouterr().out,
        {file: file.stat().st_mtime_ns for file in store.iterdir()},
    )
    assert len(made) == 2 + 4  # folds x seeds; deterministic has no seed
    assert main(command) == 0
    assert capsys.readouterr().out == first
    assert {file: file.stat().st_mtime_ns for file in store.iterdir()} == made


def test_a_bad_file_is_a_sentence_about_its_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps({"odd": {"train": [], "test": [{"input": [[1]]}]}}))
    assert "task 'odd': expected at least one demonstration" in said(capsys, "data", str(file))


def test_data_counts_what_an_arc_file_holds(
    mini_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", mini_file]) == 0
    assert "(mini-arc): 3 ARC tasks, 4 demonstrations, 4 test inputs, 3 known outputs" in (
        capsys.readouterr().out
    )
    assert main(["data", mini_file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arc_tasks"] == 3


def test_a_replay_has_the_colours(mini: str, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    text = "1: 00000/01230/00400/00000/00000"
    assert main(["solve", text, "--model", mini, "--html", str(page), *QUICK]) == 0
    found = re.search(r'id="replay">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert found is not None
    start = json.loads(found[1])["start"]
    assert start["colours"][2:4] == ["#000000", "#0074d9"]
    assert (start["side"], start["cells"]) == (5, 25)
    assert json.loads(found[1])["baseline"]["solved"] is None
    assert len(json.loads(found[1])["steps"][0]["leading"]) == 25


@pytest.mark.parametrize("command", [("diagnose", "--puzzles", "2"), ("tune", "--dry-run")])
def test_commands_on_single_puzzles_number_them_by_name(
    full: str, tmp_path: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(write_tasks(tmp_path / "tasks.json", [replace(FULL[0], name="nobody")]))
    error = said(capsys, command[0], "--model", full, "--data", file, *command[1:])
    assert "task 'nobody': expected a task that the model has a puzzle id for" in error

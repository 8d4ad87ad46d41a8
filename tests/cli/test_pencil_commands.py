"""Pencil puzzles at the command line: addresses find their task, and bad ones are named."""

import csv
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.tasks.pencil.pencil_samples import LINK, PUZZLES, save_random_model

from tiltrm.cli import solve_command
from tiltrm.tasks import SUDOKU
from tiltrm.tasks.pencil import PENCIL, search
from tiltrm.tasks.pencil.address import read
from tiltrm.tasks.pencil.dataset import forms

NURIKABE, SHADED = PUZZLES["nurikabe"]
PLAIN = ". 2 . . ./. . . . ./2 . . 3 ./. . . . 1"
SUDOKU_TEXT = solve_command.SAMPLE
SUDOKU_ADDRESS = SUDOKU.address(SUDOKU.encode(SUDOKU_TEXT))
QUICK = ("--method", "deterministic", "--outer-steps", "1")
needs_ortools = pytest.mark.skipif(
    importlib.util.find_spec("ortools") is None, reason="needs OR-Tools: pip install .[generate]"
)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random model of all five types, as a folder."""
    return save_random_model(tmp_path_factory.mktemp("models") / "pencil")


@pytest.fixture
def solver(stubborn: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command line with models that give one answer, and the names of those loaded."""
    loaded: list[str] = []
    answers = {"pencil": PENCIL.encode(SHADED, answer=True), "sudoku-extreme": torch.full((81,), 2)}
    found = {
        name: stubborn(tokens, task="pencil" if name == "pencil" else "sudoku",
                       vocabulary=PENCIL.vocabulary)
        for name, tokens in answers.items()
    }  # fmt: skip

    def load(name: str, **_: Any) -> Any:
        loaded.append(name)
        return found[name]

    monkeypatch.setattr(solve_command, "load", load)
    found["pencil"].loaded = loaded
    return found["pencil"]


def objects(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def write_table(path: Path, *, answers: bool) -> Path:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("type", "question", "answer")[: 3 if answers else 2])
        for name, pair in PUZZLES.items():
            rows.writerow((name, *pair)[: 3 if answers else 2])
    return path


@pytest.mark.parametrize("form", [
    NURIKABE, NURIKABE.replace("https", "http"), NURIKABE.replace("puzz.link/p", "pzv.jp/p.html"),
])  # fmt: skip
def test_an_address_finds_its_task_and_model(tiltrm: Any, solver: Any, form: str) -> None:
    code, out, err = tiltrm("solve", form, "--json")
    (found,) = objects(out)
    assert (code, err, solver.loaded) == (0, "", ["pencil"])
    assert found["answer"] == SHADED.replace("/", "")
    assert found["solved_by_rules"] is True
    assert (found["task"], found["address"]) == ("nurikabe", NURIKABE)
    assert len(found["entropy"]) == len(found["answer"]) == 20


def test_every_type_solves_with_its_own_rules(tiltrm: Any, solver: Any) -> None:
    for name, (address, answer) in PUZZLES.items():
        solver.tokens = PENCIL.encode(answer, answer=True)
        code, out, _ = tiltrm("solve", address, "--json")
        (found,) = objects(out)
        assert (code, found["task"], found["answer"]) == (0, name, answer.replace("/", ""))
        code, out, _ = tiltrm("solve", "--task", name, address, "--no-color")
        assert (code, "valid solution; " in out) == (0, True)


def test_akari_is_lightup(tiltrm: Any, solver: Any) -> None:
    address, answer = PUZZLES["lightup"]
    solver.tokens = PENCIL.encode(answer, answer=True)
    (found,) = objects(tiltrm("solve", address.replace("lightup", "akari"), "--json")[1])
    assert (found["task"], found["answer"]) == ("lightup", answer.replace("/", ""))


def test_the_cells_outside_the_board_do_not_count(tiltrm: Any, solver: Any) -> None:
    outside = PENCIL.encode(NURIKABE) == 0
    solver.tokens = torch.where(outside, 200, solver.tokens)
    code, out, _ = tiltrm("solve", NURIKABE, "--json")
    assert (code, objects(out)[0]["answer"]) == (0, SHADED.replace("/", ""))


def test_the_address_of_a_sudoku_is_for_the_task_sudoku(tiltrm: Any, solver: Any) -> None:
    (found,) = objects(tiltrm("solve", SUDOKU_ADDRESS, "--json", *QUICK)[1])
    assert solver.loaded == ["sudoku-extreme"]
    assert (found["puzzle"], found["task"]) == (SUDOKU_TEXT, "sudoku")
    assert found["address"] == SUDOKU_ADDRESS
    (found,) = objects(tiltrm("solve", SUDOKU_ADDRESS, NURIKABE, "--json", *QUICK)[1])[:1]
    assert solver.loaded[1:] == ["pencil"], "one model for both"
    assert found["task"] == "sudoku"
    assert len(found["answer"]) == 81


def test_the_plain_form_needs_its_task(tiltrm: Any, solver: Any) -> None:
    code, out, _ = tiltrm("solve", "--task", "nurikabe", PLAIN, "--json")
    (found,) = objects(out)
    assert (code, found["address"], found["answer"]) == (0, NURIKABE, SHADED.replace("/", ""))


@pytest.mark.parametrize("name", ["a.txt", "a.csv"])
def test_a_file_of_addresses(
    tiltrm: Any, model: str, solver: Any, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    if name.endswith(".csv"):
        write_table(path, answers=True)
    else:
        path.write_text("\n".join(address for address, _ in PUZZLES.values()) + "\n")
    code, out, err = tiltrm("solve", "--file", path, "--json", *QUICK)
    assert (solver.loaded, err) == (["pencil"], "")
    found = objects(out)
    assert [record["task"] for record in found] == list(PUZZLES)
    assert [record["solved_by_rules"] for record in found] == [False, True, False, False]
    assert code == 1


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (f"{LINK}slither/4/4/u", "expected a puzzle among sudoku, lightup, nurikabe, heyawake, "
         "tapa (also akari), got 'slither'"),
        (f"{LINK}nurikabe/11/4/zzj", "expected a nurikabe board of 4 x 4 to 10 x 10, got 11 x 4"),
        (f"{LINK}nurikabe/3/4/r", "expected a nurikabe board of 4 x 4 to 10 x 10, got 3 x 4"),
        (NURIKABE[:-2], "expected clues for 20 cells, got 14; the address seems to be cut off"),
        (NURIKABE[:-8], "expected clues for 20 cells, got 0; the address seems to be cut off"),
        (PUZZLES["heyawake"][0][:-8], "the address seems to be cut off"),
        (f"{LINK}sudoku/4/4/v", "expected a sudoku of 9 x 9, got 4 x 4"),
    ],
)  # fmt: skip
def test_a_bad_address_is_one_sentence(tiltrm: Any, solver: Any, address: str, said: str) -> None:
    code, out, err = tiltrm("solve", address)
    assert (code, out) == (2, "")
    assert err.startswith("tiltrm solve: puzzle 1: expected ")
    assert said in err
    assert err.count("\n") == 1


def test_another_type_than_the_task(tiltrm: Any, solver: Any) -> None:
    code, _, err = tiltrm("solve", "--task", "tapa", NURIKABE)
    assert (code, err) == (
        2, "tiltrm solve: puzzle 1: expected a tapa, got the address of a nurikabe\n"
    )  # fmt: skip


@needs_ortools
def test_clues_that_contradict_each_other(tiltrm: Any, solver: Any) -> None:
    code, out, err = tiltrm("solve", f"{LINK}nurikabe/5/4/22x", "--no-color")
    assert (code, out) == (2, "")
    assert "puzzle 1: no valid solution found: the clues contradict each other; " in err
    code, out, _ = tiltrm("solve", f"{LINK}nurikabe/5/4/22x", "--json")
    (found,) = objects(out)
    assert (code, found["answer"], found["solutions"]) == (2, None, 0)
    assert (found["task"], found["error"][:23]) == ("nurikabe", "no valid solution found")


@needs_ortools
def test_one_of_several_solutions(tiltrm: Any, solver: Any) -> None:
    address = f"{LINK}nurikabe/4/4/8u"
    for marks in search.solutions(read(address)):
        text = "".join("#" if mark else "." for mark in marks)
        solver.tokens = PENCIL.encode(text, answer=True)
        code, out, _ = tiltrm("solve", address, "--no-color")
        assert (code, "valid solution, one of several; " in out) == (2, True)
    code, out, _ = tiltrm("solve", address, "--json")
    assert (code, objects(out)[0]["solutions"]) == (2, 2)
    solver.tokens = PENCIL.encode("." * 16, answer=True)
    code, out, _ = tiltrm("solve", address, "--no-color", *QUICK)
    said = "no valid solution found: the answer breaks a rule (the puzzle has several solutions); "
    assert (code, said in out) == (2, True), "the exit code is explained without a solution, too"


def test_without_ortools_nothing_is_counted(
    tiltrm: Any, solver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiltrm.tasks.pencil.search.have_ortools", lambda: False)
    code, out, _ = tiltrm("solve", f"{LINK}nurikabe/5/4/22x", "--no-color")
    assert (code, "no valid solution found: the answer breaks a rule; " in out) == (1, True)


def test_a_report_on_a_file(tiltrm: Any, tmp_path: Path) -> None:
    path = write_table(tmp_path / "all.csv", answers=True)
    assert f"{path}: 4 puzzles of pencil, with answers" in tiltrm("data", path)[1]
    path.write_text(f"{NURIKABE}\n{NURIKABE}\n")
    assert "2 puzzles of nurikabe, without answers" in tiltrm("data", path)[1]
    path.write_text(f"{NURIKABE}\n{NURIKABE[:-2]}\n")
    code, out, _ = tiltrm("data", path)
    assert code == 2
    assert "2 puzzles of nurikabe" in out
    assert "puzzle 2: expected clues for 20 cells" in out


@needs_ortools
def test_generated_files_are_continued_and_leave_puzzles_out(tiltrm: Any, tmp_path: Path) -> None:
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    make = ("data", "--task", "lightup", "--generate")
    code, out, _ = tiltrm(*make, "2", "--out", path)
    assert (code, "2 puzzles of lightup, with answers" in out) == (0, True)
    first = path.read_text()
    assert tiltrm(*make, "3", "--out", path)[0] == 0
    assert path.read_text().startswith(first)
    code, out, _ = tiltrm(*make, "2", "--out", other, "--without", path)
    assert "3 puzzles left out" in out
    assert not forms(path) & forms(other)
    code, _, err = tiltrm("data", "--task", "tapa", "--generate", "4", "--out", path)
    assert code == 2
    assert "expected puzzles of tapa with their seeds to continue, got lightup" in err
    path.write_text("question,answer\n")
    code, _, err = tiltrm(*make, "2", "--out", path)
    assert code == 2
    assert "expected a file of generated puzzles to continue" in err


@needs_ortools
def test_all_types_are_generated_in_turn(tiltrm: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert tiltrm("data", "--task", "pencil", "--generate", "5", "--out", path)[0] == 0
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["type"] for row in rows] == ["sudoku", *PUZZLES]


def test_without_is_for_pencil_puzzles(tiltrm: Any, tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    code, _, err = tiltrm("data", "--generate", "1", "--out", out, "--without", "golden.csv")
    assert (code, "--without goes with pencil puzzles, got sudoku" in err) == (2, True)
    code, _, err = tiltrm("data", out, "--without", "golden.csv")
    assert (code, "--without goes with --generate N" in err) == (2, True)


EVALUATE = ("evaluate", "--task", "pencil", "--folds", "1", "--seeds", "1", "--json")


@pytest.mark.parametrize("answers", [True, False])
def test_evaluate_reports_by_type(tiltrm: Any, model: str, tmp_path: Path, answers: bool) -> None:
    data = write_table(tmp_path / "four.csv", answers=answers)
    code, out, err = tiltrm(
        *EVALUATE, "--model", model, "--data", data, "--method", "unguided:particles=2,"
        "outer_steps=2", "deterministic:outer_steps=2", "symmetry:copies=2,outer_steps=2",
        "adaptive:outer_steps=2",
    )  # fmt: skip
    assert code == 0
    rows = json.loads(out)["rows"]
    splits = [row["split"] for row in rows if row["method"] == "symmetry"]
    assert splits == ["four", "DF", *(f"four, {name}" for name in PUZZLES)]
    assert all(row["puzzles"] == 1 for row in rows if row["split"].startswith("four, "))
    assert all(row["oracle"] is not None for row in rows if row["method"] == "unguided")
    said = "it has no answers, so a valid solution counts as right" in err
    assert said == (not answers)


def test_without_answers_the_rules_judge(
    tiltrm: Any, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task whose rules accept everything calls every answer right."""
    data = write_table(tmp_path / "four.csv", answers=False)
    methods = ("--method", "unguided:particles=2,outer_steps=1", "deterministic:outer_steps=1")
    arguments = (*EVALUATE, "--model", model, "--data", data, *methods)
    rows = json.loads(tiltrm(*arguments)[1])["rows"]
    assert {row["exact"]["mean"] for row in rows} == {0.0}
    monkeypatch.setattr(
        type(PENCIL), "is_solved",
        lambda self, puzzle, answer: torch.broadcast_tensors(puzzle, answer)[0].sum(-1) >= 0,
    )  # fmt: skip
    rows = json.loads(tiltrm(*arguments)[1])["rows"]
    assert {row["exact"]["mean"] for row in rows} == {1.0}
    assert {row["oracle"]["mean"] for row in rows if row["method"] == "unguided"} == {1.0}


def test_larger_boards_are_left_out_and_counted(tiltrm: Any, model: str, tmp_path: Path) -> None:
    data = write_table(tmp_path / "four.csv", answers=False)
    data.write_text(data.read_text() + f"nurikabe,{LINK}nurikabe/11/4/zzj\n")
    arguments = ("--model", model, "--data", data, "--method", "deterministic:outer_steps=1")
    code, out, err = tiltrm(*EVALUATE, *arguments)
    assert (code, json.loads(out)["rows"][0]["puzzles"]) == (0, 4)
    assert "1 puzzles have a size that pencil does not hold and are left out; 4 remain" in err
    data.write_text(f"question\n{LINK}nurikabe/11/4/zzj\n")
    code, _, err = tiltrm(*EVALUATE, *arguments)
    assert (code, "expected at least one puzzle, got none" in err) == (2, True)


def test_diagnose_takes_all_types(tiltrm: Any, model: str, tmp_path: Path) -> None:
    data = write_table(tmp_path / "four.csv", answers=True)
    small = ("--puzzles", "4", "--particles", "3", "--outer-steps", "2")
    code, out, err = tiltrm("diagnose", "--model", model, "--data", data, "--labels", *small)
    assert err == ""
    assert (code, bool(out)) == (0, True)

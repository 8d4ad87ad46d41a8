"""--puzzle-id: every command uses the row of the puzzle embedding that it names."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.serve.service import serving
from tests.train import toys
from torch import Tensor

from tiltrm.evaluate.options import complete
from tiltrm.evaluate.peers import Case, evaluate_method
from tiltrm.explore.plan import Adaptive, parse_stages
from tiltrm.model import load, save
from tiltrm.model.build import Model
from tiltrm.model.native import CALIBRATION, TUNED, write_beside
from tiltrm.model.puzzle_rows import with_puzzle
from tiltrm.model.trm import TRM
from tiltrm.solving import solve
from tiltrm.solving.plans import TunedPlan

PUZZLE = ".3.1..2.....4..."  # with one solution
QUICK = ("--method", "guided", "--particles", 4, "--outer-steps", 3)


def prefix_in_use(model: Model) -> Tensor:
    return model.prefix[model.puzzle_id]


@pytest.fixture
def several(toy: TRM, tmp_path: Path) -> Path:
    """The toy with three puzzle ids."""
    model = TRM(replace(toy.config, puzzles=3))
    rows = torch.randn(3, *toy.prefix.shape, generator=torch.Generator().manual_seed(1))
    model.load_state_dict({**toy.state_dict(), "prefix": rows})
    model.task, model.decide_above = toy.task, toy.decide_above
    return save(model.requires_grad_(False), tmp_path / "several", dtype=None)


@pytest.fixture
def alone(several: Path, toy: TRM, tmp_path: Path) -> Path:
    """The toy with the row 2 as its only one."""
    model = TRM(toy.config)
    row = prefix_in_use(load(several, puzzle_id=2))
    model.load_state_dict({**toy.state_dict(), "prefix": row})
    model.task, model.decide_above = toy.task, toy.decide_above
    return save(model.requires_grad_(False), tmp_path / "alone", dtype=None)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return toys.write_csv(tmp_path / "puzzles.csv", toys.puzzles(60))


def solved(tiltrm: Any, *words: Any) -> dict[str, Any]:
    code, out, err = tiltrm("solve", PUZZLE, *QUICK, "--json", *words)
    assert (code, err) == (1, ""), out
    found: dict[str, Any] = json.loads(out)
    return {name: value for name, value in found.items() if name != "seconds"}


def test_solve(tiltrm: Any, several: Path, alone: Path) -> None:
    one = solved(tiltrm, "--model", several, "--puzzle-id", 2)
    assert one == solved(tiltrm, "--model", alone)
    assert one != solved(tiltrm, "--model", several)
    assert one != solved(tiltrm, "--model", several, "--puzzle-id", 1)
    assert solved(tiltrm, "--model", several) == solved(tiltrm, "--model", several,
                                                        "--puzzle-id", 0)  # fmt: skip


def test_solve_in_python(several: Path, alone: Path) -> None:
    own = {"method": "guided", "particles": 4, "outer_steps": 3}
    expected = solve(load(alone), PUZZLE, **own)
    for found in (
        solve(load(several, puzzle_id=2), PUZZLE, **own),
        solve(load(several), PUZZLE, puzzle_id=2, **own),
    ):
        assert torch.equal(found.answers, expected.answers)
        assert torch.equal(found.confidence, expected.confidence)


def test_a_page_says_which_row_and_its_baseline_has_it(
    tiltrm: Any, several: Path, alone: Path, tmp_path: Path
) -> None:
    replays = []
    for words in (("--model", several, "--puzzle-id", 2), ("--model", alone)):
        assert tiltrm("solve", PUZZLE, *QUICK, *words, "--html", tmp_path / "page.html")[0] == 1
        text = (tmp_path / "page.html").read_text("utf-8")
        found = re.search(r'id="replay">(.*?)</script>', text, re.DOTALL)
        assert found is not None
        replays.append(json.loads(found[1]))
    assert "--puzzle-id 2" in replays[0]["start"]["command"]
    assert replays[0]["steps"] == replays[1]["steps"]
    assert replays[0]["baseline"] == replays[1]["baseline"]


METHODS = ("deterministic", "guided", "halt_first", "symmetry", "c_voting", "adaptive",
           "adaptive_rules")  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_evaluated_methods(several: Path, alone: Path, method: str) -> None:
    puzzles = toys.puzzles(60).take(slice(0, 4))

    def halting(model: Any, **given: Any) -> Any:
        settings = complete(method, {"outer_steps": 3, **given}, "sudoku4")
        tokens, labels = puzzles.questions, puzzles.labels()
        case = Case(model, puzzles.task, tokens, labels, settings, 0, torch.arange(4))
        return evaluate_method(method, case)["halt_probability"].tolist()

    assert halting(load(several), puzzle_id=2) == halting(load(alone)) != halting(load(several))


def test_evaluate(tiltrm: Any, several: Path, data: Path, tmp_path: Path) -> None:
    """The same store: a job with another id is another job."""
    command = ("evaluate", "--data", data, "--limit", 6, "--folds", 1, "--seeds", 1,
               "--set", "outer_steps=3", "--method", *METHODS, "--store", tmp_path / "store",
               "--model", several, "--json")  # fmt: skip
    for words, expected in ((("--puzzle-id", 2), 2), ((), None)):
        code, out, _ = tiltrm(*command, *words)
        assert code == 0
        rows = json.loads(out)["rows"]
        assert {row["method"] for row in rows} == {*METHODS}
        assert {row["settings"].get("puzzle_id") for row in rows} == {expected}


def test_diagnose(tiltrm: Any, several: Path, alone: Path, data: Path) -> None:
    command = ("diagnose", "--data", data, "--puzzles", 2, "--outer-steps", 3, "--json", "--model")
    one, other = (tiltrm(*command, *words)[1] for words in ((several, "--puzzle-id", 2), (alone,)))
    assert json.loads(one) == json.loads(other)
    assert json.loads(one) != json.loads(tiltrm(*command, several)[1])


def test_a_calibration_is_for_its_row(tiltrm: Any, several: Path, data: Path) -> None:
    plan = TunedPlan(Adaptive(parse_stages("1x2"), symmetric_views=False), 90.0)
    write_beside(several, TUNED, {"task": "sudoku4", **plan.as_mapping()})
    command = ("tune", "--confidence-only", "--model", several, "--data", data)
    code, _, err = tiltrm(*command, "--evaluations", 50_000, "--puzzle-id", 2)
    assert (code, err) == (0, "")
    stored = json.loads((several / CALIBRATION).read_text())
    assert stored["settings"]["puzzle_id"] == 2
    for words, said in (((), "got another puzzle_id"), (("--puzzle-id", 2), "a risk of 0.1 ")):
        code, _, err = tiltrm("solve", PUZZLE, "--model", several, "--risk", 0.1, *words)
        assert code == 2
        assert said in err


def test_import_keeps_all_rows_and_the_choice(tiltrm: Any, several: Path, tmp_path: Path) -> None:
    out = tmp_path / "again"
    code, said, _ = tiltrm("import", several, "--puzzle-id", 1, "--out", out)
    assert code == 0
    assert "3 puzzle ids, 1 in use" in said
    again = load(out)
    for model in (again, with_puzzle(again, 2)):
        expected = load(several, puzzle_id=model.puzzle_id)
        assert torch.equal(prefix_in_use(model), prefix_in_use(expected))
    assert again.puzzle_id == 1


def test_over_http(several: Path, alone: Path) -> None:
    body = {"puzzles": [PUZZLE], "method": "guided", "particles": 4, "outer_steps": 3}
    with serving(load(several)) as service:
        chosen, usual, wrong = (
            service.ask("/v1/solve", body | more)
            for more in ({"puzzle_id": 2}, {}, {"puzzle_id": 3})
        )
        _, _, stream = service.ask("/v1/solve/stream", body | {"puzzle_id": 2, "baseline": True})
    with serving(load(alone)) as service:
        expected = service.ask("/v1/solve", body)
        _, _, other = service.ask("/v1/solve/stream", body | {"baseline": True})
    entropy = [found[2]["results"][0]["entropy"] for found in (chosen, usual, expected)]
    assert entropy[0] == entropy[2] != entropy[1]
    assert wrong[0] == 422
    assert "puzzle_id must lie in 0..2" in wrong[2]["error"]

    def baseline(text: str) -> str:
        return text.partition("event: baseline")[2].partition("event:")[0]

    assert baseline(stream) == baseline(other) != ""


@pytest.mark.parametrize("command", ["solve", "evaluate", "diagnose", "tune", "serve", "export"])
def test_an_id_that_is_not_there_gets_a_sentence(
    tiltrm: Any, several: Path, data: Path, tmp_path: Path, command: str
) -> None:
    words = {
        "solve": (PUZZLE,), "evaluate": ("--data", data), "diagnose": ("--data", data),
        "tune": ("--data", data), "serve": (), "export": ("--onnx", tmp_path / "onnx"),
    }  # fmt: skip
    for number in (3, -1):
        code, out, err = tiltrm(command, "--model", several, "--puzzle-id", number, *words[command])
        assert (code, out, len(err.splitlines())) == (2, "", 1), err
        assert re.search(r"puzzle_id must (lie in 0\.\.2|be)", err), err

"""tune --threshold-only: what it says, what it stores, and what it refuses before the work."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tiltrm.cli import tune_threshold
from tiltrm.explore.plan import Adaptive, parse_stages
from tiltrm.model import load
from tiltrm.model.native import TUNED, write_beside
from tiltrm.solving.methods import adaptive_plan
from tiltrm.solving.plans import TunedPlan
from tiltrm.tasks import Sudoku

TASK = Sudoku(2)
PUZZLE, ANSWER = "1...3..2.1....2.", "1234341221434321"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "val.csv"
    path.write_text("source,question,answer,rating\n" + f"x,{PUZZLE},{ANSWER},1\n" * 120)
    return path


@pytest.fixture
def own(folder: str, tmp_path: Path) -> Path:
    """A copy of the toy's folder that may be written."""
    return Path(shutil.copytree(folder, tmp_path / "own"))


@pytest.fixture
def sure_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every trajectory is sure of a wrong answer at 3, and then right at 5."""

    def followed(_: Any, tokens: Tensor, steps: int, **__: Any) -> tuple[Tensor, Tensor]:
        assert (len(tokens), steps) == (110, 9)
        right = TASK.encode(ANSWER)
        answers = torch.stack((right.roll(1), right))
        return torch.tensor([3.0, 5.0]).expand(110, 2), answers.expand(110, 2, -1)

    monkeypatch.setattr(tune_threshold, "follow", followed)


@pytest.mark.usefixtures("sure_early")
def test_the_threshold_is_said_and_stored_unless_the_run_is_dry(
    tiltrm: Any, own: Path, data: Path
) -> None:
    before = {path.name: path.read_bytes() for path in own.iterdir()}
    asked = ("tune", "--threshold-only", "--model", own, "--data", data, "--puzzles", 110,
             "--outer-steps", 9)  # fmt: skip
    code, out, err = tiltrm(*asked, "--dry-run")
    assert (code, err) == (0, "")
    assert "decided above a halt logit of 3: one trajectory decides 110 of 110" in out
    assert {path.name: path.read_bytes() for path in own.iterdir()} == before
    code, out, err = tiltrm(*asked, "--json")
    assert json.loads(out) == {
        "above": 3.0, "puzzles": 110, "decided": 110, "wrong": 0, "wrong_in_the_end": 0,
    }  # fmt: skip
    assert (load(own).decide_above, load(own).decide_settled) == (3.0, True)
    after = {path.name: path.read_bytes() for path in own.iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"config.json"}


@pytest.mark.usefixtures("sure_early")
def test_a_tuned_plan_with_its_own_threshold_is_named(tiltrm: Any, own: Path, data: Path) -> None:
    plan = TunedPlan(Adaptive(parse_stages("1x3")), 1.5)
    write_beside(own, TUNED, {"task": "sudoku4", **plan.as_mapping()})
    code, out, _ = tiltrm("tune", "--threshold-only", "--model", own, "--data", data,
                          "--puzzles", 110, "--outer-steps", 9)  # fmt: skip
    assert code == 0
    assert "this one is used with --untuned only" in out
    model = load(own)
    assert adaptive_plan(model).stopping.halt_above == 1.5
    assert adaptive_plan(model, tuned=False).stopping.halt_above == 3.0


@pytest.mark.parametrize("model", ["sudoku-extreme", "nowhere"])
def test_only_a_folder_of_ones_own_is_written(tiltrm: Any, data: Path, model: str) -> None:
    code, out, err = tiltrm("tune", "--threshold-only", "--model", model, "--data", data)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"--model must be a folder that import or train wrote, got {model}" in err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--puzzles", 99), "expected at least 100 puzzles with answers, got 99"),
        (("--puzzles", 0), "must be above 0, got 0"),
        (("--outer-steps", 0), "outer_steps must be"),
        (("--outer-steps", 2), "expected puzzles that the model can solve"),
        (("--confidence-only",), "without the flags that choose a plan, got --confidence-only"),
        (("--minutes", 1), "got --minutes; leave one out"),
        (("--rules",), "got --rules; leave one out"),
    ],
)
def test_refused_in_one_sentence(
    tiltrm: Any, folder: str, data: Path, flags: tuple[Any, ...], said: str
) -> None:
    code, out, err = tiltrm("tune", "--threshold-only", "--model", folder, "--data", data, *flags)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_its_own_flag_needs_it(tiltrm: Any, folder: str, data: Path) -> None:
    code, out, err = tiltrm("tune", "--model", folder, "--data", data, "--outer-steps", 9)
    assert (code, out) == (2, "")
    assert "--outer-steps must go with --threshold-only" in err

"""tiltrm tune: what it stores, who uses it, what it says, and bad input in one sentence."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train import toys

from tiltrm.cli import tune_command
from tiltrm.explore.plan import Adaptive, parse_stages
from tiltrm.model import load, save
from tiltrm.model.int8 import is_int8
from tiltrm.model.native import CALIBRATION, TUNED, write_beside
from tiltrm.model.trm import TRM
from tiltrm.solving import build_search
from tiltrm.solving.confidence import StopFeatures, fit
from tiltrm.solving.plans import TunedPlan
from tiltrm.solving.playing import Played
from tiltrm.solving.tune import Checked, Pairs, PlanPoint, Tuner, Tuning

PLAN = Adaptive(parse_stages("1x3 2x2*2"), noise=0.2, beta=1.0, symmetric_views=True)


def tuning(*, kept: bool = True) -> Tuning:
    return Tuning(
        TunedPlan(PLAN, 1.5), kept, "labels", 20, Played(0.9, 0.1, 50.0), Checked(20, 18, 51.0),
        Checked(20, 16, 80.0), Pairs(3, 1), 12345, (PlanPoint(40.0, 0.8, "1x3", 1.5),), None,
    )  # fmt: skip


@pytest.fixture
def folder(toy: TRM, tmp_path: Path) -> Path:
    return save(toy, tmp_path / "model", dtype=None)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return toys.write_csv(tmp_path / "puzzles.csv", toys.puzzles(40))


def test_the_result_is_stored_said_and_used(
    tiltrm: Any, folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tuner, "run", lambda self: tuning())
    picture = () if importlib.util.find_spec("matplotlib") is None else (
        "--picture", data.with_suffix(".svg"))  # fmt: skip
    code, out, _ = tiltrm(
        "tune", "--model", folder, "--data", data, "--evaluations", 200_000, *picture
    )
    assert code == 0
    assert not picture or "<svg" in data.with_suffix(".svg").read_text()
    assert "frontier on 20 puzzles, right by labels" in out
    assert "chosen: 1x3 2x2*2; noise 0.2, beta 1, symmetric views" in out
    assert "90.00% right at 51.0 evaluations; the task's own plan: 80.00% right" in out
    assert "kept (3 won, 1 lost)" in out
    model = load(folder)
    assert build_search(model).plan == PLAN
    assert build_search(model, tuned=False).plan != PLAN
    command = ("evaluate", "--model", folder, "--data", data, "--limit", 2, "--folds", 1,
               "--seeds", 1, "--json", "--method")  # fmt: skip
    code, out, _ = tiltrm(*command, "adaptive", "adaptive:tuned=false,outer_steps=2")
    rows = json.loads(out)["rows"]
    assert rows[0]["settings"]["stages"] == [[1, 3, False], [2, 2, False], [2, 2, False]]
    assert rows[0]["settings"]["halt_above"] == 1.5
    assert rows[1]["settings"]["stages"] == [[1, 2, False]]


@pytest.mark.parametrize("precision", [None, "int8"])
def test_the_precision_is_that_of_the_tuned_runs(
    tiltrm: Any, folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch, precision: str | None
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(Tuner, "run", lambda self: asked.append(self.model) or tuning())
    words = ("tune", "--model", folder, "--data", data, "--evaluations", 200_000, "--dry-run")
    assert tiltrm(*words, *(("--precision", precision) if precision else ()))[0] == 0
    assert [is_int8(model) for model in asked] == [precision == "int8"]


def test_a_plan_that_is_not_kept_is_not_stored(
    tiltrm: Any, folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_beside(folder, TUNED, {"task": "sudoku4", **tuning().as_mapping()})
    monkeypatch.setattr(Tuner, "run", lambda self: tuning(kept=False))
    code, out, _ = tiltrm("tune", "--model", folder, "--data", data, "--evaluations", 200_000)
    assert code == 0
    assert "not kept" in out
    assert not (folder / TUNED).exists()
    assert not (folder / CALIBRATION).exists()


@pytest.mark.usefixtures("no_progress")
def test_bad_input(tiltrm: Any, folder: Path, data: Path, tmp_path: Path) -> None:
    model = ("--model", folder, "--data", data)
    sudoku = tmp_path / "sudoku.csv"
    sudoku.write_text("question,answer\n" + "." * 81 + "," + "1" * 81 + "\n")

    def labelled(name: str, answer: str) -> Path:
        """Puzzles whose labels belong to other puzzles, or to another task."""
        path = tmp_path / f"{name}.csv"
        path.write_text("question,answer\n" + f"1...3..2.1....2.,{answer}\n" * 40)
        return path

    few = toys.write_csv(tmp_path / "few.csv", toys.puzzles(40).take(slice(0, 5)))
    for wrong, message in (
        ((*model, "--evaluations", 10), "a budget must be at least"),
        ((*model, "--evaluations", 10, "--minutes", 1), "got both"),
        ((*model, "--minutes", 0), "--minutes must be above 0"),
        (("--model", "sudoku-extreme", "--data", data), "a folder that import or train wrote"),
        (("--model", folder, "--data", few), "at least 40 puzzles to tune on, got 5"),
        (
            ("--model", folder, "--data", sudoku),
            "got puzzles that look like sudoku; add --task sudoku",
        ),
        ((*model, "--rules", "--judge", "agreement"), "with --rules; leave one out"),
        ((*model, "--confidence-only", "--judge", "agreement"), "with --confidence-only; leave"),
        ((*model, "--confidence-only", "--evaluations", 200_000), "50 puzzles to calibrate on"),
        ((*model, "--evaluations", 200_000), "no sign that this model solves anything"),
        (
            ("--model", folder, "--data", labelled("another", "4321214334121234")),
            "expected a solution of its question, got one that breaks the rules",
        ),
        (("--model", folder, "--data", labelled("maze", "SGo # ooo  # ooG")), "expected digits"),
    ):
        code, _, err = tiltrm("tune", *wrong)
        assert (code, len(err.splitlines())) == (2, 1), (wrong, err)
        assert message in err


@pytest.mark.usefixtures("no_progress")
@pytest.mark.parametrize("content", ['{"weights": "of another model"}', "[]", "nonsense"])
def test_a_store_of_another_model_is_refused(
    tiltrm: Any, folder: Path, data: Path, tmp_path: Path, content: str
) -> None:
    other = tmp_path / "store"
    other.mkdir()
    (other / "about.json").write_text(content)
    code, _, err = tiltrm("tune", "--model", folder, "--data", data, "--store", other,
                          "--evaluations", 200_000)  # fmt: skip
    assert (code, len(err.splitlines())) == (2, 1)
    assert ("expected a folder for recordings" in err) == (content == "nonsense")
    assert ("got those of another model" in err) == (content != "nonsense")


def test_the_commands_words_say_when_rules_stop() -> None:
    found = tuning()
    ruled = tune_command.words(
        Tuning(**{**vars(found), "chosen": TunedPlan(PLAN, None, rules=True)}), ""
    )
    assert "stops at a valid solution" in ruled
    assert "stored" not in ruled


def test_the_words_say_which_risk_a_hundred_puzzles_support() -> None:
    """A hundred right answers: 1 - 0.05^(1/100) = 0.0295. Seven wrong ones among the least trusted
    leave the 90 most trusted: 1 - 0.05^(1/90) = 0.0328."""

    def supported(wrong: int) -> str:
        features = StopFeatures(
            ["halting"] * 100, torch.full((100,), 0.9), torch.linspace(0.6, 0.99, 100),
            torch.full((100,), 24), torch.ones(100, dtype=torch.bool),
        )  # fmt: skip
        right = torch.arange(100) >= wrong
        found = fit(features, right, task="maze", data="", judge="labels", settings={})
        return tune_command.supported_risk(found)

    assert supported(0) == (
        "the smallest --risk that these puzzles support is 0.03, with answers to 100 of 100"
    )
    assert supported(7).endswith("support is 0.033, with answers to 90 of 100")
    assert supported(100) == "these puzzles support no --risk: too few of the answers are right"
    calibrated = fit(
        StopFeatures(["halting"] * 60, *[torch.full((60,), 0.9)] * 3, torch.ones(60).bool()),
        torch.ones(60).bool(), task="maze", data="", judge="labels", settings={},
    )  # fmt: skip
    said = tune_command.words(Tuning(**{**vars(tuning()), "calibration": calibrated}), "")
    assert "confidence calibrated; the smallest --risk that these puzzles support is 0.049" in said

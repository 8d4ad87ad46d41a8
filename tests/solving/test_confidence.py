"""Confidence as a probability: its fit, its limits, and what `solve` states."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tiltrm.errors import CheckpointError, SettingsError
from tiltrm.explore.search import UNDECIDED
from tiltrm.model import load, save
from tiltrm.model.native import CALIBRATION, TUNED, write_beside
from tiltrm.model.trm import TRM
from tiltrm.solving import solve, solve_texts
from tiltrm.solving.call import risk_rung
from tiltrm.solving.confidence import (
    Calibration,
    StopFeatures,
    fit,
    fit_curve,
    stated_confidence,
)
from tiltrm.solving.methods import adaptive_plan
from tiltrm.statistics import calibration_error
from tiltrm.tasks import Sudoku

TASK = Sudoku(2)
PUZZLE, ANSWER = (TASK.decode(tokens) for tokens in TASK.generate(3))


def drawn(count: int, seed: int) -> tuple[StopFeatures, Tensor]:
    """Stops whose probability of being right is known: the square of the halt probability."""
    chance = torch.Generator().manual_seed(seed)
    halt = torch.rand(count, generator=chance)
    right = torch.rand(count, generator=chance) < halt.square()
    steps = torch.randint(1, 100, (count,), generator=chance)
    every = torch.ones(count, dtype=torch.bool)
    return StopFeatures(["halting"] * count, halt, halt, steps, every), right


def calibration(features: StopFeatures, right: Tensor, **changes: Any) -> Calibration:
    known: dict[str, Any] = {"task": "sudoku4", "data": "drawn", "judge": "labels", "settings": {}}
    return fit(features, right, **(known | changes))


def test_a_fitted_confidence_is_a_probability_on_other_puzzles() -> None:
    """The rule's own opinion is off by a sixth here; the calibrated one by sampling error."""
    found = calibration(*drawn(4000, 0))
    features, right = drawn(4000, 1)
    stated = found.confidence(features)
    assert calibration_error(features.own(), right) > 0.14
    assert calibration_error(stated, right) < 0.03
    truth = features.halt_probability.double().square()
    assert float((stated - truth).abs().mean()) < 0.03


def test_a_curve_never_falls_and_never_says_0_or_1() -> None:
    numbers = torch.randn(300, 3, generator=torch.Generator().manual_seed(0)).double()
    for right in (numbers[:, 0] < 0, numbers[:, 0] > 0, torch.rand(300) < 0.5,
                  torch.ones(300, dtype=torch.bool)):  # fmt: skip
        curve = fit_curve(numbers, right)
        assert all(weight >= 0 for weight in curve.weights)
        assert list(curve.share) == sorted(curve.share)
        assert all(0 < share < 1 for share in curve.share)
    assert curve.share == pytest.approx((300.5 / 301,))


def test_a_valid_solution_claims_the_share_of_right_ones_among_valid_answers() -> None:
    """200 of 204 valid answers are right; no search of the calibration stopped by the rules."""
    every = torch.ones(204, dtype=torch.bool)
    full = torch.full((204,), 0.999)
    seen = StopFeatures(["halting"] * 204, full, full, torch.full((204,), 20), every)
    found = calibration(seen, torch.arange(204) < 200)
    stop = StopFeatures(["rules", "agreement"], full[:2], full[:2], torch.tensor([9, 9]), every[:2])
    assert found.confidence(stop).tolist() == pytest.approx([200.5 / 205, 0.5])
    broken = stop._replace(valid=~every[:2])
    assert found.confidence(broken).tolist() == [0.0, 0.0]


def test_undecided_answers_claim_their_calibrated_share() -> None:
    """Four undecided puzzles, all wrong, among 200: the next one is most likely wrong too."""
    count = 204
    names = ["halting"] * 200 + [UNDECIDED] * 4
    right = torch.tensor([name == "halting" for name in names])
    full = torch.full((count,), 0.999)
    every = torch.ones(count, dtype=torch.bool)
    features = StopFeatures(names, full, full, torch.full((count,), 20), every)
    stated = calibration(features, right).confidence(features)
    assert float(stated[-1]) == pytest.approx(0.1)
    assert float(stated[0]) == pytest.approx(200.5 / 201)
    new = StopFeatures(["agreement"], full[:1], full[:1], torch.tensor([20]), every[:1])
    assert float(calibration(features, right).confidence(new)[0]) == 0.5  # never seen


def test_a_single_undecided_particle_is_not_sure(stubborn: Any) -> None:
    """Its vote is unanimous; the halting head knows better."""
    model = stubborn(TASK.encode(ANSWER), halt=-4.8)
    found = solve(model, PUZZLE, outer_steps=3)
    assert found.decided_by == (UNDECIDED,)
    assert float(found.confidence[0]) == pytest.approx(0.0082, abs=1e-3)


def test_agreement_claims_no_more_than_halting() -> None:
    """Without a calibration: halting at .98, agreement of all particles that halting doubts."""
    features = StopFeatures(
        ["halting", "agreement", "agreement", "rules"], torch.tensor([0.98, 1.0, 0.9, 1.0]),
        torch.tensor([0.98, 0.3, 0.95, 0.1]), torch.tensor([9, 9, 9, 9]),
        torch.ones(4, dtype=torch.bool),
    )  # fmt: skip
    stated = stated_confidence(None, features, same=False)
    assert stated.tolist() == pytest.approx([0.98, 0.3, 0.9, 1.0])
    given = stated >= 0.95
    assert given.tolist() == [True, False, False, True]


def test_an_agreed_answer_is_withheld_before_a_halted_one(stubborn: Any) -> None:
    """`--abstain 0.95` of `solve`: the same answer, agreed by all or stopped by halting."""
    tokens = TASK.encode(ANSWER)
    agreed = {"halt_above": 9.0, "agree_among": 1}
    for halt, more, rule, answered in (
        (4.0, {"halt_above": 3.0}, "halting", True),
        (-1.0, agreed, "agreement", False),
    ):
        model = stubborn(tokens, halt=halt)
        (found,) = solve_texts(model, [PUZZLE], task=TASK, abstain=0.95, outer_steps=12, **more)
        assert (found.decided_by, found.answer is not None) == (rule, answered)


@pytest.mark.parametrize("halt", [-4.8, 6.0])
@pytest.mark.parametrize("method", ["adaptive", "guided", "deterministic"])
def test_an_answer_that_breaks_a_rule_has_no_confidence(
    stubborn: Any, halt: float, method: str
) -> None:
    wrong = TASK.encode(ANSWER).clone()
    wrong[0], wrong[1] = wrong[1], wrong[0]
    found = solve(stubborn(wrong, halt=halt), PUZZLE, method=method, outer_steps=3)
    assert float(found.confidence[0]) == 0.0
    fine = solve(stubborn(TASK.encode(ANSWER), halt=6.0), PUZZLE, method=method, outer_steps=3)
    assert float(fine.confidence[0]) > 0.99


def test_a_puzzle_without_a_solution_gets_no_confident_answer(stubborn: Any) -> None:
    """The answer changes a clue: sure of it as the halting head is, it is no answer."""
    clue = next(place for place, mark in enumerate(PUZZLE) if mark != ".")
    other = next(d for d in "1234" if d not in (PUZZLE[clue], ANSWER[clue]))
    tokens = TASK.encode(PUZZLE).clone()
    tokens[clue] = TASK.encode(PUZZLE[:clue] + "." + PUZZLE[clue + 1 :])[clue] + int(other)
    found = solve(stubborn(TASK.encode(ANSWER), halt=6.2), tokens[None])
    assert float(found.confidence[0]) == 0.0


@pytest.fixture
def calibrated(toy: TRM, tmp_path: Path) -> Path:
    """A model with a calibration of 500 answers, all right."""
    model = copy.copy(toy)
    model.decide_above = -100.0  # it always decides at once
    folder = save(model, tmp_path / "model", dtype=None)
    features, _ = drawn(500, 0)
    settings = adaptive_plan(load(folder)).settings()
    found = calibration(features, torch.ones(500, dtype=torch.bool), settings=settings)
    write_beside(folder, CALIBRATION, found.as_mapping())
    return folder


def test_a_stored_calibration_is_what_was_stored(calibrated: Path) -> None:
    content = load(calibrated).calibration
    assert content is not None
    found = Calibration.from_mapping(content)
    features, _ = drawn(50, 3)
    assert float(found.confidence(features)[0]) == pytest.approx(500.5 / 501)
    assert json.loads(json.dumps(found.as_mapping())) == {
        name: value for name, value in content.items() if name != "weights"
    }


def test_a_calibration_is_applied_where_a_model_has_one(
    calibrated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sudoku, "is_solved", lambda self, puzzle, answer: answer[..., 0] >= 0)
    model = load(calibrated)
    assert float(solve(model, PUZZLE).confidence[0]) == pytest.approx(500.5 / 501)
    halt = solve(model, PUZZLE).halt_probability[0]
    other = solve(model, PUZZLE, noise=0.4).confidence[0]  # other settings: never more than both
    assert float(other) == pytest.approx(min(float(halt), 500.5 / 501), abs=1e-6)


def test_a_risk_withholds_and_is_refused_where_it_must_be(calibrated: Path, toy: TRM) -> None:
    model = load(calibrated)
    (record,) = solve_texts(model, [PUZZLE], risk=0.01)
    assert record.abstained  # a random model's answer breaks a rule
    assert risk_rung(model, None, 0.01).answered == 500
    with pytest.raises(SettingsError, match=r"needs at least 2,995 .* got 500"):
        solve_texts(model, [PUZZLE], risk=0.001)
    with pytest.raises(SettingsError, match="another noise"):
        solve_texts(model, [PUZZLE], risk=0.01, noise=0.4)
    with pytest.raises(SettingsError, match="method adaptive, got guided"):
        solve_texts(model, [PUZZLE], risk=0.01, method="guided")
    with pytest.raises(SettingsError, match="got one without; make it with tiltrm tune"):
        solve_texts(toy, [PUZZLE], risk=0.01)


def test_files_of_other_weights_and_damaged_ones_get_a_sentence(calibrated: Path) -> None:
    path = calibrated / CALIBRATION
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"weights": "0" * 64}))
    with pytest.raises(CheckpointError, match="one of other weights; delete it"):
        load(calibrated)
    path.write_text(json.dumps(content | {"curves": {"halting": 3}}))
    with pytest.raises(CheckpointError, match="damaged content"):
        solve(load(calibrated), PUZZLE)
    path.unlink()
    write_beside(calibrated, TUNED, {"task": "sudoku4", "stages": "nonsense"})
    with pytest.raises(CheckpointError, match=r"tuned\.json, got damaged content"):
        solve(load(calibrated), PUZZLE)


def test_new_weights_in_a_folder_lose_the_old_calibration(calibrated: Path, toy: TRM) -> None:
    save(toy, calibrated, dtype=None)
    assert load(calibrated).calibration is None

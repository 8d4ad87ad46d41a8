"""ARC tasks solved: every method votes, nothing depends on the batch, noise outside is ignored."""

import json
import math
from pathlib import Path

import pytest
import torch
from tests.tasks.arc.arc_samples import FULL, MINI, NAMES, full_model, mini_model

from tiltrm.data import Puzzles
from tiltrm.data.arc_questions import arc_questions
from tiltrm.errors import SettingsError
from tiltrm.explore import Exploration
from tiltrm.explore.running import run_search
from tiltrm.explore.search import fixed_search
from tiltrm.solving import build_search, solve
from tiltrm.solving.arc import ArcAnswer, solve_arc
from tiltrm.solving.arc_record import ARC_KEYS, arc_record
from tiltrm.solving.final_clouds import CloudRecorder
from tiltrm.solving.solution import KEYS
from tiltrm.solving.tune import Tuner
from tiltrm.solving.tune_store import PartStore
from tiltrm.tasks.arc import ARC, MINI_ARC
from tiltrm.tasks.arc.draw import PALETTE

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = {
    "deterministic": {"outer_steps": 3},
    "guided": {"particles": 4, "outer_steps": 3},
    "ptrm": {"particles": 4, "outer_steps": 3},
    "adaptive": {"particles": 2, "outer_steps": 6},
}


def answered(method: str, at_once: int = 64, augmentations: int = 3) -> list[ArcAnswer]:
    questions = arc_questions(MINI_ARC, MINI, augmentations=augmentations)
    search = build_search(mini_model(), method=method, **QUICK[method])
    return list(solve_arc(search, MINI_ARC, questions, at_once=at_once))


@pytest.mark.parametrize("method", QUICK)
def test_every_method_gives_two_attempts_whatever_the_batch(method: str) -> None:
    whole, parts = answered(method), answered(method, at_once=2)
    assert [(one.task.name, one.index) for one in whole] == [
        ("first", 0), ("second", 0), ("second", 1), ("unknown", 0)]  # fmt: skip
    for one, other in zip(whole, parts, strict=True):
        assert one.ballot.attempts() == other.ballot.attempts()
        assert one.evaluations == other.evaluations
        assert one.ballot.questions == 3
        assert len(one.ballot.ranked()) > 1
    steps = {"deterministic": 3, "guided": 12, "ptrm": 12}
    if method in steps:
        assert whole[0].evaluations == 3 * steps[method] * 2


def test_a_single_question_answers_as_solve_does() -> None:
    question = MINI_ARC.question(MINI[0].tests[0], 0)
    found = solve(mini_model(), question[None], method="guided", **QUICK["guided"])
    (one, *_) = answered("guided", augmentations=1)
    assert torch.equal(one.question, question)
    own = MINI_ARC.answer_grid(question, found.answers[0])
    assert own is not None
    assert one.ballot.attempts()[0] == own
    record = arc_record(MINI_ARC, one)
    assert record.evaluations == int(found.evaluations[0])


def test_the_record_has_the_usual_keys_and_its_own() -> None:
    record = arc_record(MINI_ARC, answered("adaptive")[1])
    told = json.loads(record.as_json())
    assert tuple(told) == (*KEYS, *ARC_KEYS)
    assert (told["task_name"], told["index"], told["task"]) == ("second", 0, "mini-arc")
    assert len(told["attempts"]) == 2
    assert told["solved_by_rules"] is None
    assert told["error"] is None


def test_noise_outside_the_grid_splits_no_vote(stubborn: type) -> None:
    answer = ARC.answer(FULL[0].tests[0])
    noisy = answer.clone()
    noisy[500:520] = torch.arange(20) % 12
    model = stubborn(noisy, task="arc", vocabulary=12)
    search = build_search(model, method="deterministic", outer_steps=1)
    recorder = CloudRecorder()
    tokens = ARC.question(FULL[0].tests[0], 0)[None]
    tokens[:, 900:] = 0
    found = run_search(search, tokens, watch=recorder)
    assert torch.equal(found.answers[0], answer)
    assert torch.equal(recorder.clouds(tokens, 0)[0].answers[0], answer)


def test_tuning_counts_answers_that_differ_outside_the_grid_once(
    stubborn: type, tmp_path: Path
) -> None:
    """Tuned plans stop by agreement, which must see the same answers as solving does."""
    noisy = ARC.answer(FULL[0].tests[0])
    noisy[500:520] = torch.arange(20) % 12
    model = stubborn(noisy, task="arc", vocabulary=12)
    rows = ARC.question(FULL[0].tests[0], 0).repeat(100, 1)
    tuner = Tuner(model, Puzzles(ARC, rows), PartStore(tmp_path, "weights", {}), evaluations=10**6)
    found = run_search(fixed_search(tuner.model, Exploration(outer_steps=1)), rows[:1])
    assert torch.equal(found.answers[0], ARC.answer(FULL[0].tests[0]))


def test_arc_is_solved_with_the_ids_of_its_augmentations() -> None:
    model = full_model()
    questions = arc_questions(ARC, FULL, NAMES, augmentations=3)
    search = build_search(model, method="deterministic", outer_steps=1)
    found = list(solve_arc(search, ARC, questions))
    assert [(one.task.name, one.index, one.ballot.questions) for one in found] == [
        ("small", 0, 3), ("tall", 0, 1), ("tall", 1, 1)]  # fmt: skip
    for one in found:
        assert all(len(grid) <= 30 for grid in one.ballot.attempts())
    assert not math.isnan(arc_record(ARC, found[0]).confidence or 0.0)


def test_a_solution_draws_itself_in_colours() -> None:
    found = solve(mini_model(), MINI_ARC.question(MINI[0].tests[0], 0)[None],
                  method="deterministic", outer_steps=1)  # fmt: skip
    assert PALETTE[5] in found._repr_html_()
    pytest.importorskip("matplotlib")
    (panel,) = found.plot().axes
    grid = MINI_ARC.answer_grid(found.answers[0], found.answers[0])
    assert panel.images[0].get_array().tolist() == [list(row) for row in grid or ()]


def test_rules_are_refused_where_there_are_none() -> None:
    model = mini_model()
    with pytest.raises(SettingsError, match=r"needs a task with rules .* got mini-arc"):
        build_search(model, rules=True)
    with pytest.raises(SettingsError, match=r"the guide 'rules' needs a task with rules"):
        build_search(model, method="guided", guide="halting+2*rules")


def test_confidence_is_not_lowered_by_rules_that_do_not_exist(stubborn: type) -> None:
    model = stubborn(MINI_ARC.answer(MINI[0].tests[0]), task="mini-arc", vocabulary=256, halt=5.0)
    found = solve(model, MINI_ARC.question(MINI[0].tests[0], 0)[None])
    assert found.decided_by == ("halting",)
    assert float(found.confidence[0]) > 0.9
    assert "rule" not in found.describe(0)

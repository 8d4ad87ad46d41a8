"""ARC evaluation: pass@1 and pass@2 by hand, and the same answers as solving gives."""

from typing import Any

import numpy as np
import pytest
from tests.tasks.arc.arc_samples import MINI, filled, mini_model

from tiltrm.data.arc_files import ArcTask
from tiltrm.data.arc_questions import arc_questions
from tiltrm.errors import SettingsError
from tiltrm.evaluate.arc import arc_method, arc_table, compare_rows, evaluate_arc, search_of
from tiltrm.solving import build_search
from tiltrm.solving.arc import solve_arc
from tiltrm.tasks.arc import MINI_ARC

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL: dict[str, dict[str, Any]] = {
    "deterministic": {"outer_steps": 2},
    "guided": {"particles": 3, "outer_steps": 2},
    "ptrm": {"particles": 3, "outer_steps": 2},
    "adaptive": {"particles": 2, "outer_steps": 4},
}


def test_a_model_that_is_always_right_passes(stubborn: type) -> None:
    model = stubborn(MINI_ARC.answer(filled(6)), task="mini-arc", vocabulary=256)
    same = [
        ArcTask("right", ((filled(1), filled(6)),), (filled(2), filled(3)), (filled(6), filled(6))),
        ArcTask("half", ((filled(1), filled(6)),), (filled(4), filled(5)), (filled(6), filled(7))),
        ArcTask("asked", ((filled(1), filled(6)),), (filled(4),)),
    ]
    own = arc_method("deterministic", {"outer_steps": 1}, "mini-arc")
    row = evaluate_arc(own, model, MINI_ARC, same, seeds=3)
    assert row.tasks == ("right", "half")
    assert [row.share("weighted", attempts).mean for attempts in (1, 2)] == [0.5, 0.5]
    assert row.passed["votes", 2].tolist() == [[True, False]]  # one run: no seed changes it
    assert row.evaluations.tolist() == [[3, 3, 3, 3]]
    assert row.as_dict()["solved"] == ["right"]
    assert "50.0" in arc_table([row])


@pytest.mark.parametrize("method", SMALL)
def test_evaluation_and_solving_agree(method: str) -> None:
    model = mini_model()
    own = arc_method(method, SMALL[method], "mini-arc")
    asked = arc_questions(MINI_ARC, MINI)
    searches = (
        search_of(own, model, MINI_ARC),
        build_search(model, method=method, **SMALL[method]),
    )
    first, second = (list(solve_arc(search, MINI_ARC, asked)) for search in searches)
    for one, other in zip(first, second, strict=True):
        assert one.ballot.attempts() == other.ballot.attempts()
        assert one.evaluations == other.evaluations


def test_symmetry_is_voting_over_augmentations() -> None:
    own = arc_method("symmetry", {"copies": 4, "outer_steps": 2}, "mini-arc")
    assert (own.method, own.augmentations, own.seeded) == ("deterministic", 4, True)
    assert own.title("mini-arc") == "deterministic, outer_steps 2, 4 augmentations"
    row = evaluate_arc(own, mini_model(), MINI_ARC, MINI, seeds=2)
    assert row.evaluations.tolist() == [[16, 16, 16]] * 2


def test_pairs_are_tasks() -> None:
    model = mini_model()
    one, other = (
        evaluate_arc(arc_method(m, SMALL[m], "mini-arc"), model, MINI_ARC, MINI, seeds=2)
        for m in ("guided", "deterministic")
    )
    one.passed["weighted", 2][:] = np.array([[True, True], [True, False]])
    other.passed["weighted", 2][:] = np.array([[False, True]])
    found = compare_rows(one, other)
    assert (found.puzzles, found.wins, found.losses) == (2, 1, 1)
    assert found.difference == pytest.approx((1.0 - 0.5) / 2)


def test_methods_that_need_rules_or_labels_are_refused() -> None:
    for method in ("adaptive_rules", "halt_first", "c_voting"):
        with pytest.raises(SettingsError, match="for ARC tasks, got"):
            arc_method(method, {}, "mini-arc")
    with pytest.raises(SettingsError, match="augmentations must be a whole number"):
        arc_method("guided", {"augmentations": 0}, "mini-arc")

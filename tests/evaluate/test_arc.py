"""ARC evaluation: pass@1 and pass@2 by hand, and the same answers as solving gives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tasks.arc.arc_samples import MINI, filled, mini_model

from tiltrm.data.arc_files import ArcTask
from tiltrm.data.arc_questions import arc_questions
from tiltrm.errors import SettingsError
from tiltrm.evaluate.arc import arc_method, measure_arc, search_of
from tiltrm.evaluate.arc_jobs import ArcTarget, arc_jobs, evaluate_arc
from tiltrm.evaluate.arc_rows import arc_table, compare_rows
from tiltrm.evaluate.store import Store
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


def target(tasks: list[ArcTask] = MINI) -> ArcTarget:
    return ArcTarget("model", "0" * 16, "data", MINI_ARC, tasks)


def test_a_model_that_is_always_right_passes(stubborn: type, tmp_path: Path) -> None:
    model = stubborn(MINI_ARC.answer(filled(6)), task="mini-arc", vocabulary=256)
    same = [
        ArcTask("right", ((filled(1), filled(6)),), (filled(2), filled(3)), (filled(6), filled(6))),
        ArcTask("half", ((filled(1), filled(6)),), (filled(4), filled(5)), (filled(6), filled(7))),
        ArcTask("asked", ((filled(1), filled(6)),), (filled(4),)),
    ]
    own = arc_method("deterministic", {"outer_steps": 1}, "mini-arc")
    row = evaluate_arc(own, model, target(same), Store(tmp_path), seeds=3)
    assert row.tasks == ("right", "half")
    assert [row.share("weighted", attempts).mean for attempts in (1, 2)] == [0.5, 0.5]
    assert row.passed["votes", 2].tolist() == [[True, False]]  # one run: no seed changes it
    assert row.evaluations.tolist() == [[6, 6]]
    assert row.cost == (3.0, None)
    assert row.as_dict()["solved"] == ["right"]
    assert "50.00" in arc_table([row])


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


def test_symmetry_is_voting_over_augmentations(tmp_path: Path) -> None:
    own = arc_method("symmetry", {"copies": 4, "outer_steps": 2}, "mini-arc")
    assert (own.method, own.augmentations, own.seeded) == ("deterministic", 4, True)
    assert own.title("mini-arc") == "deterministic, outer_steps 2, 4 augmentations"
    row = evaluate_arc(own, mini_model(), target(), Store(tmp_path), seeds=2)
    assert row.evaluations.tolist() == [[16, 32]] * 2
    assert row.cost == (16.0, 0.0)


def test_folds_and_a_store_change_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, model = arc_method("guided", SMALL["guided"], "mini-arc"), mini_model()
    own = own._replace(augmentations=2)
    whole = evaluate_arc(own, model, target(), Store(tmp_path / "whole"), seeds=2)
    store, asked = Store(tmp_path / "folds"), []

    def counted(*given: Any, **more: Any) -> Any:
        asked.append({one.task.name for one in given[2]})
        if len(asked) == 3:
            raise KeyboardInterrupt
        return measure_arc(*given, **more)

    monkeypatch.setattr("tiltrm.evaluate.arc_jobs.measure_arc", counted)
    with pytest.raises(KeyboardInterrupt):
        evaluate_arc(own, model, target(), store, seeds=2, folds=2)
    found = evaluate_arc(own, model, target(), store, seeds=2, folds=2)
    assert asked == [{"first"}, {"second"}, {"first"}, {"first"}, {"second"}]  # two were kept
    for key, passed in whole.passed.items():
        assert found.passed[key].tolist() == passed.tolist()
    assert found.evaluations.tolist() == whole.evaluations.tolist()
    assert found.inputs.tolist() == [1, 2]


def test_a_job_tells_methods_models_and_outputs_apart() -> None:
    own = arc_method("deterministic", {}, "mini-arc")
    other = [ArcTask(each.name, each.demonstrations, each.tests, each.outputs) for each in MINI]
    other[0] = ArcTask("first", MINI[0].demonstrations, MINI[0].tests, (filled(7),))
    names = ("second", "first", "unknown")
    targets = [
        target(), target(other), target(MINI[:2]), target()._replace(weights="1" * 16),
        target()._replace(names=names),
    ]  # fmt: skip
    keys = [arc_jobs(own, one)[0].key for one in targets]
    keys.append(arc_jobs(own._replace(augmentations=2), target())[0].key)
    assert keys[2] == keys[0]  # a task without outputs has no part in the results
    assert len(set(keys)) == len(keys) - 1


def test_pairs_are_tasks(tmp_path: Path) -> None:
    model = mini_model()
    one, other = (
        evaluate_arc(arc_method(m, SMALL[m], "mini-arc"), model, target(), Store(tmp_path), seeds=2)
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

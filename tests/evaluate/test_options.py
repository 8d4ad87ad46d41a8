"""A job's settings are all of a method's settings, in one form only."""

import math
from typing import Any

import pytest

from tiltrm import settings as table
from tiltrm.errors import SettingsError
from tiltrm.evaluate import METHODS
from tiltrm.evaluate.options import NAMES, complete, settable, stages_as_lists
from tiltrm.solving import default_plan, resized_plan

from .toys import a_job

GIVEN: dict[str, dict[str, Any]] = {
    "guided": {"noise": 1, "placement": "latent"},
    "adaptive": {"particles": 16, "outer_steps": 30, "halt_above": 1},
    "symmetry": {"copies": 3},
    "diagnose": {"noises": [0.1, 0.2]},
}


def test_every_name_is_a_method() -> None:
    assert set(NAMES) == set(METHODS)


@pytest.mark.parametrize("task", ["sudoku", "maze"])
@pytest.mark.parametrize("method", [*NAMES, "diagnose"])
def test_complete_settings_are_complete(method: str, task: str) -> None:
    for given in ({}, GIVEN.get(method, {})):
        whole = complete(method, given, task)
        assert complete(method, whole, task) == whole


def test_whole_numbers_where_numbers_are_meant() -> None:
    one, other = complete("guided", {"noise": 1}, "sudoku"), complete("guided", {}, "sudoku")
    assert (one["noise"], type(one["noise"])) == (1.0, float)
    assert type(complete("guided", {"particles": 4}, "sudoku")["particles"]) is int
    assert (other["noise"], other["beta"]) == (0.3, 0.25)


def test_mazes_have_their_own() -> None:
    assert complete("guided", {}, "maze")["noise"] == 0.5
    assert complete("guided", {}, "maze")["beta"] == 1.0
    assert complete("ptrm", {}, "maze")["noise"] == 1.0
    assert complete("halt_first", {}, "maze")["noise"] == 0.5
    assert complete("diagnose", {}, "maze")["beta"] == 1.0
    assert complete("adaptive", {}, "maze")["beta"] == 1.0


def test_the_size_of_a_plan_becomes_its_stages() -> None:
    whole = complete("adaptive", {"particles": 4, "outer_steps": 100}, "sudoku")
    assert "particles" not in whole
    assert max(stage[0] for stage in whole["stages"]) == 4
    assert sum(stage[1] for stage in whole["stages"]) == 100


def test_a_noise_that_is_given_is_that_of_all_stages() -> None:
    """A stage's own is kept with the stages, so that a complete plan stays as it is."""
    usual = complete("adaptive", {}, "sudoku4")
    assert usual["stages"][-1][3] > usual["noise"]
    for given in ({"noise": 0.2}, {"noise": usual["noise"]}):
        even = complete("adaptive", given, "sudoku4")
        assert even["noise"] == given["noise"]
        assert {len(stage) for stage in even["stages"]} == {3}
    cut = complete("adaptive", {"outer_steps": 20 + 8 * 16 + 5}, "sudoku4")
    assert cut["stages"][-1] == (8, 5, False, 0.6)


def test_a_plan_that_resamples_is_that_of_solve() -> None:
    own = resized_plan(default_plan("sudoku"), {"resample_below": 0.3})
    found = complete("adaptive", {"resample_below": 0.3}, "sudoku")
    assert (found["stages"], found["noise"]) == (stages_as_lists(own), own.noise)


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("magic", {}), ("deterministic", {"noise": 0.1}), ("guided", {"copies": 2}),
        ("guided", {"noise": -1}), ("guided", {"noise": "much"}), ("guided", {"noise": 10**400}),
        ("guided", {"particles": 2.0}), ("guided", {"particles": True}), ("guided", {"guide": 3}),
        ("guided", {"placement": "nowhere"}), ("guided", {"by_step": 1}),
        ("guided", {"outer_steps": 10**9}), ("guided", {"select": ["map"]}),
        ("ptrm", {"select": "loudest"}), ("symmetry", {"copies": 0}),
        ("symmetry", {"copies": "all"}), ("symmetry", {"select": "map"}),
        ("symmetry", {"by_step": True}), ("halt_first", {"halt_above": math.nan}),
        ("halt_first", {"particles": 0}), ("halt_first", {"noise": None}),
        ("halt_first", {"halt_above": "high"}), ("adaptive", {"stages": 3}),
        ("adaptive", {"stages": []}), ("adaptive", {"stages": [[1]]}), ("adaptive", {"noise": -1}),
        ("adaptive", {"stages": [[1, 2, False, "x"]]}),
        ("adaptive", {"stages": [[1, 2, False, -1]]}), ("adaptive", {"stages": [[1, 2, "false"]]}),
        ("adaptive", {"stages": [[8.7, 12]]}), ("adaptive", {"stages": ["18"]}),
        ("adaptive", {"stages": [[1, 2, False, 0.3, 9]]}), ("adaptive", {"stages": [[2**70, 8]]}),
        ("adaptive", {"stages": [[math.inf, 8]]}), ("adaptive", {"stages": [[True, 8]]}),
        ("adaptive", {"stages": [[1, 2, False, math.nan]]}),
        ("adaptive", {"halt_above": "x"}), ("diagnose", {"rooted": -1}),
        ("diagnose", {"noises": "x"}), ("diagnose", {"guides": "halting"}),
    ],
)  # fmt: skip
def test_what_makes_no_sense(method: str, given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        complete(method, given, "sudoku")


def test_rules_ask_no_halting_head() -> None:
    """But its place stays in the settings, so that shards made before are found."""
    whole = complete("adaptive_rules", {}, "sudoku")
    assert whole["halt_above"] is None
    assert complete("adaptive_rules", {"halt_above": None}, "sudoku") == whole
    with pytest.raises(SettingsError, match=r"^(?!.*halt_above.*got).*got halt_above"):
        complete("adaptive_rules", {"halt_above": 5.0}, "sudoku")
    for method in NAMES:
        taken = settable(method, "sudoku")
        assert ("halt_above" in taken) == (method in ("adaptive", "halt_first"))
        assert set(complete(method, {}, "sudoku")) - {"halt_above"} <= set(taken)


def test_turned_is_named_only_where_it_is_true() -> None:
    """So that shards made before there was such a setting are still found."""
    plain = complete("adaptive", {"turned": False}, "sudoku4")
    assert "turned" not in plain
    assert complete("adaptive", plain, "sudoku4") == plain  # its stages say that it is another plan
    turned = complete("adaptive", {}, "sudoku4")
    assert turned == {**plain, "turned": True}
    assert complete("adaptive", turned, "sudoku4") == turned
    assert "turned" not in complete("adaptive", {"resample_below": 0.3}, "sudoku4")
    assert "turned" not in complete("adaptive", {"stages": [[1, 24], [16, 24]]}, "maze")
    for wrong in ({"turned": 1}, {"turned": True, "resample_below": 0.3}):
        with pytest.raises(SettingsError, match=r"turned|symmetric_views"):
            complete("adaptive", wrong, "sudoku4")
    with pytest.raises(SettingsError, match="turned"):
        complete("guided", {"turned": True}, "sudoku4")


@pytest.mark.parametrize(
    ("name", "value"), [("AGREE_SHARE", 0.6), ("AGREE_AMONG", 8), ("HALT_ABOVE", 1.0)]
)
def test_another_default_of_a_stopping_rule_makes_another_job(
    name: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else old shards would be taken for results of the new default."""
    before = a_job("adaptive", task="sudoku")
    assert before.key == a_job("adaptive", task="sudoku").key
    monkeypatch.setattr(table, name, value)
    assert a_job("adaptive", task="sudoku").key != before.key
    rules = a_job("adaptive_rules", task="sudoku").key
    monkeypatch.undo()
    assert a_job("adaptive_rules", task="sudoku").key == rules, "rules ask neither"


def test_stopping_rules_can_be_set_and_are_left_out_at_the_first_defaults() -> None:
    usual = complete("adaptive", {}, "sudoku")
    assert complete("adaptive", {"agree_share": 0.9, "agree_among": 16}, "sudoku") == usual
    other = complete("adaptive", {"agree_share": 0.7}, "sudoku")
    assert other == {**usual, "agree_share": 0.7}
    assert complete("adaptive", other, "sudoku") == other

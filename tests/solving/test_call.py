"""solve: each method is the exploration it says it is; records are whole whatever happens."""

import copy
import dataclasses
import json
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tiltrm import Exploration, Result, SettingsError, explore, guides, solve
from tiltrm.diagnose import SMALL
from tiltrm.errors import PuzzleError
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.running import solve_adaptively
from tiltrm.model.base import step
from tiltrm.model.trm import TRM
from tiltrm.solving import call as solving_call
from tiltrm.solving import (
    default_plan,
    exploration_for,
    methods,
    plan_views,
    resized_plan,
    settings_for,
    solve_texts,
    stopping_rules,
)
from tiltrm.solving.solution import KEYS
from tiltrm.tasks import MAZE, Maze, Sudoku

TASK = Sudoku(2)
ANSWER = "1234341221434321"
PUZZLE, OTHER = "1...3..2.1....2.", ".2..3.......4..3"
TEXTS = [TASK.decode(TASK.generate(seed)[0]) for seed in range(3)]
SHORT: dict[str, Any] = {"outer_steps": 3}


def test_deterministic_is_the_model_step_by_step(toy: TRM) -> None:
    tokens = TASK.encode_all(TEXTS)
    found = solve(toy, TEXTS, method="deterministic", outer_steps=4)
    inputs = toy.embed(tokens)
    state = toy.start(inputs)
    for _ in range(4):
        state = step(toy, inputs, state)
    assert torch.equal(found.answers, toy.decode(state.answer).argmax(-1).to(torch.uint8))
    assert torch.allclose(found.halt_probability, torch.sigmoid(toy.halt_logit(state.answer)))
    assert not found.confidence.any()  # every answer breaks a rule
    assert found.evaluations.tolist() == [4 * 3] * 3


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("guided", Exploration()),
        ("unguided", Exploration(beta=0.0, trigger="never")),
        (
            "ptrm",
            Exploration(
                particles=100, placement="supervision", beta=0.0, trigger="never",
                select="best_score",
            ),
        ),
    ],
)  # fmt: skip
def test_a_fixed_method_is_its_exploration(toy: TRM, method: str, settings: Exploration) -> None:
    tokens = TASK.encode_all(TEXTS)
    same = explore(toy, tokens, dataclasses.replace(settings, outer_steps=7), seed=5)
    found = solve(toy, tokens, method=method, outer_steps=7, seed=5)
    assert torch.equal(found.answers, same.answers)
    assert torch.equal(found.evaluations, same.evaluations)
    assert torch.equal(found.cell_confidence, same.cell_confidence)
    sure = same.halt_probability if method == "ptrm" else same.confidence
    assert torch.equal(found.confidence, sure.masked_fill(~TASK.is_solved(tokens, same.answers), 0))
    unknown = copy.copy(toy)
    unknown.task = ""  # so that no rule is known
    assert torch.equal(
        solve(unknown, tokens, method=method, outer_steps=7, seed=5).confidence, sure
    )
    full = methods.FIXED[method]
    assert (full.particles, full.outer_steps) == (settings.particles, settings.outer_steps)


def test_a_majority_is_as_sure_as_the_share_that_gives_it(toy: TRM) -> None:
    """Heads of the living, not weights; not the halting head, which speaks for one of them."""
    own = dataclasses.replace(methods.FIXED["ptrm"], particles=5, outer_steps=1, select="majority")
    result = explore(toy, TASK.encode_all(TEXTS), own)
    one, other = torch.ones(16, dtype=torch.uint8), torch.full((16,), 2, dtype=torch.uint8)
    voted = dataclasses.replace(
        result,
        answers=torch.stack((one, one, torch.zeros_like(one))),
        particle_answers=torch.stack((one, one, one, other, other)).expand(3, -1, -1),
        log_weights=torch.tensor(
            [[0.1, 0.1, 0.1, 0.1, 0.6], [0.3, 0.3, 0.0, 0.4, 0.0], [0.0] * 5]
        ).log(),
    )

    def confidence(result: Result, settings: Exploration) -> torch.Tensor:
        return result.solution_columns(settings)["confidence"]

    assert torch.allclose(confidence(voted, own), torch.tensor([3 / 5, 2 / 3, 0.0]))
    best = dataclasses.replace(own, select="best_score")
    for single in (best, dataclasses.replace(own, particles=1)):
        assert torch.equal(confidence(voted, single), result.halt_probability)
    even = confidence(result, own)  # nothing tilts it: as many particles as weight
    assert torch.allclose(even, result.confidence)


@pytest.mark.parametrize("method", methods.METHODS)
@pytest.mark.parametrize(
    ("name", "value"),
    [("particles", 3), ("noise", 0.1), ("beta", 0.1), ("resample_below", 0.1), ("outer_steps", 2),
     ("halt_above", 1.0), ("rules", True), ("guide", "residual")],
)  # fmt: skip
def test_a_setting_works_or_is_named(toy: TRM, method: str, name: str, value: object) -> None:
    arguments: dict[str, Any] = {"outer_steps": 2, name: value}
    if name in settings_for(method):
        assert len(solve(toy, TEXTS, method=method, **arguments).answers) == 3
    else:
        with pytest.raises(SettingsError, match=f"got {name}"):
            solve(toy, TEXTS, method=method, **arguments)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "magic"}, "magic"),
        ({"particles": 0}, "particles"),
        ({"particles": 10**30}, "particles"),
        ({"outer_steps": 2.5}, "outer_steps"),
        ({"noise": math.nan}, "noise"),
        ({"halt_above": math.nan}, "halt_above"),
        ({"halt_above": "high"}, "halt_above must be a number, got 'high'"),
        ({"halt_above": 5.0, "rules": True}, "halt_above must be left out .* got 5.0"),
        ({"task": "maze"}, "900 cells"),
        ({"task": "chess"}, "chess"),
    ],
)
def test_nonsense_is_named(toy: TRM, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        solve(toy, TEXTS, **settings)


def test_guides_are_named_and_add_up(toy: TRM) -> None:
    def confidences(guide: Any) -> torch.Tensor:
        return solve(toy, TEXTS, method="guided", guide=guide, beta=1.0, **SHORT).cell_confidence

    summed = guides.halting(toy) + 2.0 * guides.rules(TASK.violations)
    assert torch.equal(confidences("halting + 2*rules"), confidences(summed))
    assert not torch.equal(confidences("halting+2*rules"), confidences("halting+rules"))
    assert torch.equal(confidences("confidence"), confidences(guides.confidence(toy)))
    assert torch.equal(confidences("residual"), confidences(guides.residual()))


@pytest.mark.parametrize("guide", ["", "hope", "halting+", "x*rules", "*rules", "nan*rules", "2*"])
def test_unknown_guides_are_named_with_the_known_ones(toy: TRM, guide: str) -> None:
    with pytest.raises(SettingsError, match="halting, confidence, residual, rules, shortest"):
        solve(toy, TEXTS, guide=guide)


def test_halting_decides_above_the_given_then_the_calibrated_then_two(stubborn: Any) -> None:
    def decided(above: float | None = None, *, calibrated: float | None, halt: float) -> bool:
        model = stubborn(TASK.encode(ANSWER), halt=halt, decide_above=calibrated)
        found = solve(model, [PUZZLE], halt_above=above, particles=1, outer_steps=2)
        assert (found.decided_by == ("halting",)) == (int(found.evaluations) == 3)
        return found.decided_by == ("halting",)

    assert decided(calibrated=None, halt=2.1)
    assert not decided(calibrated=None, halt=1.9)
    assert decided(calibrated=-1.0, halt=0.0)
    assert not decided(calibrated=5.0, halt=4.1)
    assert decided(0.0, calibrated=3.0, halt=0.5)
    assert not decided(0.0, calibrated=-1.0, halt=-0.5)


@pytest.mark.parametrize(
    ("calibrated", "settled", "asked"),
    [(None, False, True), (1.0, False, False), (1.0, True, True)],
)
def test_without_a_calibration_for_other_answers_they_must_be_settled(
    toy: TRM, monkeypatch: pytest.MonkeyPatch, calibrated: float | None, settled: bool, asked: bool
) -> None:
    known = copy.copy(toy)
    known.decide_above, known.decide_settled = calibrated, settled
    given: dict[str, Any] = {}
    monkeypatch.setattr(methods, "by_halting", lambda *_, **names: given.update(names))
    stopping_rules(known)
    assert given == {"settled": asked}


def test_a_diagnosis_has_the_noise_of_its_task() -> None:
    small, sudoku, maze = (
        exploration_for("guided", name, SMALL) for name in ("", "sudoku", "maze")
    )
    assert small == sudoku
    assert (maze.noise, maze.beta) == (0.5, 1.0)
    assert (maze.particles, maze.outer_steps) == (SMALL.particles, SMALL.outer_steps)
    assert exploration_for("guided", "maze", SMALL, noise=0.1, particles=3).noise == 0.1


def test_the_shortest_path_guides_mazes_alone(toy: TRM) -> None:
    with pytest.raises(SettingsError, match="is for mazes"):
        solve(toy, PUZZLE, guide="shortest")
    guide = methods.parse_guide("halting + 2*shortest", toy, Maze(4))
    assert callable(guide)


def test_rules_decide_only_if_allowed(stubborn: Any) -> None:
    model = stubborn(TASK.encode(ANSWER), halt=-5.0)
    assert solve(model, PUZZLE, rules=True).decided_by == ("rules",)
    assert int(solve(model, PUZZLE, rules=True).evaluations) == 3
    alike = solve(model, PUZZLE, resample_below=0.3)  # turned, it would not agree with itself
    assert alike.decided_by == ("agreement",)
    assert solve(model, OTHER, rules=True).decided_by == ("budget",)  # the cloud agrees, wrongly
    sure = stubborn(TASK.encode(ANSWER), halt=9.0)
    assert solve(sure, OTHER).decided_by == ("halting",)
    assert solve(sure, OTHER, rules=True).decided_by == ("budget",)


def test_rules_do_not_take_a_longer_path_for_a_solution(stubborn: Any) -> None:
    maze = Maze(3)
    puzzle, short, detour = "S G      ", "SoG      ", "S Go oooo"
    for drawn, who in ((short, "rules"), (detour, "budget")):
        model = stubborn(maze.encode(drawn, answer=True), halt=-5.0, task="")
        assert int(maze.violations(maze.encode(puzzle), model.tokens)) == 0
        assert solve(model, [puzzle], task=maze, rules=True).decided_by == (who,)


@given(most=st.integers(1, 300), steps=st.integers(1, 300))
def test_the_plan_keeps_to_its_limits(most: int, steps: int) -> None:
    base = Adaptive()
    cut = resized_plan(base, {"particles": most, "outer_steps": steps, "beta": 2.0})
    sizes = [stage.particles for stage in cut.stages]
    assert cut.outer_steps == steps
    assert sizes == sorted(sizes)
    assert max(sizes) <= most
    assert cut.beta == 2.0
    assert cut.noise == base.noise
    whole = resized_plan(base, {"particles": most})
    assert whole.stages[-1].particles == most
    assert resized_plan(base, {"particles": base.stages[-1].particles}) == base
    assert resized_plan(base, {"outer_steps": base.outer_steps}) == base


def test_mazes_have_the_settings_of_their_row_in_table_2() -> None:
    maze = exploration_for("guided", "maze")
    assert (maze.noise, maze.beta) == (0.5, 1.0)
    assert exploration_for("guided", "maze", beta=0.0).beta == 0.0
    assert exploration_for("guided", "sudoku") == methods.FIXED["guided"]
    for method, own in MAZE.defaults.settings.items():
        assert set(own) <= set(settings_for(method))


def test_a_bad_puzzle_does_not_stop_the_others(toy: TRM) -> None:
    texts = [TEXTS[0], "11..............", TEXTS[1], "", "12x", TEXTS[2]]
    found = solve_texts(toy, texts, method="guided", particles=4, **SHORT)
    alone = solve_texts(toy, TEXTS[::-1], method="guided", particles=4, **SHORT)[::-1]
    assert [record.error is None for record in found] == [True, False, True, False, False, True]
    assert "1 twice in row 1" in str(found[1].error)
    good = [record for record in found if record.error is None]
    for record, other in zip(good, alone, strict=True):
        mine, same = json.loads(record.as_json()), json.loads(other.as_json())
        assert mine.pop("seconds") > 0
        same.pop("seconds")
        assert mine == same
    bad = json.loads(found[4].as_json())
    assert tuple(bad) == KEYS
    assert {name for name, value in bad.items() if value is not None} == {"puzzle", "error"}


def test_seconds_are_shared_by_evaluations(stubborn: Any) -> None:
    model = stubborn(TASK.encode(ANSWER), halt=-5.0)
    easy, hard = solve_texts(model, [PUZZLE, OTHER], rules=True)
    assert (easy.decided_by, hard.decided_by) == ("rules", "budget")
    assert hard.evaluations > easy.evaluations
    ratio = hard.evaluations / easy.evaluations
    assert hard.seconds == pytest.approx(ratio * easy.seconds, rel=0.1, abs=1e-5 * ratio)


def test_abstaining_withholds_the_answer(stubborn: Any) -> None:
    model = stubborn(TASK.encode(ANSWER), halt=4.5)  # confidence 0.989
    (sure,) = solve_texts(model, [PUZZLE], abstain=0.98)
    (unsure,) = solve_texts(model, [PUZZLE], abstain=0.99)
    assert (sure.answer, sure.solved_by_rules, sure.abstained) == (ANSWER, True, False)
    assert (unsure.answer, unsure.solved_by_rules, unsure.abstained) == (None, None, True)
    assert unsure.confidence == sure.confidence
    assert unsure.grid is not None
    assert unsure.grid.answer is None
    (told,) = solve_texts(model, [OTHER])
    (kept,) = solve_texts(model, [OTHER], abstain=0.0)
    assert (told.solved_by_rules, told.abstained) == (False, False)
    assert (kept.answer, kept.abstained) == (None, True), "sure of it, but against the rules"
    for nonsense in (-0.1, 1.1, math.nan):
        with pytest.raises(SettingsError, match="abstain"):
            solve_texts(model, [PUZZLE], abstain=nonsense)


@pytest.mark.parametrize("method", methods.METHODS)
def test_a_model_that_gives_nan_abstains(stubborn: Any, method: str) -> None:
    model = stubborn(TASK.encode(ANSWER), halt=math.nan)
    (found,) = solve_texts(model, [PUZZLE], method=method, outer_steps=3)
    assert (found.answer, found.abstained, found.error) == (None, True, None)
    assert json.loads(found.as_json())["confidence"] == 0.0


def test_tokens_need_no_task_but_texts_do(stubborn: Any) -> None:
    model = stubborn(TASK.encode(ANSWER), task="")
    assert TASK.decode(solve(model, TASK.encode_all([PUZZLE])).answers[0]) == ANSWER
    assert TASK.decode(solve(model, PUZZLE, task=TASK).answers[0]) == ANSWER
    for call in (lambda: solve(model, [PUZZLE]), lambda: solve_texts(model, [PUZZLE])):
        with pytest.raises(SettingsError, match="name the task"):
            call()
    with pytest.raises(PuzzleError):
        solve(model, ["12"], task=TASK)


def test_sudokus_are_turned_and_mazes_have_a_plan_of_their_own() -> None:
    """Mazes: three views without noise, then eight with it."""
    sudoku, usual = default_plan("sudoku"), default_plan("of one's own")
    assert sudoku.symmetric_views
    assert [stage.guesses for stage in sudoku.stages[:4]] == [0, 0, 1, 1]
    assert [stage.particles for stage in usual.stages[:6]] == [1, 2, 2, 2, 2, 4]
    assert not usual.guesses_from(0)
    assert default_plan("") == Adaptive()
    assert resized_plan(usual, {"resample_below": 0.3}) == dataclasses.replace(
        Adaptive(), resample_below=0.3
    )
    own = default_plan("maze")
    assert own.stages == (Stage(3, 12, noise=0.0), Stage(8, 24))
    assert own.symmetric_views
    assert (own.noise, own.beta) == (0.5, 1.0)
    assert resized_plan(usual, {"noise": 0.2}).stages == usual.with_noise(0.2).stages
    assert resized_plan(usual, {"particles": 32}).stages[-1] == Stage(32, 24, noise=0.6)
    assert resized_plan(own, {"noise": 0.2}) == own.with_noise(0.2)


def test_solve_turns_where_the_plan_says_so(toy: TRM, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as the explorer with the views of that plan; each stage embeds its own."""
    plan = Adaptive((Stage(1, 2), Stage(4, 2)), noise=0.0, symmetric_views=True)
    monkeypatch.setattr(methods, "default_plan", lambda task: plan)
    tokens = TASK.encode_all(TEXTS)
    found = solve(toy, tokens, task="sudoku4", halt_above=1e9)
    seen = plan_views(plan, TASK, toy, torch.device("cpu"))
    wanted = solve_adaptively(toy, tokens, stopping_rules(toy, halt_above=1e9), plan, views=seen)
    assert torch.equal(found.answers, wanted.answers)
    assert torch.equal(found.terminal_entropy, wanted.terminal_entropy)
    plan = dataclasses.replace(plan, symmetric_views=False)
    plain = solve(toy, tokens, task="sudoku4", halt_above=1e9)
    assert not torch.equal(plain.terminal_entropy, found.terminal_entropy)


@pytest.mark.parametrize("wrong", [{"task": 3}, {"guide": 3}])
def test_a_task_and_a_guide_of_the_wrong_kind_are_named(toy: TRM, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(SettingsError, match=f"{name} must be .* got 3"):
        solve(toy, ["." * 81], **wrong)


def test_a_record_says_what_decided_and_how_many_solutions_there_are(
    stubborn: Any, toy: TRM
) -> None:
    model = stubborn(TASK.encode(ANSWER), halt=9.0)
    several, single, none = solve_texts(
        model, ["." * 16, TEXTS[0], "12..3..........4"], method="deterministic", outer_steps=1
    )
    assert (several.solutions, single.solutions) == (2, 1)
    assert json.loads(several.as_json())["solutions"] == 2
    assert json.loads(several.as_json())["decided_by"] == "budget"
    decided = solve_texts(model, [PUZZLE])[0]
    assert json.loads(decided.as_json())["decided_by"] == "halting"
    assert none.solutions == TASK.solutions("12..3..........4")


@pytest.mark.parametrize("counted_before", [2.0, 0.0])
def test_several_solutions_are_told_in_any_batch(
    stubborn: Any, monkeypatch: pytest.MonkeyPatch, counted_before: float
) -> None:
    """Also where the time before the search is too short: then after it."""
    monkeypatch.setattr(solving_call, "COUNTING", counted_before)
    monkeypatch.setattr(solving_call, "COUNTING_SHARE", 100.0)
    texts = [TEXTS[number % 3] for number in range(100)]
    texts[70], texts[80] = "." * 16, "12........3...4."
    model = stubborn(TASK.encode(ANSWER), halt=9.0)
    found = solve_texts(model, texts, method="deterministic", outer_steps=1)
    expected = [1] * 100
    expected[70], expected[80] = 2, 0
    assert [record.solutions for record in found] == expected
    assert found[80].answer is None
    assert "the clues contradict each other" in str(found[80].error)


def test_counting_takes_bounded_time_and_begins_with_few_clues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(solving_call.time, "perf_counter", lambda: now[0])
    asked: list[int] = []

    class Slow(Sudoku):
        def count_solutions(self, puzzle: torch.Tensor) -> int | None:
            now[0] += 0.5
            asked.append(int((puzzle != 1).sum()))
            return 1

    puzzles = [torch.arange(16).lt(clues) + 1 for clues in (9, 5, 7, 3, 8, 6, 4, 2)]
    assert solving_call.count_all(Slow(2), puzzles) == [None, 1, None, 1, None, 1, 1, 1]
    assert asked == [2, 3, 4, 5, 6]


def test_seconds_end_a_search_of_any_method(toy: TRM) -> None:
    for method in methods.METHODS:
        found = solve(toy, TEXTS, method=method, outer_steps=10**6, seconds=0.0)
        assert found.decided_by == ("time",) * 3, method
        assert found.outer_steps.tolist() == [1] * 3

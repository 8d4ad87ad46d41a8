"""tune where the usual plan ends in stages that guess: these are measured by real runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.diagnose.wells import Wells
from tests.solving.test_tune import BUDGET, WellsTask
from torch import Tensor

from tiltrm.cli import tune_command
from tiltrm.data import Puzzles
from tiltrm.explore.plan import format_stages, parse_stages
from tiltrm.model.base import State
from tiltrm.solving import tune, tune_recording
from tiltrm.solving.reserve import End
from tiltrm.solving.tune import AGREEMENT, LABELS, RULES, Tuner
from tiltrm.solving.tune_recording import MOST_ENDED, SHARES
from tiltrm.solving.tune_store import PartStore
from tiltrm.tasks.base import Symmetry, TaskDefaults, permutations
from tiltrm.tasks.grid import BLANK, CellClues

RIGHT, WRONG = 2, 3
ENOUGH = 3  # clues with which all other cells start on the right side


class Clues(Wells):
    """Wells where one right clue more makes a hard puzzle easy, and a wrong one is final."""

    vocabulary = 4

    def embed(self, tokens: Tensor) -> Tensor:
        few = (tokens == RIGHT).sum(-1, keepdim=True) < ENOUGH
        blanks = (tokens == BLANK).sum(-1, keepdim=True)  # halt logits of easy puzzles differ
        open_ = torch.where(few, -0.1, 0.5 + 0.03 * blanks).expand(tokens.shape)
        known = torch.where(tokens == WRONG, -2.0, open_)
        return torch.where(tokens == RIGHT, 0.9, known)[..., None]

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        return super().refine(inputs, state) + 0.1 * inputs

    def decode(self, answer: Tensor) -> Tensor:
        never = torch.full_like(answer, -9.0)
        return torch.cat((never, never, answer, -answer), -1)


@dataclass(frozen=True)
class CluesTask(WellsTask):
    """Twos in every cell."""

    name: str = "clues"
    vocabulary: int = 4
    stages: str = "1x6 2x6*2 4x6?1*2"

    @property
    def defaults(self) -> TaskDefaults:
        return TaskDefaults(stages=self.stages, noise=0.3, guesses=CellClues())

    def is_solved(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        return (answer == RIGHT).all(-1).expand(torch.broadcast_shapes(
            puzzle.shape[:-1], answer.shape[:-1]))  # fmt: skip

    def symmetry(self, puzzles: int, generator: torch.Generator) -> Symmetry:
        return Symmetry(permutations(puzzles, 6, generator), torch.arange(4).expand(puzzles, -1))


MODEL: Any = Clues()
TASK: Any = CluesTask()
RESTARTS: Any = CluesTask(stages="1x6 2x6*2 4x6*2")


def puzzles(task: Any = TASK, *, labelled: bool = True, count: int = 160) -> Puzzles:
    """A third of the puzzles has a clue too few. Pads make puzzles different."""
    chance = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 2, (count, 6), generator=chance)
    clues = torch.where(torch.arange(count) % 3 == 0, ENOUGH - 1, ENOUGH)
    tokens[permutations(count, 6, chance) < clues[:, None]] = RIGHT
    answers = torch.full((count, 6), RIGHT, dtype=torch.uint8)
    return Puzzles(task, tokens.to(torch.uint8), answers if labelled else None)


@pytest.fixture(autouse=True)
def two_noises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise no votes differ, so there is nothing to guess."""
    monkeypatch.setattr(tune_recording, "NOISES", (0.3, 0.5))


def tuner(folder: Path, given: Puzzles | None = None, **changes: Any) -> Tuner:
    store = PartStore(folder, "weights", {})
    settings: dict[str, Any] = {"evaluations": BUDGET, "seed": 1} | changes
    return Tuner(MODEL, given or puzzles(), store, **settings)


def most_recorded(own: Tuner) -> int:
    """Noisy trajectories of a puzzle."""
    recorded = own.recorder.record(own.recorder.affordable(own.choosing))
    return max(int(counts.max()) for counts in recorded.counts.values())


@pytest.mark.parametrize(("judge", "rules"), [(LABELS, False), (RULES, False), (RULES, True)])
def test_a_chosen_plan_ends_in_stages_that_guess_as_measured(
    tmp_path: Path, judge: str, rules: bool
) -> None:
    own = tuner(tmp_path, puzzles(labelled=judge == LABELS), rules=rules)
    found = own.run()
    assert found.judge == judge
    assert found.end is not None
    stages = found.chosen.plan.stages
    assert stages[-len(found.end.stages) :] == found.end.stages
    assert not any(stage.guesses for stage in stages[: -len(found.end.stages)])
    assert found.end.puzzles > 12  # of 27 hard ones
    assert found.end.right > 0.5
    checked = found.checked.right / found.checked.puzzles
    assert found.played.right == pytest.approx(checked, abs=0.1)
    assert found.played.evaluations == pytest.approx(found.checked.evaluations, rel=0.25)
    assert not any("?" in point.stages for point in found.frontier)


def test_the_end_is_run_after_a_short_beginning_on_the_open_puzzles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, float, Tensor, dict[str, np.ndarray]]] = []
    made = Tuner._solve

    def noted(self: Tuner, own: Any, rows: Tensor) -> Any:
        columns = made(self, own, rows) | {"right": rows.numpy() % 4 == 0}  # whoever judges
        ran.append((format_stages(own.plan.stages), own.plan.noise, rows, columns))
        return columns

    monkeypatch.setattr(Tuner, "_solve", noted)
    own = tuner(tmp_path)
    own.part_size = 8 * 3 * 222.0  # eight puzzles at most in the first part
    found = own.run()
    whole = "1x6 2x6*2 4x6@0.3?1*8"  # four times the last group: 30 + 192 outer steps
    parts = [part for part in ran if part[0] == whole][: ran.index(next(
        part for part in ran if part[0] != whole))]  # fmt: skip
    assert len(parts) > 1
    assert len(parts[0][2]) == 8
    assert {noise for _, noise, _, _ in parts} == {found.chosen.plan.noise}
    assert not set(torch.cat([rows for _, _, rows, _ in parts]).tolist()) & set(
        own.checking.tolist())  # fmt: skip
    spent = np.concatenate([columns["evaluations"] for *_, columns in parts]) - 3 * 30
    right = np.concatenate([c["right"] & (c["decided_by"] != "budget") for *_, c in parts])
    assert found.end is not None
    length = 3 * 24 * len(found.end.stages)
    assert found.end.puzzles == (spent > 0).sum()
    ended = right & (spent <= length) & (spent > 0)
    assert found.end.right == (ended.sum() + 1) / (found.end.puzzles + 2)
    assert found.end.evaluations == np.minimum(spent[spent > 0], length).mean()


def test_the_measured_end_is_kept_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run killed while it measures the end continues; one that is complete calls no network."""

    class KilledError(Exception):
        pass

    def kill(spent: float) -> None:
        if list((tmp_path / "killed").rglob("check-end-0-*")):
            raise KilledError

    whole = tuner(tmp_path / "whole").run()
    with pytest.raises(KilledError):
        tuner(tmp_path / "killed", tick=kill).run()
    assert not list((tmp_path / "killed").rglob("check-tuned-*"))
    continued = tuner(tmp_path / "killed").run()
    assert (continued.as_mapping(), continued.end) == (whole.as_mapping(), whole.end)
    again = tuner(tmp_path / "whole")
    evaluations = 0
    for path in (tmp_path / "whole").rglob("*.npz"):
        with np.load(path) as part:
            recorded = part["logits"].size * 3 if "logits" in part else part["evaluations"].sum()
            evaluations += int(recorded)
    assert whole.evaluations == evaluations

    def refused(*arguments: Any, **settings: Any) -> Any:
        raise AssertionError("the network was called")

    monkeypatch.setattr(tune, "run_search", refused)
    monkeypatch.setattr(tune_recording, "follow_many", refused)
    assert again.run() == whole


def test_where_nobody_says_what_is_right_no_end_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reserve is chosen, from as many recordings as ever where no trajectory succeeds."""
    own = tuner(tmp_path, puzzles(labelled=False), judge=AGREEMENT, evaluations=30 * BUDGET)
    found = own.run()
    assert found.end is None
    assert not list(tmp_path.rglob("check-end-*"))
    recorder = tune_recording.Recorder
    monkeypatch.setattr(recorder, "_easy", lambda self, seen: seen.valid[:, 0, 0] & False)
    monkeypatch.setattr(recorder, "_succeeded", lambda self, seen: seen.valid[..., 0] & False)
    assert most_recorded(own) > MOST_ENDED


@pytest.mark.parametrize("task", [TASK, RESTARTS])
def test_fewer_trajectories_are_recorded_where_no_reserve_follows(
    tmp_path: Path, task: Any
) -> None:
    """A plan that ends in restarts is tuned as ever: with a reserve, and nothing is measured."""
    guesses = task is TASK
    own = tuner(tmp_path, puzzles(task), evaluations=10 * BUDGET)
    found = own.run()
    assert (found.end is not None) == guesses
    assert bool(list(tmp_path.rglob("check-end-*"))) == guesses
    assert (most_recorded(own) <= MOST_ENDED) == guesses
    assert any(stage.guesses for stage in found.chosen.plan.stages) == guesses


def test_a_small_budget_or_a_bound_makes_the_end_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight puzzles take an eighth of 3 x 768 evaluations each in the end, 3 x 30 before: 3,024."""
    asked: list[int] = []
    real = tune.best_end

    def noted(choices: Any, *arguments: Any) -> End:
        asked.append(len(choices))
        return real(choices, *arguments)

    monkeypatch.setattr(tune, "best_end", noted)
    long: Any = CluesTask(stages="1x6 2x6*2 64x6?1*2")
    for number, share in enumerate((3000, 3030, 8 * 378 + 8 * 288)):
        given = puzzles(long)
        tuner(tmp_path / str(number), given, evaluations=int(share / SHARES["end"]) + 1).run()
    assert asked == [1, 1, 2]
    bounded = tuner(tmp_path / "bounded", per_puzzle=3 * 60.0).run()
    assert bounded.end is not None
    assert bounded.end.stages == parse_stages("4x6@0.3?1")
    assert bounded.chosen.plan.particle_steps <= 60


def test_the_command_says_what_the_end_does(tmp_path: Path) -> None:
    found = tuner(tmp_path).run()
    said = tune_command.words(found, "")
    end = found.end
    assert isinstance(end, End)
    assert f"{end.puzzles} of these puzzles came to the stages that guess (4x6@0.3?1*" in said
    assert (
        f"about {end.right:.0%} of such puzzles end right there, at {end.evaluations:,.1f}" in said
    )


def test_where_the_vote_finds_the_answers_nothing_is_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`test_a_plan_that_votes_has_no_further_stages` says when that is so."""
    monkeypatch.setattr(tune.PlanSearch, "needs_no_end", lambda self: True)
    found = tuner(tmp_path).run()
    assert found.end is None
    assert not list(tmp_path.rglob("check-end-*"))

"""Accuracy by outer step is the accuracy of explorations that end there."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from tiltrm.data import Puzzles
from tiltrm.evaluate.measure import ByStep, Judge, Measurement
from tiltrm.evaluate.measure import columns as measured
from tiltrm.explore import Exploration, algorithm, batching, explore
from tiltrm.explore.guides import halting

from .toys import TASK, Wells

CLOUD = Exploration(particles=6, noise=0.5, outer_steps=8, entropy_every=0, beta=0.5)
WAYS: dict[str, dict[str, Any]] = {
    "guided": {},
    "always resampled": {"trigger": "always", "resampler": "multinomial", "beta": 0.3,
                         "noise": 0.35},
    "every third": {"score_every": 3, "beta": 2.0},
    "difference": {"score_every": 2, "potential": "difference", "beta": 2.0},
    "terminal": {"potential": "terminal", "beta": 1.0},
    "unguided": {"beta": 0.0, "potential": "terminal", "trigger": "never"},
    "best score": {"beta": 0.0, "potential": "terminal", "select": "best_score",
                   "placement": "supervision", "trigger": "never"},
    "majority": {"beta": 0.0, "potential": "terminal", "select": "majority", "trigger": "never"},
    "alone": {"particles": 1, "noise": 0.0, "beta": 0.0},
}  # fmt: skip


def watched(model: Wells, puzzles: Puzzles, settings: Exploration, **more: Any) -> ByStep:
    keys = torch.arange(100, 112)
    judge = Judge(TASK, puzzles.questions, puzzles.labels())
    watch = ByStep(settings, halting(model), judge, keys, 3)
    explore(model, puzzles.questions, settings, seed=3, keys=keys, watch=watch, **more)
    return watch


@pytest.mark.parametrize("way", WAYS)
def test_every_step_is_a_last_step(model: Wells, puzzles: Puzzles, way: str) -> None:
    settings = replace(CLOUD, **WAYS[way])
    watch = watched(model, puzzles, settings)
    for step in range(1, 9):
        result = explore(
            model, puzzles.questions, replace(settings, outer_steps=step), seed=3,
            keys=torch.arange(100, 112), labels=puzzles.labels(),
        )  # fmt: skip
        exact = (result.answers == puzzles.labels()).all(-1)
        assert torch.equal(watch.exact[:, step - 1], exact), step
        assert result.oracle is not None
        assert torch.equal(watch.oracle[:, step - 1], result.oracle), step
    if way != "alone":  # which has settled before its first answer
        assert not torch.equal(watch.exact[:, 0], watch.exact[:, -1])


def test_memory_that_runs_out_does_not_mix_up_puzzles(
    model: Wells, puzzles: Puzzles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk may fail after its last step was watched, and begin again in halves."""
    whole = watched(model, puzzles, CLOUD)
    real, failed = algorithm.conclude, list[int]()

    def failing(*arguments: Any) -> Any:
        if len(failed) < 2:
            failed.append(1)
            raise torch.OutOfMemoryError("out of memory")
        return real(*arguments)

    monkeypatch.setattr(algorithm, "conclude", failing)
    monkeypatch.setattr(batching.torch.cuda, "is_available", lambda: False)
    again = watched(model, puzzles, CLOUD, chunk=8)
    assert len(failed) == 2
    assert torch.equal(again.exact, whole.exact)
    assert torch.equal(again.oracle, whole.oracle)


def test_a_dead_cloud_is_never_right(puzzles: Puzzles) -> None:
    class Dying(Wells):
        def halt_logit(self, answer: torch.Tensor) -> torch.Tensor:
            return torch.full(answer.shape[:-2], torch.nan)

    model = Dying(puzzles.questions, puzzles.labels())
    watch = watched(model, puzzles, replace(CLOUD, on_degenerate="abstain"))
    assert not watch.exact.any()
    assert not watch.oracle.any()


def test_an_answer_against_the_rules_is_not_valid(puzzles: Puzzles) -> None:
    answers = puzzles.labels().clone()
    answers[0, 0] = 2 + (answers[0, 0] - 1) % 4
    one = torch.ones(12)
    outcome = Measurement(answers, one, one, one, one, ["budget"] * 12)
    found = measured(outcome, Judge(TASK, puzzles.questions, puzzles.labels()), torch.arange(12),
                     torch.device("cpu"))  # fmt: skip
    assert found["valid"].tolist() == [False] + [True] * 11  # type: ignore[union-attr]

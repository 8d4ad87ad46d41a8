"""Are stated confidences probabilities? Bins, expected against observed, and promised risks.

Shards keep the confidence as the stopping rule saw it. The confidence that `solve` states is a
function of their columns and of the calibration beside the model's weights, so stored shards serve
any calibration. Proved by tests/evaluate/test_reliability.py.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.options import PLANNED, RULES, plan_of
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.summary import groups, identity
from tiltrm.evaluate.table import align
from tiltrm.evaluate.titles import title
from tiltrm.model.base import RecursiveModel
from tiltrm.model.puzzle_rows import chosen_puzzle, with_puzzle
from tiltrm.settings import HALT_ABOVE
from tiltrm.solving.confidence import (
    Calibration,
    StopFeatures,
    calibration_of,
    stated_confidence,
)
from tiltrm.solving.methods import Stopping, search_settings
from tiltrm.solving.risk import rung_for
from tiltrm.solving.tune_recording import RULES as BY_RULES
from tiltrm.statistics import largest_share

EDGES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)  # of the bins of confidence


class ReliabilityBin(NamedTuple):
    """The answers with a confidence in [low, high), the last bin with 1."""

    low: float
    high: float
    answers: int
    expected: float  # mean confidence
    observed: float  # share of right answers


class RiskOutcome(NamedTuple):
    """A promised risk, and what became of it on these puzzles."""

    risk: float
    answered: int
    wrong: int
    answers: int
    refused: str = ""  # why it was not promised

    def words(self) -> str:
        """One line."""
        if self.refused:
            return f"risk {self.risk:g}: refused: {self.refused}"
        observed = self.wrong / max(1, self.answered)
        return (
            f"risk {self.risk:g}: answered {self.answered:,} of {self.answers:,} "
            f"({self.answered / max(1, self.answers):.2%}), {self.wrong:,} of them wrong "
            f"({observed:.3%}; at most {largest_share(self.wrong, self.answered):.3%} at 95 %)"
        )


class Reliability(NamedTuple):
    """The confidences of one method on one split, against how often the answers were right."""

    split: str
    title: str
    calibrated: bool  # with the calibration of exactly these settings
    bins: tuple[ReliabilityBin, ...]
    error: float  # expected calibration error over these bins
    brier: float
    risks: tuple[RiskOutcome, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        found = self._asdict()
        return found | {
            "bins": [part._asdict() for part in self.bins],
            "risks": [part._asdict() for part in self.risks],
        }


def stop_features(
    shards: Sequence[Shard], calibration: Calibration | None = None
) -> tuple[StopFeatures, Tensor]:
    """How every puzzle of these shards stopped, and whether its answer is right.

    Right is what the calibration promises: an answer that equals the label, or one that keeps the
    rules if it was fitted by rules. A path that is not the shortest breaks a rule.
    """

    def column(name: str) -> Tensor:
        return torch.from_numpy(np.concatenate([np.array(shard[name]) for shard in shards]))

    by_rules = calibration is not None and calibration.judge == BY_RULES
    valid = column("valid" if shards[0].columns.get("shortest") is None else "shortest").bool()
    names = [str(name) for shard in shards for name in shard["decided_by"]]
    features = StopFeatures(
        names, column("confidence"), column("halt_probability"), column("outer_steps"), valid
    )  # fmt: skip
    return features, valid if by_rules else column("exact").bool()


def job_settings(job: Job, model: RecursiveModel) -> dict[str, Any] | None:
    """The settings of an adaptive job as a calibration names them; None for other methods."""
    if job.method not in PLANNED:
        return None
    own = job.options
    names = ("agree_share", "agree_among", "shortest_visited")
    agreement = {name: own[name] for name in names if name in own}
    stopping = Stopping.of(
        model, halt_above=own.get("halt_above"), rules=job.method == RULES,
        uncalibrated_halt_above=own.get("uncalibrated_halt_above", HALT_ABOVE), **agreement,
    )  # fmt: skip
    puzzle_id = chosen_puzzle(with_puzzle(model, own.get("puzzle_id")))
    return search_settings(plan_of(own), own.get("guide", "halting"), stopping, puzzle_id)


def reliabilities(
    shards: Sequence[Shard], model: RecursiveModel, risks: Sequence[float] = ()
) -> list[Reliability]:
    """One for every method, in order of first appearance."""
    return [_reliability(group, model, risks) for group in groups(shards)]


def _reliability(
    group: Sequence[Shard], model: RecursiveModel, risks: Sequence[float]
) -> Reliability:
    job, calibration = group[0].job, calibration_of(model)
    return reliability_of(
        *stop_features(group, calibration), calibration, job_settings(job, model), risks,
        split=job.split, title=title(job.method, identity(job)[3], job.task),
    )  # fmt: skip


def reliability_of(
    features: StopFeatures, right: Tensor, calibration: Calibration | None,
    settings: Mapping[str, Any] | None, risks: Sequence[float], *, split: str, title: str,
) -> Reliability:  # fmt: skip
    """The reliability of answers; `settings` None: of a method that is not adaptive."""
    same = calibration is not None and calibration.settings == settings
    if settings is None:
        stated = features.confidence.double().masked_fill(~features.valid, 0.0)
    else:
        stated = stated_confidence(calibration, features, same=same)
    bins = _bins(stated, right)
    error = sum(part.answers * abs(part.expected - part.observed) for part in bins) / len(right)
    brier = float((stated - right.double()).square().mean())
    outcomes = [] if settings is None else [
        _risked(features, right, risk, calibration.ladder)
        if calibration is not None and same
        else RiskOutcome(risk, 0, 0, len(right), "the model has no calibration for these settings")
        for risk in risks
    ]  # fmt: skip
    return Reliability(split, title, same, bins, error, brier, tuple(outcomes))


def _bins(stated: Tensor, right: Tensor) -> tuple[ReliabilityBin, ...]:
    which = torch.searchsorted(torch.tensor(EDGES[1:-1]).double(), stated, right=True)
    found = []
    for number, (low, high) in enumerate(pairwise(EDGES)):
        rows = which == number
        if rows.any():
            shares = float(stated[rows].mean()), float(right[rows].double().mean())
            found.append(ReliabilityBin(low, high, int(rows.sum()), *shares))
    return tuple(found)


def _risked(features: StopFeatures, right: Tensor, risk: float, rungs: Any) -> RiskOutcome:
    try:
        rung = rung_for(rungs, risk)
    except SettingsError as error:
        return RiskOutcome(risk, 0, 0, len(right), str(error))
    given = features.trust() > rung.above
    return RiskOutcome(risk, int(given.sum()), int((given & ~right).sum()), len(right))


def reliability_table(found: Sequence[Reliability]) -> str:
    """The bins of the methods that stop by rules, one line for the others, then the risks."""
    parts = []
    for one in found:
        kind = "calibrated" if one.calibrated else "not calibrated for these settings"
        head = (
            f"{one.split}, {one.title}: confidence {kind}; calibration error {one.error:.4f}, "
            f"Brier score {one.brier:.4f}"
        )
        lines = [head]
        if one.title.startswith("adaptive"):
            cells = [["confidence", "answers", "expected %", "observed %"]]
            cells += [
                [f"{part.low:g} to {part.high:g}", f"{part.answers:,}",
                 f"{100 * part.expected:.2f}", f"{100 * part.observed:.2f}"]
                for part in one.bins
            ]  # fmt: skip
            lines.append(align(cells, left=1))
        lines += [outcome.words() for outcome in one.risks]
        parts.append("\n".join(lines))
    return "\n".join(parts)

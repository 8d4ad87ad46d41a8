"""Confidence as a probability: how often answers that stopped like this one are right.

A calibration is fitted for one model with one plan, on puzzles that neither was chosen on. It has a
curve for every stopping rule: a score of the halting head, the rule's own probability and the steps
used, none of which can lower it, and for every interval of the score the share of right answers. An
answer that breaks a rule of its task has confidence 0, with or without a calibration.
Proved by tests/solving/test_confidence.py.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import CheckpointError
from tiltrm.explore.batches import Columns
from tiltrm.explore.search import NOT_DECIDED, StateConfidence
from tiltrm.model.base import RecursiveModel, model_info
from tiltrm.solving.risk import Rung, ladder, trust
from tiltrm.tasks import Task
from tiltrm.tasks.published import keeps_rules

FEWEST = 50  # puzzles; of fewer, no calibration is fitted
SMALLEST_BIN, BINS = 20, 40  # puzzles in a bin before bins are pooled; bins at most
VALID = "rules"  # the stopping rule that stops at a valid solution
UNSEEN = 0.5  # most that is said of a stopping rule that the calibration never saw
LARGEST_LOGIT = 16.0
RIDGE, ROUNDS = 1.0, 300  # of the logistic regression


class StopFeatures(NamedTuple):
    """How the search of each puzzle stopped; nothing here needs a label."""

    decided_by: Sequence[str]  # the stopping rule, or one of NOT_DECIDED
    confidence: Tensor  # (puzzle,) as the rule sees it
    halt_probability: Tensor  # (puzzle,)
    outer_steps: Tensor  # (puzzle,)
    valid: Tensor  # (puzzle,) bool: no rule of the task is broken; True where none is known

    def numbers(self) -> Tensor:
        """(puzzle, 3): the larger each of them, the more likely is the answer right."""
        return torch.stack(
            (_logit(self.halt_probability), _logit(self.confidence),
             -self.outer_steps.double().clamp(min=1).log2()), 1,
        )  # fmt: skip

    def own(self) -> Tensor:
        """The confidence of the stopping rule itself, which a calibration replaces: (puzzle,).

        A vote of an undecided cloud is no judge, so its answer is trusted no more than the halting
        head trusts it.
        """
        return self._capped(NOT_DECIDED)

    def uncalibrated(self) -> Tensor:
        """The confidence where there is no calibration: (puzzle,).

        A share of particles is no probability: agreement reaches 1.0 where the halting head never
        exceeds .985 (mazes). So an agreed answer, too, is trusted no more than the halting head
        trusts it, and a limit on the confidence withholds the less trusted answers first.
        Proved by tests/solving/test_confidence.py::test_agreement_claims_no_more_than_halting.
        """
        return self._capped((*NOT_DECIDED, "agreement"))

    def _capped(self, rules: Sequence[str]) -> Tensor:
        """The rule's confidence, after these rules at most the halt probability; 0 if invalid."""
        rows = torch.tensor([name in rules for name in self.decided_by], dtype=torch.bool)
        capped = torch.minimum(self.confidence.double(), self.halt_probability.double())
        found = torch.where(rows, capped, self.confidence.double())
        return found.masked_fill(~self.valid, 0.0)

    def trust(self) -> Tensor:
        """The order of answers in `tiltrm.solving.risk`: (puzzle,)."""
        decided = torch.tensor(
            [name not in NOT_DECIDED for name in self.decided_by], dtype=torch.bool
        )
        return trust(decided, self.halt_probability, self.valid)


def _logit(probability: Tensor) -> Tensor:
    p = probability.double()
    return (p.log() - torch.log1p(-p)).nan_to_num(0.0).clamp(-LARGEST_LOGIT, LARGEST_LOGIT)


class ConfidenceCurve(NamedTuple):
    """The share of right answers by a score; for one stopping rule."""

    weights: tuple[float, ...]  # of `StopFeatures.numbers`, none below 0
    above: tuple[float, ...]  # lower edges of the intervals of the score, but for the first
    share: tuple[float, ...]  # of right answers in each interval, ascending
    puzzles: int

    def __call__(self, numbers: Tensor) -> Tensor:
        """(puzzle, 3) -> (puzzle,)."""
        score = numbers @ torch.tensor(self.weights).double()
        edges = torch.tensor(self.above).double()
        return torch.tensor(self.share).double()[torch.searchsorted(edges, score, right=True)]


def _stopped(features: StopFeatures, rule: str) -> Tensor:
    """Which searches stopped by this rule: (puzzle,) bool."""
    return torch.tensor([by == rule for by in features.decided_by], dtype=torch.bool)


def fit_curve(numbers: Tensor, right: Tensor) -> ConfidenceCurve:
    """Logistic regression with weights of at least 0, then pooled bins of its score.

    A share is (right + 1/2) / (puzzles + 1), so that it is never exactly 0 or 1.
    """
    weights = _regress(numbers, right)
    score, order = (numbers @ weights).sort()
    size = max(SMALLEST_BIN, math.ceil(len(score) / BINS))
    places = [p for p in range(size, len(score) - size + 1, size) if score[p] > score[p - 1]]
    blocks = [
        [int(part.sum()), len(part), float(score[first])]
        for first, part in zip([0, *places], right[order].tensor_split(tuple(places)), strict=True)
    ]
    pooled: list[list[float]] = []
    for block in blocks:  # adjacent violators
        pooled.append(list(block))
        while len(pooled) > 1 and _mean(pooled[-2]) >= _mean(pooled[-1]):
            good, count, _ = pooled.pop()
            pooled[-1][0] += good
            pooled[-1][1] += count
    shares = [(good + 0.5) / (count + 1) for good, count, _ in pooled]
    rising = torch.tensor(shares).double().cummax(0).values.tolist()
    edges = tuple(first for _, _, first in pooled[1:])
    return ConfidenceCurve(tuple(weights.tolist()), edges, tuple(rising), len(right))


def _mean(block: Sequence[float]) -> float:
    return block[0] / block[1]


def _regress(numbers: Tensor, right: Tensor) -> Tensor:
    """Weights of at least 0 by projected gradients; all 0 where nothing can be told apart."""
    if len(right) < 2 * SMALLEST_BIN or bool(right.all()) or not bool(right.any()):
        return torch.zeros(numbers.shape[1]).double()
    mean, spread = numbers.mean(0), numbers.std(0)
    spread = torch.where(spread > 1e-9, spread, math.inf)
    x = (numbers - mean) / spread
    target = right.double()
    weights, bias = torch.zeros(x.shape[1]).double(), torch.logit(target.mean())
    rate = 4.0 / (x.shape[1] + 1)
    for _ in range(ROUNDS):
        error = torch.sigmoid(x @ weights + bias) - target
        gradient = (x.T @ error + RIDGE * weights) / len(x)
        weights = (weights - rate * gradient).clamp(min=0.0)
        bias = bias - rate * error.mean()
    return weights / spread


@dataclass(frozen=True)
class Calibration:
    """The content of calibration.json, without the checksum of the weights."""

    task: str
    data: str  # name of the puzzles
    puzzles: int
    wrong: int  # answers to them, withheld ones included
    judge: str  # "labels", "rules" or "agreement": who said which answers are right
    settings: Mapping[str, Any]  # of the search, `tiltrm.solving.methods.search_settings`
    curves: Mapping[str, ConfidenceCurve]  # by stopping rule
    ladder: tuple[Rung, ...]

    def confidence(self, features: StopFeatures) -> Tensor:
        """The probability that each answer is right: (puzzle,)."""
        own, numbers = features.own(), features.numbers()
        found = torch.where(_stopped(features, VALID), own.clamp(max=self.right_if_valid),
                            own.clamp(max=UNSEEN))  # fmt: skip
        for name, curve in self.curves.items():
            found = torch.where(_stopped(features, name), curve(numbers), found)
        return found.masked_fill(~features.valid, 0.0)

    @property
    def right_if_valid(self) -> float:
        """The share of right answers among all calibration answers that break no rule.

        It limits the confidence of a search that stops at valid solutions only, where the
        calibration is for another one.
        """
        if not self.ladder:
            return UNSEEN
        everyone = self.ladder[-1]
        return (everyone.answered - everyone.wrong + 0.5) / (everyone.answered + 1)

    def as_mapping(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **asdict(self), "curves": {n: c._asdict() for n, c in self.curves.items()},
            "ladder": [rung._asdict() for rung in self.ladder],
        }  # fmt: skip

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> "Calibration":
        """The inverse of `as_mapping`; CheckpointError where the content is damaged."""
        try:
            known = {name: values[name] for name in cls.__dataclass_fields__}
            curves = {
                str(name): ConfidenceCurve(
                    tuple(map(float, curve["weights"])),
                    tuple(map(float, curve["above"])),
                    tuple(map(float, curve["share"])),
                    int(curve["puzzles"]),
                )
                for name, curve in known.pop("curves").items()
            }
            steps = tuple(
                Rung(float(r["above"]), int(r["answered"]), int(r["wrong"]))
                for r in known.pop("ladder")
            )
            if any(
                len(c.share) != len(c.above) + 1 or len(c.weights) != 3 for c in curves.values()
            ):
                raise ValueError("a curve of another length")
            if not isinstance(known["settings"], Mapping):
                raise TypeError("settings")
            return cls(**known, curves=curves, ladder=steps)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(
                "expected a calibration with curves and a ladder in calibration.json, got damaged "
                f"content ({type(error).__name__}: {error}); delete it and run tiltrm tune again"
            ) from error


def fit(
    features: StopFeatures, right: Tensor, *, task: str, data: str, judge: str,
    settings: Mapping[str, Any],
) -> Calibration:  # fmt: skip
    """The calibration of answers of which it is known whether they are right."""
    numbers = features.numbers()
    curves = {}
    for name in sorted(set(features.decided_by)):
        rows = _stopped(features, name) & features.valid
        if rows.any():
            curves[name] = fit_curve(numbers[rows], right[rows])
    return Calibration(
        task, data, len(right), int((~right).sum()), judge, settings, curves,
        ladder(features.trust(), right & features.valid),
    )  # fmt: skip


def calibration_of(model: RecursiveModel) -> Calibration | None:
    """The calibration beside the model's weights, or None."""
    content = model_info(model).calibration
    return None if content is None else Calibration.from_mapping(content)


def stated_confidence(
    calibration: Calibration | None, features: StopFeatures, *, same: bool
) -> Tensor:
    """The confidence that `solve` states; `same`: the search has the calibration's settings.

    With other settings, no more than the calibration says, nor than the stopping rule says.
    """
    if calibration is None:
        return features.uncalibrated()
    found = calibration.confidence(features)
    return found if same else torch.minimum(found, features.own())


def state_confidence(
    model: RecursiveModel, task: Task | None, settings: Mapping[str, Any] | None
) -> StateConfidence:
    """How a search with these settings states its confidence.

    Without settings (a method that is not adaptive) the rules of the task alone can lower it.
    """
    calibration = None if settings is None else calibration_of(model)
    same = calibration is not None and calibration.settings == settings

    def state(tokens: Tensor, decided_by: str, columns: Columns) -> Tensor:
        if task is None:
            valid = torch.ones(len(tokens), dtype=torch.bool)
        else:
            valid = keeps_rules(task, tokens, columns["answers"])
        confidence = columns["confidence"]
        if settings is None:
            return confidence.masked_fill(~valid, 0.0)
        features = StopFeatures(
            [decided_by] * len(tokens), confidence, columns["halt_probability"],
            columns["outer_steps"], valid,
        )  # fmt: skip
        stated = stated_confidence(calibration, features, same=same)
        return stated.to(confidence.dtype).masked_fill(columns["degenerate"], 0.0)

    return state

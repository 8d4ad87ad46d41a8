"""Fitting a learned guide on clouds that the model makes itself, chunk by chunk.

Every chunk is scored before it is learned from, and its states are dropped afterwards. Heads are
small, so copies of several states of the fit are kept, and one pass over held-out puzzles chooses
between them; the first of them is the halting head.
"""

import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.errors import DataError, SettingsError
from tiltrm.explore.inputs import device_of
from tiltrm.explore.learned import GuideHead, HeadSizes, head_logits
from tiltrm.model.base import RecursiveModel, evaluations_per_step
from tiltrm.solving.guide_folder import state_sizes
from tiltrm.statistics import auroc, won_pairs
from tiltrm.train.guide_clouds import (
    CloudStates,
    Sampling,
    chunks,
    judge_of,
    record_states,
    soft_targets,
)

SNAPSHOTS = 16  # states of the fit that are kept
STATES_AT_ONCE = {"cuda": 1 << 28, "cpu": 1 << 25}  # numbers in one step of the optimiser
LEAST_RATE = 0.05  # of the learning rate, at the end
HELD_OUT_CHUNK = 1 << 30  # numbers of held-out chunks begin here
FEWEST = 5  # puzzles


@dataclass(frozen=True)
class FitSettings:
    """The settings of a fit."""

    sampling: Sampling
    target: str = "right"  # or "rules"
    held_out: int = 64  # puzzles, at most a fifth
    puzzles: int | None = None  # budget in clouds
    minutes: float | None = None  # or in minutes, the held-out pass included
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    epochs: int = 2  # times that a chunk is gone through
    clouds: int = 16  # in one step of the optimiser
    ranking: float = 1.0  # weight of the ranking loss
    hidden: int = 128
    mixed: int = 64


class Quality(NamedTuple):
    """How well a head tells right from wrong trajectories."""

    loss: float  # cross-entropy + ranking
    cross_entropy: float
    ranking: float  # 0 where no cloud holds both
    auroc: float  # over all trajectories
    in_cloud_auroc: float  # over pairs of the same cloud at the same step


@dataclass
class Scores:
    """Logits with their targets, collected."""

    logits: list[Tensor] = field(default_factory=list)
    costs: list[Tensor] = field(default_factory=list)

    def add(self, logits: Tensor, states: CloudStates) -> None:
        """logits: (row, particle); dead particles are left out."""
        self.logits.append(torch.where(states.alive, logits, -torch.inf).double().cpu())
        self.costs.append(states.cost.double().cpu())

    def quality(self, ranking: float) -> Quality:
        """The figures of everything added."""
        logits, costs = torch.cat(self.logits), torch.cat(self.costs)
        alive = logits > -torch.inf
        entropy, order = losses(logits, costs, alive)
        right = costs == 0
        won, pairs = won_pairs(logits, right)
        inside = float(won.sum() / pairs.sum()) if pairs.sum() else math.nan
        loss = float(entropy + ranking * order)
        if logits.isnan().any():  # such a head must not be chosen
            loss = math.inf
        return Quality(
            loss, float(entropy), float(order),
            auroc(logits[alive], right[alive]), inside,
        )  # fmt: skip


def losses(logits: Tensor, costs: Tensor, alive: Tensor) -> tuple[Tensor, Tensor]:
    """Binary cross-entropy against exp(-cost), and the ranking loss; both means.

    Args:
        logits, costs: (cloud, particle). Lower costs are better, 0 is right.
        alive: Particles that count, (cloud, particle).

    The ranking loss is softplus(worse - better), averaged over the pairs of a cloud with different
    costs and then over clouds that have such pairs; 0 where none has.
    Proved by tests/train/test_guide_fit.py.
    """
    safe = torch.where(alive, logits, 0.0)
    each = F.binary_cross_entropy_with_logits(safe, soft_targets(costs).to(safe), reduction="none")
    entropy = (each * alive).sum() / alive.sum().clamp(min=1)
    better = (costs[:, :, None] < costs[:, None, :]) & alive[:, :, None] & alive[:, None, :]
    margin = F.softplus(safe[:, None, :] - safe[:, :, None])  # (cloud, better, worse)
    pairs = better.sum((1, 2))
    per_cloud = (margin * better).sum((1, 2)) / pairs.clamp(min=1)
    mixed = pairs > 0
    return entropy, (per_cloud * mixed).sum() / mixed.sum().clamp(min=1)


class FittedGuide(NamedTuple):
    """The best head, its figures on held-out puzzles, and what the fit took."""

    head: GuideHead
    quality: Quality
    halting: Quality  # of the halting head on the same states
    clouds: int  # that it was fitted on
    held_out: int  # clouds
    chosen: int  # clouds after which the best state was reached
    evaluations: int
    seconds: float

    def figures(self) -> dict[str, Any]:
        """Ready for a manifest."""
        plain = {n: v for n, v in self._asdict().items() if n != "head"}
        return plain | {"quality": self.quality._asdict(), "halting": self.halting._asdict()}


Tick = Callable[[float, Quality | None], None]  # (share of the budget, quality of the last chunk)


class GuideFitter:
    """Fits one guide."""

    def __init__(
        self, model: RecursiveModel, puzzles: Puzzles, settings: FitSettings,
        tick: Tick | None = None, clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        _check(settings, len(puzzles))
        self.model, self.settings, self.clock = model, settings, clock
        self.tick = tick or (lambda share, quality: None)
        held = min(settings.held_out, len(puzzles) // FEWEST)
        order = torch.randperm(
            len(puzzles), generator=torch.Generator().manual_seed(settings.sampling.seed)
        )
        self.held_out, self.fitted_on = puzzles.take(order[:held]), puzzles.take(order[held:])
        self.device = device_of(model, puzzles.questions)
        positions, width = state_sizes(model)
        self.chunk = settings.sampling.chunk(positions, width, self.device)
        most = STATES_AT_ONCE.get(self.device.type, STATES_AT_ONCE["cpu"])
        self.rows = max(1, most // (2 * positions * width * settings.sampling.particles))
        sizes = HeadSizes(width, settings.hidden, settings.mixed, settings.sampling.outer_steps)
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they are
            torch.manual_seed(settings.sampling.seed)
            self.head = GuideHead(sizes).to(self.device)
        self.optimiser = torch.optim.AdamW(
            self.head.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.chance = torch.Generator().manual_seed(settings.sampling.seed + 1)
        self.snapshots = [(0, copy.deepcopy(self.head))]
        self.clouds = self.runs = 0

    def run(self) -> FittedGuide:
        """Fit until the budget is spent, then choose the best state on the held-out puzzles."""
        begun = self.clock()
        for number, places in enumerate(self._chunks()):
            share = self._share(begun)
            if share >= 1.0:
                break
            part = self.fitted_on.take(places[: self._left()])
            states = self._record(part, number)
            scores = Scores()
            scores.add(self._logits(self.head, states), states)
            self._learn(states, share)
            self.clouds += len(part)
            self._keep()
            self.tick(self._share(begun), scores.quality(self.settings.ranking))
        return self._choose(begun)

    def _chunks(self) -> Iterator[Tensor]:
        """Chunks of places, again and again in another order."""
        for epoch in range(1 << 30):
            yield from chunks(len(self.fitted_on), self.chunk, self.settings.sampling.seed + epoch)

    def _left(self) -> int:
        budget = self.settings.puzzles
        return self.chunk if budget is None else min(self.chunk, budget - self.clouds)

    def _share(self, begun: float) -> float:
        """Share of the budget that is spent; a budget in minutes keeps time for the held-out pass.

        A held-out cloud costs what a fitted one costs, without the optimiser.
        """
        if self.settings.puzzles is not None:
            return self.clouds / self.settings.puzzles
        assert self.settings.minutes is not None
        spent = self.clock() - begun
        ahead = spent / self.clouds * len(self.held_out) if self.clouds else 0.0
        chunk = spent / self.clouds * self.chunk if self.clouds else 0.0
        return min(1.0, (spent + chunk / 2) / max(1e-9, 60 * self.settings.minutes - ahead))

    def _record(self, part: Puzzles, number: int) -> CloudStates:
        self.runs += len(part)
        judge = judge_of(part, self.settings.target)
        return record_states(self.model, part.questions, judge, self.settings.sampling, number)

    @torch.no_grad()
    def _logits(self, head: GuideHead, states: CloudStates) -> Tensor:
        rows = range(0, len(states.step), self.rows)
        parts = [_cloud_logits(self.model, head, states, slice(i, i + self.rows)) for i in rows]
        return torch.cat(parts)

    def _learn(self, states: CloudStates, share: float) -> None:
        """Some epochs over one chunk. The step is hidden in half of the clouds."""
        settings = self.settings
        rate = LEAST_RATE + (1 - LEAST_RATE) * (1 + math.cos(math.pi * min(1.0, share))) / 2
        for group in self.optimiser.param_groups:
            group["lr"] = settings.learning_rate * rate
        size = min(settings.clouds, self.rows)
        for _ in range(settings.epochs):
            for rows in torch.randperm(len(states.step), generator=self.chance).split(size):
                rows = rows.to(self.device)
                shown = torch.rand(len(rows), generator=self.chance).to(self.device) < 0.5
                own = CloudStates(*(column[rows] for column in states))
                own = own._replace(step=own.step * shown)
                logits = _cloud_logits(self.model, self.head, own, slice(None))
                entropy, order = losses(logits, own.cost, own.alive)
                loss = entropy + settings.ranking * order
                self.optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.head.parameters(), 1.0)
                self.optimiser.step()

    def _keep(self) -> None:
        """Keep a copy of the head; every second one goes when there are too many."""
        self.snapshots.append((self.clouds, copy.deepcopy(self.head)))
        if len(self.snapshots) > SNAPSHOTS:
            self.snapshots = [self.snapshots[0], *self.snapshots[2::2]]

    def _choose(self, begun: float) -> FittedGuide:
        """Score all kept heads on the same held-out clouds; the smallest loss wins."""
        scores = [Scores() for _ in self.snapshots]
        places = torch.arange(len(self.held_out)).split(self.chunk)
        for number, part in enumerate(places):
            states = self._record(self.held_out.take(part), HELD_OUT_CHUNK + number)
            for (_, head), one in zip(self.snapshots, scores, strict=True):
                one.add(self._logits(head, states), states)
            self.tick(1.0, None)
        found = [one.quality(self.settings.ranking) for one in scores]
        best = min(range(len(found)), key=lambda place: found[place].loss)
        clouds, head = self.snapshots[best]
        sampling = self.settings.sampling
        each = sampling.particles * sampling.outer_steps * evaluations_per_step(self.model)
        return FittedGuide(
            head.eval().requires_grad_(False), found[best], found[0], self.clouds,
            len(self.held_out), clouds, self.runs * each, self.clock() - begun,
        )  # fmt: skip


def _cloud_logits(
    model: RecursiveModel, head: GuideHead, states: CloudStates, rows: slice
) -> Tensor:
    """The head's logits of whole clouds: (row, particle)."""
    state, step = states.state[rows], states.step[rows]
    steps = step[:, None].expand(state.shape[:2]).flatten()
    return head_logits(model, head, state.flatten(0, 1), steps).view(state.shape[:2])


def _check(settings: FitSettings, puzzles: int) -> None:
    if (settings.puzzles is None) == (settings.minutes is None):
        raise SettingsError("expected a budget in puzzles or in minutes, got both or neither")
    for name in ("puzzles", "minutes", "held_out"):
        value = getattr(settings, name)
        if value is not None and not value > 0:
            raise SettingsError(f"{name} must be above 0, got {value}")
    if settings.sampling.particles < 2:
        raise SettingsError(
            f"particles must be at least 2, since a guide compares them, got "
            f"{settings.sampling.particles}"
        )
    if puzzles < FEWEST:
        raise DataError(f"expected at least {FEWEST} puzzles to fit a guide on, got {puzzles}")


def settings_mapping(settings: FitSettings) -> dict[str, Any]:
    """The settings of a fit, ready for a manifest."""
    return asdict(settings)

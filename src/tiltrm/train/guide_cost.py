"""The cost of asking a learned guide, beside that of an evaluation."""

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from tiltrm.explore.cloud import Clock, Context, initial_cloud, make_problem
from tiltrm.explore.inputs import device_of
from tiltrm.explore.learned import GuideHead, head_logits, learned
from tiltrm.model.base import RecursiveModel, State, evaluations_per_step
from tiltrm.model.unfused import MathAttention, unfused_copy

REPEATS = 7  # timings, of which the median counts
WARM_UP = 2


class GuideCost(NamedTuple):
    """One asking of the guide beside one evaluation, each for one trajectory.

    The guide is asked once an outer step, which is several evaluations.
    """

    guide_flops: int  # 0 where nothing could be counted
    evaluation_flops: int
    guide_seconds: float
    evaluation_seconds: float
    evaluations_per_step: int

    @property
    def flops_share(self) -> float:
        """Share of an evaluation, in arithmetic."""
        return self.guide_flops / max(1, self.evaluation_flops)

    @property
    def seconds_share(self) -> float:
        """Share of an evaluation, in time."""
        return self.guide_seconds / self.evaluation_seconds

    def figures(self) -> dict[str, Any]:
        """Ready for JSON."""
        shares = {"flops_share": self.flops_share, "seconds_share": self.seconds_share}
        return self._asdict() | shares

    def words(self) -> str:
        """One sentence."""
        steps = self.evaluations_per_step
        return (
            f"asking the guide costs {self.flops_share:.1%} of the arithmetic and "
            f"{self.seconds_share:.1%} of the time of an evaluation; an outer step is {steps} "
            f"evaluations and one asking, so the run costs {self.seconds_share / steps:.1%} more"
        )


@torch.inference_mode()
def guide_cost(model: RecursiveModel, head: GuideHead, tokens: Tensor, particles: int) -> GuideCost:
    """Measure on clouds of these puzzles (puzzle, cell), right after the first step's start."""
    tokens = tokens.to(device_of(model, tokens))
    problem = make_problem(model, tokens, particles)
    state = initial_cloud(model, problem).state
    state = State(state.answer.contiguous(), state.latent.contiguous())
    context = Context(problem, Clock(1, head.sizes.outer_steps), state, state, model)
    guide = learned(model, head)
    asked = _seconds(lambda: guide(state, context), tokens.device)
    evaluated = _seconds(lambda: model.refine(problem.inputs, state), tokens.device)
    rows = len(tokens) * particles
    plain: RecursiveModel = unfused_copy(model)
    one = State(state.answer[:1, :1], state.latent[:1, :1])
    both = torch.cat((one.answer, one.latent), -1).flatten(0, 1)
    step = torch.ones(1, device=tokens.device)
    return GuideCost(
        _flops(lambda: head_logits(plain, head, both, step)),
        _flops(lambda: plain.refine(problem.inputs[:1], one)),
        asked / rows, evaluated / rows, evaluations_per_step(model),
    )  # fmt: skip


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    times = []
    for repeat in range(WARM_UP + REPEATS):
        begun = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if repeat >= WARM_UP:
            times.append(time.perf_counter() - begun)
    return statistics.median(times)


def _flops(work: Callable[[], object]) -> int:
    with MathAttention(), FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())

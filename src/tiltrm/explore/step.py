"""One outer step of Algorithm 1: propose, weigh, resample, each of them interchangeable."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore.batching import blocks, worker_threads, workers
from tiltrm.explore.cloud import Clock, Cloud, Context, Problem, StepInfo, take
from tiltrm.explore.guides import Score
from tiltrm.explore.keys import derive
from tiltrm.explore.noise import ANSWER, INNER, START_ANSWER, START_LATENT, Noise, Where
from tiltrm.explore.resample import Resample
from tiltrm.explore.select import Candidates
from tiltrm.explore.weights import Potential, ess, largest_beta, normalise
from tiltrm.model.base import RecursiveModel, State

RESAMPLING = 1 << 40  # takes a particle's place in the key of the resampler; no particle has it


class Weighed(NamedTuple):
    """New weights, the scores they came from, and the log-evidence of the step."""

    log_weights: Tensor  # (puzzle, particle), normalised
    score: Tensor  # (puzzle, particle)
    log_evidence: Tensor  # (puzzle,)


Propose = Callable[[State, Problem, Clock], State]
Weigh = Callable[[Cloud, Context], Weighed]


def step(
    cloud: Cloud, problem: Problem, clock: Clock, model: RecursiveModel, *,
    propose: Propose, weigh: Weigh, resample: Resample,
) -> tuple[Cloud, StepInfo]:  # fmt: skip
    """Lines 11-18 of Algorithm 1 for a batch of clouds."""
    state = propose(cloud.state, problem, clock)  # Exploration, eq. (10)
    context = Context(problem, clock, cloud.state, state, model)
    weighed = weigh(cloud, context)  # Exploitation, eq. (11)
    keys = derive(problem.keys, RESAMPLING, clock.step)
    ancestors, log_weights = resample(weighed.log_weights, keys)
    info = StepInfo(
        weighed.score, weighed.log_weights, ess(weighed.log_weights), weighed.log_evidence,
        ancestors, context,
    )  # fmt: skip
    return _continue(state, weighed.score, log_weights, ancestors), info


def _continue(state: State, score: Tensor, log_weights: Tensor, ancestors: Tensor) -> Cloud:
    """The next cloud. On a CPU an identity resampling copies nothing (a GPU would have to wait)."""
    if ancestors.device.type == "cpu":
        stay = torch.arange(ancestors.shape[-1]).expand_as(ancestors)
        if torch.equal(ancestors, stay):
            return Cloud(state, log_weights, score)
    moved = State(take(state.answer, ancestors), take(state.latent, ancestors))
    return Cloud(moved, log_weights, take(score, ancestors))


def trajectory_sampler(model: RecursiveModel, noise: Noise) -> Propose:
    """TrajectorySampler, lines 1-8 of Algorithm 1: h_(n+1) ~ K(. | h_n) (eqs. 3 to 5).

    Without noise it is `tiltrm.model.base.step`, bit for bit.
    Proved by tests/explore/test_algorithm.py::test_one_quiet_particle_is_the_model.
    """

    def propose(state: State, problem: Problem, clock: Clock) -> State:
        keys = derive(problem.keys[:, None], problem.particles, clock.step)

        def perturb(value: Tensor, site: int) -> Tensor:
            return noise(value, keys, Where(clock, site, problem.particles))

        answer = perturb(state.answer, START_ANSWER)
        latent = perturb(state.latent, START_LATENT)
        for m in range(model.inner_steps):
            latent = perturb(model.refine(problem.inputs, State(answer, latent)), INNER + m)
        return State(perturb(model.answer(State(answer, latent)), ANSWER), latent)

    return propose


def in_blocks(propose: Propose) -> Propose:
    """propose, on a CPU cut into cache-sized blocks for the worker threads (see batching.py)."""

    def blocked(state: State, problem: Problem, clock: Clock) -> State:
        if state.answer.device.type != "cpu":
            return propose(state, problem, clock)
        threads = worker_threads()
        puzzles, particles = state.answer.shape[:2]
        cut = blocks(puzzles, particles, state.answer[0, 0].numel(), threads)
        if len(cut) == 1:
            return propose(state, problem, clock)
        out = State(*(torch.empty(half.shape, dtype=half.dtype) for half in state))

        def run(block: tuple[slice, slice]) -> None:
            with torch.inference_mode():
                part = State(state.answer[block], state.latent[block])
                new = propose(part, problem.part(*block), clock)
                out.answer[block], out.latent[block] = new

        if threads == 1:
            for block in cut:
                run(block)
        else:
            list(workers(threads).map(run, cut))
        return out

    return blocked


@dataclass(frozen=True)
class Tilt:
    """w <- w exp(beta q), normalised (lines 13 and 15); weight 0 where the state is not finite."""

    guide: Score
    beta: float
    potential: Potential
    target_ess: float = 0.0  # above 0: beta is the most, and chosen for each cloud and step

    def __call__(self, cloud: Cloud, context: Context) -> Weighed:
        state, score = context.state, cloud.score
        alive = _finite(state.answer) & _finite(state.latent)
        tilt = torch.zeros_like(score)
        if self.potential.asks(*context.clock):
            score = self.guide(state, context).float()
            if score.shape != alive.shape:
                raise SettingsError(
                    f"a guide must give (puzzle, particle) = {tuple(alive.shape)} scores, "
                    f"got {tuple(score.shape)}"
                )
            alive = alive & torch.isfinite(score)
            tilt = self.potential.tilt(score, cloud.score)
            tilt = self._beta(torch.where(alive, cloud.log_weights, -torch.inf), tilt) * tilt
        log_weights = torch.where(alive, cloud.log_weights + tilt, -torch.inf)
        log_weights, log_evidence = normalise(log_weights)
        return Weighed(log_weights, torch.where(alive, score, -torch.inf), log_evidence)

    def _beta(self, log_weights: Tensor, tilt: Tensor) -> Tensor | float:
        """beta, or the one that leaves the wanted conditional ESS: (puzzle, 1)."""
        if not self.target_ess:
            return self.beta
        return largest_beta(log_weights, tilt, self.beta, self.target_ess)


def _finite(half: Tensor) -> Tensor:
    """Which particles have no NaN or infinity in this half of their state."""
    return torch.isfinite(half.sum((-2, -1), dtype=torch.float32))  # (puzzle, particle)


def drop_undecodable(cloud: Cloud, info: StepInfo) -> tuple[Cloud, StepInfo]:
    """Both with weight zero for particles whose decoder gave NaN or infinity in some cell.

    Such a particle has no answer, however sure its halting head is. Other clouds keep their
    weights bit for bit. Proved by tests/explore/test_adaptive.py.
    """
    alive = info.context.decodable
    if alive.device.type == "cpu" and bool(alive.all()):
        return cloud, info

    def without(log_weights: Tensor, alive: Tensor) -> Tensor:
        left = normalise(torch.where(alive, log_weights, -torch.inf))[0]
        return torch.where(alive.all(-1, keepdim=True), log_weights, left)

    kept = without(cloud.log_weights, take(alive, info.ancestors))
    weights = without(info.log_weights, alive)
    return cloud._replace(log_weights=kept), info._replace(log_weights=weights)


def final_candidates(
    info: StepInfo, weigh: Tilt, resample: Resample, *, ask_guide: bool = True
) -> Candidates:
    """The cloud that line 20 would vote on if this step had been the last one.

    A potential that asks its guide only at the last step is asked here, unless `ask_guide` is
    False because neither weights nor selection depend on it.
    """
    context, log_weights, score = info.context, info.log_weights, info.score
    step = context.clock.step
    if ask_guide and not weigh.potential.asks(*context.clock):
        last = replace(context, clock=Clock(step, step))
        weighed = weigh(Cloud(context.state, log_weights, score), last)
        log_weights, score = weighed.log_weights, weighed.score
    keys = derive(context.problem.keys, RESAMPLING, step)
    ancestors, log_weights = resample(log_weights, keys)
    return Candidates(take(context.answers, ancestors), log_weights, take(score, ancestors))

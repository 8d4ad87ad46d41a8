"""One outer step of Algorithm 1: propose, weigh, resample, each of them interchangeable."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore.cloud import Clock, Cloud, Context, Question, StepInfo, take
from tiltrm.explore.guides import Score
from tiltrm.explore.keys import derive
from tiltrm.explore.noise import ANSWER, INNER, START_ANSWER, START_LATENT, Noise, Where
from tiltrm.explore.resample import Resample
from tiltrm.explore.rows import blocks, workers
from tiltrm.explore.weights import Potential, ess, normalise
from tiltrm.model.base import RecursiveModel, State

RESAMPLING = 1 << 40  # stands where a particle's number does in a key, and is no particle's


class Weighed(NamedTuple):
    """What weighing gives: new weights, the score behind them, and the evidence of the step."""

    log_weights: Tensor  # (puzzle, particle), normalised
    score: Tensor  # (puzzle, particle)
    log_evidence: Tensor  # (puzzle,)


Propose = Callable[[State, Question, Clock], State]
Weigh = Callable[[Cloud, Context], Weighed]


def step(
    cloud: Cloud, question: Question, clock: Clock, decode: Callable[[Tensor], Tensor], *,
    propose: Propose, weigh: Weigh, resample: Resample,
) -> tuple[Cloud, StepInfo]:  # fmt: skip
    """Lines 11-18 of Algorithm 1 for a batch of clouds."""
    state = propose(cloud.state, question, clock)  # Exploration, eq. (10)
    context = Context(question, clock, cloud.state, state, decode)
    weighed = weigh(cloud, context)  # Exploitation, eq. (11)
    keys = derive(question.keys, RESAMPLING, clock.step)
    ancestors, log_weights = resample(weighed.log_weights, keys)
    info = StepInfo(
        weighed.score, weighed.log_weights, ess(weighed.log_weights), weighed.log_evidence,
        ancestors, context,
    )  # fmt: skip
    return _continue(state, weighed.score, log_weights, ancestors), info


def _continue(state: State, score: Tensor, log_weights: Tensor, ancestors: Tensor) -> Cloud:
    """The cloud that goes on. A CPU looks whether anybody moved; a GPU would have to wait."""
    if ancestors.device.type == "cpu":
        stay = torch.arange(ancestors.shape[-1]).expand_as(ancestors)
        if torch.equal(ancestors, stay):
            return Cloud(state, log_weights, score)
    moved = State(take(state.answer, ancestors), take(state.latent, ancestors))
    return Cloud(moved, log_weights, take(score, ancestors))


def trajectory_sampler(model: RecursiveModel, noise: Noise) -> Propose:
    """TrajectorySampler, lines 1-8 of Algorithm 1: h_(n+1) ~ K(. | h_n) (eqs. 3 to 5).

    Without noise it is `tiltrm.model.base.step`, bit for bit.
    Proved by tests/explore/test_run.py::test_one_quiet_particle_is_the_model.
    """

    def propose(state: State, question: Question, clock: Clock) -> State:
        keys = derive(question.keys[:, None], question.particles, clock.step)

        def jolt(value: Tensor, site: int) -> Tensor:
            return noise(value, keys, Where(clock, site, question.particles))

        answer = jolt(state.answer, START_ANSWER)
        latent = jolt(state.latent, START_LATENT)
        for m in range(model.inner_steps):
            latent = jolt(model.refine(question.inputs, State(answer, latent)), INNER + m)
        return State(jolt(model.answer(State(answer, latent)), ANSWER), latent)

    return propose


def in_blocks(propose: Propose, threads: int) -> Propose:
    """propose, cut into cache-sized blocks that worker threads take in turn (see rows.py)."""

    def blocked(state: State, question: Question, clock: Clock) -> State:
        puzzles, particles = state.answer.shape[:2]
        cut = blocks(puzzles, particles, state.answer[0, 0].numel(), threads)
        if len(cut) == 1:
            return propose(state, question, clock)
        out = State(*(torch.empty(half.shape, dtype=half.dtype) for half in state))

        def run(block: tuple[slice, slice]) -> None:
            with torch.inference_mode():
                part = State(state.answer[block], state.latent[block])
                new = propose(part, question.part(*block), clock)
                out.answer[block], out.latent[block] = new

        if threads == 1:
            for block in cut:
                run(block)
        else:
            list(workers(threads).map(run, cut))
        return out

    return blocked


def _finite(half: Tensor) -> Tensor:
    """Which particles have no NaN or infinity in this half of their state."""
    return torch.isfinite(half.sum((-2, -1), dtype=torch.float32))  # (puzzle, particle)


def tilted(guide: Score, beta: float, potential: Potential) -> Weigh:
    """w <- w exp(beta q), normalised (lines 13 and 15). What is not finite has weight zero."""

    def weigh(cloud: Cloud, context: Context) -> Weighed:
        state, score = context.state, cloud.score
        alive = _finite(state.answer) & _finite(state.latent)
        tilt = torch.zeros_like(score)
        if potential.asks(*context.clock):
            score = guide(state, context).float()
            if score.shape != alive.shape:
                raise SettingsError(
                    f"a guide must give (puzzle, particle) = {tuple(alive.shape)} scores, "
                    f"got {tuple(score.shape)}"
                )
            alive = alive & torch.isfinite(score)
            tilt = beta * potential.tilt(score, cloud.score)
        log_weights = torch.where(alive, cloud.log_weights + tilt, -torch.inf)
        log_weights, log_evidence = normalise(log_weights)
        return Weighed(log_weights, torch.where(alive, score, -torch.inf), log_evidence)

    return weigh

"""explore: Algorithm 1 from tokens to answers, in chunks that fit."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.explore.checks import require_whole
from tiltrm.explore.chunks import chunk_size, in_chunks
from tiltrm.explore.cloud import Clock, Cloud, Question, StepInfo, ask, begin, take
from tiltrm.explore.guides import Score, halting
from tiltrm.explore.resample import Resample
from tiltrm.explore.result import Recorder, Result, conclude, join
from tiltrm.explore.rows import in_groups, one_thread_each
from tiltrm.explore.select import Candidates
from tiltrm.explore.settings import Exploration
from tiltrm.explore.step import Propose, Weigh, in_blocks, step, tilted, trajectory_sampler
from tiltrm.explore.weights import require_weight
from tiltrm.model.base import RecursiveModel, evaluations_per_step

TOKENS = 256  # answers are uint8
Progress = Callable[[int, int], None]  # (done, total), in puzzles x outer steps
Watch = Callable[[StepInfo], None]  # called after every outer step of every chunk


class Kit(NamedTuple):
    """The three interchangeable functions of a step."""

    propose: Propose
    weigh: Weigh
    resample: Resample


def make_kit(
    model: RecursiveModel, settings: Exploration, guide: Score | None, threads: int | None
) -> Kit:
    """What the settings mean for this model; `threads` is None where blocks are of no use."""
    propose = trajectory_sampler(model, settings.make_noise(model))
    if threads is not None:
        propose = in_blocks(propose, threads)
    weigh = tilted(guide or halting(model), settings.beta, settings.make_potential())
    return Kit(propose, weigh, settings.make_resample())


def explore(
    model: RecursiveModel, tokens: Tensor, settings: Exploration | None = None, *,
    guide: Score | None = None, seed: int = 0, keys: Tensor | None = None,
    labels: Tensor | None = None, trace: bool = False, chunk: int | None = None,
    progress: Progress | None = None, watch: Watch | None = None,
) -> Result:  # fmt: skip
    """Guided stochastic exploration of a batch of puzzles (Algorithm 1).

    tokens: (puzzle, cell) ids. The guide is the model's own halting head unless one is given.
    A puzzle's result depends on the model, the settings, the seed and its key, which is a hash of
    its tokens unless `keys` (puzzle,) are given: never on the batch, its order or the chunk.
    Proved by tests/theory/test_invariance.py.
    """
    settings = settings or Exploration()
    if chunk is not None:
        require_whole("chunk", chunk, 1)
    device = device_of(model, tokens)
    tokens, keys, labels = checked(model, tokens, keys, labels)
    tokens = tokens.to(device)
    cpu = device.type == "cpu"
    with torch.inference_mode(), one_thread_each() if cpu else nullcontext(1) as threads:
        size = chunk or chunk_size(model.embed(tokens[:1]), settings.particles, threads)
        kit = make_kit(model, settings, guide, threads if cpu else None)
        total = len(tokens) * settings.outer_steps

        def run(part: slice) -> Result:
            question = ask(
                model, tokens[part], settings.particles, seed=seed,
                keys=None if keys is None else keys[part],
            )  # fmt: skip
            known = None if labels is None else labels[part].to(device)
            done = part.start * settings.outer_steps

            def tick(info: StepInfo) -> None:
                if progress is not None:
                    progress(done + info.context.clock.step * len(question.keys), total)
                if watch is not None:
                    watch(info)

            return _explore(model, question, settings, kit, known, trace, tick)

        parts = in_chunks(len(tokens), size, run)
    result = join(parts)  # outside inference mode, so that its tensors are ordinary ones
    if settings.on_degenerate == "raise":
        require_weight(result.log_weights)
    return result


def _explore(
    model: RecursiveModel, question: Question, settings: Exploration, kit: Kit,
    labels: Tensor | None, trace: bool, tick: Watch,
) -> Result:  # fmt: skip
    """The outer loop, lines 9-20, for one chunk."""
    record = Recorder(model.vocabulary, settings.entropy_every, trace)
    cloud = begin(model, question)
    for n in range(1, settings.outer_steps + 1):
        clock = Clock(n, settings.outer_steps)
        cloud, info = step(cloud, question, clock, model.decode, **kit._asdict())
        record.add(cloud, info)
        tick(info)
    return finish(model, settings, cloud, info, record, labels)


def finish(
    model: RecursiveModel, settings: Exploration, cloud: Cloud, info: StepInfo, record: Recorder,
    labels: Tensor | None = None,
) -> Result:  # fmt: skip
    """Line 20: the result of a cloud after its last step, which `info` reports."""
    answers = take(info.context.answers, info.ancestors)
    final = Candidates(answers, cloud.log_weights, cloud.score)
    chosen = settings.make_select(labels)(final)
    halt_logit = in_groups(model.halt_logit, cloud.state.answer)
    spent = settings.particles * settings.outer_steps * evaluations_per_step(model)
    return conclude(final, info, chosen, halt_logit, record, spent, labels)


def device_of(model: RecursiveModel, tokens: Tensor) -> torch.device:
    """Where the model's weights are, or the tokens if it has none."""
    weight = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    return tokens.device if weight is None else weight.device


def checked(
    model: RecursiveModel, tokens: Tensor, keys: Tensor | None, labels: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The arguments, if they fit together."""
    if model.vocabulary > TOKENS:
        raise SettingsError(
            f"a model may tell at most {TOKENS} token ids apart, since answers are kept as uint8, "
            f"got {model.vocabulary}"
        )
    if tokens.dim() != 2 or tokens.shape[1] != model.cells or len(tokens) == 0:
        raise PuzzleError(
            f"tokens must be (puzzle, {model.cells}) with at least one puzzle, "
            f"got {tuple(tokens.shape)}"
        )
    if tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch.bool:
        raise PuzzleError(f"tokens must be whole numbers, got {tokens.dtype}")
    low, high = int(tokens.min()), int(tokens.max())
    if low < 0 or high >= model.vocabulary:
        raise PuzzleError(
            f"tokens must lie in 0..{model.vocabulary - 1} for this model, got {low}..{high}"
        )
    if keys is not None and (keys.shape != tokens.shape[:1] or keys.dtype != torch.int64):
        raise PuzzleError(
            f"keys must be {len(tokens)} int64, one a puzzle, got {tuple(keys.shape)} {keys.dtype}"
        )
    if labels is not None and labels.shape != tokens.shape:
        raise PuzzleError(
            f"labels must have the shape of tokens {tuple(tokens.shape)}, got {tuple(labels.shape)}"
        )
    return tokens, keys, labels

"""explore: Algorithm 1 from tokens to answers, in chunks that fit in memory."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from tiltrm.checks import require_whole
from tiltrm.explore.batches import Batch
from tiltrm.explore.batching import chunk_size, in_chunks, single_threaded
from tiltrm.explore.cloud import make_problem
from tiltrm.explore.guides import Score
from tiltrm.explore.inputs import checked_inputs, device_of
from tiltrm.explore.result import Recorder, Result, conclude, join
from tiltrm.explore.search import Progress, Watch, fixed_search
from tiltrm.explore.weights import require_weight
from tiltrm.model.base import RecursiveModel
from tiltrm.settings import Exploration


def explore(
    model: RecursiveModel, tokens: Tensor, settings: Exploration | None = None, *,
    guide: Score | None = None, seed: int = 0, keys: Tensor | None = None,
    labels: Tensor | None = None, trace: bool = False, chunk: int | None = None,
    seconds: float = math.inf, progress: Progress | None = None, watch: Watch | None = None,
) -> Result:  # fmt: skip
    """Guided stochastic exploration of a batch of puzzles (Algorithm 1).

    Args:
        model: Any model with the six functions of `tiltrm.RecursiveModel`.
        tokens: Puzzles, (puzzle, cell) ids.
        settings: Particles, noise, beta and the rest; the paper's Sudoku settings unless given.
        guide: The score that tilts the weights; the model's halting head unless given.
        seed: Seed of the noise and of the resampling.
        keys: Keys of the puzzles' randomness, (puzzle,) int64; hashes of their tokens unless given.
        labels: Answers, (puzzle, cell), for the oracle particle.
        trace: Whether to keep every outer step.
        chunk: Puzzles to explore at once; as many as fit unless given.
        seconds: Computing time a puzzle, after which a chunk gives its results so far.
        progress: Called with (done, total) in puzzles x outer steps.
        watch: Called with the StepInfo of every outer step.

    Returns:
        The answers and their diagnostics. A puzzle's result depends on the model, the settings,
        the seed and its key, never on the batch, its order or the chunk.
        Proved by tests/theory/test_invariance.py.
    """
    settings = settings or Exploration()
    if chunk is not None:
        require_whole("chunk", chunk, 1)
    device = device_of(model, tokens)
    tokens, keys, labels = checked_inputs(model, tokens, keys, labels)
    tokens = tokens.to(device)
    search = replace(fixed_search(model, settings, guide, readout=False), seconds=seconds)
    total = len(tokens) * settings.outer_steps

    def run(part: slice) -> Result:
        own = None if keys is None else keys[part]
        problem = make_problem(model, tokens[part], settings.particles, seed=seed, keys=own)
        batch = Batch(torch.arange(len(problem.keys), device=device), problem)
        record = Recorder(
            model.vocabulary, settings.entropy_every, trace,
            always_resampled=settings.trigger == "always",
        )  # fmt: skip
        for result in search.run(batch):
            record.add(result.cloud, result.info)
            if progress is not None:
                step = result.info.context.clock.step
                progress(part.start * settings.outer_steps + step * len(problem.keys), total)
            if watch is not None:
                watch(result.info)
        known = None if labels is None else labels[part].to(device)
        return conclude(model, settings, result.cloud, result.info, record, known)

    with torch.inference_mode(), single_threaded(device) as threads:
        size = chunk or chunk_size(model.embed(tokens[:1]), settings.particles, threads)
        parts = in_chunks(len(tokens), size, run)
    found = join(parts)  # outside inference mode, so that its tensors are ordinary ones
    if settings.on_degenerate == "raise":
        require_weight(found.log_weights)
    return found

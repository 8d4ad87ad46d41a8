"""Evaluations a second of exploration, beside the ceiling: `python -m benchmarks.explore`.

Algorithm 1 with the paper's cloud on generated puzzles, in one chunk as large as a GPU gets; then
the same network calls alone. `--profile` lists the kernels that take longest. Without a GPU it runs
two puzzles, only to check itself.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.clock import ceiling, profile, seconds
from tiltrm.explore import Exploration, explore
from tiltrm.explore.batching import chunk_size
from tiltrm.model import load
from tiltrm.model.base import evaluations_per_step, step
from tiltrm.model.build import Model
from tiltrm.model.layers import SwiGLU, hidden_units
from tiltrm.model.trm import evaluation_flops
from tiltrm.tasks import by_name


def bare(model: Model, tokens: torch.Tensor, particles: int, steps: int) -> None:
    """The network calls of an exploration and nothing else."""
    with torch.inference_mode():
        inputs = model.embed(tokens.repeat_interleave(particles, 0))
        state = model.start(inputs)
        for _ in range(steps):
            state = step(model, inputs, state)


def network_flops(model: Model) -> float:
    """Operations of one evaluation, counted on the weights that the model has."""
    full = evaluation_flops(model.config)
    config = model.config
    for mlp in [module for module in model.modules() if isinstance(module, SwiGLU)]:
        inputs, hidden = mlp.down_proj.weight.shape
        rows = config.width if config.token_mixing and inputs == config.positions else (
            config.positions
        )  # fmt: skip
        full -= 6 * rows * inputs * (hidden_units(inputs, config.expansion) - hidden)
    return float(full)


def workload(model: Model, particles: int, steps: int) -> tuple[int, dict[str, Callable[[], Any]]]:
    """Evaluations of one exploration in one chunk as large as a GPU gets, and both versions."""
    device = next(model.parameters()).device
    task = by_name(model.task)
    some = torch.stack([task.generate(seed)[0] for seed in range(2)]).to(device)
    with torch.inference_mode():
        size = chunk_size(model.embed(some[:1]), particles, 1) if device.type == "cuda" else 2
    tokens = some.repeat(-(-size // len(some)), 1)[:size]
    keys = torch.arange(size, device=device)
    settings = Exploration(particles=particles, outer_steps=steps)
    return size * particles * steps * evaluations_per_step(model), {
        "explore": partial(explore, model, tokens, settings, keys=keys, chunk=size),
        "bare network": partial(bare, model, tokens, particles, steps),
    }


def main() -> None:
    """Print a line for the exploration and one for the bare network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--particles", type=int, default=16)
    parser.add_argument("--outer-steps", type=int, default=6)
    parser.add_argument("--profile", type=int, default=0, metavar="ROWS")
    parser.add_argument("--compact", action="store_true", help="without idle hidden units")
    parser.add_argument("--fp8", action="store_true", help="products in e4m3")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load(
        arguments.model, device=device, compact=arguments.compact, fp8=arguments.fp8
    )  # fmt: skip
    particles, steps = arguments.particles, arguments.outer_steps
    count, versions = workload(model, particles, steps)
    most = ceiling(device)
    print(
        f"matrix product: {most / 1e12:.2f} TFLOP/s; {count:,} evaluations, {particles} particles"
    )
    for name, work in versions.items():
        work()
        rate = count / min(seconds(work, device) for _ in range(2))
        flops = rate * network_flops(model)
        print(
            f"{name:14} {rate:12,.0f} evaluations a second, {flops / 1e12:6.1f} TFLOP/s, "
            f"{flops / most:4.0%}", flush=True,
        )  # fmt: skip
        if arguments.profile and device.type == "cuda":
            profile(work, device, arguments.profile)


if __name__ == "__main__":
    main()

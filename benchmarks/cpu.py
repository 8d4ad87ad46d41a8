"""Evaluations per second on this CPU, beside the same matrix products run bare.

`python -m benchmarks.cpu` prints for every batch the rate of the bare products (the bound), of the
network as the explorer runs it, and the share of the bound. Rounds alternate between the two, so
that a busy machine slows both; the medians of the rounds are compared. A second table has the
explorer's rate in float32, bfloat16 and int8 (channel mixing; the rest in bfloat16), each with all
hidden units and without the idle ones (`tiltrm.model.compact`); with `--accuracy N --data FILE`
also how many of N puzzles each gets right.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.accuracy import accuracy
from tiltrm.cpu_precision import avoid_illegal_instructions
from tiltrm.explore.batching import one_thread_each, workers
from tiltrm.explore.cloud import Clock, initial_cloud, make_problem
from tiltrm.explore.search import step_functions
from tiltrm.model.base import evaluations_per_step
from tiltrm.model.build import Model
from tiltrm.model.checkpoint import load
from tiltrm.model.layers import SwiGLU
from tiltrm.model.trm import TRM, evaluation_flops
from tiltrm.settings import Exploration

TRM_GFLOPS = 129.0  # TinyRecursiveModels, batch 40, 2 cores of the same kind: docs/LOG.md
WANTED = 0.70  # of the bound, at batch 16


def bare_products(model: TRM, rows: int) -> Callable[[], None]:
    """The network's matrix products on ready-made operands, and nothing else."""
    config = model.config
    lengths = {"mlp_t": rows * config.width, "mlp": rows * config.positions}
    work: list[tuple[Tensor, Tensor, Tensor]] = []
    for name, weight in model.network.named_parameters():
        _, _, which, _, _ = name.split(".")  # layers.0.mlp_t.gate_up_proj.weight
        left = torch.randn(lengths[which], weight.shape[1])
        work.append((left, weight.detach().t(), torch.empty(len(left), len(weight))))

    def run() -> None:
        with torch.inference_mode():
            for left, right, out in work:
                torch.mm(left, right, out=out)

    return run


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def shared(
    work: Callable[[int], Callable[[], None]], batch: int, threads: int
) -> Callable[[], None]:
    """The work for a batch, its rows shared out to the same worker threads that explore uses."""
    each = [work(len(part)) for part in torch.arange(batch).tensor_split(min(threads, batch))]

    def run() -> None:
        list(workers(threads).map(lambda part: part(), each))

    return run


def outer_step(model: Model, batch: int, rounds: int) -> Callable[[int], object]:
    """The explorer's outer step number n, for a cloud of `batch` particles."""
    functions = step_functions(model, Exploration(particles=batch))
    problem = make_problem(model, torch.randint(1, 11, (1, model.cells)), batch)
    cloud = initial_cloud(model, problem)
    return lambda n: functions.propose(cloud.state, problem, Clock(n, rounds))


def alternate(
    works: Mapping[str, Callable[[int], object]], rounds: int, evaluations: int
) -> dict[str, float]:
    """Median seconds per evaluation of each work; rounds alternate between them."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for n in range(rounds + 1):  # the first warms up
        for name, work in works.items():
            took = seconds(partial(work, max(n, 1)))
            times[name] += [took] if n else []
    return {name: statistics.median(values) / evaluations for name, values in times.items()}


def compare(model: TRM, batch: int, rounds: int, threads: int) -> tuple[float, float]:
    """Seconds per evaluation of the bare products and of the explorer's outer step."""
    bare = shared(lambda rows: bare_products(model, rows), batch, threads)
    calls = evaluations_per_step(model)
    works = {
        "bare": lambda _: [bare() for _ in range(calls)],
        "step": outer_step(model, batch, rounds),
    }
    per = alternate(works, rounds, calls * batch)
    return per["bare"], per["step"]


def precisions(name: str) -> dict[str, Model]:
    """The model in every precision, whole and compact."""
    kinds: dict[str, dict[str, Any]] = {
        "float32": {},
        "bfloat16": {"dtype": torch.bfloat16},
        "int8": {"dtype": torch.bfloat16, "int8": True},
    }
    return {
        kind + ", compact" * compact: load(name, compact=compact, **options)
        for compact in (False, True)
        for kind, options in kinds.items()
    }


def print_precisions(arguments: argparse.Namespace) -> None:
    """The second table."""
    models = precisions(arguments.model)
    for path, module in models["float32, compact"].named_modules():
        if isinstance(module, SwiGLU):
            print(f"{path}: {module.down_proj.weight.shape[1]} hidden units kept")
    for batch in arguments.precision_batches:
        with torch.inference_mode(), one_thread_each():
            steps = {n: outer_step(model, batch, arguments.rounds) for n, model in models.items()}
            calls = evaluations_per_step(models["float32"])
            per = alternate(steps, arguments.rounds, calls * batch)
        for name, took in per.items():
            ratio = per["float32"] / took
            print(
                f"batch {batch:2d}  {name:18} {1 / took:8.1f} evaluations/s, {ratio:5.2f} times "
                "the first",
                flush=True,
            )
    if arguments.accuracy:
        for name, model in models.items():
            print(f"{name:18} {accuracy(model, arguments.data, arguments.accuracy)}", flush=True)


def main() -> None:
    """Print the table; exit code 1 where batch 16 falls short."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 4, 16, 40])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--precision-batches", type=int, nargs="*", default=[1, 16])
    parser.add_argument("--accuracy", type=int, default=0, metavar="N", help="puzzles of --data")
    parser.add_argument("--data", type=Path, help="puzzles with labels")
    arguments = parser.parse_args()
    if arguments.accuracy and arguments.data is None:
        parser.error("--accuracy needs --data FILE")
    avoid_illegal_instructions()
    if arguments.precision_batches or arguments.accuracy:
        print_precisions(arguments)
    if not arguments.batches:
        return
    model = load(arguments.model)
    if not isinstance(model, TRM) or not model.config.token_mixing:
        raise SystemExit("benchmarks.cpu needs a TRM with token mixing")
    flops = evaluation_flops(model.config)
    print(f"{flops / 1e9:.2f} GFLOP an evaluation")
    print("batch  bare eval/s  GFLOP/s   explorer eval/s  GFLOP/s   share")
    short = False
    with torch.inference_mode(), one_thread_each() as threads:
        for batch in arguments.batches:
            bare, step = compare(model, batch, arguments.rounds, threads)
            share = bare / step
            short |= batch == 16 and share < WANTED
            print(
                f"{batch:5d}  {1 / bare:11.1f}  {flops / bare / 1e9:7.1f}   {1 / step:15.1f}  "
                f"{flops / step / 1e9:7.1f}  {100 * share:5.1f} %",
                flush=True,
            )
    print(f"{threads} threads; TinyRecursiveModels, batch 40, 2 such cores: {TRM_GFLOPS} GFLOP/s")
    if short:
        raise SystemExit(f"batch 16 reaches less than {100 * WANTED:.0f} % of the bound")


if __name__ == "__main__":
    main()

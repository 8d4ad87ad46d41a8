"""Evaluations per second on this CPU, beside the same matrix products run bare.

`python -m benchmarks.cpu` prints for every batch the rate of the bare products (the bound), of the
network as the explorer runs it, and the share of the bound. Rounds alternate between the two, so
that a busy machine slows both; the medians of the rounds are compared.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from tiltrm.explore.batching import one_thread_each, workers
from tiltrm.explore.cloud import Clock, initial_cloud, make_problem
from tiltrm.explore.search import step_functions
from tiltrm.model.base import evaluations_per_step
from tiltrm.model.checkpoint import load
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


def compare(model: TRM, batch: int, rounds: int, threads: int) -> tuple[float, float]:
    """Seconds per evaluation of the bare products and of the explorer's outer step."""
    settings = Exploration(particles=batch)
    functions = step_functions(model, settings)
    tokens = torch.randint(1, 11, (1, model.cells))
    problem = make_problem(model, tokens, batch)
    cloud = initial_cloud(model, problem)
    bare = shared(lambda rows: bare_products(model, rows), batch, threads)
    calls = evaluations_per_step(model)
    times: dict[str, list[float]] = {"bare": [], "step": []}
    bare()
    for n in range(1, rounds + 1):
        times["bare"].append(seconds(lambda: [bare() for _ in range(calls)]))
        clock = Clock(n, rounds)
        times["step"].append(
            seconds(lambda clock=clock: functions.propose(cloud.state, problem, clock))  # type: ignore[misc]
        )
    per = {name: statistics.median(values) / (calls * batch) for name, values in times.items()}
    return per["bare"], per["step"]


def main() -> None:
    """Print the table; exit code 1 where batch 16 falls short."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 16, 40])
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
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

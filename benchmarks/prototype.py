"""Algorithm 1 on a checkpoint of another code, beside what an independent code got with it.

`python -m benchmarks.prototype --model CKPT --config CONFIG --data TEST.csv.gz [--rows 1000]`
prints, for every setting, exact accuracy by weighted MAP, by best final score, and of the oracle.
"""

import argparse
import time

import torch

from tiltrm import kernels
from tiltrm.data import read
from tiltrm.explore import Exploration, Result, explore
from tiltrm.model.checkpoint import load

# (particles, noise, beta, trigger): (MAP, best final Q, oracle) of the independent code, 1,000 rows
YARDSTICK = {
    (1, 0.0, 0.0, "never"): (64.6, None, None),
    (16, 0.3, 0.25, "ess"): (78.7, 78.7, 78.7),
    (16, 0.3, 0.0, "never"): (75.6, 78.7, 78.7),
    (16, 0.5, 0.25, "ess"): (78.0, 78.0, 78.0),
    (4, 0.3, 0.25, "ess"): (71.8, 71.9, 71.9),
    (16, 0.3, 1.0, "ess"): (73.1, 73.1, 73.1),
}
SPREAD_AT = (1, 9, 17, 25, 33, 41)
SPREAD = (0.83, 1.35, 1.25, 1.23, 1.17, 1.12)


def main() -> None:
    """Run every row of the table and print ours beside theirs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--config", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this row of the table alone, from 0")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    model = load(arguments.model, config=arguments.config, device=arguments.device)
    kernels.fuse(model)
    puzzles = read(arguments.data, limit=arguments.rows)
    labels = puzzles.labels()
    print(f"{len(puzzles)} puzzles; each cell: ours (theirs), in %")
    rows = list(YARDSTICK.items())
    for setting, theirs in rows if arguments.only is None else [rows[arguments.only]]:
        particles, noise, beta, trigger = setting
        wanted = Exploration(
            particles=particles, noise=noise, beta=beta, trigger=trigger, entropy_every=0
        )
        begun = time.monotonic()
        detailed = setting == (16, 0.3, 0.25, "ess")
        result = explore(
            model, puzzles.questions, wanted, seed=arguments.seed, labels=labels, trace=detailed
        )
        ours = accuracies(result, labels)
        cells = "  ".join(
            f"{a:5.1f} ({b})" if b is not None else f"{a:5.1f}"
            for a, b in zip(ours, theirs, strict=True)
        )
        spent = int(result.evaluations.sum())
        seconds = time.monotonic() - begun
        print(
            f"S={particles:2d} noise={noise} beta={beta} {trigger:5s}  {cells}  "
            f"{spent / len(puzzles):.0f} evaluations a puzzle, {spent / seconds:.0f} a second",
            flush=True,
        )
        if detailed:
            describe(result, particles)


def accuracies(result: Result, labels: torch.Tensor) -> tuple[float, float, float]:
    """Exact accuracy of the MAP, of the best-scored particle and of the oracle, in percent."""
    assert result.oracle is not None
    best = result.scores.argmax(-1)
    rows = torch.arange(len(best))
    by_score = (result.particle_answers[rows, best] == labels).all(-1)
    by_map = (result.answers == labels).all(-1)
    oracle = result.oracle
    return tuple(100 * float(x.float().mean()) for x in (by_map, by_score, oracle))  # type: ignore[return-value]


def describe(result: Result, particles: int) -> None:
    """Spread of the guide score over the steps, ESS at the end, share of steps that resample."""
    trace = result.trace
    assert trace is not None
    spread = trace.scores.std(-1).mean(0)
    ours = " ".join(f"{float(spread[n - 1]):.2f}" for n in SPREAD_AT)
    moved = (trace.ancestors != torch.arange(particles)).any(-1).float().mean()
    print(f"    score spread at n = {SPREAD_AT}: {ours} ({SPREAD})")
    print(
        f"    ESS/S at the end {float(result.ess.mean()) / particles:.2f} (0.67), "
        f"{100 * float(moved):.1f} % of steps resample (2)"
    )


if __name__ == "__main__":
    main()

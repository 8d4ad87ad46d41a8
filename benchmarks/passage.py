"""When do noisy trajectories first call themselves right, and are they? The data behind the plan.

`python -m benchmarks.passage --model M --data VAL.csv.gz --out FILE.npz` runs every puzzle that the
noise-free trajectory leaves undecided with many independent particles, and stores for each noise
scale the first outer step at which each particle's halt logit exceeds the threshold (0: never) and
whether its answer was right then. Growing-cloud plans can be compared on that file alone.
"""

import argparse
import math
import time

import numpy as np
import torch
from torch import Tensor

from tiltrm import kernels
from tiltrm.data import read
from tiltrm.explore import Exploration, explore
from tiltrm.model.checkpoint import load


def passages(
    model: object, tokens: Tensor, labels: Tensor, settings: Exploration, above: float
) -> tuple[Tensor, Tensor]:
    """First step above the threshold, and whether right: (puzzle, particle) each."""
    result = explore(model, tokens, settings, trace=True)  # type: ignore[arg-type]
    assert result.trace is not None
    passed = result.trace.scores > -math.log1p(math.exp(-above))  # (puzzle, step, particle)
    right = (result.trace.answers == labels[:, None, None]).all(-1)
    first = passed.int().argmax(1)
    ever = passed.any(1)
    at_first = right.gather(1, first[:, None])[:, 0]
    return torch.where(ever, first + 1, 0), at_first & ever


def main() -> None:
    """One quiet run of everything, then clouds of what it leaves undecided, for every noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--particles", type=int, default=64)
    parser.add_argument("--outer-steps", type=int, default=96)
    parser.add_argument("--above", type=float, default=2.0)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.2, 0.3, 0.5, 0.7])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    model = load(arguments.model, device=arguments.device)
    kernels.fuse(model)
    puzzles = read(arguments.data, limit=arguments.limit)
    labels = puzzles.labels()
    quiet = Exploration(
        particles=1, noise=0.0, beta=0.0, trigger="never", entropy_every=0,
        outer_steps=arguments.outer_steps,
    )  # fmt: skip
    first, right = passages(model, puzzles.questions, labels, quiet, arguments.above)
    stored = {"quiet_first": first.numpy(), "quiet_right": right.numpy()}
    open_ = (first[:, 0] == 0).nonzero()[:, 0]
    decided = first[:, 0] > 0
    print(
        f"noise-free: {100 * float(decided.float().mean()):.1f} % decided, "
        f"{100 * float(right[:, 0].sum() / decided.sum()):.2f} % of them right, "
        f"mean step {float(first[decided].float().mean()):.1f}"
    )
    for noise in arguments.noise:
        begun = time.monotonic()
        noisy = Exploration(
            particles=arguments.particles, noise=noise, beta=0.0, trigger="never",
            entropy_every=0, outer_steps=arguments.outer_steps,
        )  # fmt: skip
        first, right = passages(
            model, puzzles.questions[open_], labels[open_], noisy, arguments.above
        )
        stored[f"first_{noise}"], stored[f"right_{noise}"] = first.numpy(), right.numpy()
        ever = first > 0
        reached = 100 * float(ever.any(1).float().mean())
        share = 100 * float(ever.float().mean())
        sure = 100 * float(right.sum() / ever.sum().clamp(min=1))
        print(
            f"noise {noise}: {reached:.1f} % of {len(open_)} reached by some particle, "
            f"{share:.1f} % of particles reach, {sure:.2f} % of those right, "
            f"{time.monotonic() - begun:.0f} s",
            flush=True,
        )
    np.savez_compressed(arguments.out, allow_pickle=False, **stored)


if __name__ == "__main__":
    main()

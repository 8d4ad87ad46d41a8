"""Shards made by hand: plausible numbers for any plan, without a model and in no time."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tiltrm.data import read
from tiltrm.data.splits import checksum
from tiltrm.evaluate.job import DIAGNOSE, Job
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.target import EvalTarget
from tiltrm.tasks import MAZE, SUDOKU, Task

PER_STEP = {"sudoku": 7, "maze": 5}
CEILING = {"sudoku": 0.996, "maze": 0.91}


def data(folder: Path, task: Task, count: int) -> Path:
    """A file of generated puzzles; a few different ones, over and over."""
    rows = [",".join(map(task.decode, task.generate(seed))) for seed in range(4)]
    path = folder / f"{task.name}.csv"
    path.write_text("question,answer\n" + "".join(f"{rows[n % 4]}\n" for n in range(count)))
    return path


def subject(path: Path, task: Task, split: str = "Test") -> EvalTarget:
    """As `eval_target` would make it, for weights that nobody has."""
    puzzles = read(path, task)
    weights = f"{task.name:0<16}"
    return EvalTarget(
        f"{task.name}-weights", weights, task.name, str(path), split, checksum(puzzles),
        len(puzzles),
    )  # fmt: skip


def rate(job: Job) -> float:
    """The share of puzzles that this method might solve."""
    own = job.options
    maze = job.task == "maze"
    steps = own.get("outer_steps", 48)
    base = (0.86 if maze else 0.82) * (1 - math.exp(-steps / 9))
    width = math.log2(own.get("particles", own.get("copies", 1)))
    noise = own.get("noise", 0.3)
    helps = math.exp(-(((noise - 0.32) / 0.35) ** 2))
    gain = {"deterministic": 0.02 * math.log2(max(1, steps / 48)), "unguided": 0.004 * width,
            "guided": 0.03 * width * helps, "ptrm": 0.022 * width, "halt_first": 0.034 * width,
            "symmetry": 0.02 * width}  # fmt: skip
    if job.method.startswith("adaptive"):
        depth = sum(stage[1] for stage in own["stages"])
        found = 0.75 + 0.09 * math.log10(max(1, depth)) + (0.01 if "rules" in job.method else 0)
    else:
        found = base + gain[job.method] * (0.1 if maze else 1.0)
        found -= 0.02 * max(0.0, own.get("beta", 0.25) - 0.25) * (own.get("trigger") != "never")
    return min(CEILING[job.task], max(0.02, found))


def steps(job: Job, felt: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Outer steps a puzzle: a hard one takes adaptive longer, up to all of its plan."""
    if not job.method.startswith("adaptive"):
        return np.full(len(felt), 48)
    wanted = 12 + np.maximum(0, 160 * (felt - 0.75)).astype(np.int64)
    return np.minimum(wanted, sum(stage[1] for stage in job.options["stages"]))


def cost(job: Job, felt: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Evaluations a puzzle."""
    own, per = job.options, PER_STEP[job.task]
    if job.method.startswith("adaptive"):
        width = np.repeat(*np.array([stage[:2] for stage in own["stages"]]).T)
        return per * width.cumsum()[steps(job, felt) - 1]
    most = own["outer_steps"] * per * own.get("particles", own.get("copies", 1))
    share = 0.3 if job.method == "halt_first" else 1.0
    return np.full(len(felt), int(most * share))


def solve(job: Job, count: int, task: Task) -> dict[str, Any]:
    """The columns of a job of solving: a puzzle has a difficulty, which all methods share."""
    rows = job.rows(count)
    luck = np.random.default_rng([7, job.seed, job.fold, len(job.method)])
    hard = np.random.default_rng(1).permutation(count)[rows.numpy()] / count
    felt = hard + luck.normal(0, 0.01, len(rows))
    headroom = 0.06 if job.task == "maze" else 0.004
    exact, oracle = felt < rate(job), felt < rate(job) + headroom
    last, cells = job.options.get("outer_steps", 0), task.cells
    growth = 1 - np.exp(-np.arange(1, last + 1) / 8)
    kept = job.options.get("by_step", False)
    by_step = (felt[:, None] < rate(job) * growth) | (exact[:, None] & (growth > 0.95))
    spent = steps(job, felt)
    cloud = job.options.get("particles", 1) > 1 and job.method not in ("halt_first",)
    found = {
        "puzzle": rows,
        "exact": torch.from_numpy(exact),
        "oracle": torch.from_numpy(oracle) if cloud else None,
        "shortest": torch.from_numpy(felt < rate(job) + 0.05) if job.task == "maze" else None,
        "valid": torch.from_numpy(felt < rate(job) + 0.09),
        "evaluations": torch.from_numpy(cost(job, felt)),
        "outer_steps": torch.from_numpy(spent),
        "confidence": torch.from_numpy(1 - hard).float(),
        "halt_probability": torch.from_numpy(1 - hard).float(),
        "decided_by": ["halting" if n < spent.max() else "budget" for n in spent.tolist()],
        "exact_by_step": torch.from_numpy(by_step[:, : last if kept else 0]),
        "oracle_by_step": torch.from_numpy(
            (by_step | (felt[:, None] < (rate(job) + headroom) * growth))[
                :, : last if kept and cloud else 0
            ]
        ),
    }
    return found | _cells(job, len(rows), cells if job.options.get("cells") else 0, exact, luck)


def _cells(
    job: Job, rows: int, cells: int, exact: np.ndarray[Any, Any], luck: np.random.Generator
) -> dict[str, Any]:
    base = np.where(exact, 0.02, 0.3)[:, None] * luck.gamma(1.2, 0.6, (rows, cells))
    terminal = np.clip(base * luck.uniform(0, 1.4, (rows, cells)), 0, 1)
    path = np.clip(terminal * 0.8 + np.where(exact, 0.03, 0.01)[:, None], 0, 1)
    right = exact[:, None] | (luck.random((rows, cells)) > 0.1 + 0.8 * terminal)
    free = luck.random((rows, cells)) > 0.28
    off = np.where(right, 0, luck.integers(1, 9, (rows, cells)))  # 1 - 9 is no digit: shown as ?
    return {
        "terminal_entropy": torch.from_numpy(terminal).half(),
        "path_entropy": torch.from_numpy(path).half(), "cell_right": torch.from_numpy(right),
        "free": torch.from_numpy(free), "off": torch.from_numpy(off).short(),
    }  # fmt: skip


def diagnosis(job: Job) -> dict[str, Any]:
    """What `tiltrm diagnose` would have written; the hypothesis fails as it does in truth."""
    maze, steps = job.task == "maze", job.options["outer_steps"]
    n = np.arange(1, steps + 1)
    wide = 0.03 if maze else 1.0
    spread = wide * (0.6 + 0.5 * np.exp(-n / 20))
    gap = (0.02 if maze else 3.0) * (1 - np.exp(-n / 6))
    right = -(0.6 if maze else 0.05) - 2 * np.exp(-n / 4)
    tubes = [_tube(noise, alpha, 4 if maze else 6) for noise in job.options["noises"]
             for alpha in (0.5, 1.0, 1.5)]  # fmt: skip
    study = {
        "bound": (job.options["beta"] / 2 * spread).tolist(), "spread": spread.tolist(),
        "widest_spread": spread.tolist(), "moved": (0.4 * spread).tolist(),
        "ess": np.full(steps, 0.9).tolist(), "gap": [None, *gap.tolist()[1:]],
        "auroc": np.full(steps, 0.5 if maze else 0.99).tolist(),
        "shift": (0.1 * gap).tolist(), "beta": job.options["beta"],
        "score_right": right.tolist(), "score_right_std": np.full(steps, 0.2).tolist(),
        "score_wrong": (right - gap).tolist(), "score_wrong_std": np.full(steps, 0.6).tolist(),
    }  # fmt: skip
    return {"stability": {"rho": {"power iteration": {"mean": 5.2, "largest": 8.3, "below_one": 0},
                                  "secant, alpha 1.5": {"mean": 0.3, "largest": 0.4,
                                                        "below_one": 1.0}},
                          "tubes": tubes},
            "alignment": {"halting": study}, "puzzles": 64}  # fmt: skip


def _tube(noise: float, alpha: float, inner: int) -> dict[str, Any]:
    stays = 1 / (1 + math.exp(30 * (noise / alpha - 0.75)))
    inside = [stays * (noise / alpha) ** 2 * (1 + 0.15 * m) for m in range(inner)]
    limit = [(noise / alpha) ** 2 * (1.25 - 0.25 * 0.2**m) for m in range(inner)]
    return {
        "noise": noise, "alpha": alpha, "states": 16, "survival": stays, "deviation": inside,
        "deviation_there": inside, "bound": None, "exit_bound": None, "secant_bound": limit,
        "states_with_bound": 16, "first_exit": [],
        "exceeds_secant_bound": any(v > most for v, most in zip(inside, limit, strict=True)),
        "hypothesis": "rho >= 1 at 16 of 16 states (random secants see it at 0): the hypothesis "
        "of Prop. 5.1 fails",
    }  # fmt: skip


def fill(store: Store, jobs: list[Job], counts: dict[str, int]) -> None:
    """Write every shard that is missing; `counts` are the puzzles by task."""
    tasks = {"sudoku": SUDOKU, "maze": MAZE}
    for job in store.missing(jobs):
        if job.kind == DIAGNOSE:
            columns: dict[str, Any] = {"figures": [json.dumps(diagnosis(job))]}
        else:
            columns = solve(job, counts[job.task], tasks[job.task])
        store.write(job, columns, {})

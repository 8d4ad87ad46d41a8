"""Which plan of restarts is cheapest? Every plan is tried on the same recorded trajectories.

`python -m benchmarks.restarts --data EXTRA.csv.gz --save T.npz` follows, for every puzzle, one
quiet trajectory and many noisy ones that see the puzzle under symmetries, and notes the halt logit
and whether the answer is right after every outer step. `--load T.npz` then plays plans on them: a
stage is a number of fresh trajectories for a number of steps, and the first halt logit above the
bound ends the puzzle. Prints the plans that no other beats, or with `--plan 1x20 2x16*4` that one,
stage by stage. Choose on extra or val, never on Test.
"""

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch

from tiltrm.data import Puzzles, read
from tiltrm.explore import Exploration
from tiltrm.explore.cloud import Clock, ask, begin
from tiltrm.explore.rows import in_groups
from tiltrm.explore.run import make_kit
from tiltrm.explore.step import step
from tiltrm.model.build import Model
from tiltrm.opening import open_model
from tiltrm.tasks.base import views

EVALUATIONS = 7  # of one outer step
CHUNK = 8192  # trajectories at once
QUIET = 96  # outer steps of the quiet trajectory
Array = numpy.ndarray[Any, Any]
Plan = tuple[tuple[int, int], ...]  # (fresh trajectories, outer steps) after the quiet beginning


@dataclass(frozen=True)
class Tracks:
    """Halt logits and right answers after every outer step."""

    logits: Array  # (puzzle, trajectory, step)
    right: Array  # the same, bool


def follow(model: Model, puzzles: Puzzles, count: int, steps: int, noise: float) -> Tracks:
    """`count` trajectories of every puzzle, each under a symmetry of its own; one is left as is."""
    device = model.embedding.device
    settings = Exploration(particles=count, noise=noise, beta=0.0, trigger="never")
    kit = make_kit(model, settings, None, None)
    seen = views(puzzles.task, count, seed=1).on(device, model.vocabulary)
    logits, right = [], []
    size = max(1, CHUNK // count)
    for first in range(0, len(puzzles), size):
        part = puzzles.take(slice(first, first + size))
        labels = part.labels().to(device)[:, None]
        question = ask(model, part.questions.to(device), count)
        if count > 1:
            question = question.seen(model, seen)
        cloud, found = begin(model, question), []
        for n in range(1, steps + 1):
            cloud, info = step(cloud, question, Clock(n, steps), model.decode, **kit._asdict())
            halt = in_groups(model.halt_logit, info.context.state.answer)
            found.append((halt, (info.context.answers == labels).all(-1)))
        logits.append(torch.stack([halt for halt, _ in found], -1).half().cpu().numpy())
        right.append(torch.stack([good for _, good in found], -1).cpu().numpy())
    return Tracks(numpy.concatenate(logits), numpy.concatenate(right))


def play(
    quiet: Tracks, fresh: Tracks, first: int, plan: Plan, above: float
) -> list[tuple[float, float]]:
    """The quiet one for `first` steps, then the plan: accuracy and mean evaluations after every
    stage, had it been the last.
    """
    count = len(quiet.logits)
    correct, spent = numpy.zeros(count, bool), numpy.zeros(count)
    open_ = numpy.arange(count)
    found = []
    for tracks, which, steps in [(quiet, slice(0, 1), first), *_stages(fresh, plan)]:
        logits: Array = tracks.logits[open_, which, :steps]
        hit: Array = numpy.logical_or.reduce(logits > above, axis=1)  # (puzzle, step)
        decided = hit.any(1)
        last = numpy.where(decided, hit.argmax(1), steps - 1)
        spent[open_] += EVALUATIONS * logits.shape[1] * (last + 1)
        rows = numpy.arange(len(open_))
        best = logits[rows, :, last].argmax(1)
        correct[open_] = tracks.right[open_, which][rows, best, last]
        open_ = open_[~decided]
        found.append((float(correct.mean()), float(spent.mean())))
    return found


def _stages(fresh: Tracks, plan: Plan) -> Iterator[tuple[Tracks, slice, int]]:
    used = 0
    for particles, steps in plan:
        yield fresh, slice(used, used + particles), steps
        used += particles


def plans(trajectories: int, longest: int) -> Iterator[Plan]:
    """Stages of one shape, then of another, until the trajectories are used up; every beginning."""
    shapes = [(s, n) for s in (1, 2, 4, 8) for n in (8, 10, 12, 16, 20) if n <= longest]
    yield ()
    for one, other in itertools.product(shapes, shapes):
        for times in (2, 4, 8):
            rest = (trajectories - times * one[0]) // other[0]
            if rest > 0 and (one != other or times == 2):
                yield (one,) * times + (other,) * rest


def name(first: int, plan: Plan) -> str:
    """1x24 4x12*3 ..."""
    groups = [(shape, len(list(same))) for shape, same in itertools.groupby(plan)]
    return " ".join([f"1x{first}", *(f"{s}x{n}*{times}" for (s, n), times in groups)])


def main() -> None:
    """Record, or read and search."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--data")
    parser.add_argument("--first", type=int, default=0, help="the first puzzle, from 0")
    parser.add_argument("--limit", type=int, default=1000, help="how many of them")
    parser.add_argument("--trajectories", type=int, default=32)
    parser.add_argument("--outer-steps", type=int, default=30)
    parser.add_argument("--noise", type=float, default=0.3)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--load", type=Path)
    parser.add_argument("--above", type=float, nargs="+", default=[4.0])
    parser.add_argument("--plan", nargs="+", metavar="SxN*TIMES")
    arguments = parser.parse_args()
    if arguments.load is None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = open_model(arguments.model, device)
        last = arguments.first + arguments.limit
        puzzles = read(arguments.data).take(slice(arguments.first, last))
        with torch.inference_mode():
            quiet = follow(model, puzzles, 1, QUIET, 0.0)
            fresh = follow(
                model, puzzles, arguments.trajectories, arguments.outer_steps, arguments.noise
            )
    else:
        saved = numpy.load(arguments.load)
        quiet = Tracks(saved["quiet_logits"], saved["quiet_right"])
        fresh = Tracks(saved["logits"], saved["right"])
    if arguments.save is not None:
        numpy.savez_compressed(
            arguments.save, quiet_logits=quiet.logits, quiet_right=quiet.right,
            logits=fresh.logits, right=fresh.right,
        )  # fmt: skip
        return
    if arguments.plan is None:
        search(quiet, fresh, arguments.above)
    else:
        show(quiet, fresh, parse(arguments.plan), arguments.above)


def show(quiet: Tracks, fresh: Tracks, whole: Plan, aboves: list[float]) -> None:
    """Play one plan, its first stage the quiet one's, and print it stage by stage."""
    (_, first), *plan = whole
    for above in aboves:
        stages = play(quiet, fresh, first, tuple(plan), above)
        said = " ".join(f"{100 * accuracy:.1f}@{spent:.0f}" for accuracy, spent in stages)
        lost = 100 * wrong(fresh, above)
        print(f"above {above:g}: {said}; {lost:.2f} % of the decided are wrong")


def parse(words: list[str]) -> Plan:
    """1x20 2x16*4 -> stages."""
    parts = [word.replace("*", "x").split("x") for word in words]
    return tuple(
        (int(s), int(n)) for s, n, *times in parts for _ in range(int((times or ["1"])[0]))
    )


def wrong(fresh: Tracks, above: float) -> float:
    """Share of wrong answers among the trajectories that are decided, each at its first chance."""
    hit = fresh.logits > above
    decided = hit.any(-1)
    first = hit.argmax(-1)[..., None]
    right = numpy.take_along_axis(fresh.right, first, -1)[..., 0]
    return float(1.0 - right[decided].mean())


def search(quiet: Tracks, fresh: Tracks, aboves: list[float]) -> None:
    """Play every plan and print those that none beats, the cheapest first."""
    found = set()
    for above, first in itertools.product(aboves, (8, 12, 16, 20, 24, 32)):
        for plan in plans(*fresh.logits.shape[1:]):
            for last, (accuracy, spent) in enumerate(play(quiet, fresh, first, plan, above)):
                found.add((spent, -accuracy, f"{name(first, plan[:last])} above {above:g}"))
    best = 1.0
    print("exact %  evaluations  plan")
    for spent, lost, title in sorted(found):
        if lost < best:
            best = lost
            print(f"{-100 * lost:7.2f} {spent:12.1f}  {title}")


if __name__ == "__main__":
    main()

"""Which plan of restarts is cheapest? Every plan is tried on the same recorded trajectories.

`python -m benchmarks.restarts --data EXTRA.csv.gz --save T.npz` follows, for every puzzle, one
quiet trajectory and many noisy ones that see the puzzle under symmetries (benchmarks.tracks).
`--load T.npz` then plays plans on them: a stage is a number of fresh trajectories for a number of
steps, and the first halt logit above the bound ends the puzzle. Prints the plans that no other
beats, or with `--plan 1x20 2x16*4` that one, stage by stage. With `--after 1x20 2x16*4` only the
puzzles that this leaves open are followed, without a quiet trajectory, and plans go on from there.
Choose on extra or val, never on Test.
"""

import argparse
import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy
import torch

from benchmarks.trajectories import (
    QUIET,
    Array,
    Plan,
    Trajectories,
    follow,
    left_open,
    load,
    save,
)
from tiltrm.data import read
from tiltrm.device import choose
from tiltrm.errors import SettingsError
from tiltrm.explore.plan import Stage, format_stages, parse_stages
from tiltrm.model import load as load_model

EVALUATIONS = 7  # of one outer step


def play(
    quiet: Trajectories | None, fresh: Trajectories, plan: Plan, above: float
) -> list[tuple[float, float, float]]:
    """Accuracy, share left open and mean evaluations after every stage, had it been the last.

    The first stage is the quiet one's, where there is one.
    """
    count = len(fresh.logits)
    correct, spent = numpy.zeros(count, bool), numpy.zeros(count)
    open_ = numpy.arange(count)
    found = []
    for tracks, which, steps in _stages(quiet, fresh, plan):
        logits: Array = tracks.logits[open_, which, :steps]
        hit: Array = numpy.logical_or.reduce(logits > above, axis=1)  # (puzzle, step)
        decided = hit.any(1)
        last = numpy.where(decided, hit.argmax(1), steps - 1)
        spent[open_] += EVALUATIONS * logits.shape[1] * (last + 1)
        rows = numpy.arange(len(open_))
        best = logits[rows, :, last].argmax(1)
        correct[open_] = tracks.right[open_, which][rows, best, last]
        open_ = open_[~decided]
        found.append((float(correct.mean()), len(open_) / count, float(spent.mean())))
    return found


def _stages(
    quiet: Trajectories | None, fresh: Trajectories, plan: Plan
) -> Iterator[tuple[Trajectories, slice, int]]:
    used = 0
    for number, (particles, steps) in enumerate(plan):
        if quiet is not None and number == 0:
            yield _recorded(quiet, slice(0, particles), steps)
        else:
            yield _recorded(fresh, slice(used, used + particles), steps)
            used += particles


def _recorded(tracks: Trajectories, which: slice, steps: int) -> tuple[Trajectories, slice, int]:
    """The same, if there is as much; SettingsError otherwise."""
    count, longest = tracks.logits.shape[1:]
    if which.stop > count or steps > longest:
        raise SettingsError(
            f"{which.stop - which.start}x{steps} must be among what was recorded, {count} "
            f"trajectories of {longest} steps of which {which.start} are used, got {which.stop} "
            f"of {steps}; record more, or play a smaller plan"
        )
    return tracks, which, steps


def plans(trajectories: int, longest: int) -> Iterator[Plan]:
    """Stages of one shape, then of another, until the trajectories are used up; every beginning."""
    shapes = [(s, n) for s in (1, 2, 4, 8) for n in (8, 10, 12, 16, 20) if n <= longest]
    yield ()
    for one, other in itertools.product(shapes, shapes):
        for times in (2, 4, 8):
            rest = (trajectories - times * one[0]) // other[0]
            if rest > 0 and (one != other or times == 2):
                yield (one,) * times + (other,) * rest


def main() -> None:
    """Record, or read and search."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--data")
    parser.add_argument("--first", type=int, default=0, help="the first puzzle, from 0")
    parser.add_argument("--limit", type=int, default=1000, help="how many of them")
    parser.add_argument("--after", nargs="+", metavar="SxN*TIMES", help="only what this leaves")
    parser.add_argument("--trajectories", type=int, default=32)
    parser.add_argument("--outer-steps", type=int, default=30)
    parser.add_argument("--noise", type=float, default=0.3, help="0.3 in --after all the same")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--load", type=Path)
    parser.add_argument("--above", type=float, nargs="+", default=[6.0])
    parser.add_argument("--plan", nargs="+", metavar="SxN*TIMES")
    parser.add_argument("--orders", type=int, default=1, help="of the trajectories, for the mean")
    arguments = parser.parse_args()
    if not (arguments.data or arguments.load):
        parser.error("give puzzles with --data, or what was recorded with --load")
    quiet, fresh = load(arguments.load) if arguments.load else record(arguments)
    if arguments.save is not None:
        save(arguments.save, quiet, fresh)
    elif arguments.plan is not None:
        try:
            show(quiet, fresh, parse(arguments.plan), arguments.above, arguments.orders)
        except SettingsError as error:
            parser.error(str(error))
    elif quiet is not None:
        search(quiet, fresh, arguments.above)
    else:
        parser.error("trajectories that go on after a plan need --plan or --save")


def record(arguments: argparse.Namespace) -> tuple[Trajectories | None, Trajectories]:
    """Follow what is asked for."""
    model = load_model(arguments.model, device=choose("auto"))
    last = arguments.first + arguments.limit
    puzzles = read(arguments.data).take(slice(arguments.first, last))
    with torch.inference_mode():
        quiet = None
        if arguments.after:
            puzzles = left_open(model, puzzles, parse(arguments.after), arguments.above[0], 0.3)
        else:
            quiet = follow(model, puzzles, 1, QUIET, 0.0)
        count, steps = arguments.trajectories, arguments.outer_steps
        return quiet, follow(model, puzzles, count, steps, arguments.noise)


def show(
    quiet: Trajectories | None, fresh: Trajectories, plan: Plan, aboves: list[float], orders: int
) -> None:
    """Play one plan in several orders of the trajectories, and print the means stage by stage."""
    for above in aboves:
        draw = numpy.random.default_rng(0)
        runs = [play(quiet, fresh, plan, above)]
        runs += [play(quiet, fresh.shuffled(draw), plan, above) for _ in range(orders - 1)]
        stages = numpy.mean(runs, axis=0).tolist()
        said = " ".join(f"{100 * accuracy:.1f}@{spent:.0f}" for accuracy, _, spent in stages)
        print(
            f"above {above:g}: {said}; {100 * stages[-1][1]:.2f} % left open, "
            f"{100 * wrong(fresh, above):.2f} % of decided trajectories are wrong"
        )


def parse(words: list[str]) -> Plan:
    """1x20 2x16*4 -> (trajectories, steps) of every stage."""
    stages = parse_stages(" ".join(words))
    return tuple((stage.particles, stage.outer_steps) for stage in stages)


def wrong(fresh: Trajectories, above: float) -> float:
    """Share of wrong answers among the trajectories that are decided, each at its first chance.

    NaN where none is.
    """
    hit = fresh.logits > above
    decided = hit.any(-1)
    first = hit.argmax(-1)[..., None]
    right = numpy.take_along_axis(fresh.right, first, -1)[..., 0]
    return float(1.0 - right[decided].mean()) if decided.any() else math.nan


def search(quiet: Trajectories, fresh: Trajectories, aboves: list[float]) -> None:
    """Play every plan and print those that none beats, the cheapest first."""
    found = set()
    for above, first in itertools.product(aboves, (8, 12, 16, 20, 24, 32)):
        for rest in plans(*fresh.logits.shape[1:]):
            plan = ((1, first), *rest)
            for last, (accuracy, _, spent) in enumerate(play(quiet, fresh, plan, above), 1):
                stages = tuple(Stage(*stage) for stage in plan[:last])
                title = f"{format_stages(stages)} above {above:g}"
                found.add((spent, -accuracy, title))
    best = 1.0
    print("exact %  evaluations  plan")
    for spent, lost, title in sorted(found):
        if lost < best:
            best = lost
            print(f"{-100 * lost:7.2f} {spent:12.1f}  {title}")


if __name__ == "__main__":
    main()

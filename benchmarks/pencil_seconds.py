"""Seconds that `tiltrm solve ADDRESS` takes on a CPU, as a new user types it, by type of puzzle.

`python -m benchmarks.pencil_seconds --data golden.csv --limit 10` starts one process for every
puzzle, one after the other, and prints a row for every type: how many had a valid solution, and the
median and the longest time. Times are those of the whole command, from its start to its end, so
they hold the loading of torch and of the model.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.pencil import by_type, read
from tiltrm.tasks.pencil import PENCIL


class TimedCommand(NamedTuple):
    """One `tiltrm solve ADDRESS`."""

    seconds: float  # the whole command
    searching: float  # of them, those that the command reports for its search
    solved: bool


def solve(address: str, options: Sequence[str]) -> TimedCommand:
    """Run the command in a process of its own; RuntimeError where it printed no record."""
    command = (sys.executable, "-m", "tiltrm", "solve", address, "--json", "--device", "cpu")
    begun = time.perf_counter()
    done = subprocess.run((*command, *options), capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    if not done.stdout:
        raise RuntimeError(f"{address}: exit code {done.returncode}; {done.stderr.strip()}")
    record = json.loads(done.stdout)
    return TimedCommand(seconds, record["seconds"] or 0.0, record["solved_by_rules"] is True)


def row(name: str, runs: Sequence[TimedCommand]) -> str:
    """A row of the table in Markdown."""
    times = [run.seconds for run in runs]
    return (
        f"| {name} ({len(runs)}) | {sum(run.solved for run in runs)} | {median(times):.1f} | "
        f"{median(run.searching for run in runs):.1f} | {max(times):.1f} |"
    )


def main() -> None:
    """The command of the docstring."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--limit", type=int, help="puzzles of each type")
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="of tiltrm solve")
    given = parser.parse_args()
    puzzles = by_type(read(given.data, given.limit))
    print(
        "\n| type (puzzles) | solved | median s | of it searching | longest s |\n"
        + "|---" * 5
        + "|"
    )
    everything = []
    for name, own in puzzles.items():
        runs = [solve(PENCIL.address(each), given.options) for each in own.questions]
        everything += runs
        print(row(name, runs), flush=True)
    print(row("all", everything))


if __name__ == "__main__":
    main()

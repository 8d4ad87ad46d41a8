"""Make the paper's tables and figures again, and the frontier, beside the paper's numbers."""

import argparse
from pathlib import Path

from tiltrm.cli.flags import RAY
from tiltrm.report.names import ALL, NAMES

EPILOG = (
    "Results are kept in --store: a run that was killed goes on where it stopped, and one that is "
    "done is only drawn. The paper's protocol takes hours of a large GPU; --quick takes a quarter "
    "of an hour of one, --tiny seconds of a CPU."
)
MODEL, DATA = "sudoku-extreme", "sudoku-extreme/test"
STORE, OUT = "reproduction/store", "reproduction"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`tiltrm reproduce`'s flags."""
    parser.epilog = EPILOG
    add = parser.add_argument
    add("items", nargs="+", metavar="ITEM", help=f"{', '.join(NAMES)}, or {ALL}; what is "
        "named first is computed first")  # fmt: skip
    add("--store", metavar="DIR", default=STORE, help=f"folder that keeps the results ({STORE})")
    add("--out", metavar="DIR", type=Path, default=Path(OUT), help=f"folder for the page ({OUT})")
    add("--model", metavar="M", help=f"bundled name, folder or checkpoint ({MODEL})")
    add("--data", metavar="F", help=f"the Test puzzles, with answers ({DATA})")
    add("--val", metavar="F", help="puzzles for the sweeps (those of --data)")
    add("--maze", metavar="M", help="a model for mazes (maze-hard where it is bundled)")
    add("--maze-data", metavar="F", help="mazes with answers (maze-hard/test)")
    add("--metrics", metavar="F", type=Path, action="append", default=[], help="metrics.jsonl of a "
        "training run, for fig5; again for another run")  # fmt: skip
    add("--scan", metavar="F", type=Path, help="scan.jsonl of a training run, for fig8")
    add("--frontier-puzzles", metavar="N", type=int, help="puzzles of Sudoku's frontier (2,000)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="15 minutes of one H200")
    size.add_argument("--tiny", action="store_true", help="seconds of a CPU, with random weights "
                      "where no model is named: shows only that everything runs")  # fmt: skip
    add("--choose", action="store_true", help="choose guided's noise and beta on --val first, and "
        "write down what was chosen from what; the paper's are taken otherwise")  # fmt: skip
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--compute-only", action="store_true", help="fill the store and draw "
                      "nothing; needs none of the extras")  # fmt: skip
    part.add_argument("--draw-only", action="store_true", help="compute nothing and draw what the "
                      "store has, as far as it goes")  # fmt: skip
    add("--ray", nargs="?", const="", metavar="ADDRESS", help=RAY)
    add("--device", default="auto", help="auto, cpu or cuda")


def run(arguments: argparse.Namespace) -> int:
    """Compute what is missing, then draw."""
    from tiltrm.cli.reproducing import reproduce  # here, since it loads torch's compiler

    return reproduce(arguments)

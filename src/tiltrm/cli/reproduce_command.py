"""Make the paper's tables and figures again, and the frontier, beside the paper's numbers."""

import argparse
from pathlib import Path

from tiltrm.cli.flags import RAY
from tiltrm.report import ALL, ITEM_NAMES

EPILOG = (
    "Results are kept in --store: a run that was killed continues where it stopped, and one that "
    "is complete is only drawn. The paper's protocol takes hours on a large GPU, --quick about 15 "
    "minutes, --tiny seconds on a CPU."
)
MODEL, DATA = "sudoku-extreme", "sudoku-extreme/test"
STORE, OUT = "reproduction/store", "reproduction"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`tiltrm reproduce`'s flags."""
    parser.epilog = EPILOG
    add = parser.add_argument
    add("items", nargs="+", metavar="ITEM", help=f"{', '.join(ITEM_NAMES)}, or {ALL}; "
        "items are computed in the order in which they are named")  # fmt: skip
    add("--store", metavar="DIR", default=STORE, help=f"folder that keeps the results ({STORE})")
    add("--out", metavar="DIR", type=Path, default=Path(OUT), help=f"folder for the page ({OUT})")
    add("--model", metavar="M", help=f"bundled name, folder or checkpoint ({MODEL})")
    add("--data", metavar="F", help=f"the Test puzzles, with answers ({DATA})")
    add("--val", metavar="F", help="puzzles for the sweeps (the puzzles of --data)")
    add("--maze", metavar="M", help="a model for mazes (maze-hard where it is bundled)")
    add("--maze-data", metavar="F", help="mazes with answers (maze-hard/test)")
    add("--metrics", metavar="F", type=Path, action="append", default=[], help="metrics.jsonl of a "
        "training run, for fig5; again for another run")  # fmt: skip
    add("--scan", metavar="F", type=Path, help="scan.jsonl of a training run, for fig8")
    add("--frontier-puzzles", metavar="N", type=int, help="puzzles of Sudoku's frontier (2,000)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="fewer seeds and puzzles: 15 minutes on one H200"
    )
    size.add_argument("--tiny", action="store_true", help="seconds on a CPU, with random "
                      "weights and small puzzles unless --model and --data are given: shows only "
                      "that everything runs")  # fmt: skip
    add("--choose", action="store_true", help="choose guided's noise and beta on --val first, and "
        "write the choice and its alternatives to the store; the default is the paper's "
        "setting")  # fmt: skip
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--compute-only", action="store_true", help="fill the store and draw "
                      "nothing; needs no optional dependency")  # fmt: skip
    part.add_argument("--draw-only", action="store_true", help="compute nothing and draw "
                      "whatever the store has")  # fmt: skip
    add("--ray", nargs="?", const="", metavar="ADDRESS", help=RAY)
    add("--device", default="auto", help="auto, cpu or cuda")


def run(arguments: argparse.Namespace) -> int:
    """Compute the missing results, then draw."""
    from tiltrm.cli.reproducing import reproduce  # here, since this import takes seconds

    return reproduce(arguments)

"""The flags of every command. Nothing slow is imported here, so that --help is fast."""

import argparse
from pathlib import Path

TASKS = "sudoku, maze, sudoku4, or one's own as FILE.py:NAME"
RAY = (
    "spread the work over a Ray cluster: HOST:PORT, auto for the one here, local for a new one "
    "(RAY_ADDRESS, else local)"
)

# Copies of constants in modules that import torch; tests/cli/test_flags.py compares them.
METHODS = ("adaptive", "guided", "unguided", "deterministic", "ptrm")
EVALUATED = (
    "deterministic", "guided", "unguided", "ptrm", "halt_first", "symmetry", "adaptive",
    "adaptive_rules",
)  # fmt: skip
USUALLY_EVALUATED = ("deterministic", "unguided", "guided", "adaptive")
FOLDS = 5
DIAGNOSIS_PARTICLES, DIAGNOSIS_STEPS = 6, 9
CALIBRATION_STEPS = 24


def add_solve(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm solve`."""
    parser.epilog = (
        "Exit code: 0 when every answer keeps the rules or was withheld, 1 when one breaks them, "
        "2 when a puzzle or anything else typed is wrong (the other puzzles are still solved)."
    )
    add = parser.add_argument
    add("puzzles", nargs="*", metavar="PUZZLE", help="81 cells, . for a blank; an extreme sample "
        "where none is given")  # fmt: skip
    add("--file", metavar="F", help="text or CSV file of puzzles; - is standard input")
    add("--model", metavar="M", help="bundled name, folder or checkpoint (sudoku-extreme)")
    _add_config(parser)
    add("--task", help=f"{TASKS} (the model's own)")
    add("--method", default=METHODS[0], help=f"{', '.join(METHODS)} ({METHODS[0]})")
    add("--particles", type=int, metavar="S", help="size of the cloud; adaptive: the largest, "
        "without the stages beyond it")  # fmt: skip
    add("--noise", type=float, metavar="SIGMA", help="scale of the noise; adaptive: of all its "
        "stages, where Sudoku has 0.3 and then 0.6")  # fmt: skip
    add("--beta", type=float, help="strength of the tilt towards the guide")
    add("--resample-below", type=float, metavar="TAU", help="resample below this share of ESS; "
        "adaptive: without other views then")  # fmt: skip
    add("--outer-steps", type=int, metavar="N", help="depth; adaptive: the most a puzzle gets")
    add("--guide", metavar="G", help="halting, confidence, residual, rules, shortest, or a "
        "sum such as halting+2*rules")  # fmt: skip
    add("--rules", action="store_true", help="the rules of the task decide, and nothing else "
        "(adaptive)")  # fmt: skip
    add("--seed", type=int, default=0, help="of the noise (0)")
    _add_device(parser)
    add("--abstain", type=float, metavar="P", help="withhold answers of a confidence "
        "below P, and those that break the rules")  # fmt: skip
    add("--json", action="store_true", help="one object a line, a puzzle each, in their order")
    add("--html", metavar="FILE", help="write the run as a page to look at (one puzzle)")
    add("--watch", action="store_true", help="show the cloud while it runs (one puzzle)")
    add("--no-color", action="store_true", help="no colours; the variable NO_COLOR does the same")


def add_import(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm import`."""
    add = parser.add_argument
    add("checkpoint", metavar="CKPT", help="a file of TinyRecursiveModels, nano-trm or HRM")
    add("--out", type=Path, required=True, metavar="DIR", help="the folder to write")
    add("--config", metavar="F", help="its JSON or YAML configuration, where not beside it")
    add("--task", help="sudoku or maze, where the sizes do not tell")
    add("--json", action="store_true", help="what was inferred, as one object")


def add_data(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm data`."""
    parser.epilog = "Exit code: 0 when every puzzle is right, 2 when one is not."
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="CSV or text, a folder, or a dataset's name")
    add("--task", help=f"{TASKS} (told from the content)")
    add("--generate", type=int, metavar="N", help="make N puzzles of one's own")
    add("--out", type=Path, metavar="F", help="the new CSV file for them")
    add("--seed", type=int, help="of the generator (0)")
    add("--json", action="store_true", help="one object")


def add_train(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm train`."""
    parser.epilog = (
        "Exit code: 0 when the planned minutes or steps, or those of --piece-minutes, are done; "
        "130 or 143 after SIGINT or SIGTERM, with everything saved; 2 with one sentence when "
        "something is wrong. For several GPUs, start it with torchrun."
    )
    add = parser.add_argument
    add("--task", default="sudoku", help=f"{TASKS} (sudoku)")
    add("--preset", default="fast", help="fast, paper, fresh (mazes), toy (sudoku4), small (any "
        "task), or a TOML file")  # fmt: skip
    add("--data", help="training puzzles with answers (the public set)")
    add("--val", help="validation puzzles (a tenth of the training puzzles)")
    add("--out", type=Path, help="folder of the run (runs/TASK-PRESET)")
    add("--resume", action="store_true", help="go on from the saved state")
    add("--start", type=Path, metavar="FOLDER", help="begin with the weights of this model")
    plan = parser.add_mutually_exclusive_group()
    plan.add_argument("--minutes", type=float, help="plan the run for this many minutes")
    plan.add_argument("--steps", type=int, help="plan the run for this many steps")
    add("--piece-minutes", type=float, metavar="MINUTES", help="stop and save after this many; "
        "--resume goes on")  # fmt: skip
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting, e.g. "
        "schedule.final=0.1")  # fmt: skip
    add("--seed", type=int, help="seed of everything random")
    _add_device(parser)
    add("--json", action="store_true", help="print the result as one JSON object")
    add("--tensorboard", action="store_true", help="write TensorBoard curves too")


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm calibrate`."""
    parser.epilog = (
        "tiltrm train does this with its validation puzzles; imported weights need it. Use "
        "puzzles that belong neither to the training set nor to the test set."
    )
    add = parser.add_argument
    add("--model", metavar="M", required=True, help="a native folder, such as import or train "
        "writes; without --write any model")  # fmt: skip
    _add_config(parser)
    add("--data", metavar="F", required=True, help="puzzles with answers: file, folder or dataset")
    add("--task", help=f"{TASKS} (the model's own)")
    add("--puzzles", type=int, default=1000, metavar="N", help="use at most this many (1000)")
    add("--outer-steps", type=int, default=CALIBRATION_STEPS, metavar="N", help="outer steps of "
        f"each trajectory ({CALIBRATION_STEPS})")  # fmt: skip
    add("--write", action="store_true", help="store the threshold in the model's folder")
    _add_device(parser)
    add("--json", action="store_true", help="print the result as one JSON object")


def add_serve(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm serve`."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine only)")
    add("--port", type=int, default=8000, help="port; 0 is any free one (8000)")
    add("--model", nargs="+", metavar="M", help="bundled names, folders or checkpoints (all that "
        "are bundled); requests can name these only")  # fmt: skip
    add("--task", help=f"of all these models: {TASKS} (each its own)")
    add("--token-file", metavar="F", help="requests must carry the token in this file")
    add("--queue", type=int, default=4096, metavar="N", help="puzzles accepted and not finished; "
        "more are refused (4096)")  # fmt: skip
    add("--timeout", type=float, default=600.0, metavar="S", help="seconds for a request (600)")
    _add_device(parser)


def add_diagnose(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm diagnose`."""
    parser.epilog = "The verdict never looks at labels; --labels adds what only they can show."
    add = parser.add_argument
    add("--model", metavar="M", default="sudoku-extreme", help="bundled name, folder or checkpoint "
        "(sudoku-extreme)")  # fmt: skip
    _add_config(parser)
    add("--data", metavar="F", required=True, help="any file, folder or dataset of puzzles")
    add("--task", help=f"{TASKS} (the model's own)")
    add("--labels", action="store_true", help="read the answers too")
    add("--puzzles", type=int, default=32, metavar="N", help="at most so many of them (32)")
    add("--guide", action="append", metavar="G", help="halting, confidence, residual, rules, "
        "shortest, or a sum; again for others, the verdict is about the first")  # fmt: skip
    add("--noise", type=float, metavar="SIGMA", help="scale of the exploration noise")
    add("--beta", type=float, help="strength of the tilt towards the guide")
    add("--particles", type=int, metavar="S", help=f"size of the cloud ({DIAGNOSIS_PARTICLES})")
    add("--outer-steps", type=int, metavar="N", help=f"depth ({DIAGNOSIS_STEPS})")
    add("--out", type=Path, metavar="DIR", help="folder for a page with the figures, and the JSON")
    add("--seed", type=int, default=0, help="of the noise (0)")
    _add_device(parser)
    add("--json", action="store_true", help="one object with every figure")


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm evaluate`."""
    parser.epilog = (
        "A method may carry settings of its own: --method guided ptrm:particles=25,select=majority."
        " A plan is adaptive:stages=[[1,20],[8,24,false,0.6]],turned=true: particles, outer steps, "
        "whether trajectories go on, noise; and other views of the puzzle. With --store, a run "
        "that was killed goes on where it stopped, and one that is done is read."
    )
    add = parser.add_argument
    add("--model", metavar="M", default="sudoku-extreme", help="bundled name, folder or checkpoint "
        "(sudoku-extreme)")  # fmt: skip
    add("--data", metavar="F", required=True, help="any file, folder or dataset with answers")
    add("--task", help=f"{TASKS} (the model's own)")
    add("--split", metavar="NAME", help="what to call these puzzles (the name of the file)")
    add("--method", nargs="+", action="extend", metavar="NAME", help=f"{', '.join(EVALUATED)} "
        f"({' '.join(USUALLY_EVALUATED)}); the others are tested against the first")  # fmt: skip
    add("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", dest="settings",
        help="a setting of every method that has it")  # fmt: skip
    add("--by-step", action="store_true", help="accuracy after every outer step, too")
    add("--folds", type=int, metavar="N", help=f"disjoint parts of the puzzles ({FOLDS}, or one "
        "to a puzzle where there are fewer)")  # fmt: skip
    add("--seeds", type=int, default=5, metavar="N", help="of the noise: 0, 1, ... (5)")
    add("--limit", type=int, metavar="N", help="the first so many puzzles")
    add("--store", metavar="DIR", help="folder that keeps the results (none is kept)")
    add("--ray", nargs="?", const="", metavar="ADDRESS", help=RAY)
    _add_device(parser)
    add("--json", action="store_true", help="one object with every figure")


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="C", help="configuration of another code's checkpoint")


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")

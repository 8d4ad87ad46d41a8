"""The flags of every command. Nothing slow is imported here, so that --help is fast."""

import argparse
from pathlib import Path
from typing import Any

from tiltrm.settings import EVALUATED, METHODS, TABLE

TASKS = (
    "sudoku, maze, maze-unique, lightup, nurikabe, heyawake, tapa, pencil (all types of "
    "addresses), mini-arc, arc, sudoku4, or one's own as FILE.py:NAME"
)
RAY = (
    "spread the work over a Ray cluster: HOST:PORT, auto for the one here, local for a new one "
    "(RAY_ADDRESS, else local)"
)

# Copies of constants in modules that import torch; tests/cli/test_flags.py compares them.
USUALLY_EVALUATED = ("deterministic", "unguided", "guided", "adaptive")
FOLDS = 5
DIAGNOSIS_PARTICLES, DIAGNOSIS_STEPS = 6, 9
THRESHOLD_STEPS = 24
GUIDE_MINUTES, GUIDE_HELD_OUT, GUIDE_PARTICLES, GUIDE_STEPS = 5.0, 64, 16, 48
EXPORTED = ("float32", "float16", "int8")
RANKINGS = ("weighted", "votes")
PRECISIONS = ("float32", "bfloat16", "int8", "fp8")


def add_solve(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm solve`."""
    parser.epilog = (
        "Exit code: 0 when every answer is a valid solution or was withheld, 1 when one breaks a "
        "rule, 2 when a puzzle or anything else typed is wrong (the others are still solved). A "
        "puzzle with no solution or with several counts as wrong, where that is found out."
    )
    add = parser.add_argument
    add("puzzles", nargs="*", metavar="PUZZLE", help="81 cells, . for a blank, or an address of "
        "puzz.link; without one, an extreme sample")  # fmt: skip
    add("--file", metavar="F", help="text or CSV file of puzzles, or ARC tasks in JSON; - is "
        "standard input")  # fmt: skip
    _add_max_bytes(parser)
    add("--model", metavar="M", help="bundled name, folder or checkpoint (sudoku-extreme, or that "
        "of the task or of the addresses)")  # fmt: skip
    _add_config(parser)
    add("--task", help=f"{TASKS} (the model's own)")
    add("--method", default=METHODS[0], help=f"{', '.join(METHODS)} ({METHODS[0]})")
    add_setting_flags(parser, METHODS)
    add("--seed", type=int, default=0, help="seed of the noise (0)")
    _add_device(parser)
    _add_precision(parser)
    add("--abstain", type=float, metavar="P", help="withhold answers with a confidence below P, "
        "and those that break a rule")  # fmt: skip
    add("--risk", type=float, metavar="R", help="withhold answers so that at most this share of "
        "those given is wrong, at 95 %% confidence, if these puzzles are of the kind that the "
        "model was calibrated on (tiltrm tune)")  # fmt: skip
    add("--untuned", action="store_true", help="the task's plan, not the one that tiltrm tune "
        "stored beside the weights")  # fmt: skip
    add("--json", action="store_true", help="one JSON object per line and puzzle, in their order")
    add("--html", metavar="FILE", help="write a replay of the run as one page (one puzzle)")
    add("--watch", action="store_true", help="show the cloud while it runs (one puzzle)")
    add("--no-color", action="store_true", help="no colours; the variable NO_COLOR does the same")
    arc = parser.add_argument_group("ARC tasks")
    arc.add_argument("--augmentations", type=int, metavar="N", help="questions for each test "
                     "input, turned and recoloured, that vote for its answer (1)")  # fmt: skip
    arc.add_argument("--translate", action="store_true", help="move the grids of augmented "
                     "questions on their board, too (arc)")  # fmt: skip
    arc.add_argument("--ranking", choices=RANKINGS, help="weighted: by the weight of particles and "
                     "the confidence of searches. votes: by particles, then by their mean halt "
                     "probability, as TinyRecursiveModels does (weighted)")  # fmt: skip
    arc.add_argument("--submission", type=Path, metavar="FILE", help="write two attempts for each "
                     "test input as Kaggle takes them")  # fmt: skip


def add_import(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm import`."""
    add = parser.add_argument
    add("checkpoint", metavar="CKPT", help="a file of TinyRecursiveModels, nano-trm or HRM")
    add("--out", type=Path, required=True, metavar="DIR", help="the new folder for the model")
    add("--force", action="store_true", help="replace a model that is in DIR")
    add("--config", metavar="F", help="its JSON or YAML configuration, if it is not beside CKPT")
    add("--puzzle-id", type=int, metavar="K", help="row of the puzzle embedding that the model "
        "uses from now on, if it has several (0); all rows are kept")  # fmt: skip
    add("--identifiers", type=Path, metavar="F", help="identifiers.json of the training data of an "
        "ARC model: the names of its puzzle ids, kept as puzzles.json")  # fmt: skip
    add("--task", help="the model's task, if its sizes fit several or none that is known")
    add("--json", action="store_true", help="print the inferred sizes as one object")


def add_data(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm data`."""
    parser.epilog = (
        "Exit code: 0 if every puzzle can be read and every answer is valid, 2 otherwise."
    )
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="CSV or text, a folder, or a dataset's name")
    add("--task", help=f"{TASKS} (guessed from the content)")
    _add_max_bytes(parser)
    add("--generate", type=int, metavar="N", help="generate N puzzles with answers")
    add("--out", type=Path, metavar="F", help="the new CSV file for --generate; one of pencil "
        "puzzles is continued")  # fmt: skip
    add("--seed", type=int, help="seed of the generator (0)")
    add("--without", type=Path, nargs="+", metavar="F", help="leave out the pencil puzzles of "
        "these CSV files, under all symmetries")  # fmt: skip
    add("--json", action="store_true", help="print the report as one object")


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
    _add_max_bytes(parser)
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


def add_tune(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm tune`."""
    parser.epilog = (
        "Half of the puzzles choose the plan, the other half check it against the task's own plan "
        "and calibrate the confidence; take puzzles that are neither trained on nor tested on. The "
        "result is stored beside the weights and used by solve, evaluate and serve from then on. A "
        "killed run continues where it was. With --evaluations, the same seed gives the same plan."
    )
    add = parser.add_argument
    add("--model", metavar="M", required=True, help="a native folder, such as import or train "
        "writes; with --dry-run also a bundled name or a checkpoint")  # fmt: skip
    _add_config(parser)
    _add_puzzle_id(parser)
    add("--data", metavar="F", required=True, help="puzzles, with or without answers")
    _add_max_bytes(parser)
    add("--task", help=f"{TASKS} (the model's own)")
    add("--puzzles", type=int, metavar="N", help="use at most this many (all)")
    add("--judge", choices=("labels", "rules", "agreement"), help="who says which answers are "
        "right (labels where the file has them and the task is no maze, else rules, else "
        "agreement)")  # fmt: skip
    add("--rules", action="store_true", help="choose a plan that stops at a valid solution only")
    add("--evaluations", type=int, metavar="E", help="budget: calls of the network, one puzzle and "
        "one particle each")  # fmt: skip
    add("--minutes", type=float, metavar="T", help="budget in minutes, as evaluations at the speed "
        "measured at the start (10)")  # fmt: skip
    add("--per-puzzle", type=int, metavar="E", help="evaluations that the plan may spend on one "
        "puzzle; without it, as many as pay")  # fmt: skip
    add("--confidence-only", action="store_true", help="keep the plan, calibrate the confidence on "
        "all puzzles")  # fmt: skip
    add("--threshold-only", action="store_true", help="keep the plan, choose the halt logit that "
        "stops a puzzle, from one trajectory without noise for each; needs answers")  # fmt: skip
    add("--outer-steps", type=int, metavar="N", help="with --threshold-only: outer steps of each "
        f"trajectory ({THRESHOLD_STEPS})")  # fmt: skip
    add("--store", type=Path, metavar="DIR", help="folder for the recordings (M/tune)")
    _add_coarser_precision(parser)
    add("--dry-run", action="store_true", help="store no result beside the weights")
    add("--picture", type=Path, metavar="FILE", help="draw the frontier (.svg, .png)")
    add("--seed", type=int, default=0, help="seed of the noise (0)")
    _add_device(parser)
    add("--json", action="store_true", help="print the result as one JSON object")


def add_fit_guide(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm fit-guide`."""
    parser.epilog = (
        "Use the puzzles that the model was trained on, or others of their kind, never those of a "
        "test. A part of them is held out and chooses the best state of the guide. Then: tiltrm "
        "solve --method guided --guide learned:FOLDER, and tiltrm diagnose to judge it."
    )
    add = parser.add_argument
    add("--model", metavar="M", required=True, help="bundled name, folder or checkpoint")
    _add_config(parser)
    add("--data", metavar="F", required=True, help="puzzles, with or without answers")
    _add_max_bytes(parser)
    add("--task", help=f"{TASKS} (the model's own)")
    add("--out", type=Path, metavar="FOLDER", required=True, help="the folder of the guide")
    add("--target", choices=("right", "rules"), default="right", help="right: whether a particle "
        "ends right, by labels where the file has them, else by rules. rules: by how much its last "
        "answer is off, by rules alone (right)")  # fmt: skip
    add("--minutes", type=float, metavar="T", help=f"budget in minutes ({GUIDE_MINUTES:g})")
    add("--puzzles", type=int, metavar="N", help="budget in clouds, one a puzzle; a smaller file "
        "is gone through again with other noise")  # fmt: skip
    add("--held-out", type=int, default=GUIDE_HELD_OUT, metavar="N", help="puzzles that choose "
        f"the best state, at most a fifth of all ({GUIDE_HELD_OUT})")  # fmt: skip
    add("--noise", type=float, nargs="+", metavar="SIGMA", help="scales of the noise, taken in "
        "turn (the task's, 0.6 and 1.4 times it)")  # fmt: skip
    add("--particles", type=int, default=GUIDE_PARTICLES, metavar="S", help="size of the clouds "
        f"({GUIDE_PARTICLES})")  # fmt: skip
    add("--outer-steps", type=int, default=GUIDE_STEPS, metavar="N", help=f"depth ({GUIDE_STEPS})")
    add("--seed", type=int, default=0, help="seed of noise, weights and order (0)")
    _add_device(parser)
    add("--json", action="store_true", help="print the figures as one JSON object")


def add_serve(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm serve`."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine only)")
    add("--port", type=int, default=8000, help="port; 0 is any free one (8000)")
    add("--model", nargs="+", metavar="M", help="bundled names, folders or checkpoints (all that "
        "are bundled); requests can name these only")  # fmt: skip
    add("--task", help=f"of all these models: {TASKS} (each its own)")
    _add_puzzle_id(parser)
    add("--token-file", metavar="F", help="requests must carry the token in this file")
    add("--queue", type=int, default=4096, metavar="N", help="puzzles accepted and not finished; "
        "more are refused (4096)")  # fmt: skip
    add("--timeout", type=float, default=600.0, metavar="S", help="seconds for a request (600)")
    add("--limit", action="append", default=[], metavar="NAME=VALUE", help="another limit of "
        "GET /v1/limits, e.g. work=100000; again for others")  # fmt: skip
    add("--name", action="append", default=[], metavar="HOST", help="a further host name that it "
        "answers to, e.g. that of a proxy")  # fmt: skip
    add("--client-header", metavar="NAME", help="the header in which a proxy names the client, "
        "e.g. X-Real-IP; quotas are by address without it")  # fmt: skip
    add("--log", action="store_true", help="log every request to stderr, a JSON object a line")
    _add_device(parser)
    _add_precision(parser)


def add_site(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm site`."""
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="the folder to write")
    add("--model", nargs="+", metavar="M", help="bundled names, folders or checkpoints (all that "
        "are bundled)")  # fmt: skip
    add("--task", help="of all these models: sudoku or maze (each its own)")
    add("--precision", choices=EXPORTED, default="float16", help="of the weights; computing is "
        "float32 (float16)")  # fmt: skip
    add("--runtime", type=Path, metavar="DIR", help="the folder `dist` of the npm package "
        "onnxruntime-web; without it, the package is downloaded once from the npm registry and "
        "its checksum checked")  # fmt: skip
    add("--json", action="store_true", help="print the files and their sizes as one object")


def add_export(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm export`."""
    add = parser.add_argument
    add("--onnx", type=Path, required=True, metavar="DIR", help="the folder to write")
    add("--model", metavar="M", default="sudoku-extreme", help="bundled name, folder or checkpoint "
        "(sudoku-extreme)")  # fmt: skip
    _add_config(parser)
    _add_puzzle_id(parser)
    add("--task", help=f"{TASKS} (the model's own)")
    add("--precision", nargs="+", choices=EXPORTED, default=list(EXPORTED), help="of the "
        "weights; computing is float32 (all three)")  # fmt: skip
    add("--json", action="store_true", help="print sizes and differences as one object")


def add_diagnose(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm diagnose`."""
    parser.epilog = "The verdict never looks at labels; --labels adds what only they can show."
    add = parser.add_argument
    add("--model", metavar="M", default="sudoku-extreme", help="bundled name, folder or checkpoint "
        "(sudoku-extreme)")  # fmt: skip
    _add_config(parser)
    _add_puzzle_id(parser)
    add("--data", metavar="F", required=True, help="any file, folder or dataset of puzzles")
    _add_max_bytes(parser)
    add("--task", help=f"{TASKS} (the model's own)")
    add("--labels", action="store_true", help="read the answers too")
    add("--puzzles", type=int, default=32, metavar="N", help="at most so many of them (32)")
    add("--guide", action="append", metavar="G", help="halting, confidence, residual, rules, "
        "shortest, learned:FOLDER, or a sum; again for others, the verdict is about the "
        "first")  # fmt: skip
    add("--noise", type=float, metavar="SIGMA", help="scale of the exploration noise")
    add("--beta", type=float, help="strength of the tilt towards the guide")
    add("--particles", type=int, metavar="S", help=f"size of the cloud ({DIAGNOSIS_PARTICLES})")
    add("--outer-steps", type=int, metavar="N", help=f"depth ({DIAGNOSIS_STEPS})")
    add("--out", type=Path, metavar="DIR", help="folder for a page with the figures, and the JSON")
    add("--seed", type=int, default=0, help="seed of the noise (0)")
    _add_device(parser)
    add("--json", action="store_true", help="one object with every figure")


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """The flags of `tiltrm evaluate`."""
    parser.epilog = (
        "A method may have settings of its own: --method guided ptrm:particles=25,select=majority. "
        "The stages of an adaptive plan are written as the tables print them (particles x outer "
        "steps, @noise, *repetitions), or as lists of the same; turned=true adds symmetric views "
        "of the puzzle: 'adaptive:stages=\"1x20 8x24@0.6*4\",turned=true'. Values are as in TOML, "
        "or bare words. A model that was tuned has its own plan; adaptive:tuned=false is that of "
        "the task. With --store, a run that was killed continues, and results that exist are not "
        "computed again. On ARC tasks the methods are compared by pass@1 and pass@2, and every one "
        "takes augmentations=N: deterministic:augmentations=16."
    )
    add = parser.add_argument
    add("--model", metavar="M", help="bundled name, folder or checkpoint (sudoku-extreme, or that "
        "of the ARC tasks)")  # fmt: skip
    _add_puzzle_id(parser)
    add("--data", metavar="F", required=True, help="file, folder or dataset of puzzles, or "
        "ARC tasks in JSON; where it has no answers, a valid solution counts as right")  # fmt: skip
    _add_max_bytes(parser)
    add("--task", help=f"{TASKS} (the model's own)")
    add("--split", metavar="NAME", help="name of these puzzles in the tables (the name of the "
        "file)")  # fmt: skip
    add("--method", nargs="+", action="extend", metavar="NAME", help=f"{', '.join(EVALUATED)} "
        f"({' '.join(USUALLY_EVALUATED)}); the first is the baseline of the others")  # fmt: skip
    add("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", dest="settings",
        help="settings for every method that has them")  # fmt: skip
    add("--seconds", type=float, metavar="T", help="stop after so many seconds of computing a "
        "puzzle, with the best answer so far; results then depend on the machine")  # fmt: skip
    _add_coarser_precision(parser)
    add("--by-step", action="store_true", help="also print the accuracy after every outer step")
    add("--folds", type=int, metavar="N", help=f"disjoint parts of the puzzles ({FOLDS}, or as "
        "many as there are puzzles; 1 for ARC tasks)")  # fmt: skip
    add("--seeds", type=int, default=5, metavar="N", help="number of noise seeds: 0, 1, ... (5)")
    add("--limit", type=int, metavar="N", help="use only the first N puzzles")
    add("--risk", type=float, nargs="+", default=[], metavar="R", help="show what becomes of the "
        "promise that at most this share of the answers given is wrong (tiltrm tune)")  # fmt: skip
    add("--reliability", type=Path, metavar="FILE", help="draw stated confidence against the share "
        "of right answers (.svg, .png)")  # fmt: skip
    add("--store", metavar="DIR", help="folder for the results (without it they are not kept)")
    add("--ray", nargs="?", const="", metavar="ADDRESS", help=RAY)
    _add_device(parser)
    add("--json", action="store_true", help="print all results as one object")


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="C", help="configuration of another code's checkpoint")


def _add_puzzle_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--puzzle-id", type=int, metavar="K", help="row of the puzzle embedding, "
                        "for a model with several (the model's own, mostly 0)")  # fmt: skip


def _add_max_bytes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-bytes", type=int, metavar="N", help="read at most N bytes of a "
                        "file, after decompression (1e9)")  # fmt: skip


def _add_precision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--precision", choices=("auto", *PRECISIONS), default="auto",
        help="of the network; auto is bfloat16 on a GPU and, on a CPU, bfloat16 or int8 where that "
        "was measured as faster, else float32; int8 (CPUs) computes channel mixing in 8 bits; fp8 "
        "(Hopper GPUs) computes products in 8 bits, states in bfloat16. float32, when asked for, "
        "computes every hidden unit, as the method deterministic does; otherwise those that "
        "contribute nothing are left out",
    )  # fmt: skip


def _add_coarser_precision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--precision", choices=PRECISIONS, help="of the network, as in `solve`; "
                        "without it, float32 on a CPU, bfloat16 on a GPU, and all hidden "
                        "units")  # fmt: skip


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")


def add_setting_flags(parser: argparse.ArgumentParser, methods: tuple[str, ...]) -> None:
    """A flag for every setting that one of the methods has; None where it is not given."""
    group = parser.add_argument_group("settings of the methods")
    for name, row in TABLE.items():
        having = [method for method in row.methods if method in methods]
        if not having:
            continue
        default = "" if row.default in (None, False) else f"; {row.default}"
        kind: dict[str, Any] = {"type": row.kind, "metavar": row.symbol or None}
        if row.kind is bool:
            kind = {"action": "store_true", "default": None}
        elif row.choices:
            kind = {"choices": row.unlabelled_choices}
        about = f"{row.help} ({', '.join(having)}{default})"
        group.add_argument(f"--{name.replace('_', '-')}", help=about, **kind)


def given_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that were given as flags."""
    found = {name: getattr(arguments, name, None) for name in TABLE}
    return {name: value for name, value in found.items() if value is not None}

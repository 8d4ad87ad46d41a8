"""Import another code's checkpoint into a native folder, and print the inferred sizes."""

import argparse
import json
import shlex
from pathlib import Path

import torch

from tiltrm.errors import SettingsError
from tiltrm.model import describe, load, save
from tiltrm.model.build import Model, kind_of
from tiltrm.model.puzzle_names import read_names
from tiltrm.model.puzzle_rows import puzzle_rows
from tiltrm.solving import task_of


def run(arguments: argparse.Namespace) -> int:
    """Load, save without loss, and describe."""
    _check_target(arguments.out, arguments.force)
    model = load(arguments.checkpoint, config=arguments.config, puzzle_id=arguments.puzzle_id)
    if arguments.identifiers is not None:
        model.puzzle_names = read_names(arguments.identifiers, puzzle_rows(model))
    if arguments.task is not None:
        model.task = task_of(model, arguments.task).name
    dtype = torch.bfloat16 if _fits(model, torch.bfloat16) else torch.float32
    folder = save(model, arguments.out, dtype=dtype)
    stored = str(dtype).removeprefix("torch.")
    if arguments.json:
        about = {
            "out": str(folder), "kind": kind_of(model), "task": model.task, "dtype": stored,
            "sizes": model.config.as_mapping(), "notes": model.import_notes,
        }  # fmt: skip
        print(json.dumps(about))
    else:
        print(f"{describe(model)}\nwritten to {folder} in {stored}")
        print(f"next: tiltrm tune --model {shlex.quote(str(folder))} --data PUZZLES")
    return 0


def _check_target(out: Path, force: bool) -> None:
    """Refuse to replace anything without --force. An empty folder may be filled."""
    empty = out.is_dir() and not any(out.iterdir())
    if out.exists() and not empty and not force:
        raise SettingsError(
            f"--out must be a new folder, got {out}, which is there; choose another, or replace it "
            "with --force"
        )


def _fits(model: Model, dtype: torch.dtype) -> bool:
    """Whether this type holds every weight exactly, so that storing it loses nothing."""
    weights = model.state_dict().values()
    return all(torch.equal(weight, weight.to(dtype).to(weight.dtype)) for weight in weights)

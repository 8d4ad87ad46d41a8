"""Import another code's checkpoint into a native folder, and say what was inferred."""

import argparse
import json
import shlex
from dataclasses import asdict

import torch

from tiltrm.model import describe, load, save
from tiltrm.model.build import Model, kind_of
from tiltrm.solver import task_of


def run(arguments: argparse.Namespace) -> int:
    """Load, save without loss, and describe."""
    model = load(arguments.checkpoint, config=arguments.config)
    if arguments.task is not None:
        model.task = task_of(model, arguments.task).name
    dtype = torch.bfloat16 if _fits(model, torch.bfloat16) else torch.float32
    folder = save(model, arguments.out, dtype=dtype)
    stored = str(dtype).removeprefix("torch.")
    if arguments.json:
        about = {
            "out": str(folder), "kind": kind_of(model), "task": model.task, "dtype": stored,
            "sizes": asdict(model.config), "notes": model.import_notes,
        }  # fmt: skip
        print(json.dumps(about))
    else:
        print(f"{describe(model)}\nwritten to {folder} in {stored}")
        print(f"next: tiltrm calibrate --model {shlex.quote(str(folder))} --data VAL --write")
    return 0


def _fits(model: Model, dtype: torch.dtype) -> bool:
    """Whether every weight is the same number in this type, so that storing it loses nothing."""
    weights = model.state_dict().values()
    return all(torch.equal(weight, weight.to(dtype).to(weight.dtype)) for weight in weights)

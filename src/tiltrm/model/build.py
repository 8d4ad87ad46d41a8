"""A model from its sizes and tensors. Sizes are checked, and errors name every wrong tensor."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from reprlib import repr

import torch
from torch import Tensor

from tiltrm.errors import CheckpointError, SettingsError
from tiltrm.model.hrm import HRM, HRMConfig
from tiltrm.model.puzzle_ids import MAX_ID_CELLS
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.records import build_record

Model = TRM | HRM
CONFIGS: Mapping[str, type[TRMConfig]] = {"trm": TRMConfig, "hrm": HRMConfig}
LIMITS = {  # far above any real model; they keep a broken file from asking for all memory
    "cells": 2**14, "vocabulary": 2**16, "width": 2**15, "layers": 256, "answer_layers": 256,
    "heads": 2**12, "prefix": 2**12, "inner_steps": 2**12, "cycles": 2**12,
    "puzzles": 2**22, "id_cells": MAX_ID_CELLS,
    "expansion": 64.0, "rotary_theta": 1e12, "eps": 1.0,
}  # fmt: skip
SHOWN = 12  # names in a message


def kind_of(model: Model) -> str:
    """ "trm" or "hrm"."""
    return "hrm" if isinstance(model, HRM) else "trm"


def sizes(kind: str, values: Mapping[str, object]) -> TRMConfig:
    """The sizes of a kind of model, each of its type and below its limit; no unknown name."""
    config = build_record(CONFIGS[kind], values)
    for field in fields(config):
        value = getattr(config, field.name)
        # The config itself checks the lower bounds of whole numbers. A NaN fails here, too.
        positive = field.type is not float or value > 0
        if field.name in LIMITS and not (positive and value <= LIMITS[field.name]):
            raise SettingsError(
                f"{field.name} must be above 0 and at most {LIMITS[field.name]:g}, got "
                f"{repr(value)}; correct it"
            )
    return config


def assemble(
    config: TRMConfig, tensors: Mapping[str, Tensor], *, source: str, device: torch.device,
    dtype: torch.dtype, named: Callable[[str], str] = str,
) -> Model:  # fmt: skip
    """The frozen model of these sizes, holding these tensors; a wrong tensor is an error.

    `named` gives the name by which the file knows a tensor, for the message.
    Built without touching the global random state.
    """
    with torch.device("meta"):
        model = HRM(config) if isinstance(config, HRMConfig) else TRM(config)
    expected = model.state_dict()
    problems = mismatches(expected, tensors, named)
    if problems:
        raise CheckpointError(
            f"{source} does not hold the model that its configuration describes: "
            f"{'; '.join(problems)}; check the configuration or take the file it belongs to"
        )
    try:
        held = {name: t.to(device, dtype, copy=True).contiguous() for name, t in tensors.items()}
    except (RuntimeError, MemoryError) as error:
        raise CheckpointError(
            f"the tensors of {source} cannot become {dtype} on {device} ({_short(error)}); "
            "choose another dtype or device"
        ) from error
    model.load_state_dict(held, assign=True)
    if (
        model.cos is not None and model.sin is not None
    ):  # not stored; float32 for weights of any type
        model.cos, model.sin = model.cos.to(device), model.sin.to(device)
    return model.eval().requires_grad_(False)


def mismatches(
    expected: Mapping[str, Tensor], got: Mapping[str, Tensor], named: Callable[[str], str]
) -> list[str]:
    """Every missing, unexpected and misshapen tensor, sorted, with the shapes."""
    missing = [f"{named(n)} {tuple(expected[n].shape)}" for n in expected if n not in got]
    unexpected = [f"{named(n)} {tuple(got[n].shape)}" for n in got if n not in expected]
    misshapen = [
        f"{named(n)} (expected {tuple(expected[n].shape)}, got {tuple(got[n].shape)})"
        for n in expected
        if n in got and expected[n].shape != got[n].shape
    ]
    unfit = [
        f"{named(n)} ({_storage(got[n])})" for n in expected if n in got and not is_plain(got[n])
    ]
    groups = {
        "missing": missing,
        "unexpected": unexpected,
        "misshapen": misshapen,
        "not plain floating-point": unfit,
    }
    return [f"{word}: {few(sorted(found))}" for word, found in groups.items() if found]


def few(names: Sequence[str]) -> str:
    """Names for a message, the first ones of many."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor holds floating-point numbers, one after the other."""
    held = tensor.layout == torch.strided and not tensor.is_meta
    return held and tensor.is_floating_point()


def _storage(tensor: Tensor) -> str:
    return f"{tensor.dtype}, {tensor.layout}, {tensor.device.type}"


def _short(error: Exception) -> str:
    """The first line of a library's message, without its full stop."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200].rstrip(".")

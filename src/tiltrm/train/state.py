"""The training state on disk: small, complete or absent, and exact on resume.

Weights are stored as float32. Momenta and the distance of the average from the weights are
stored in 8 bits with a scale per row, a puzzle embedding in float16. Saving rounds the tensors in
memory to the stored numbers, so that a resumed run and an uninterrupted one go on from the same
numbers.
Proved by tests/train/test_resume.py.
"""

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as serialise
from torch import Tensor, nn
from torch.optim import Optimizer

from tiltrm.errors import DataError, DegenerateError
from tiltrm.folders import OLD, replacing
from tiltrm.train.optimiser import EMA

STATES = "state"
PIECE_BYTES = 15 * 2**20  # largest file, so that a state can be copied in pieces
SMALL = 2**16  # tensors below this many values are stored as they are


class TrainState(NamedTuple):
    """The objects whose tensors are saved and restored."""

    model: nn.Module
    optimisers: list[Optimizer]
    ema: EMA
    table: Tensor | None = None  # (row, number): the puzzle embedding of a run on ARC


@torch.no_grad()
def collect(train_state: TrainState) -> dict[str, Tensor]:
    """The tensors to store. Rounds the state to them (see above), so every process must call it."""
    out: dict[str, Tensor] = {}
    for name, tensor in train_state.model.state_dict().items():
        out[f"model.{name}"] = tensor.detach().cpu().contiguous()
    for index, (weight, average) in enumerate(
        zip(train_state.ema.weights, train_state.ema.average, strict=True)
    ):
        average.copy_(weight + _store(out, f"ema.{index}", average - weight))
    for name, moment in _moments(train_state.optimisers):
        moment.copy_(_store(out, name, moment))
    if train_state.table is not None:
        kept = train_state.table.half()
        train_state.table.copy_(kept)
        rows = max(1, PIECE_BYTES // (2 * kept.shape[1]))
        for number, part in enumerate(kept.split(rows)):
            out[f"table.{number}"] = part.cpu()
    broken = [name for name, tensor in out.items() if not bool(tensor.isfinite().all())]
    if broken:
        raise DegenerateError(f"{broken[0]} holds NaN or infinity, so the state was not saved")
    return out


def write(folder: Path, meta: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write `state/<step>/` in the run's folder, all files or none; then drop the older states."""
    target = folder / STATES / f"{meta['step']:08d}"
    try:
        with replacing(target) as fresh:
            for index, piece in enumerate(_pieces(tensors)):
                content = serialise(piece, {"meta": json.dumps(meta)})
                (fresh / f"{index}.safetensors").write_bytes(content)  # with the umask's mode
    except (OSError, SafetensorError) as error:
        raise DataError(
            f"the training state could not be written to {target}: {error}; "
            "make room there and go on with --resume"
        ) from None
    for other in _states(folder):
        if other != target:
            shutil.rmtree(other, ignore_errors=True)


def latest(folder: Path) -> Path | None:
    """The newest complete state of the run in `folder`, or None."""
    return max(_states(folder), key=lambda path: (int(path.stem), path.suffix != OLD), default=None)


def _states(folder: Path) -> list[Path]:
    """The complete states of a run, and perhaps an older one that is partly removed."""
    found = (path.parent for path in folder.glob(f"{STATES}/*/0.safetensors"))
    return [path for path in found if path.stem.isdigit() and path.suffix in ("", OLD)]


def restore(saved: Path, train_state: TrainState) -> dict[str, Any]:
    """Read a state that `write` wrote into objects of the same shapes; returns its meta record."""
    tensors: dict[str, Tensor] = {}
    try:
        with safe_open(saved / "0.safetensors", "pt") as file:
            meta: dict[str, Any] = json.loads(file.metadata()["meta"])
        for path in sorted(saved.glob("*.safetensors")):
            tensors |= load_file(path)
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise DataError(f"the training state {saved} cannot be read: {error}") from None
    try:
        _distribute(tensors, train_state)
    except (KeyError, RuntimeError) as error:
        reason = str(error).replace("\n", " ")[:200]
        raise DataError(
            f"the training state {saved} is of another model or optimiser ({reason}); "
            "resume with the settings it was made with"
        ) from None
    return meta


def require_meta(meta: Mapping[str, Any], saved: Path) -> None:
    """Raise DataError unless a meta record has the counters and settings of a run."""
    numbers = [meta.get("step"), meta.get("seconds"), meta.get("best"), meta.get("aside", 0.0),
               meta.get("closing", 0.0)]  # fmt: skip
    counted = all(isinstance(n, int | float) and math.isfinite(n) for n in numbers)
    if not (counted and isinstance(meta["step"], int) and isinstance(meta.get("settings"), dict)):
        raise DataError(
            f"the training state {saved} cannot be read: its counters or settings are damaged; "
            "begin a new run in another folder"
        )


def quantise(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """8-bit values and a float32 scale per row of the last dimension."""
    scale = tensor.abs().amax(-1, keepdim=True).float() / 127
    quantised = (tensor / scale.clamp(min=1e-38)).round().to(torch.int8)
    return quantised, scale


def dequantise(quantised: Tensor, scale: Tensor) -> Tensor:
    """The numbers that `quantise` kept."""
    return quantised.float() * scale


def _store(out: dict[str, Tensor], name: str, tensor: Tensor) -> Tensor:
    """Put a tensor into `out`, in 8 bits if it is large; returns the numbers that were kept."""
    if tensor.ndim < 2 or tensor.numel() < SMALL:
        out[name] = tensor.detach().cpu().contiguous()
        return tensor
    quantised, scale = quantise(tensor)
    out[f"{name}.q"], out[f"{name}.s"] = quantised.cpu(), scale.cpu()
    return dequantise(quantised, scale)


def _fetch(tensors: dict[str, Tensor], name: str) -> Tensor:
    return (
        tensors[name] if name in tensors else dequantise(tensors[f"{name}.q"], tensors[f"{name}.s"])
    )


def _parameters(optimisers: list[Optimizer]) -> list[tuple[str, Optimizer, nn.Parameter]]:
    """Every parameter with its optimiser and the stored prefix of its moments."""
    return [
        (f"optimiser.{which}.{index}.", optimiser, parameter)
        for which, optimiser in enumerate(optimisers)
        for index, parameter in enumerate(p for g in optimiser.param_groups for p in g["params"])
    ]


def _moments(optimisers: list[Optimizer]) -> list[tuple[str, Tensor]]:
    """Every tensor in the optimisers' states, with its stored name."""
    return [
        (stem + key, value)
        for stem, optimiser, parameter in _parameters(optimisers)
        for key, value in sorted(optimiser.state[parameter].items())
        if isinstance(value, Tensor)
    ]


def _fits(moment: Tensor, parameter: Tensor) -> bool:
    """A scalar, the parameter's shape, or a mean over some of its axes, which have length 1."""
    lengths = zip(moment.shape, parameter.shape, strict=False)
    return not moment.ndim or (
        moment.ndim == parameter.ndim and all(own in (1, whole) for own, whole in lengths)
    )


@torch.no_grad()
def _distribute(tensors: dict[str, Tensor], train_state: TrainState) -> None:
    prefix = "model."
    train_state.model.load_state_dict(
        {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    )
    for index, (weight, average) in enumerate(
        zip(train_state.ema.weights, train_state.ema.average, strict=True)
    ):
        average.copy_(weight + _fetch(tensors, f"ema.{index}").to(weight.device))
    _restore_table(tensors, train_state.table)
    names = {name.removesuffix(".q").removesuffix(".s") for name in tensors}
    left = {name for name in names if name.startswith("optimiser.")}
    for stem, optimiser, parameter in _parameters(train_state.optimisers):
        for name in sorted(name for name in left if name.startswith(stem)):
            value = _fetch(tensors, name)
            if not _fits(value, parameter):
                raise KeyError(f"{name} is {tuple(value.shape)}, not {tuple(parameter.shape)}")
            on_device = value.ndim > 0 or parameter.is_cuda  # AdamW counts steps on the CPU there
            optimiser.state[parameter][name.removeprefix(stem)] = (
                value.to(parameter.device) if on_device else value
            )
            left.remove(name)
    if left:
        raise KeyError(f"{min(left)} belongs to no parameter")


def _restore_table(tensors: dict[str, Tensor], table: Tensor | None) -> None:
    """Read the pieces of the puzzle embedding, in their order."""
    pieces = sum(name.startswith("table.") for name in tensors)
    found = [tensors[f"table.{number}"] for number in range(pieces)]
    expected = () if table is None else tuple(table.shape)
    got = (sum(map(len, found)), found[0].shape[1]) if found else ()
    if got != expected:
        raise KeyError(f"the puzzle embedding is {got}, not {expected}")
    if table is not None:
        table.copy_(torch.cat(found))


def _pieces(tensors: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    pieces: list[dict[str, Tensor]] = [{}]
    filled = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        if filled + size > PIECE_BYTES and pieces[-1]:
            pieces.append({})
            filled = 0
        pieces[-1][name] = tensor
        filled += size
    return pieces

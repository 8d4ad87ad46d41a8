"""The training state on disk: small, whole or absent, and exact on resume.

Weights are stored as float32. Momenta and the distance of the average from the weights are
stored in 8 bits with a scale per row, and *the live tensors are rounded to what was stored*,
so that a resumed run and an uninterrupted one go on from the same numbers.
Proved by tests/train/test_resume.py.
"""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from tiltrm.errors import DataError, DegenerateError
from tiltrm.folders import OLD, replacing
from tiltrm.train.ema import EMA

STATES = "state"
PIECE_BYTES = 15 * 2**20  # no file larger than this, so that pieces can be moved about
SMALL = 2**16  # tensors below this many values are stored as they are


class Live(NamedTuple):
    """The objects whose numbers are saved and restored."""

    model: nn.Module
    optimisers: list[Optimizer]
    ema: EMA


@torch.no_grad()
def collect(live: Live) -> dict[str, Tensor]:
    """What is to be stored. Rounds the live state to it (see above), on every process alike."""
    out: dict[str, Tensor] = {}
    for name, tensor in live.model.state_dict().items():
        out[f"model.{name}"] = tensor.detach().cpu().contiguous()
    for index, (weight, average) in enumerate(zip(live.ema.weights, live.ema.average, strict=True)):
        average.copy_(weight + _store(out, f"ema.{index}", average - weight))
    for name, moment in _moments(live.optimisers):
        moment.copy_(_store(out, name, moment))
    broken = [name for name, tensor in out.items() if not bool(tensor.isfinite().all())]
    if broken:
        raise DegenerateError(f"{broken[0]} holds NaN or infinity, so the state was not saved")
    return out


def write(folder: Path, meta: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write `state/<step>/` in the run's folder, whole; then drop the older states."""
    target = folder / STATES / f"{meta['step']:08d}"
    try:
        with replacing(target) as fresh:
            for index, piece in enumerate(_pieces(tensors)):
                save_file(piece, fresh / f"{index}.safetensors", {"meta": json.dumps(meta)})
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
    """The states of a run: whole ones, and perhaps an older one half removed."""
    found = (path.parent for path in folder.glob(f"{STATES}/*/0.safetensors"))
    return [path for path in found if path.stem.isdigit() and path.suffix in ("", OLD)]


def restore(saved: Path, live: Live) -> dict[str, Any]:
    """Read what `write` wrote into live objects of the same shapes; returns the meta record."""
    tensors: dict[str, Tensor] = {}
    try:
        with safe_open(saved / "0.safetensors", "pt") as file:
            meta: dict[str, Any] = json.loads(file.metadata()["meta"])
        for path in sorted(saved.glob("*.safetensors")):
            tensors |= load_file(path)
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise DataError(f"the training state {saved} cannot be read: {error}") from None
    try:
        _distribute(tensors, live)
    except (KeyError, RuntimeError) as error:
        reason = str(error).replace("\n", " ")[:200]
        raise DataError(
            f"the training state {saved} is of another model or optimiser ({reason}); "
            "resume with the settings it was made with"
        ) from None
    return meta


def pack(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """8-bit values and a float32 scale per row of the last dimension."""
    scale = tensor.abs().amax(-1, keepdim=True).float() / 127
    quantised = (tensor / scale.clamp(min=1e-38)).round().to(torch.int8)
    return quantised, scale


def unpack(quantised: Tensor, scale: Tensor) -> Tensor:
    """The numbers that `pack` kept."""
    return quantised.float() * scale


def _store(out: dict[str, Tensor], name: str, tensor: Tensor) -> Tensor:
    """Put a tensor into `out`, packed where it is large; returns the numbers that were kept."""
    if tensor.ndim < 2 or tensor.numel() < SMALL:
        out[name] = tensor.detach().cpu().contiguous()
        return tensor
    quantised, scale = pack(tensor)
    out[f"{name}.q"], out[f"{name}.s"] = quantised.cpu(), scale.cpu()
    return unpack(quantised, scale)


def _fetch(tensors: dict[str, Tensor], name: str) -> Tensor:
    return tensors[name] if name in tensors else unpack(tensors[f"{name}.q"], tensors[f"{name}.s"])


def _parameters(optimisers: list[Optimizer]) -> list[tuple[str, Optimizer, nn.Parameter]]:
    """Every parameter with its optimiser and a stable name for what that remembers of it."""
    return [
        (f"optimiser.{which}.{index}.", optimiser, parameter)
        for which, optimiser in enumerate(optimisers)
        for index, parameter in enumerate(p for g in optimiser.param_groups for p in g["params"])
    ]


def _moments(optimisers: list[Optimizer]) -> list[tuple[str, Tensor]]:
    """Every tensor that the optimisers remember, with its name."""
    return [
        (stem + key, value)
        for stem, optimiser, parameter in _parameters(optimisers)
        for key, value in sorted(optimiser.state[parameter].items())
        if isinstance(value, Tensor)
    ]


@torch.no_grad()
def _distribute(tensors: dict[str, Tensor], live: Live) -> None:
    prefix = "model."
    live.model.load_state_dict(
        {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    )
    for index, (weight, average) in enumerate(zip(live.ema.weights, live.ema.average, strict=True)):
        average.copy_(weight + _fetch(tensors, f"ema.{index}").to(weight.device))
    names = {name.removesuffix(".q").removesuffix(".s") for name in tensors}
    left = {name for name in names if name.startswith("optimiser.")}
    for stem, optimiser, parameter in _parameters(live.optimisers):
        for name in sorted(name for name in left if name.startswith(stem)):
            value = _fetch(tensors, name)
            if value.ndim and value.shape != parameter.shape:
                raise KeyError(f"{name} is {tuple(value.shape)}, not {tuple(parameter.shape)}")
            on_device = value.ndim > 0 or parameter.is_cuda  # AdamW counts steps on the CPU there
            optimiser.state[parameter][name.removeprefix(stem)] = (
                value.to(parameter.device) if on_device else value
            )
            left.remove(name)
    if left:
        raise KeyError(f"{min(left)} belongs to no parameter")


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

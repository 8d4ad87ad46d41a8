"""Loading a model by name or path, in any known format; saving one."""

import os
from collections.abc import Mapping
from pathlib import Path

import torch

from tiltrm.checks import require_whole
from tiltrm.errors import CheckpointError, DeviceError, SettingsError
from tiltrm.model.build import Model
from tiltrm.model.describe import describe
from tiltrm.model.native import CONFIG, is_native_file, load_folder, save

__all__ = ["bundled", "describe", "load", "save"]

BUNDLED = Path(__file__).resolve().parents[1] / "weights"


def bundled() -> list[str]:
    """The names of the models that come with the package."""
    return sorted(config.parent.name for config in BUNDLED.glob(f"*/{CONFIG}"))


def load(
    source: str | os.PathLike[str], *,
    config: str | os.PathLike[str] | Mapping[str, object] | None = None,
    device: str | torch.device = "cpu", dtype: torch.dtype | None = None, fuse: bool | None = None,
    puzzle_id: int | None = None, compact: bool = False, fp8: bool = False,
    int8: bool = False,
) -> Model:  # fmt: skip
    """A frozen model: a bundled name, a native folder, or a peer's checkpoint.

    Args:
        source: A bundled name wins over a folder of that name (write ./name for the folder).
        config: For a peer's checkpoint: a mapping, or the path of a JSON or YAML file. Without it
            the settings inside the checkpoint are used, else config.json or all_config.yaml beside
            it. Missing sizes are inferred from the tensors; `model.import_notes` lists the
            assumptions.
        device: Where the weights go.
        dtype: Of the weights; bfloat16 on CUDA and float32 elsewhere, unless given.
        fuse: Whether the layers run as fused kernels (`tiltrm.kernels`). None: on CUDA, where
            Triton and the GPU can run them.
        puzzle_id: Row of the puzzle embedding, for a model with several; the folder's own, or 0,
            unless given.
        compact: Leave out hidden units that contribute nothing (`tiltrm.model.compact`): fewer
            operations, outputs equal to 1e-3. Such a model cannot be saved.
        fp8: Matrix products of the fused kernels in 8-bit floating point (e4m3), for inference.
        int8: On a CPU, channel mixing in integers of 8 bits, the rest in `dtype`, for inference
            (`tiltrm.model.int8`). Such a model cannot be saved.

    Proved by tests/model/test_native.py, tests/model/test_importers.py,
    tests/model/test_int8.py and
    tests/kernels/test_fuse.py::test_load_fuses_where_the_kernels_run.
    """
    where = _device(device)
    if puzzle_id is not None:
        require_whole("puzzle_id", puzzle_id, 0)
    held = dtype or (torch.bfloat16 if where.type == "cuda" else torch.float32)
    if not held.is_floating_point:
        raise SettingsError(f"dtype must be a floating-point one, got {held}; try torch.float32")
    if int8:
        _check_int8(where, fp8=fp8, fuse=fuse)
    path = _locate(source)
    if path.is_dir() or is_native_file(path):
        if config is not None:
            raise SettingsError(
                f"a config goes with the checkpoints of other codes, but {path} has its own "
                f"{CONFIG}; leave the config out"
            )
        folder = path if path.is_dir() else path.parent
        model = load_folder(folder, where, held, puzzle_id)
        return _prepared(model, where, fuse, compact=compact, fp8=fp8, int8=int8)
    from tiltrm.model.importers import import_checkpoint  # here: native models do not need it

    given = config if config is None or isinstance(config, Mapping) else Path(config)
    model = import_checkpoint(path, given, where, held, puzzle_id)
    return _prepared(model, where, fuse, compact=compact, fp8=fp8, int8=int8)


def _prepared(
    model: Model, device: torch.device, fuse: bool | None, *, compact: bool, fp8: bool, int8: bool
) -> Model:
    """The model as `load` was asked for it: without idle units, fused, in 8-bit products."""
    if compact:
        from tiltrm.model.compact import compact as leave_out_idle_units

        model = leave_out_idle_units(model)
    if int8:
        from tiltrm.model.int8 import with_int8

        return with_int8(model)
    if not fp8:
        return _fused(model, device, fuse)
    from tiltrm.kernels.eight_bit import quantise  # here, as in `_fused`

    return quantise(model)


def _check_int8(device: torch.device, *, fp8: bool, fuse: bool | None) -> None:
    if device.type != "cpu":
        raise DeviceError(
            f"int8=True computes on a CPU, got {device}; leave int8 out, or use fp8=True on a GPU"
        )
    if fp8 or fuse:
        got = "fp8=True" if fp8 else "fuse=True"
        raise SettingsError(f"int8=True computes on a CPU, got {got} for a GPU; leave one out")


def _fused(model: Model, device: torch.device, wanted: bool | None) -> Model:
    """The model with fused layers where `load` says so."""
    if wanted is False or (wanted is None and device.type != "cuda"):
        return model
    from tiltrm import kernels  # here: it imports torch's compiler, which takes a second or more

    runs = kernels.available() and (device.type == "cuda" or kernels.interpreted())
    if wanted and not runs:
        raise DeviceError(
            f"fuse=True needs Triton and a GPU of Hopper's kind or newer, got {device}; "
            "leave fuse out"
        )
    return kernels.fuse(model) if runs else model


def _locate(source: str | os.PathLike[str]) -> Path:
    names = bundled()
    if isinstance(source, str) and source in names:
        return BUNDLED / source
    path = Path(source)
    try:
        found = path.exists()
    except (OSError, ValueError):  # a name too long, or with a zero byte
        found = False
    if not found:
        raise CheckpointError(
            f"expected a bundled name ({', '.join(names) or 'none is bundled'}), a folder or a "
            f"file, got {os.fspath(source)!r}, which is not there; check the spelling or the path"
        )
    return path


def _device(device: str | torch.device) -> torch.device:
    try:
        where = torch.device(device)
        torch.empty(0, device=where)
    except (RuntimeError, AssertionError) as error:
        raise DeviceError(
            f"expected a device that torch has here, got {str(device)!r}; try device='cpu'"
        ) from error
    return where

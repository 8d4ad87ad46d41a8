"""Loading a model by name or path, whoever wrote it; saving one."""

import os
from pathlib import Path

import torch

from tiltrm.errors import CheckpointError, DeviceError, SettingsError
from tiltrm.model.build import Model
from tiltrm.model.describe import describe
from tiltrm.model.importers import import_checkpoint
from tiltrm.model.importers.settings import Source
from tiltrm.model.native import CONFIG, is_native_file, load_folder, save

__all__ = ["bundled", "describe", "load", "save"]

BUNDLED = Path(__file__).resolve().parents[1] / "weights"


def bundled() -> list[str]:
    """The names of the models that come with the package."""
    return sorted(config.parent.name for config in BUNDLED.glob(f"*/{CONFIG}"))


def load(
    source: str | os.PathLike[str], *, config: Source | None = None,
    device: str | torch.device = "cpu", dtype: torch.dtype | None = None,
) -> Model:  # fmt: skip
    """A frozen model: a bundled name, a native folder, or a peer's checkpoint.

    A bundled name wins over a folder of that name (write ./name for the folder). `config` is for
    a peer's checkpoint: a mapping, or the path of a JSON or YAML file. Without it the settings
    inside the checkpoint are taken, else config.json or all_config.yaml beside it; what they do
    not say is inferred from the tensors, and what those do not show is in `model.import_notes`.
    `dtype` is bfloat16 on CUDA and float32 elsewhere, unless given.
    """
    where = _device(device)
    held = dtype or (torch.bfloat16 if where.type == "cuda" else torch.float32)
    if not held.is_floating_point:
        raise SettingsError(f"dtype must be a floating-point one, got {held}; try torch.float32")
    path = _locate(source)
    if path.is_dir() or is_native_file(path):
        if config is not None:
            raise SettingsError(
                f"a config goes with the checkpoints of other codes, but {path} has its own "
                f"{CONFIG}; leave the config out"
            )
        return load_folder(path if path.is_dir() else path.parent, where, held)
    return import_checkpoint(path, config, where, held)


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

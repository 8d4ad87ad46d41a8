"""The origin of results: version and commit of the code, name of the device."""

import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

UNINSTALLED = "tiltrm, not installed"  # a source tree, of any version


def device_name(device: "torch.device") -> str:
    """The name of a GPU, or CPU."""
    import torch  # here, since `tiltrm --version` imports this module and needs no torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def release() -> str:
    """The name and version of the package."""
    try:
        return f"tiltrm {version('tiltrm')}"
    except PackageNotFoundError:
        return UNINSTALLED


@cache
def commit() -> str:
    """The commit of this code, with a note if the code was changed since."""
    found = _git("log", "-1", "--format=%H", "--", ".")
    if not found:
        return "unknown"
    changed = _git("status", "--porcelain", "--", ".")
    return f"{found}{' with changes' if changed else ''}"


def _git(*words: str) -> str:
    """The output of git in the package's folder; empty if it is not in a repository."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()

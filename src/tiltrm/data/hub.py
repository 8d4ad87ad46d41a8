"""The public datasets on their hub: an optional extra, never used unless a dataset is named."""

import importlib
from pathlib import Path

from tiltrm.errors import DataError

REPOSITORIES = {
    "sudoku-extreme": "sapientinc/sudoku-extreme",
    "maze-hard": "sapientinc/maze-30x30-hard-1k",
}


def repository(name: str) -> str | None:
    """The repository of a dataset's short or full name; None where it is no known dataset."""
    return REPOSITORIES.get(name, name if name in REPOSITORIES.values() else None)


def fetch(repository: str, split: str) -> Path:
    """Download one split's CSV, or find it in the hub's cache."""
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise DataError(
            f"expected the package huggingface_hub to download {repository}, got none; "
            "run: pip install tiltrm[hub]"
        ) from error
    try:
        return Path(hub.hf_hub_download(repository, f"{split}.csv", repo_type="dataset"))
    except Exception as error:  # the hub raises errors of many kinds, its HTTP library's among them
        reason = str(error).partition("\n")[0]
        raise DataError(f"expected to download {split} of {repository}, got: {reason}") from error

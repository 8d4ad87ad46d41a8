"""The recordings of a tuning run on disk, part by part, so that a killed run continues.

A part is written whole or not at all and takes about half a minute to make, so a kill loses less
than a minute. Proved by tests/solving/test_tune.py.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tiltrm.errors import CheckpointError, DataError
from tiltrm.folders import replacing_file, write_whole

ABOUT = "about.json"
Arrays = dict[str, np.ndarray[Any, Any]]


class PartStore:
    """A folder of named arrays for one run: `about` says of which weights, puzzles and settings."""

    def __init__(self, folder: Path, weights: str, about: Mapping[str, Any]) -> None:
        """Raise CheckpointError if the folder holds recordings of other weights."""
        self.root = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            owner = folder / ABOUT
            if owner.is_file() and json.loads(owner.read_text()) != {"weights": weights}:
                raise CheckpointError(
                    f"expected recordings of these weights in {folder}, got those of another "
                    "model; name another folder with --store, or delete this one"
                )
            if not owner.is_file():
                write_whole(owner, json.dumps({"weights": weights}))
            self.folder = folder / _name(about)
            self.folder.mkdir(exist_ok=True)
        except (OSError, ValueError) as error:
            raise DataError(
                f"{folder}: expected a folder for recordings, got: {error}; name another with "
                "--store"
            ) from error

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """A small value that is made once and then kept: a budget, the size of a part."""
        path = self.folder / f"{name}.json"
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError):  # not there yet, or damaged
            made = make()
            write_whole(path, json.dumps(made))
            return made

    def part(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """The arrays of this name; made and written where they are not there yet."""
        path = self.folder / f"{name}.npz"
        if path.is_file():
            try:
                with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                    return {key: stored[key] for key in stored.files}
            except (OSError, ValueError, EOFError, KeyError, BadZipFile):
                path.unlink()  # damaged: made again
        made = make()
        with replacing_file(path) as draft, draft.open("wb") as target:
            np.savez_compressed(target, **made)  # type: ignore[arg-type]
        return made

    def has(self, name: str) -> bool:
        """Whether a part is there."""
        return (self.folder / f"{name}.npz").is_file()


def _name(about: Mapping[str, Any]) -> str:
    text = json.dumps(about, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]

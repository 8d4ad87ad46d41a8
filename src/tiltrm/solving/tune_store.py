"""The recordings of a tuning run on disk, part by part, so that a killed run continues.

A part is written whole or not at all and takes about half a minute to make, so a kill loses less
than a minute. Proved by tests/solving/test_tune.py.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

import numpy as np

from tiltrm.errors import CheckpointError, DataError
from tiltrm.folders import replacing_file, write_whole

ABOUT = "about.json"
WIDEST = 256  # bytes of one element: the name of a stopping rule
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
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(
                f"{folder}: expected a folder for recordings, got: {error}; name another with "
                "--store"
            ) from error

    def once(self, name: str, make: Callable[[], float]) -> float:
        """A number above 0 that is made once and then kept: a budget, the size of a part."""
        path = self.folder / f"{name}.json"
        try:
            return _positive(json.loads(path.read_text()))
        except (OSError, ValueError, RecursionError):  # not there yet, or damaged
            made = make()
            write_whole(path, json.dumps(made))
            return made

    def part(
        self,
        name: str,
        make: Callable[[], Arrays],
        *,
        shape: Sequence[int],
        kinds: Mapping[str, str],
    ) -> Arrays:
        """The arrays of this name; made and written where they are not there yet, or damaged.

        shape: of every array. kinds: the kind of numpy type of each array, by name. Nothing is
        unpacked that has another. Proved by tests/solving/test_tune_store.py.
        """
        path = self.folder / f"{name}.npz"
        if path.is_file():
            try:
                with path.open("rb") as file:
                    _check_headers(file, tuple(shape), kinds)
                    file.seek(0)
                    with np.load(file, allow_pickle=False) as stored:
                        return {key: stored[key] for key in kinds}
            except MemoryError:
                raise
            except Exception:  # a damaged file may raise anything in its reader
                path.unlink()
        made = make()
        with replacing_file(path) as draft, draft.open("wb") as target:
            np.savez_compressed(target, **made)  # type: ignore[arg-type]
        return made

    def has(self, name: str) -> bool:
        """Whether a part is there."""
        return (self.folder / f"{name}.npz").is_file()


def _positive(value: object) -> float:
    """Raise ValueError unless it is a number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"expected a number above 0, got {value!r:.40}")
    return value


def _check_headers(file: BinaryIO, shape: tuple[int, ...], kinds: Mapping[str, str]) -> None:
    """Raise ValueError unless the arrays in an NPZ file have these shapes and kinds."""
    with ZipFile(file) as stored:
        for name, kind in kinds.items():
            with stored.open(f"{name}.npy") as member:
                if np.lib.format.read_magic(member) != (1, 0):  # type: ignore[no-untyped-call]
                    raise ValueError(f"expected version 1.0 of the NPY format in {name}")
                header = np.lib.format.read_array_header_1_0(member)  # type: ignore[no-untyped-call]
            found, _, dtype = header
            if found != shape or dtype.kind != kind or dtype.itemsize > WIDEST:
                raise ValueError(f"expected {kind} {shape} in {name}, got {dtype} {found}")


def _name(about: Mapping[str, Any]) -> str:
    text = json.dumps(about, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]

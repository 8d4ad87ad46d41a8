"""A folder of shards, each written whole or not at all, so that a rerun does what is missing."""

import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tiltrm.errors import DataError
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.records import serving
from tiltrm.evaluate.shards import (
    PARQUET,
    SAFETENSORS,
    Given,
    Shard,
    as_columns,
    decode,
    encode,
    have_pyarrow,
)
from tiltrm.folders import flush

PART = ".part"  # being written
DAMAGED = ".damaged"  # moved aside
ABANDONED = 3600.0  # seconds after which a file being written has nobody writing it
KEY = re.compile("[0-9a-f]{16}")


def say(sentence: str) -> None:
    """To a person at the terminal."""
    print(sentence, file=sys.stderr)


class Store:
    """`folder/<key>.parquet`, or `<key>.safetensors` until somebody with pyarrow opens the folder.

    Killed anywhere, a shard is there whole or not there. A file that cannot be read is moved
    aside, named with `tell`, and counts as missing from then on.
    Proved by tests/evaluate/test_store.py.
    """

    def __init__(self, folder: str | Path, tell: Callable[[str], None] = say) -> None:
        self.folder, self.tell = Path(folder), tell
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"the store must be a folder that can be written, got {str(folder)!r} "
                f"({error.strerror}); name another"
            ) from error
        self._clear()
        if have_pyarrow():
            self.pack()

    def has(self, job: Job) -> bool:
        """Whether a shard that serves is here and whole; Parquet counts where it is not opened."""
        keys = [other.key for other in serving(job)]
        unopened = not have_pyarrow() and any(self._path(key, PARQUET).exists() for key in keys)
        return unopened or self._serving(keys) is not None

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """Those that are still to be done, in their order, each once.

        Not those that another of them will serve.
        """
        once = {job.key: job for job in jobs}
        todo = [job for job in once.values() if not self.has(job)]
        return [job for job in todo if not any(o.key in once for o in serving(job)[1:])]

    def write(self, job: Job, columns: Mapping[str, Given], about: Mapping[str, Any]) -> None:
        """Put a shard here, whole."""
        shard = Shard(job, as_columns(columns), dict(about))
        self._put(shard, PARQUET if have_pyarrow() else SAFETENSORS)

    def read(self, jobs: Iterable[Job]) -> list[Shard]:
        """Shards that serve these jobs, in their order, each under its job.

        So a column may be fuller than its job says, where another run kept more.
        """
        found = []
        for job in jobs:
            shard = self._serving(other.key for other in serving(job))
            if shard is None:
                raise DataError(
                    f"{self.folder}: expected the shard {job.key} ({job.method}, seed {job.seed}, "
                    f"fold {job.fold}), got none; compute what is missing first"
                )
            found.append(Shard(job, shard.columns, shard.about))
        return found

    def jobs(self) -> list[Job]:
        """Every job whose shard can be read here, sorted by key."""
        keys = sorted({path.stem for path in self._files()})
        shards = (self._find(key) for key in keys)
        return [shard.job for shard in shards if shard is not None]

    def pack(self) -> None:
        """Turn shards written without pyarrow into Parquet."""
        for path in sorted(self._files(SAFETENSORS)):
            try:
                shard = self._whole(path)
            except FileNotFoundError:  # somebody else has just packed it
                continue
            if shard is not None:
                self._put(shard, PARQUET)
                path.unlink(missing_ok=True)

    def _files(self, *suffixes: str) -> Iterator[Path]:
        for path in self.folder.iterdir():
            if path.suffix in (suffixes or (PARQUET, SAFETENSORS)) and KEY.fullmatch(path.stem):
                yield path

    def _path(self, key: str, suffix: str) -> Path:
        return self.folder / f"{key}{suffix}"

    def _serving(self, keys: Iterable[str]) -> Shard | None:
        """The first of these that is here."""
        return next((shard for key in keys if (shard := self._find(key)) is not None), None)

    def _find(self, key: str) -> Shard | None:
        """The shard of a key. Who packs it puts Parquet there before the other goes."""
        for suffix in (SAFETENSORS, PARQUET):
            path = self._path(key, suffix)
            try:
                shard = self._whole(path) if path.exists() else None
            except FileNotFoundError:  # packed at this moment
                continue
            if shard is not None:
                return shard
        return None

    def _whole(self, path: Path) -> Shard | None:
        """The shard in a file, or None where there was none, and the file is moved aside."""
        try:
            shard = decode(path)
            if shard.job.key == path.stem:
                return shard
            reason = f"{path}: expected the shard {path.stem}, got {shard.job.key}"
        except FileNotFoundError:
            raise
        except OSError as error:
            raise DataError(f"{path}: expected to read it, got: {error.strerror}") from error
        except DataError as error:
            reason = str(error)
        aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}{DAMAGED}")
        try:
            path.rename(aside)
        except OSError as error:
            raise DataError(
                f"{reason}; move it aside, which failed here: {error.strerror}"
            ) from error
        self.tell(f"{reason}; it is now {aside.name} and will be computed again")
        return None

    def _put(self, shard: Shard, suffix: str) -> None:
        target = self._path(shard.job.key, suffix)
        draft = self.folder / f"{shard.job.key}.{secrets.token_hex(4)}{PART}"
        try:
            draft.write_bytes(encode(shard, suffix))
            flush(draft)
            os.replace(draft, target)
            flush(self.folder)
        except OSError as error:
            raise DataError(
                f"{target}: expected to write a shard, got: {error.strerror}; make room there and "
                "run the same again"
            ) from error
        finally:
            draft.unlink(missing_ok=True)

    def _clear(self) -> None:
        """Remove what killed processes left half-written; others may be writing at this moment."""
        for path in self.folder.glob(f"*{PART}"):
            try:
                if time.time() - path.stat().st_mtime > ABANDONED:
                    path.unlink()
            except OSError:  # its writer has just finished
                continue

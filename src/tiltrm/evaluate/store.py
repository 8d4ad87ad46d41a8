"""A folder of shards, each written completely or not at all; a rerun computes the missing ones."""

import os
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from tiltrm.errors import DataError
from tiltrm.evaluate.job import ALGORITHM, DIAGNOSE, Job
from tiltrm.evaluate.options import RECORDS
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
from tiltrm.provenance import UNINSTALLED, release

PART = ".part"  # being written
DAMAGED = ".damaged"  # moved aside
ABANDONED = 3600.0  # seconds after which a .part file has no writer any more
KEY = re.compile("[0-9a-f]{16}")


def say(sentence: str) -> None:
    """Print a sentence to the person at the terminal."""
    print(sentence, file=sys.stderr)


def covering(job: Job) -> list[Job]:
    """The job, then the same run with more recorded: a shard of any of them has all it needs.

    Proved by tests/evaluate/test_store.py::test_a_job_is_covered_by_runs_that_record_more.
    """
    own = job.options
    left_out = [name for name in RECORDS if own.get(name) is False]
    choices = product((False, True), repeat=len(left_out))
    recorded = (dict(zip(left_out, flags, strict=True)) for flags in choices)
    return [replace(job, settings=tuple((own | more).items())) for more in recorded]


class Store:
    """`folder/<key>.parquet`; without pyarrow `<key>.safetensors`, converted once pyarrow is there.

    If the process is killed, a shard is there completely or not at all. A file that cannot be read
    is moved aside, reported with `tell`, and counts as missing from then on.
    Proved by tests/evaluate/test_store.py.
    """

    def __init__(self, folder: str | Path, tell: Callable[[str], None] = say) -> None:
        self.folder, self.tell = Path(folder), tell
        self._told: set[tuple[str, str]] = set()
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
        """Whether an intact shard covers the job; without pyarrow, Parquet counts as intact."""
        keys = [other.key for other in covering(job)]
        unopened = not have_pyarrow() and any(self._path(key, PARQUET).exists() for key in keys)
        return unopened or self._first(keys) is not None

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs that are still to be computed, in their order, each once.

        A job that another missing one will cover is left out.
        """
        once = {job.key: job for job in jobs}
        todo = [job for job in once.values() if not self.has(job)]
        return [job for job in todo if not any(other.key in once for other in covering(job)[1:])]

    def write(self, job: Job, columns: Mapping[str, Given], about: Mapping[str, Any]) -> None:
        """Write the shard of a job."""
        shard = Shard(job, as_columns(columns), dict(about))
        self._put(shard, PARQUET if have_pyarrow() else SAFETENSORS)

    def read(
        self, jobs: Iterable[Job], puzzles: int | Mapping[str, int] | None = None
    ) -> list[Shard]:
        """Shards that cover these jobs, in their order, each labelled with its job.

        `puzzles` is the size of their data set, or sizes by checksum, where these are known; shards
        that lack rows are an error.

        A shard may have more columns filled than its job asks for, if another run recorded more.
        """
        found = []
        for job in jobs:
            shard = self._first(other.key for other in covering(job))
            if shard is None:
                raise DataError(
                    f"{self.folder}: expected the shard {job.key} ({job.method}, seed {job.seed}, "
                    f"fold {job.fold}), got none; compute what is missing first"
                )
            found.append(Shard(job, shard.columns, shard.about))
        self._check_folds(found, puzzles)
        self._tell_versions(found)
        return found

    def _check_folds(
        self, shards: Iterable[Shard], puzzles: int | Mapping[str, int] | None
    ) -> None:
        """Raise DataError if the folds of a data set cannot be of the same number of puzzles."""
        sizes: dict[tuple[str, int | None], tuple[int, ...]] = {}  # least and most puzzles
        for shard in shards:
            job = shard.job
            if job.kind == DIAGNOSE:
                continue
            rows = len(shard["puzzle"])
            low, high = job.fold + (rows - 1) * job.folds + 1, job.fold + rows * job.folds
            count = puzzles.get(job.checksum) if isinstance(puzzles, Mapping) else puzzles
            whole = (0, sys.maxsize) if count is None else (count, count)
            cut = tuple(min(size, job.limit or sys.maxsize) for size in whole)
            least, most = sizes.get((job.checksum, job.limit), cut)
            low, high = max(low, least), min(high, most)
            if low > high:
                raise DataError(
                    f"{self.folder}: expected shards of the same puzzles, got {job.key} (method "
                    f"{job.method}, seed {job.seed}, fold {job.fold}) with {rows} rows, which does "
                    "not fit the others; remove the one that lacks rows"
                )
            sizes[job.checksum, job.limit] = low, high

    def _tell_versions(self, shards: Iterable[Shard]) -> None:
        """Say which shards another version of the code computed; their keys do not tell.

        Each version is said once. Shards without the number of an algorithm are of the first.
        The algorithm alone counts for shards of a source tree, whose version is unknown.
        """
        now = release(), str(ALGORITHM)
        made = Counter(
            (str(shard.about.get("tiltrm", now[0])), str(shard.about.get("algorithm", 1)))
            for shard in shards
        )
        for version, count in made.items():
            if version in (now, (UNINSTALLED, now[1])) or version in self._told:
                continue
            self._told.add(version)
            self.tell(
                f"{self.folder}: {count} of {made.total()} shards were computed by {version[0]} "
                f"with algorithm {version[1]}, not {now[0]} with {now[1]}; remove them to compute "
                "them again"
            )

    def jobs(self) -> list[Job]:
        """Every job whose shard can be read here, sorted by key."""
        keys = sorted({path.stem for path in self._files()})
        shards = (self._find(key) for key in keys)
        return [shard.job for shard in shards if shard is not None]

    def pack(self) -> None:
        """Convert shards that were written without pyarrow to Parquet."""
        for path in sorted(self._files(SAFETENSORS)):
            try:
                shard = self._intact(path)
            except FileNotFoundError:  # another process has just packed it
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

    def _first(self, keys: Iterable[str]) -> Shard | None:
        """The first of these shards that is here."""
        return next((shard for key in keys if (shard := self._find(key)) is not None), None)

    def _find(self, key: str) -> Shard | None:
        """The shard of a key. Packing writes the Parquet file before it removes the other."""
        for suffix in (SAFETENSORS, PARQUET):
            path = self._path(key, suffix)
            try:
                shard = self._intact(path) if path.exists() else None
            except FileNotFoundError:  # packed by another process at this moment
                continue
            if shard is not None:
                return shard
        return None

    def _intact(self, path: Path) -> Shard | None:
        """The shard in a file; None if the file is damaged, which is then moved aside."""
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
        content = encode(shard, suffix)
        try:
            try:
                self._replace(target, draft, content)
            except FileNotFoundError:  # cleared by a process whose clock is hours ahead
                self._replace(target, draft, content)
        except OSError as error:
            raise DataError(
                f"{target}: expected to write a shard, got: {error.strerror}; make room there and "
                "run the same again"
            ) from error
        finally:
            draft.unlink(missing_ok=True)

    def _replace(self, target: Path, draft: Path, content: bytes) -> None:
        draft.write_bytes(content)
        flush(draft)
        os.replace(draft, target)
        flush(self.folder)

    def _clear(self) -> None:
        """Remove half-written files of killed processes, but not those being written right now."""
        for path in self.folder.glob(f"*{PART}"):
            try:
                if time.time() - path.stat().st_mtime > ABANDONED:
                    path.unlink()
            except OSError:  # its writer has just finished
                continue

"""Atomic replacement of folders: after a kill, a folder is complete or absent."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tiltrm.errors import DataError, SettingsError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
PART, OLD = ".part", ".old"  # being written; being replaced


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """An empty folder to write into; on exit it is flushed to disk and becomes `target`.

    After a kill at any moment, `recover` leaves the old folder or the new one, never a mixture.
    Proved by tests/train/test_kill.py.
    """
    fresh, old = _beside(target, PART), _beside(target, OLD)
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(parents=True)
        yield fresh
        for path in (*fresh.iterdir(), fresh):
            flush(path)
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
        fresh.rename(target)
        flush(target.parent)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """A file to write beside `path`, which it replaces on exit: a full disk destroys nothing.

    A device or a pipe is written directly. Proved by tests/cli/test_faults.py.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        yield draft
        if path.exists():
            shutil.copymode(path, draft)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text file by `replacing_file`."""
    with replacing_file(path) as draft:
        draft.write_text(text, encoding="utf-8")


@contextmanager
def locked(folder: Path, purpose: str) -> Iterator[None]:
    """Hold a folder for this process; SettingsError if another process holds it.

    The system releases the lock when the process ends, however it ends. Where it has no such locks
    (Windows), nothing is locked. Proved by tests/train/test_lock.py.
    """
    if fcntl is None:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise DataError(f"{folder}: expected to write there, got: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SettingsError(
                f"expected to {purpose} in {folder} alone, got another process that does; wait for "
                "it, or choose another folder"
            ) from error
        yield
    finally:
        os.close(handle)


def recover(target: Path) -> None:
    """Put the old folder back if `replacing` was killed between its two renamings."""
    old = _beside(target, OLD)
    if old.exists() and not target.exists():
        old.rename(target)


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(target.name + suffix)


def flush(path: Path) -> None:
    """Flush a file or a folder's entries to disk, if the system can open them for that."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

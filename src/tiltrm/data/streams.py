"""Files of a bounded size, plain or gzip; every failure is a DataError."""

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from tiltrm.errors import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_BYTES = 10**9  # of a file after decompression, unless the caller gives another limit
MAX_RATIO = 200  # of decompressed to compressed bytes: puzzles have 3 to 15, a bomb has 1,000
ALWAYS_READ = 16 * 10**6  # decompressed bytes that may have any ratio
GZIP_MAGIC = b"\x1f\x8b"

PathName = str | os.PathLike[str]


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class CountingStream(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: _Readable) -> None:
        super().__init__()
        self._stream, self.count = stream, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        block = self._stream.read(len(view))
        view[: len(block)] = block
        self.count += len(block)
        return len(block)


class BoundedStream(CountingStream):
    """A stream that raises DataError once more than `most()` bytes have been read."""

    def __init__(self, stream: _Readable, most: Callable[[], int]) -> None:
        super().__init__(stream)
        self._most = most

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        length = super().readinto(buffer)
        if self.count > self._most():
            raise DataError(
                f"expected at most {self._most():,} bytes of text, got more; split the file, or "
                "allow more with --max-bytes"
            )
        return length


@contextmanager
def open_bounded(path: PathName, max_bytes: int | None = None) -> Iterator[io.BufferedReader]:
    """The bytes of a file, decompressed if it is gzip.

    Without `max_bytes` at most MAX_BYTES are read, and of a compressed file no more than puzzles
    can be. Errors of decoding text inside the block become DataError too.
    """
    try:
        with open(path, "rb") as raw:
            zipped = raw.peek(2)[:2] == GZIP_MAGIC  # peek, since a pipe cannot go back
            packed = CountingStream(raw)
            stream: _Readable = raw
            if zipped:
                stream = gzip.GzipFile(fileobj=io.BufferedReader(packed))

            def most() -> int:
                if max_bytes is not None or not zipped:
                    return MAX_BYTES if max_bytes is None else max_bytes
                return min(MAX_BYTES, max(ALWAYS_READ, MAX_RATIO * packed.count))

            yield io.BufferedReader(BoundedStream(stream, most))
    except UnicodeDecodeError as error:
        raise DataError("expected UTF-8 text, got other bytes; convert it") from error
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DataError(f"expected a readable file, got: {reason}") from error

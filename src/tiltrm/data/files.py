"""Lines of a file, plain or gzip, bounded in size, every failure a DataError."""

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from tiltrm.errors import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_BYTES = 2 * 10**9  # after decompression: more is a mistake or a bomb
MAX_LINE = 10**6  # characters: no puzzle is longer, and a bomb has no line ends
GZIP_MAGIC = b"\x1f\x8b"

Name = str | os.PathLike[str]


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Bounded(io.RawIOBase):
    """A stream that raises DataError once more than `most` bytes have been read."""

    def __init__(self, stream: _Readable, most: int) -> None:
        super().__init__()
        self._stream, self._left, self._most = stream, most, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        block = self._stream.read(len(view))
        view[: len(block)] = block
        self._left -= len(block)
        if self._left < 0:
            raise DataError(f"expected at most {self._most} bytes, got more; split the file")
        return len(block)


def lines(path: Name) -> Iterator[str]:
    """The lines of a UTF-8 file with their ends, decompressed where it is gzip.

    Its errors do not name the file: whoever opens it does.
    """
    try:
        with open(path, "rb") as raw:
            zipped = raw.peek(2)[:2] == GZIP_MAGIC  # a look, not a read: pipes cannot go back
            stream = gzip.GzipFile(fileobj=raw) if zipped else raw
            yield from _text_lines(io.BufferedReader(Bounded(stream, MAX_BYTES)))
    except UnicodeDecodeError as error:
        raise DataError("expected UTF-8 text, got other bytes; convert it") from error
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DataError(f"expected a readable file, got: {reason}") from error


def _text_lines(stream: io.BufferedReader) -> Iterator[str]:
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    while line := text.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise DataError(f"expected lines of at most {MAX_LINE} characters, got a longer one")
        yield line

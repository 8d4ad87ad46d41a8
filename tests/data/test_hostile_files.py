"""Random bytes, encodings and shapes: a reader returns puzzles or raises a TiltrmError."""

import gzip
import io
import json
import os
import tempfile
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tiltrm.data import read, read_lines, reading, stream_lines, streams, text_files
from tiltrm.errors import DataError, TiltrmError
from tiltrm.tasks import MAZE, SUDOKU, Sudoku, Task

TOY = Sudoku(2)
TASKS = st.sampled_from([None, SUDOKU, TOY, MAZE])
GOOD_CSV = "source,question,answer,rating\nmade,1.........2.....,,3\n" + "a," * 4
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp500"])
MANY = settings(deadline=None, max_examples=150)


def bytes_of_texts() -> st.SearchStrategy[bytes]:
    texts = st.text() | st.text('question,answer"\r\n.123456789#SGo \0|-+', max_size=200)
    return st.builds(lambda text, code: text.encode(code, "replace"), texts, ENCODINGS)


def attempt(path: Path, task: Task | None) -> None:
    """Every way in, each to Puzzles or a TiltrmError; anything else fails the test."""
    for limit in (None, 1):
        with suppress(TiltrmError):
            found = read(path, task, limit=limit)
            assert found.task.well_formed(found.questions).all()
    with suppress(TiltrmError):
        read_lines(path, task)


@given(st.binary(max_size=300) | bytes_of_texts(), TASKS, st.booleans())
@example(GOOD_CSV.encode(), None, False)
@example(b"question\n" + b"\0" * 81, None, False)
@example(b'question\n"' + b"." * 200_000 + b'"\n', None, False)
@example(b"\x1f\x8b", None, False)
@MANY
def test_any_file(content: bytes, task: Task | None, zipped: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f"
        path.write_bytes(gzip.compress(content) if zipped else content)
        attempt(path, task)


@given(st.text(), TASKS)
@MANY
def test_any_text_for_solving(text: str, task: Task | None) -> None:
    try:
        entries = read_lines(text, task)
    except TiltrmError:
        return
    for _, outcome in entries:
        assert isinstance(outcome, TiltrmError) or outcome.dtype == torch.uint8


@given(st.text(max_size=5000), st.none() | st.text(max_size=20))
@MANY
def test_any_name(name: str, split: str | None) -> None:
    if os.path.exists(name):
        return
    with pytest.raises(TiltrmError):
        read(name, split=split)


@given(st.integers(1, 400), st.integers(0, 255))
@settings(deadline=None, max_examples=60)
def test_a_damaged_gzip(cut: int, flip: int) -> None:
    content = bytearray(gzip.compress(("question\n" + ("." * 81 + "\n") * 40).encode()))
    cut = min(cut, len(content) - 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.gz"
        path.write_bytes(content[:-cut])
        attempt(path, None)
        content[cut] ^= flip
        path.write_bytes(content)
        attempt(path, None)


ARRAYS = arrays.arrays(
    st.sampled_from(["i1", "u1", "i4", ">i8", "u8", "f4", "bool", "c8", "U2", "M8[s]"]),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=16),
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
DESCRIPTIONS = st.dictionaries(
    st.sampled_from(["seq_len", "vocab_size", "ignore_label_id", "sets", "pad_id"]),
    LEAVES | st.lists(LEAVES, max_size=3) | st.sampled_from([16, 81, 900, 6, 11]),
)


@given(
    st.binary(max_size=100) | ARRAYS,
    st.binary(max_size=100) | ARRAYS,
    st.binary(max_size=100) | DESCRIPTIONS | st.just({"seq_len": 16, "vocab_size": 6}),
    TASKS,
)
@MANY
def test_any_npy_folder(
    inputs: bytes | np.ndarray,
    labels: bytes | np.ndarray,
    about: bytes | dict[str, object],
    task: Task | None,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for name, content in (("inputs", inputs), ("labels", labels)):
            if isinstance(content, np.ndarray):
                np.save(path / f"all__{name}.npy", content)
            else:
                (path / f"all__{name}.npy").write_bytes(content)
        text = about if isinstance(about, bytes) else json.dumps(about).encode()
        (path / "dataset.json").write_bytes(text)
        with suppress(TiltrmError):
            read(path, task)


@given(st.binary(max_size=120))
@MANY
def test_any_npy_header(noise: bytes) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.ones((1, 16), np.int32))
    content = bytearray(buffer.getvalue())
    content[6 : 6 + len(noise)] = noise
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "dataset.json").write_text('{"seq_len": 16, "vocab_size": 6}')
        for name in ("inputs", "labels"):
            (path / f"all__{name}.npy").write_bytes(content)
        with suppress(TiltrmError):
            read(path)


def test_a_deep_description_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dataset.json").write_text("[" * 200_000)
    with pytest.raises(DataError, match=r"readable dataset\.json"):
        read(tmp_path)


def test_a_gzip_bomb_ends_early_and_small(tmp_path: Path) -> None:
    """200 MB without a line end: refused after a million characters, without holding them all."""
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(200):
            stream.write(b"." * 10**6)
    tracemalloc.start()
    with pytest.raises(DataError, match="lines of at most 1000000 characters"):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 10**6


def test_a_bomb_of_short_lines_ends_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"question\n" + b"\n" * 300_000))
    assert len(list(text_files.lines(path))) == 300_001
    monkeypatch.setattr(streams, "MAX_BYTES", 100_000)
    with pytest.raises(DataError, match="at most 100,000 bytes"):
        read(path)


def test_a_folder_that_cannot_be_read_as_a_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected a readable file, got: Is a directory"):
        read_lines(tmp_path)


@pytest.mark.parametrize("line", [b"\n", b"1\n", b"." * 81 + b"\n"])
def test_a_bomb_is_recognised_by_its_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    """Refused soon after the part of any ratio, a hundredth of the text."""
    monkeypatch.setattr(streams, "ALWAYS_READ", 20_000)
    monkeypatch.setattr(streams, "MAX_RATIO", 20)
    path, length = tmp_path / "bomb.gz", 2_000_000
    path.write_bytes(gzip.compress(line * (length // len(line)), 9))
    found: list[str] = []
    with pytest.raises(DataError, match="allow more with --max-bytes"):
        found.extend(text_files.lines(path))
    assert sum(map(len, found)) < length / 2
    with pytest.raises(DataError, match="allow more with --max-bytes"):
        read(path, TOY if line == b"1\n" else SUDOKU)


def test_a_limit_that_is_given_counts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "ALWAYS_READ", 1000)
    monkeypatch.setattr(streams, "MAX_RATIO", 2)
    path = tmp_path / "same.gz"
    path.write_bytes(gzip.compress((TOY.decode(TOY.generate(0)[0]) + "\n").encode() * 1000))
    with pytest.raises(DataError, match="at most"):
        read(path, TOY)
    assert len(read(path, TOY, max_bytes=17_000)) == 1000
    with pytest.raises(DataError, match="at most 16,999 bytes"):
        read(path, TOY, max_bytes=16_999)


def test_a_limit_beyond_all_numbers_is_no_limit(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text(TOY.decode(TOY.generate(0)[0]))
    assert len(read(path, TOY, limit=99999999999999999999)) == 1


def test_text_is_encoded_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grids that cross the border of a part, and the number of a bad puzzle, stay the same."""
    texts = [TOY.decode(TOY.generate(seed)[0]) for seed in range(9)]
    rows = "\n".join(text[i : i + 4] for text in texts for i in range(0, 16, 4))
    path = tmp_path / "grids.txt"
    path.write_text(rows)
    whole = read(path, TOY).questions
    monkeypatch.setattr(text_files, "CHUNK", 5)
    assert torch.equal(read(path, TOY).questions, whole)
    path.write_text(rows + "\n\n11..............")
    with pytest.raises(DataError, match="puzzle 10: clues conflict"):
        read(path, TOY)


@pytest.mark.parametrize("head", [b"", b"question\n"])
def test_a_file_of_something_else_ends_after_some_bad_puzzles(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "numbers.txt"
    path.write_bytes(head + b"1\n" * 100_000)
    tracemalloc.start()
    with pytest.raises(DataError, match=r"numbers\.txt: expected puzzles, got 1,000 bad ones in a"):
        read_lines(path, SUDOKU)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * 10**6


def test_bad_puzzles_among_good_ones_stop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BAD_IN_A_ROW", 3)
    good = TOY.decode(TOY.generate(0)[0])
    path = tmp_path / "mixed.txt"
    path.write_text(f"{good}\n{'11' + '.' * 14}\n{'22' + '.' * 14}\n" * 50)
    found = [isinstance(result, TiltrmError) for _, result in read_lines(path, TOY)]
    assert found == [False, True, True] * 50
    monkeypatch.setattr(reading, "MAX_ENTRIES", 149)
    with pytest.raises(DataError, match="at most 149 puzzles, got more; split the file"):
        read_lines(path, TOY)


def test_entries_are_read_one_by_one(tmp_path: Path) -> None:
    """20,000 puzzles of 16 cells: the first is there when a few thousand lines are read."""
    path = tmp_path / "many.txt"
    path.write_text((TOY.decode(TOY.generate(0)[0]) + "\n") * 20_000 + "." * 2_000_000)
    first = next(iter(stream_lines(path, TOY)))
    assert torch.equal(torch.as_tensor(first[1]), TOY.generate(0)[0])

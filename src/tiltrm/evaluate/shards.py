"""The files of shards: Parquet, or safetensors on machines without pyarrow.

Both are needed: Parquet is a quarter of the size, and computing must not require the extras.
A column is a numpy array with one row per puzzle: (puzzle,), or (puzzle, n) for a list in every
row. Texts are object arrays. None is a column of nulls.
"""

import hashlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save as save_tensors
from torch import Tensor

from tiltrm.errors import DataError, SettingsError
from tiltrm.evaluate.job import DIAGNOSE, Job

PARQUET, SAFETENSORS = ".parquet", ".safetensors"
Column = np.ndarray[Any, Any] | None
Columns = dict[str, Column]
Given = Tensor | np.ndarray[Any, Any] | Sequence[Any] | None
KINDS = {  # kind of numpy type and dimensions of the columns that tables read
    **dict.fromkeys(("puzzle", "evaluations", "outer_steps", "inputs"), ("i", 1)),
    **dict.fromkeys(("exact", "oracle", "shortest", "valid"), ("b", 1)),
    **dict.fromkeys(("pass_2", "pass_1_votes", "pass_2_votes"), ("b", 1)),
    **dict.fromkeys(("confidence", "halt_probability"), ("f", 1)),
    "decided_by": ("O", 1),
    **dict.fromkeys(("exact_by_step", "oracle_by_step", "cell_right", "free"), ("b", 2)),
    **dict.fromkeys(("terminal_entropy", "path_entropy"), ("f", 2)),
    "off": ("i", 2),
}
ALWAYS = ("puzzle", "exact")
LONGEST_TEXT = 64  # characters of a text in a shard of several rows
LONGEST_FIGURES = 2**24  # characters of the one text of a diagnosis; real ones have 40,000
MAX_TEXTS = 2**22  # texts in a shard, ten times the puzzles of the largest data set
MAX_SIZE = 2**30  # bytes of a shard's numbers; the largest real ones have a hundredth
SIZES = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}  # bytes of a number
JOB, ABOUT, DIGEST, TEXTS, NULLS = "job", "about", "sha256", "texts", "nulls"  # metadata


@dataclass(frozen=True, eq=False)
class Shard:
    """The rows of one job, and the record of how they were computed (never part of a table)."""

    job: Job
    columns: Columns
    about: dict[str, Any]

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        """A column; DataError if it is missing or null."""
        column = self.columns.get(name)
        if column is None:
            raise DataError(f"expected a shard with the column {name}, got {sorted(self.columns)}")
        return column


def have_pyarrow() -> bool:
    """Whether Parquet can be read and written here; SettingsError if pyarrow cannot be imported."""
    if importlib.util.find_spec("pyarrow") is None:
        return False
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise SettingsError(
            f"expected a pyarrow that can be imported, got: {error}; install it again, or remove it"
        ) from error
    return True


def as_columns(given: Mapping[str, Given]) -> Columns:
    """Tensors and lists of texts as numpy arrays."""
    return {name: _as_column(value) for name, value in given.items()}


def _as_column(value: Given) -> Column:
    if value is None or isinstance(value, np.ndarray):
        return value
    if isinstance(value, Tensor):
        return value.detach().cpu().contiguous().numpy()
    return np.array(list(value), dtype=object)


def digest(columns: Columns) -> str:
    """SHA-256 of all columns, independent of the file format."""
    sum_ = hashlib.sha256()
    for name, column in sorted(columns.items()):
        kind = None if column is None else (column.dtype.str, column.shape)
        sum_.update(json.dumps([name, kind]).encode())
        if column is not None:
            text = column.dtype == object
            sum_.update(json.dumps(column.tolist()).encode() if text else column.tobytes())
    return sum_.hexdigest()


def encode(shard: Shard, suffix: str) -> bytes:
    """The content of a shard's file."""
    return (_to_parquet if suffix == PARQUET else _to_safetensors)(shard)


def decode(path: Path) -> Shard:
    """The shard in a file; DataError if the file is damaged or not a shard."""
    if path.suffix == PARQUET and not have_pyarrow():
        raise SettingsError(
            f"{path.name}: expected pyarrow to read it, got none; pip install 'tiltrm[report]'"
        )
    try:
        header, columns = (_from_parquet if path.suffix == PARQUET else _from_safetensors)(path)
        if digest(columns) != header[DIGEST]:
            raise DataError(f"its columns do not have the SHA-256 {header[DIGEST]}")
        job = Job.from_dict(header[JOB])
        check_columns(job, columns)
        if not isinstance(header[ABOUT], dict):
            raise DataError("its record of how it was computed is no object")
        return Shard(job, columns, header[ABOUT])
    except Exception as error:  # a damaged file may raise anything in its reader
        machine = isinstance(error, FileNotFoundError | MemoryError)
        if machine or getattr(error, "errno", None) is not None:
            raise
        reason = " ".join(str(error).split())[:120]
        raise DataError(
            f"{path}: expected a complete shard, got a damaged file ({reason})"
        ) from error


def check_columns(job: Job, columns: Columns) -> None:
    """Raise DataError unless the columns have their types and the puzzles of their fold.

    These are every folds-th from the fold's number on; how many there are only the data set
    knows (`Store.read`). Proved by tests/evaluate/test_store.py.
    """
    if job.kind == DIAGNOSE:
        if _kind(columns.get("figures")) != ("O", 1):
            raise DataError("expected a column figures of texts, got another")
        return
    for name, kind in KINDS.items():
        found = _kind(columns.get(name))
        if found != kind and (found is not None or name in ALWAYS):
            raise DataError(f"expected a column {name} of kind {kind}, got {found}")
    puzzle = columns["puzzle"]
    assert puzzle is not None
    for name, column in columns.items():
        if column is not None and len(column) != len(puzzle):
            raise DataError(f"expected {len(puzzle)} rows of {name}, got {len(column)}")
    expected = job.fold + job.folds * np.arange(len(puzzle))
    if not len(puzzle) or not np.array_equal(puzzle, expected):
        raise DataError(f"expected the puzzles {job.fold}, {job.fold + job.folds}, ..., got others")


def _kind(column: Column) -> tuple[str, int] | None:
    """The kind of numpy type and the number of dimensions."""
    return None if column is None else (column.dtype.kind, column.ndim)


def _to_safetensors(shard: Shard) -> bytes:
    """Texts become numbers with the words in the header, which also names the null columns."""
    tensors: dict[str, Tensor] = {}
    texts: dict[str, list[str]] = {}
    for name, column in shard.columns.items():
        if column is None:
            continue
        if column.dtype == object:
            words, codes = np.unique(column.astype(str), return_inverse=True)
            texts[name], column = words.tolist(), codes.astype(np.int64)
        tensors[name] = torch.from_numpy(
            np.array(column)
        )  # a copy, since two columns may share memory
    nulls = [name for name, column in shard.columns.items() if column is None]
    return save_tensors(tensors, _header(shard, **{TEXTS: texts, NULLS: nulls}))


def _header(shard: Shard, **more: Any) -> dict[str, str]:
    """The metadata of a file: JSON texts by name."""
    known = {JOB: shard.job.as_dict(), ABOUT: shard.about, DIGEST: digest(shard.columns)}
    return {name: json.dumps(value) for name, value in {**known, **more}.items()}


def _from_safetensors(path: Path) -> tuple[dict[str, Any], Columns]:
    with safe_open(path, "np") as file:
        header = {name: json.loads(text) for name, text in (file.metadata() or {}).items()}
        columns: Columns = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, words in header[TEXTS].items():
        codes = columns[name]
        assert codes is not None
        _require_short(name, max(map(len, words), default=0), codes.size)
        columns[name] = np.array(words, dtype=object)[codes]
    return header, columns | dict.fromkeys(header[NULLS])


def _to_parquet(shard: Shard) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = next(len(column) for column in shard.columns.values() if column is not None)
    arrays = {name: _arrow(column, rows) for name, column in shard.columns.items()}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays).replace_schema_metadata(_header(shard)), sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _arrow(column: Column, rows: int) -> Any:
    import pyarrow as pa

    if column is None:
        return pa.nulls(rows)
    if column.dtype == object:
        return pa.array(column, pa.string())
    if column.ndim == 1:
        return pa.array(column)
    offsets = np.arange(rows + 1, dtype=np.int32) * column.shape[1]
    return pa.ListArray.from_arrays(offsets, pa.array(column.reshape(-1)))


def _from_parquet(path: Path) -> tuple[dict[str, Any], Columns]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        texts = _require_moderate(file.metadata)
    table = pq.read_table(path, partitioning=None, read_dictionary=texts)
    metadata = table.schema.metadata or {}
    header = {name: json.loads(metadata[name.encode()]) for name in (JOB, ABOUT, DIGEST)}
    return header, {name: _unpacked(name, table[name]) for name in table.column_names}


def _require_moderate(metadata: Any) -> list[str]:
    """Names of the text columns; DataError if the file unpacks to more than a shard holds.

    Repeated values are stored once, so a file of 1 MB may hold billions of numbers.
    """
    numbers, texts = 0, []
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for place in range(group.num_columns):
            column = group.column(place)
            if column.physical_type == "BYTE_ARRAY":
                texts.append(column.path_in_schema)
                rows = max(1, column.num_values)
                _require_short(texts[-1], (column.total_uncompressed_size - 1024) // rows, rows)
            else:
                width = SIZES.get(column.physical_type) or metadata.schema.column(place).length
                numbers += column.num_values * width
    if max(numbers, metadata.num_rows) > MAX_SIZE:
        raise DataError(f"expected at most {MAX_SIZE:,} bytes of numbers, got {numbers:,}")
    return texts


def _require_short(name: str, length: int, rows: int) -> None:
    """Raise DataError unless a column with texts of this length may have this many rows."""
    most = LONGEST_FIGURES if rows == 1 else LONGEST_TEXT
    if length > most or rows > MAX_TEXTS:
        raise DataError(
            f"expected at most {MAX_TEXTS:,} texts of at most {most} characters in {name}, got "
            f"{rows:,} of up to {length:,}"
        )


def _unpacked(name: str, column: Any) -> Column:
    """A column of a Parquet file; the words of a text are looked at before they are repeated."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        for chunk in column.chunks:
            _require_short(name, pc.max(pc.utf8_length(chunk.dictionary)).as_py() or 0, len(column))
        column = column.cast(pa.string())
    return _numpy(column.combine_chunks())


def _numpy(array: Any) -> Column:
    import pyarrow as pa

    if pa.types.is_null(array.type):
        return None
    if pa.types.is_list(array.type):
        flat: np.ndarray[Any, Any] = array.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(len(array), -1) if len(flat) else flat.reshape(len(array), 0)
    values: np.ndarray[Any, Any] = array.to_numpy(zero_copy_only=False)
    return values

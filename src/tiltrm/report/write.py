"""Files of a reproduction: PNG, SVG and CSV for every item, and one page of all of them."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from tiltrm.errors import DataError, SettingsError
from tiltrm.report.book import Cover, book
from tiltrm.report.sheet import Cell, Sheet, Table, pictures

PAGE = "index.html"


def write(sheets: Sequence[Sheet], cover: Cover, folder: Path) -> list[Path]:
    """Write all of it, the page last; the files in order. The same sheets give the same bytes."""
    writable(folder)
    files: dict[str, bytes] = {}
    for sheet in sheets:
        files |= pictures(sheet) | {f"{sheet.name}.csv": as_csv(sheet.data).encode()}
    files[PAGE] = book(sheets, cover).encode()
    for name, content in files.items():
        _put(folder / name, content)
    return [folder / name for name in files]


def writable(folder: Path) -> None:
    """Make the folder; SettingsError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"--out must be a folder that can be written, got {str(folder)!r} ({error.strerror}); "
            "name another"
        ) from error


def _put(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise DataError(f"{path}: expected to write there, got: {error.strerror}") from error


def as_csv(table: Table) -> str:
    """Comma-separated, numbers with 6 digits, nothing for None."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.head)
    writer.writerows([_plain(value) for value in row] for row in table.rows)
    return out.getvalue()


def _plain(value: Cell) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)

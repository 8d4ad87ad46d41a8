"""The names of puzzle ids: `puzzles.json` beside the weights, a JSON list in the order of the ids.

It has the form of `identifiers.json`, which TinyRecursiveModels and HRM write beside their data.
Proved by tests/model/test_puzzle_names.py.
"""

import json
from pathlib import Path

from tiltrm.errors import CheckpointError

NAMES = "puzzles.json"
MAX_NAMES = 1 << 29  # bytes of such a file


def read_names(path: Path, rows: int | None) -> tuple[str, ...]:
    """The names in a file, one for each of the `rows` of the puzzle embedding, if that is given."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_NAMES + 1)
        if len(content) > MAX_NAMES:
            raise ValueError
        names = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"expected a JSON list of the names of puzzle ids in {path}, got "
            f"{type(error).__name__}; give the identifiers.json of the model's training data"
        ) from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CheckpointError(
            f"expected a JSON list of names in {path}, got something else; give the "
            "identifiers.json of the model's training data"
        )
    if rows is not None and len(names) != rows:
        raise CheckpointError(
            f"expected {rows:,} names in {path}, one for each row of the puzzle embedding, got "
            f"{len(names):,}; give the identifiers.json of the model's training data"
        )
    return tuple(names)


def names_text(names: tuple[str, ...]) -> str:
    """The content of the file."""
    return json.dumps(list(names)) + "\n"

"""What one shard holds: everything that decides its content is a field of its job."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import Tensor

from tiltrm.data.splits import folds
from tiltrm.errors import DataError
from tiltrm.records import build_record

# Raise it when the same job gives other results. tests/evaluate/test_run.py compares known ones.
ALGORITHM = 1
SOLVE, DIAGNOSE, ARC_TASKS = "solve", "diagnose", "arc"
NAMES = ("model", "data", "split")  # for people: where things were found, and what they call them


@dataclass(frozen=True)
class Job:
    """One method with one setting, one seed, one fold of one set of puzzles."""

    kind: str  # "solve", "diagnose", or "arc": whole ARC tasks, each a puzzle in the sense below
    model: str  # bundled name or folder, as typed
    weights: str  # tiltrm.evaluate.target.fingerprint: the first 16 hex digits of a SHA-256
    task: str  # "sudoku", "maze"
    data: str  # path, as typed
    split: str  # "Test", "val": a label for people
    checksum: str  # tiltrm.data.splits.checksum of the whole data set, or ArcTarget.checksum
    limit: int | None  # the first so many puzzles
    method: str  # a name in tiltrm.evaluate.peers.METHODS, or "diagnose"
    settings: tuple[tuple[str, Any], ...]  # all of them, sorted by name; JSON values
    seed: int
    fold: int
    folds: int

    def __post_init__(self) -> None:
        # Through JSON and sorted, so that lists, tuples and another order make the same job.
        plain = json.loads(json.dumps(dict(self.settings), sort_keys=True))
        object.__setattr__(self, "settings", tuple((n, _frozen(v)) for n, v in plain.items()))

    @property
    def key(self) -> str:
        """16 hex digits of all fields but the NAMES: same weights, same puzzles, same shard."""
        content = {name: value for name, value in self.as_dict().items() if name not in NAMES}
        text = json.dumps(content, sort_keys=True, allow_nan=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def options(self) -> dict[str, Any]:
        """The settings by name."""
        return dict(self.settings)

    def without(self, name: str) -> "Job":
        """The job without this setting."""
        return replace(self, settings=tuple(pair for pair in self.settings if pair[0] != name))

    def rows(self, count: int) -> Tensor:
        """The fold's places in a data set of `count` puzzles."""
        return folds(count if self.limit is None else min(count, self.limit), self.folds)[self.fold]

    def as_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return {**asdict(self), "settings": self.options}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Job":
        """The inverse of `as_dict`; DataError where the names are not the fields."""
        settings = values.get("settings")
        if not isinstance(settings, dict):
            raise DataError(f"a job's settings must be a mapping, got {settings!r:.60}")
        own = {**values, "settings": tuple(settings.items())}
        return build_record(cls, own, where="job", error=DataError)


def _frozen(value: Any) -> Any:
    """Lists as tuples, so that a job can be hashed."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value

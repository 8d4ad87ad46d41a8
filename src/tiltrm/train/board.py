"""TensorBoard, where its package is installed and somebody asked for it."""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tiltrm.errors import SettingsError


class Board:
    """Every number of the run's record as a curve, in `tensorboard/` of the run's folder."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise SettingsError(
                "--tensorboard needs the package tensorboard; run: pip install tiltrm[train]"
            ) from None
        self.open = partial(SummaryWriter, str(folder / "tensorboard"))
        self.writer: Any = self.open()

    def rewind(self, step: int) -> None:
        """Take back the points after this step: they are lost, and will be done again.

        A new file begins where they do, which tells TensorBoard to drop those of older files.
        """
        self.writer.close()
        self.writer = self.open(purge_step=step + 1)

    def add(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        """One point on the curve of each number, groups inside groups named a/b/c."""
        for name, value in numbers(kind, values):
            self.writer.add_scalar(name, value, step)
        self.writer.flush()


def numbers(name: str, value: object) -> Iterator[tuple[str, float]]:
    """The finite numbers in nested groups, with their paths."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from numbers(f"{name}/{key}", inner)
    elif isinstance(value, int | float) and math.isfinite(value):
        yield name, float(value)

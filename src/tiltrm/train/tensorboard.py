"""TensorBoard curves of a run, written if --tensorboard is given and the package is installed."""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tiltrm.errors import SettingsError


class TensorBoardWriter:
    """Writes every number of the run's log as a curve into `tensorboard/` of the run's folder."""

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
        """Drop the points after this step, because the run repeats those steps.

        A new file with a purge step tells TensorBoard to drop the later points of older files.
        """
        self.writer.close()
        self.writer = self.open(purge_step=step + 1)

    def add(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        """Add one point per number; nested groups make names such as a/b/c."""
        for name, value in flatten(kind, values):
            self.writer.add_scalar(name, value, step)
        self.writer.flush()


def flatten(name: str, value: object) -> Iterator[tuple[str, float]]:
    """The finite numbers in nested groups, with their paths."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flatten(f"{name}/{key}", inner)
    elif isinstance(value, int | float) and math.isfinite(value):
        yield name, float(value)

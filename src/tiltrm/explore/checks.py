"""Numbers that somebody gave, checked where they come in."""

import math
import operator
import sys

from tiltrm.errors import SettingsError

LARGEST = sys.float_info.max  # a whole number beyond it is no float


def require_whole(name: str, value: object, least: int | None = None) -> int:
    """The value, a whole number of at least `least`; SettingsError where it is something else."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        bound = "" if least is None else f" >= {least}"
        raise SettingsError(f"{name} must be a whole number{bound}, got {value!r}")
    return number


def require_number(name: str, value: object, most: float = math.inf) -> None:
    """SettingsError unless the value is a finite number from 0 to `most`."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if not real or not 0 <= value <= min(most, LARGEST):  # type: ignore[operator]
        limits = f"in [0, {most:g}]" if most < math.inf else "finite and >= 0"
        raise SettingsError(f"{name} must be a number {limits}, got {value!r:.60}")

"""Checks of numbers that a user gave."""

import math
import operator
import sys

from tiltrm.errors import SettingsError

LARGEST = sys.float_info.max  # a larger whole number is no float


def require_whole(name: str, value: object, least: int | None = None) -> int:
    """The value if it is a whole number of at least `least`; else SettingsError."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        bound = "" if least is None else f" >= {least}"
        raise SettingsError(f"{name} must be a whole number{bound}, got {value!r}")
    return number


def require_number(name: str, value: object, most: float = math.inf, least: float = 0.0) -> float:
    """The value as a float if it is a number in [least, most] and finite; else SettingsError."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if not real or not max(least, -LARGEST) <= value <= min(most, LARGEST):  # type: ignore[operator]
        limits = f"in [{least:g}, {most:g}]" if most < math.inf else f"finite and >= {least:g}"
        bounds = "" if least == -math.inf and most == math.inf else f" {limits}"
        raise SettingsError(f"{name} must be a number{bounds}, got {value!r:.60}")
    return float(value)  # type: ignore[arg-type]

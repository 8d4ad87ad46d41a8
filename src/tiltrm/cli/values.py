"""The grammar of settings on the command line, the same for `evaluate` and `train`."""

import re
import tomllib
from typing import Any

from tiltrm.errors import SettingsError

WORD = r"[\w.:/-]+"
BARE_WORDS = re.compile(rf"{WORD}([ \t]*[+*][ \t]*{WORD})*")  # majority, halting + 2*rules


def parse_value(text: str) -> Any:
    """A TOML value (0.5, true, "a b", [[1, 20]]), `null` for None, or a bare word as a str.

    A sum such as halting+2*rules is a bare word too. Proved by tests/cli/test_values.py.
    """
    stripped = text.strip()
    if stripped == "null":
        return None
    try:
        parsed = tomllib.loads(f"value = {stripped}")
    except (ValueError, RecursionError):  # also a number of too many digits, or too many brackets
        parsed = {}
    if list(parsed) == ["value"]:
        return parsed["value"]
    if BARE_WORDS.fullmatch(stripped):
        return stripped
    raise SettingsError(f"expected a TOML value or a bare word, got {text[:80]!r}; quote a text")


def parse_assignment(text: str) -> tuple[str, Any]:
    """'noise=0.5' -> ('noise', 0.5); see `parse_value`."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise SettingsError(f"expected a setting as KEY=VALUE, got {text[:80]!r}")
    return name.strip(), parse_value(value)

"""One grammar for settings on the command line: TOML values, and bare words."""

from typing import Any

import pytest

from tiltrm.cli.values import parse_assignment, parse_value
from tiltrm.errors import SettingsError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3), ("-1", -1), ("1e-3", 0.001), ("0.5 ", 0.5), ("1_000", 1000), ("true", True),
        ("false", False), ("inf", float("inf")), ("null", None), ("[0.1, 0.2]", [0.1, 0.2]),
        ("[[1,20],[8,24,false,0.6]]", [[1, 20], [8, 24, False, 0.6]]), ('"a b"', "a b"),
        ("'1'", "1"), ("majority", "majority"), ("halting+2*rules", "halting+2*rules"),
        ("halting + 0.5 * rules", "halting + 0.5 * rules"), ("NaN", "NaN"), ("1.2.3", "1.2.3"),
        ("runs/best-1", "runs/best-1"), ("9" * 5000, "9" * 5000),
    ],
)  # fmt: skip
def test_values(text: str, value: Any) -> None:
    found = parse_value(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "text", ["1 2", "1\nseed = 2", "[1, 2", "[1] x", '"open', "a b", "a=b", "", "[" * 9999, "{a"]
)
def test_values_that_are_neither(text: str) -> None:
    with pytest.raises(SettingsError, match="expected a TOML value or a bare word, got"):
        parse_value(text)


def test_assignments() -> None:
    assert parse_assignment("noise=0.5") == ("noise", 0.5)
    assert parse_assignment(" schedule.final = word") == ("schedule.final", "word")
    for text in ("noise", "=1", "noise=", "noise= ", ""):
        with pytest.raises(SettingsError, match="expected a setting as KEY=VALUE, got"):
            parse_assignment(text)

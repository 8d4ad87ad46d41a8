"""The one builder of records from plain values: what it takes, and one sentence for the rest."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from tiltrm.errors import CheckpointError, SettingsError
from tiltrm.records import build_record, convert


@dataclass(frozen=True)
class Inner:
    width: int = 1


@dataclass(frozen=True)
class Outer:
    name: str
    rate: float = 0.5
    pair: tuple[int, float] = (1, 1.0)
    many: tuple[int, ...] = ()
    notes: list[str] | None = None
    above: float | None = None
    sizes: dict[str, object] = field(default_factory=dict)
    inner: Inner = field(default_factory=Inner)
    select: str | Callable[[int], int] = "map"
    anything: Any = None


def test_every_kind_of_field_is_built() -> None:
    built = build_record(
        Outer,
        {
            "name": "x", "rate": 2, "pair": [3, 4], "many": [5, 6], "notes": ["a"], "above": 1,
            "sizes": {"cells": 81}, "inner": {"width": 7}, "select": abs, "anything": b"",
        },
    )  # fmt: skip
    assert built == Outer("x", 2.0, (3, 4.0), (5, 6), ["a"], 1.0, {"cells": 81}, Inner(7), abs, b"")
    assert [type(value) for value in (built.rate, built.pair[1], built.above)] == [float] * 3
    assert build_record(Outer, {"name": "x", "above": None}) == Outer("x")
    assert build_record(Outer, {"name": "x", "inner": Inner(9)}).inner == Inner(9)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "the setting group.name is missing; give it"),
        ({"name": "x", "nam": 1}, "unknown setting group.nam; expected one of name, rate"),
        ({"name": "x", "a\nb": 1}, r"unknown setting group.a\\nb; expected"),
        ({"name": 3}, "group.name must be a text in quotes, got 3"),
        ({"name": "x", "rate": True}, "group.rate must be a number, got True"),
        ({"name": "x", "rate": 10**400}, "group.rate must be a number of usual size"),
        ({"name": "x", "pair": [1]}, "group.pair must be a list of 2, got"),
        ({"name": "x", "many": [1, "2"]}, r"group.many\[1\] must be a whole number, got '2'"),
        ({"name": "x", "notes": [1]}, r"group.notes\[0\] must be a text in quotes, got 1"),
        ({"name": "x", "above": "2"}, "group.above must be a number or null, got '2'"),
        ({"name": "x", "sizes": 3}, "group.sizes must be a group of settings, got 3"),
        ({"name": "x", "inner": {"width": 1.0}}, "group.inner.width must be a whole number"),
        ({"name": "x", "inner": {"depth": 1}}, "unknown setting group.inner.depth"),
        ("x", "group must be a group of settings, got 'x'"),
    ],
)  # fmt: skip
def test_wrong_values_are_named_by_the_error_asked_for(values: Any, reason: str) -> None:
    for error in (SettingsError, CheckpointError):
        with pytest.raises(error, match=reason) as caught:
            build_record(Outer, values, "group", error)
        assert "\n" not in str(caught.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)


@hypothesis(deadline=None)
@given(VALUES)
def test_a_converted_value_has_the_type_asked_for(value: object) -> None:
    for kind in (int, float, bool, str):
        try:
            assert type(convert(kind, value, "x")) is kind
        except SettingsError:
            assert type(value) is not kind or kind is float

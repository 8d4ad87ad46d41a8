"""Frozen records from the plain values of a TOML or JSON file, checked; plain values for JSON."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from reprlib import repr
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from tiltrm.errors import SettingsError, TiltrmError

Record = TypeVar("Record")
EXPECTED = {
    int: "a whole number", float: "a number", bool: "true or false", str: "a text in quotes",
    NoneType: "null",
}  # fmt: skip


def build_record(
    kind: type[Record], mapping: Mapping[str, Any], where: str = "",
    error: type[TiltrmError] = SettingsError,
) -> Record:  # fmt: skip
    """Build the dataclass `kind` from a mapping of its fields, nested dataclasses included.

    Args:
        kind: a dataclass. Fields may be numbers, texts, bools, None, tuples, lists, dicts, other
            dataclasses, or unions of these. A field of any other type takes the value unchecked.
        mapping: the values by field name. A field with a default may be absent.
        where: the dotted name of the record in messages; "" for the outermost one.
        error: the class of the error that an unknown name, a missing name or a wrong type raises.

    Proved by tests/test_records.py and tests/train/test_settings.py::test_fuzz.
    """
    if not isinstance(mapping, Mapping):
        raise error(f"{where or 'the record'} must be a group of settings, got {repr(mapping)}")
    hints = get_type_hints(kind)
    prefix = f"{where}." if where else ""
    unknown = sorted(str(name) for name in mapping if name not in hints)
    if unknown:
        first = unknown[0][:80].encode("unicode_escape").decode()  # keeps the message on one line
        raise error(f"unknown setting {prefix}{first}; expected one of {', '.join(hints)}")
    for field in fields(kind):  # type: ignore[arg-type]
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in mapping:
            raise error(f"the setting {prefix}{field.name} is missing; give it")
    return kind(
        **{name: convert(hints[name], value, prefix + name, error)
           for name, value in mapping.items()}
    )  # fmt: skip


def convert(kind: Any, value: Any, name: str, error: type[TiltrmError] = SettingsError) -> Any:
    """The value as the type `kind`. A float accepts a whole number, a tuple accepts a list."""
    origin = get_origin(kind)
    if is_dataclass(kind):
        if type(value) is kind:
            return value
        return build_record(kind, value, name, error)  # type: ignore[arg-type]
    if origin in (Union, UnionType):
        return _convert_union(get_args(kind), value, name, error)
    if origin in (tuple, list):
        return origin(_convert_items(origin, get_args(kind), value, name, error))
    if origin is dict and not isinstance(value, Mapping):
        raise error(f"{name} must be a group of settings, got {repr(value)}")
    if kind not in EXPECTED:
        return value
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise error(f"{name} must be {EXPECTED[kind]}, got {repr(value)}")
    try:
        return None if kind is NoneType else kind(value)
    except OverflowError:
        raise error(f"{name} must be {EXPECTED[kind]} of usual size, got a huge one") from None


def _convert_union(kinds: tuple[Any, ...], value: Any, name: str, error: type[TiltrmError]) -> Any:
    """The value as the first type of the union that accepts it; else the first type's complaint."""
    complaints = []
    for kind in kinds:
        try:
            return convert(kind, value, name, error)
        except error as complaint:
            complaints.append(complaint)
    if all(kind in EXPECTED for kind in kinds):
        expected = " or ".join(EXPECTED[kind] for kind in kinds)
        raise error(f"{name} must be {expected}, got {repr(value)}")
    raise complaints[0]


def _convert_items(
    container: type, kinds: tuple[Any, ...], value: Any, name: str, error: type[TiltrmError]
) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise error(f"{name} must be a list, got {repr(value)}")
    if container is list or kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(value) != len(kinds):
        raise error(f"{name} must be a list of {len(kinds)}, got {repr(value)}")
    pairs = enumerate(zip(kinds, value, strict=True))
    return [convert(kind, item, f"{name}[{place}]", error) for place, (kind, item) in pairs]


def nan_to_null(value: Any) -> Any:
    """Nested values with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: nan_to_null(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [nan_to_null(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

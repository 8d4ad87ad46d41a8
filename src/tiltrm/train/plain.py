"""Records of settings from the plain values of a TOML or JSON file, every type checked."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from reprlib import repr
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from tiltrm.errors import SettingsError

Record = TypeVar("Record")
NAMES = {
    int: "a whole number", float: "a number", bool: "true or false", str: "a text in quotes",
}  # fmt: skip


def build(kind: type[Record], values: Mapping[str, Any], where: str = "") -> Record:
    """A frozen record of `kind`, groups inside it too; `where` names the group in messages.

    Never another error than SettingsError. Proved by tests/train/test_settings.py::test_fuzz.
    """
    if not isinstance(values, Mapping):
        raise SettingsError(f"{where[:-1]} must be a group of settings, got {repr(values)}")
    hints = get_type_hints(kind)
    known: Any = fields(kind)  # type: ignore[arg-type]
    unknown = sorted(str(name) for name in values if name not in hints)
    if unknown:
        first = (
            where + unknown[0][:80].encode("unicode_escape").decode()
        )  # one line, whatever it is
        raise SettingsError(f"unknown setting {first}; known: {', '.join(hints)}")
    absent = [f.name for f in known if f.name not in values and _required(f)]
    if absent:
        raise SettingsError(f"the setting {where}{absent[0]} is missing; give it")
    return kind(**{n: convert(hints[n], v, where + n) for n, v in values.items()})


def convert(kind: Any, value: Any, name: str) -> Any:
    """The value as `kind`: a number, text, tuple or record. A float takes a whole number too."""
    if is_dataclass(kind):
        return build(kind, value, f"{name}.")  # type: ignore[arg-type]
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind), value, name)
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise SettingsError(f"{name} must be {NAMES[kind]}, got {repr(value)}")
    try:
        return kind(value)
    except OverflowError:
        raise SettingsError(f"{name} must be {NAMES[kind]} of usual size, got a huge one") from None


def _tuple(kinds: tuple[Any, ...], value: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise SettingsError(f"{name} must be a list, got {repr(value)}")
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(value) != len(kinds):
        raise SettingsError(f"{name} must be a list of {len(kinds)}, got {repr(value)}")
    pairs = enumerate(zip(kinds, value, strict=True))
    return tuple(convert(kind, inner, f"{name}[{place}]") for place, (kind, inner) in pairs)


def _required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING

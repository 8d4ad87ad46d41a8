"""A peer's settings: from a mapping, a JSON file or a plain YAML file, read with their types."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from reprlib import repr
from typing import NamedTuple

from tiltrm.errors import CheckpointError, SettingsError

Source = str | os.PathLike[str] | Mapping[str, object]
BESIDE = ("config.json", "all_config.yaml")  # looked for beside a checkpoint, in this order
SECTIONS = ("arch", "model")  # where the two codes nest the settings of the network


class Settings(NamedTuple):
    """Settings by the peer's names. A setting that is absent or null reads as None."""

    values: Mapping[str, object]
    origin: str  # for messages

    def whole(self, *names: str) -> int | None:
        """The first of these names that is set, a whole number from 0."""
        name, value = self._first(names)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
            return value
        raise self._wrong(name, "a whole number from 0", value)

    def number(self, *names: str) -> float | None:
        """The first of these names that is set, a number."""
        name, value = self._first(names)
        if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            return value
        raise self._wrong(name, "a number", value)

    def flag(self, *names: str) -> bool | None:
        """The first of these names that is set, true or false."""
        name, value = self._first(names)
        if value is None or isinstance(value, bool):
            return value
        raise self._wrong(name, "true or false", value)

    def word(self, *names: str) -> str | None:
        """The first of these names that is set, a text."""
        name, value = self._first(names)
        if value is None or isinstance(value, str):
            return value
        raise self._wrong(name, "a text", value)

    def _first(self, names: tuple[str, ...]) -> tuple[str, object]:
        held = [name for name in names if self.values.get(name) is not None]
        return (held[0], self.values[held[0]]) if held else ("", None)

    def _wrong(self, name: str, expected: str, value: object) -> SettingsError:
        return SettingsError(
            f"{name} of {self.origin} must be {expected}, got {repr(value)}; mend it there"
        )


def find(checkpoint: Path, config: Source | None, inside: Mapping[str, object]) -> Settings:
    """The settings given, else those inside the file, else those of a config file beside it."""
    if isinstance(config, Mapping):
        return Settings({**inside, **flat(config)}, "config=")
    if config is not None:
        path = Path(config)
        return Settings({**inside, **flat(read(path))}, path.name)
    if inside:
        return Settings(flat(inside), checkpoint.name)
    for name in BESIDE:
        path = checkpoint.parent / name
        if path.is_file():
            return Settings(flat(read(path)), name)
    return Settings({}, "no configuration")


def flat(values: Mapping[str, object]) -> dict[str, object]:
    """The settings, those of the network's section lifted out."""
    lifted = {str(name): value for name, value in values.items()}
    for section in SECTIONS:
        inner = values.get(section)
        if isinstance(inner, Mapping):
            lifted.update({str(name): value for name, value in inner.items()})
    return lifted


def read(path: Path) -> Mapping[str, object]:
    """The mapping that a .json, .yaml or .yml file holds."""
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text) if path.suffix == ".json" else parse_yaml(text)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"expected a JSON or YAML configuration in {path}, got {type(error).__name__}; "
            "mend it or give another with config="
        ) from error
    if not isinstance(values, Mapping) or not values:
        raise CheckpointError(
            f"expected a mapping of settings in {path}, got {repr(values)}; "
            "mend it or give another with config="
        )
    return values


def parse_yaml(text: str) -> dict[str, object]:
    """Nested mappings of plain scalars, by indentation; lists and anything finer are left out."""
    root: dict[str, object] = {}
    open_sections: list[tuple[int, dict[str, object]]] = [(-1, root)]
    for line in text.splitlines():
        entry = re.match(r"( *)([A-Za-z_][\w.-]*):(?: +(.*))?$", line.rstrip())
        if entry is None:
            continue
        indent, name, value = len(entry[1]), entry[2], (entry[3] or "").strip()
        while open_sections[-1][0] >= indent:
            open_sections.pop()
        section = open_sections[-1][1]
        if value and not value.startswith("#"):
            section[name] = scalar(value)
        else:
            section[name] = inner = dict[str, object]()
            open_sections.append((indent, inner))
    return root


def scalar(text: str) -> object:
    """A YAML scalar: quoted text, null, a truth value, a number, or the text itself."""
    if quoted := re.match(r"(['\"])(.*?)\1\s*(#.*)?$", text):
        return quoted[2]
    text = re.sub(r"\s+#.*$", "", text)
    words: dict[str, object] = {"null": None, "~": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text

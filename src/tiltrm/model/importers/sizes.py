"""The sizes of a peer's model: from its settings, else from its tensors, else a noted default.

A setting wins over a tensor, so that a file which does not fit its configuration is refused
with every tensor named. Cells and heads have no default: a wrong one gives a model that loads and
computes something else.
"""

from collections.abc import Mapping, Sequence
from reprlib import repr
from typing import NamedTuple

from torch import Tensor

from tiltrm.errors import CheckpointError, SettingsError
from tiltrm.model.build import sizes
from tiltrm.model.importers.peers import PeerFormat
from tiltrm.model.layers import multiple_of
from tiltrm.model.trm import TRMConfig

ARC_VOCABULARY = 12  # pad, end of grid, ten colours
TASKS = {  # vocabulary -> task, cells
    11: ("sudoku", 81), 6: ("maze", 900), ARC_VOCABULARY: ("arc", 900)
}  # fmt: skip
SCHEDULES = {  # cycles, inner steps of a TRM
    "sudoku": (3, 6), "maze": (3, 4), "arc": (3, 4), "": (3, 6)
}  # fmt: skip
REMEDY = "give the model's configuration (--config FILE, or config= in Python)"
ROTARY = {"rope": True, "1d": True, "none": False, "learned": False}


class PeerSettings(NamedTuple):
    """Settings by the peer's names. A setting that is absent or null reads as None."""

    values: Mapping[str, object]
    origin: str  # a file's name, or config=; for messages

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
            f"{name} of {self.origin} must be {expected}, got {repr(value)}; correct it there"
        )


class ImportContext(NamedTuple):
    """A checkpoint being imported: its tensors by tiltrm's names, and its peer's settings."""

    source: str  # the file's name, for messages
    peer: PeerFormat
    tensors: Mapping[str, Tensor]
    settings: PeerSettings
    notes: list[str]

    def size(self, name: str, dim: int) -> int | None:
        """One side of a tensor; None if the tensor is absent or has fewer dimensions."""
        shape = self.tensors[name].shape if name in self.tensors else ()
        return shape[dim] if dim < len(shape) else None

    def whole(self, name: str) -> int | None:
        """The peer's setting of this name, a whole number."""
        return self.settings.whole(*self.peer.settings.get(name, ()))

    def assume(self, setting: str, value: int | str) -> None:
        """Note a setting that is neither in the configuration nor visible in the tensors."""
        self.notes.append(f"{setting} {value} assumed; {REMEDY} if it is another")

    def missing(self, names: Sequence[str]) -> CheckpointError:
        """The error that asks for settings which the tensors do not show."""
        asked = " and ".join(self.peer.settings[name][0] for name in names)
        them = "it" if len(names) == 1 else "them"
        got = f"{self.settings.origin} without {them}" if self.settings.values else "none"
        return CheckpointError(
            f"expected {asked} in the configuration of {self.source}, because the tensors do not "
            f"show {them}, got {got}; {REMEDY}"
        )


def infer_sizes(context: ImportContext) -> TRMConfig:
    """The sizes of the model. Cells and heads that nothing shows are asked for, never guessed."""
    width = context.whole("width") or context.size("embedding", 1)
    width = width or context.size("first_answer", 0)
    vocabulary = context.whole("vocabulary") or context.size("embedding", 0)
    vocabulary = vocabulary or context.size("token_head.weight", 0)
    if not width or not vocabulary:
        sides = {"width": width, "vocabulary": vocabulary}
        raise context.missing([name for name, size in sides.items() if not size])
    first = next(iter(context.peer.networks))
    token_mixing = context.settings.flag(*context.peer.settings["token_mixing"])
    if token_mixing is None:
        token_mixing = any(".mlp_t." in name for name in context.tensors)
    prefix, cells = _positions(context, first, width, vocabulary)
    heads = _heads(context, width, token_mixing)
    if cells is None or heads is None:
        unknown = {"cells": cells, "heads": heads}
        raise context.missing([name for name, size in unknown.items() if size is None])
    found: dict[str, object] = {
        "cells": cells, "vocabulary": vocabulary, "width": width, "prefix": prefix,
        "token_mixing": token_mixing, "heads": heads,
        "expansion": _expansion(context, first, width, prefix + cells),
        **_layers(context),
        **_position_encoding(context, token_mixing),
        **_schedule(context, vocabulary, cells),
        "eps": context.settings.number(*context.peer.settings["eps"]) or 1e-5,
    }  # fmt: skip
    return sizes(context.peer.kind, found)


def task_of(cells: int, vocabulary: int) -> str:
    """The task that has these sizes, or ""."""
    task, size = TASKS.get(vocabulary, ("", 0))
    return task if size == cells else ""


def _positions(
    context: ImportContext, first: str, width: int, vocabulary: int
) -> tuple[int, int | None]:
    """Prefix positions and cells; None for cells that nothing shows.

    Token mixing and learned positions show the sum of both. A length of the puzzle embedding that
    is usual beside a task's cells settles both.
    """
    total = context.size(f"{first}.layers.0.mlp_t.down_proj.weight", 0)
    total = total or context.size("position_embedding", 0) or 0
    numbers = context.whole("prefix_numbers")
    if numbers is None:
        numbers = context.size("prefix", 1) or 0
    shortest, prefix = -(-numbers // width), context.whole("prefix")
    cells, usual = context.whole("cells") or None, TASKS.get(vocabulary, ("", 0))[1]
    if numbers == 0:
        prefix = 0
    elif prefix == 0 or context.peer.prefix is None:
        prefix = prefix or shortest
    elif prefix is None:
        prefix = max(shortest, context.peer.prefix)
        if cells is None and usual and total - usual in (shortest, prefix):
            cells = usual
        if cells is None:
            return prefix, None
        if total > cells:
            return total - cells, cells
        context.assume("puzzle_emb_len", prefix)
    return prefix, cells or (total - prefix if total > prefix else None)


def _heads(context: ImportContext, width: int, token_mixing: bool) -> int | None:
    """Heads leave no trace in the tensors. Token mixing has none, and any number serves."""
    given = context.whole("heads")
    if given is not None or not token_mixing:
        return given
    heads = width // 64 or 1
    return heads if width % (2 * heads) == 0 else 1


def _expansion(context: ImportContext, first: str, width: int, positions: int) -> float:
    """The expansion of the settings, else the first that gives the hidden sizes found."""
    given = context.settings.number(*context.peer.settings["expansion"])
    if given is not None:
        return given
    found = [
        (side, hidden)
        for mix, side in (("mlp", width), ("mlp_t", positions))
        if (hidden := context.size(f"{first}.layers.0.{mix}.down_proj.weight", 1))
    ]
    exact = [1.5 * hidden / side for side, hidden in found]
    for expansion in (4.0, *map(float, range(1, 17)), *exact):
        if all(multiple_of(expansion * side * 2 / 3, 256) == hidden for side, hidden in found):
            return expansion
    return 4.0  # nothing fits: the tensors that do not are named when the model is put together


def _layers(context: ImportContext) -> dict[str, int]:
    """Layers of each network, from the settings or the highest index among the tensors."""
    layers = {}
    for setting, network in zip(("layers", "answer_layers"), context.peer.networks, strict=False):
        start = f"{network}.layers."
        names = [name.removeprefix(start) for name in context.tensors if name.startswith(start)]
        indices = [name.split(".")[0] for name in names]
        highest = max((int(i) for i in indices if i.isdecimal() and len(i) < 6), default=0)
        layers[setting] = context.whole(setting) or highest + 1
    return layers


def _position_encoding(context: ImportContext, token_mixing: bool) -> dict[str, object]:
    """The encoding of positions: rotary angles, a learned table, or none."""
    names = context.peer.settings["positions"]
    found: dict[str, object] = {"learned_positions": "position_embedding" in context.tensors}
    theta = context.settings.number(*context.peer.settings["rotary_theta"])
    word = context.settings.word(*names)
    if word is not None and word not in ROTARY:
        raise CheckpointError(
            f"{names[0]} must be one of {', '.join(ROTARY)}, got {word}; "
            "other encodings of positions cannot be loaded"
        )
    if word is not None:
        found["learned_positions"] = word == "learned"
    elif not token_mixing and not found["learned_positions"]:
        null = any(name in context.settings.values for name in names)  # set, to no positions
        word = "none" if null else "rope"
        if not null:
            context.assume(names[0], word)
    rotary = not token_mixing and word is not None and ROTARY[word]
    return {**found, "rotary": rotary, "rotary_theta": 10000.0 if theta is None else theta}


def _schedule(context: ImportContext, vocabulary: int, cells: int) -> dict[str, int]:
    """Cycles and inner steps; the published ones of the task where the settings lack them."""
    cycles, inner = SCHEDULES[task_of(cells, vocabulary)]
    if context.peer.kind == "hrm":
        cycles, inner = 2, 2
    schedule = {}
    for name, usual in (("cycles", cycles), ("inner_steps", inner)):
        given = context.whole(name)
        if given is None:
            context.assume(context.peer.settings[name][0], usual)
        schedule[name] = usual if given is None else given
    return schedule

"""The sizes of a peer's model: from its settings, else from its tensors, else by a noted default.

A setting wins over a tensor, so that a file which does not fit its configuration is refused
with every tensor named, not bent to fit.
"""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from tiltrm.errors import CheckpointError
from tiltrm.model.build import sizes
from tiltrm.model.importers.peers import Peer
from tiltrm.model.importers.settings import Settings
from tiltrm.model.layers import multiple_of
from tiltrm.model.trm import TRMConfig

TASKS = {11: ("sudoku", 81), 6: ("maze", 900)}  # vocabulary -> task, cells
SCHEDULES = {"sudoku": (3, 6), "maze": (3, 4), "": (3, 6)}  # cycles, inner steps of a TRM
ROTARY = {"rope": True, "1d": True, "none": False, "learned": False}


class Evidence(NamedTuple):
    """What is known of the model: its tensors by tiltrm's names, and the peer's settings."""

    peer: Peer
    tensors: Mapping[str, Tensor]
    settings: Settings
    notes: list[str]

    def size(self, name: str, dim: int) -> int | None:
        """One side of a tensor; None where the tensor is absent or of fewer dimensions."""
        shape = self.tensors[name].shape if name in self.tensors else ()
        return shape[dim] if dim < len(shape) else None

    def whole(self, name: str) -> int | None:
        """The peer's setting of this name, a whole number."""
        return self.settings.whole(*self.peer.settings.get(name, ()))

    def assume(self, what: str, value: int | str) -> None:
        """Note something that neither the settings nor the tensors say."""
        self.notes.append(f"{what} {value} assumed; give it with config= if it is another")


def infer(known: Evidence) -> TRMConfig:
    """The sizes of the model."""
    width = known.whole("width") or known.size("embedding", 1) or known.size("first_answer", 0)
    vocabulary = known.whole("vocabulary") or known.size("embedding", 0)
    vocabulary = vocabulary or known.size("token_head.weight", 0)
    if not width or not vocabulary:
        raise CheckpointError(
            "expected an embedding or settings that tell width and vocabulary, got neither; "
            "give hidden_size and vocab_size with config="
        )
    first = next(iter(known.peer.networks))
    token_mixing = known.settings.flag(*known.peer.settings["token_mixing"])
    if token_mixing is None:
        token_mixing = any(".mlp_t." in name for name in known.tensors)
    prefix, cells = _positions(known, first, width, vocabulary)
    found: dict[str, object] = {
        "cells": cells, "vocabulary": vocabulary, "width": width, "prefix": prefix,
        "token_mixing": token_mixing,
        "heads": _heads(known, width, token_mixing),
        "expansion": _expansion(known, first, width, prefix + cells),
        **_layers(known),
        **_places(known, token_mixing),
        **_schedule(known, vocabulary, cells),
        "eps": known.settings.number(*known.peer.settings["eps"]) or 1e-5,
    }  # fmt: skip
    return sizes(known.peer.kind, found)


def task_of(cells: int, vocabulary: int) -> str:
    """The task that has these sizes, or ""."""
    task, size = TASKS.get(vocabulary, ("", 0))
    return task if size == cells else ""


def _positions(known: Evidence, first: str, width: int, vocabulary: int) -> tuple[int, int]:
    """Prefix positions and cells. Token mixing and learned positions show their sum."""
    total = known.size(f"{first}.layers.0.mlp_t.down_proj.weight", 0)
    total = total or known.size("position_embedding", 0)
    cells = known.whole("cells") or TASKS.get(vocabulary, ("", 0))[1]
    numbers = known.whole("prefix_numbers")
    if numbers is None:
        numbers = known.size("prefix", 1) or 0
    if numbers == 0:
        prefix = 0
    elif given := known.whole("prefix"):
        prefix = given
    elif total and cells and total > cells:
        prefix = total - cells
    else:
        prefix = -(-numbers // width)
        if known.peer.prefix and known.whole("prefix") is None:
            prefix = max(prefix, known.peer.prefix)
            known.assume("puzzle_emb_len", prefix)
    if not known.whole("cells"):
        if total and total > prefix:
            cells = total - prefix
        elif cells:
            known.assume("seq_len", cells)
    if not cells:
        raise CheckpointError(
            f"the number of cells cannot be told from {vocabulary} token ids and attention; "
            "give seq_len with config="
        )
    return prefix, cells


def _heads(known: Evidence, width: int, token_mixing: bool) -> int:
    """Heads leave no trace in the tensors; the published models have heads of 64."""
    given = known.whole("heads")
    if given is not None:
        return given
    heads = width // 64 or 1
    if width % (2 * heads):
        heads = 1
    if not token_mixing:
        known.assume("num_heads", heads)
    return heads


def _expansion(known: Evidence, first: str, width: int, positions: int) -> float:
    """The expansion of the settings, else the first that gives the hidden sizes found."""
    given = known.settings.number(*known.peer.settings["expansion"])
    if given is not None:
        return given
    found = [
        (side, hidden)
        for mix, side in (("mlp", width), ("mlp_t", positions))
        if (hidden := known.size(f"{first}.layers.0.{mix}.down_proj.weight", 1))
    ]
    exact = [1.5 * hidden / side for side, hidden in found]
    for expansion in (4.0, *map(float, range(1, 17)), *exact):
        if all(multiple_of(expansion * side * 2 / 3, 256) == hidden for side, hidden in found):
            return expansion
    return 4.0  # nothing fits: the tensors that do not are named when the model is put together


def _layers(known: Evidence) -> dict[str, int]:
    """Layers of each network, by the settings or by the highest index among the tensors."""
    layers = {}
    for setting, network in zip(("layers", "answer_layers"), known.peer.networks, strict=False):
        start = f"{network}.layers."
        names = [name.removeprefix(start) for name in known.tensors if name.startswith(start)]
        indices = [name.split(".")[0] for name in names]
        highest = max((int(i) for i in indices if i.isdecimal() and len(i) < 6), default=0)
        layers[setting] = known.whole(setting) or highest + 1
    return layers


def _places(known: Evidence, token_mixing: bool) -> dict[str, object]:
    """How positions are told apart: rotary angles, a learned table, or not at all."""
    names = known.peer.settings["positions"]
    found: dict[str, object] = {"learned_positions": "position_embedding" in known.tensors}
    theta = known.settings.number(*known.peer.settings["rotary_theta"])
    word = known.settings.word(*names)
    if word is not None and word not in ROTARY:
        raise CheckpointError(
            f"{names[0]} must be one of {', '.join(ROTARY)}, got {word}; "
            "other ways to tell positions apart cannot be loaded"
        )
    if word is not None:
        found["learned_positions"] = word == "learned"
    elif not token_mixing and not found["learned_positions"]:
        null = any(name in known.settings.values for name in names)  # set, to no positions
        word = "none" if null else "rope"
        if not null:
            known.assume(names[0], word)
    rotary = not token_mixing and word is not None and ROTARY[word]
    return {**found, "rotary": rotary, "rotary_theta": 10000.0 if theta is None else theta}


def _schedule(known: Evidence, vocabulary: int, cells: int) -> dict[str, int]:
    """Cycles and inner steps, else the published ones of the task."""
    cycles, inner = SCHEDULES[task_of(cells, vocabulary)]
    if known.peer.kind == "hrm":
        cycles, inner = 2, 2
    schedule = {}
    for name, usual in (("cycles", cycles), ("inner_steps", inner)):
        given = known.whole(name)
        if given is None:
            known.assume(known.peer.settings[name][0], usual)
        schedule[name] = usual if given is None else given
    return schedule

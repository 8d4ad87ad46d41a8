"""Checkpoints of TinyRecursiveModels, nano-trm and HRM, read into tiltrm's own models.

`files` reads the checkpoint and its configuration, `peers` knows the names that each code gives to
tensors and settings, `sizes` works out the model's sizes. `tiltrm.load` imports this package only
for a checkpoint of another code.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from tiltrm.model.build import Model, assemble, is_plain
from tiltrm.model.hrm import HRMConfig
from tiltrm.model.importers.files import SECTIONS, find_settings, read_checkpoint
from tiltrm.model.importers.peers import IGNORED, recognise
from tiltrm.model.importers.sizes import (
    ARC_VOCABULARY,
    ImportContext,
    PeerSettings,
    infer_sizes,
    task_of,
)
from tiltrm.model.puzzle_ids import MAX_ID_CELLS, cut_rows
from tiltrm.model.puzzle_rows import is_held, with_puzzle
from tiltrm.model.trm import TRMConfig

__all__ = ["import_checkpoint"]


def import_checkpoint(
    path: Path, config: Path | Mapping[str, object] | None, device: torch.device,
    dtype: torch.dtype, puzzle_id: int | None = None,
) -> Model:  # fmt: skip
    """The model in a checkpoint of another code. `model.import_notes` lists the assumptions.

    `puzzle_id` is the row of the puzzle embedding that it uses. Unless it is given, the puzzles of
    an ARC model hold their ids in id cells, and another model uses row 0, the blank one.
    """
    contents = read_checkpoint(path)
    peer = recognise(contents.tensors, str(path))
    weights = {n: t for n, t in contents.tensors.items() if not n.endswith(IGNORED)}
    tensors = {peer.ours(name): tensor for name, tensor in weights.items()}
    settings = PeerSettings(*find_settings(path, config, contents.settings))
    notes = [f"read from a checkpoint of {peer.name}", *contents.notes]
    sizes = infer_sizes(ImportContext(path.name, peer, tensors, settings, notes))
    if isinstance(config, Mapping):
        used = {name for names in peer.settings.values() for name in names}
        unused = sorted(set(map(str, config)) - used - {*SECTIONS, "no_ACT_continue"})
        notes += [f"{', '.join(unused)} of config= have no effect on the model"] if unused else []
    if peer.kind == "trm" and settings.flag("no_ACT_continue") is False:
        notes.append("trained with no_ACT_continue=false; its 'continue' output is left out")
    rows = _rows(tensors, sizes)
    if rows > 1 and is_held(rows, sizes):
        sizes = replace(sizes, puzzles=rows)
    if rows > 1 and sizes.vocabulary == ARC_VOCABULARY and puzzle_id is None:
        sizes = replace(sizes, id_cells=MAX_ID_CELLS)
    held = {peer.ours(name): contents.file_names[name] for name in weights}
    model = assemble(
        sizes, _converted(tensors, sizes), source=str(path), device=device, dtype=dtype,
        named=lambda name: held.get(name) or peer.theirs(name),
    )  # fmt: skip
    model.task = task_of(sizes.cells, sizes.vocabulary)
    model.import_notes = notes
    if rows > 1:
        fixed = (
            "0 (the blank one) is used unless --puzzle-id, or puzzle_id= in Python, names another"
        )
        told = f"the last {sizes.id_cells} cells of a puzzle hold its id"
        notes.append(f"{rows:,} puzzle ids; {told if sizes.id_cells else fixed}")
        model.puzzle_table = tensors["prefix"] if sizes.puzzles == 1 else None
    return with_puzzle(model, puzzle_id)


def _converted(tensors: dict[str, Tensor], sizes: TRMConfig) -> dict[str, Tensor]:
    """The tensors in tiltrm's shapes. One that cannot be converted is left for `assemble` to name.

    The rows of the puzzle embedding are cut into prefix positions, of a large table only row 0. A
    TRM reads only the first output of its Q-head.
    """
    converted = dict(tensors)
    if _rows(tensors, sizes):
        table = tensors["prefix"]
        rows = table if sizes.puzzles > 1 else table[0]
        converted["prefix"] = cut_rows(rows, sizes.prefix, sizes.width)
    elif "prefix" not in tensors and sizes.prefix == 0:
        converted["prefix"] = torch.zeros(0, sizes.width)
    if not isinstance(sizes, HRMConfig):
        for name in ("halt_head.weight", "halt_head.bias"):
            if name in tensors and tensors[name].shape[:1] == (2,):
                converted[name] = tensors[name][:1]
    return converted


def _rows(tensors: Mapping[str, Tensor], sizes: TRMConfig) -> int:
    """Rows of the puzzle embedding; 0 where there is none that fits these sizes."""
    table = tensors.get("prefix")
    if table is None or table.ndim != 2 or not is_plain(table):
        return 0
    return len(table) if table.shape[1] <= sizes.prefix * sizes.width else 0

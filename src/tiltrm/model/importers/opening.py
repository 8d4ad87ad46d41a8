"""Opening a peer's file: tensors and settings only, never code."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor

from tiltrm.errors import CheckpointError

WRAPPERS = re.compile(r"^(?:(?:model|inner|module)\.)+")
HOLDERS = ("state_dict", "model", "model_state_dict")  # where a file may keep its tensors
EMA = re.compile(r"EMA|(?<![A-Za-z])ema")
TRAINED = ("weight", "bias", "embedding_weight")  # last part of the name of a trained tensor
# Lightning stores the output folder among the hyper-parameters; a pure path can do no harm.
PATHS = [
    (path, f"{module}.{name}")
    for module in ("pathlib", "pathlib._local")
    for path, name in ((PurePosixPath, "PosixPath"), (PureWindowsPath, "WindowsPath"))
]


class Contents(NamedTuple):
    """What a file holds, its tensors by plain name."""

    tensors: dict[str, Tensor]
    file_names: dict[str, str]  # plain name -> the name in the file
    settings: Mapping[str, object]
    notes: list[str]


def plain(name: str) -> str:
    """The name without what torch.compile, the loss head and wrappers put around it."""
    return WRAPPERS.sub("", name.replace("_orig_mod.", ""))


def open_checkpoint(path: Path) -> Contents:
    """The tensors of a peer's file, averaged ones (EMA) where it holds them by name."""
    payload = _load(path)
    held = next((payload[key] for key in HOLDERS if isinstance(payload.get(key), Mapping)), payload)
    file_names: dict[str, str] = {}
    tensors = _tensors(held)
    for name in tensors:
        if plain(name) in file_names:
            raise CheckpointError(
                f"expected one tensor {plain(name)} in {path}, got {file_names[plain(name)]} "
                f"and {name}; save the weights of one model only"
            )
        file_names[plain(name)] = name
    if not tensors:
        raise CheckpointError(
            f"expected named tensors in {path}, got none; save the model's state_dict()"
        )
    found = {plain(name): tensor for name, tensor in tensors.items()}
    settings = payload.get("hyper_parameters")
    notes: list[str] = []
    found.update(_averaged(payload, found, notes))
    return Contents(found, file_names, settings if isinstance(settings, Mapping) else {}, notes)


def _load(path: Path) -> Mapping[str, object]:
    try:
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        with torch.serialization.safe_globals([*PATHS]):
            payload = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken pickle may raise anything at all
        raise CheckpointError(
            f"expected a checkpoint of tensors and plain values in {path}, got a file that is "
            f"broken, of another format, or holds code ({type(error).__name__}); "
            "save the model's state_dict() with torch.save and load that"
        ) from error
    if not isinstance(payload, Mapping):
        raise CheckpointError(
            f"expected a mapping of tensors in {path}, got {type(payload).__name__}; "
            "save the model's state_dict() with torch.save and load that"
        )
    return payload


def _tensors(values: object) -> dict[str, Tensor]:
    if not isinstance(values, Mapping):
        return {}
    return {str(name): value for name, value in values.items() if isinstance(value, Tensor)}


def _averaged(
    payload: Mapping[str, object], raw: Mapping[str, Tensor], notes: list[str]
) -> dict[str, Tensor]:
    """Averaged weights, where the file keeps them by name for every trained tensor."""
    trained = {name for name in raw if name.rsplit(".", 1)[-1] in TRAINED}
    places = [
        (where, tensors)
        for where, tensors in _mappings(payload, "")
        if EMA.search(where) or where.startswith("callbacks/")
    ]
    for where, tensors in places:
        average = {plain(name): tensor for name, tensor in _tensors(tensors).items()}
        fits = all(n in raw and raw[n].shape == t.shape for n, t in average.items())
        if average and fits and trained <= set(average):
            notes.append(f"averaged weights (EMA) of {where} are used, not the raw ones")
            return average
    named = [where for where, _ in places if EMA.search(where)]
    if named:
        notes.append(f"{named[0]} does not hold every weight by name; the raw weights are used")
    return {}


def _mappings(
    value: Mapping[str, object], where: str, depth: int = 3
) -> Iterator[tuple[str, object]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            path = f"{where}{key}"
            yield path, inner
            if depth > 1:
                yield from _mappings(inner, f"{path}/", depth - 1)

"""Reading another code's files: tensors and plain settings, never code.

Settings come from a mapping, a JSON file or a plain YAML file.
"""

import json
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor

from tiltrm.errors import CheckpointError
from tiltrm.model.native import read_mapping

BESIDE = ("config.json", "all_config.yaml")  # looked for beside a checkpoint, in this order
SECTIONS = ("arch", "model")  # where the codes nest the settings of the network
WRAPPERS = re.compile(r"^(?:(?:model|inner|module)\.)+")
MAPPED = 1 << 28  # bytes of a file from which on it is mapped into memory
SLACK = 1 << 20  # bytes of an archive besides its tensors
SHARED = 8  # names for the same bytes, at most on average
HOLDERS = ("state_dict", "model", "model_state_dict")  # where a file may keep its tensors
EMA = re.compile(r"EMA|(?<![A-Za-z])ema")
TRAINED = ("weight", "bias", "embedding_weight")  # last part of the name of a trained tensor
# Lightning stores the output folder among the hyper-parameters; a pure path can do no harm.
PATHS = [
    (path, f"{module}.{name}")
    for module in ("pathlib", "pathlib._local")
    for path, name in ((PurePosixPath, "PosixPath"), (PureWindowsPath, "WindowsPath"))
]


class CheckpointContents(NamedTuple):
    """The contents of a file, its tensors by plain name."""

    tensors: dict[str, Tensor]
    file_names: dict[str, str]  # plain name -> the name in the file
    settings: Mapping[str, object]
    notes: list[str]


def _plain_name(name: str) -> str:
    """The name without the parts that torch.compile, the loss head and wrappers add."""
    return WRAPPERS.sub("", name.replace("_orig_mod.", ""))


def read_checkpoint(path: Path) -> CheckpointContents:
    """The tensors of a peer's file, averaged ones (EMA) where it holds them."""
    payload = _load(path)
    held = next((payload[key] for key in HOLDERS if isinstance(payload.get(key), Mapping)), payload)
    file_names: dict[str, str] = {}
    tensors = _tensors(held)
    for name in tensors:
        plain = _plain_name(name)
        if plain in file_names:
            raise CheckpointError(
                f"expected one tensor {plain} in {path}, got {file_names[plain]} and {name}; "
                "save the weights of one model only"
            )
        file_names[plain] = name
    if not tensors:
        raise CheckpointError(
            f"expected named tensors in {path}, got none; save the model's state_dict()"
        )
    found = {_plain_name(name): tensor for name, tensor in tensors.items()}
    settings = payload.get("hyper_parameters")
    notes: list[str] = []
    found.update(_averaged(payload, found, notes))
    inside = settings if isinstance(settings, Mapping) else {}
    return CheckpointContents(found, file_names, inside, notes)


def _load(path: Path) -> Mapping[str, object]:
    _require_stored(path)
    try:
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        with torch.serialization.safe_globals([*PATHS]):
            payload = torch.load(
                path, map_location="cpu", weights_only=True, mmap=_may_be_mapped(path)
            )
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
    _require_held(payload, path)
    return payload


def _may_be_mapped(path: Path) -> bool:
    """Whether to map a file into memory instead of reading it: a large one, not compressed."""
    if path.stat().st_size < MAPPED:
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return all(entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist())
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile, struct.error):
        return False  # an older format, or broken: the loader will say


def _require_stored(path: Path) -> None:
    """Raise CheckpointError for a zip that unpacks to more than its size; torch.save never does."""
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile, struct.error):
        return  # not a zip: the loader will say
    if unpacked > size + SLACK:
        raise CheckpointError(
            f"expected an uncompressed archive in {path}, as torch.save writes it, got one of "
            f"{size:,} bytes that unpacks to {unpacked:,}; save the weights again"
        )


def _require_held(payload: Mapping[str, object], path: Path) -> None:
    """Raise CheckpointError for tensors that repeat their storage, so that few bytes are many.

    Each tensor must have as many bytes in the file as it has numbers. Several names may share a
    storage (tied weights), but not so often that the sum is far more than the file.
    """
    total = 0
    named = [(str(n), t) for n, t in payload.items() if isinstance(t, Tensor)]
    named += [(n, t) for _, inner in _holders(payload, "") for n, t in _tensors(inner).items()]
    for name, tensor in named:
        needed = tensor.numel() * tensor.element_size()
        if tensor.layout == torch.strided and needed > tensor.untyped_storage().nbytes():
            raise CheckpointError(
                f"expected {needed:,} bytes of {name} in {path}, got a tensor that repeats "
                f"{tensor.untyped_storage().nbytes():,}; save a contiguous copy of the weights"
            )
        total += needed
    if total > SHARED * (path.stat().st_size + SLACK):
        raise CheckpointError(
            f"expected about {path.stat().st_size:,} bytes of tensors in {path}, got names for "
            f"{total:,}; save the weights of one model only"
        )


def _tensors(values: object) -> dict[str, Tensor]:
    if not isinstance(values, Mapping):
        return {}
    return {str(name): value for name, value in values.items() if isinstance(value, Tensor)}


def _averaged(
    payload: Mapping[str, object], raw: Mapping[str, Tensor], notes: list[str]
) -> dict[str, Tensor]:
    """Averaged weights, where the file keeps them for every trained tensor."""
    trained = [name for name in raw if name.rsplit(".", 1)[-1] in TRAINED]
    places = [
        (where, kept)
        for where, kept in _holders(payload, "")
        if EMA.search(where) or where.startswith("callbacks/")
    ]
    for where, kept in places:
        average = _named(kept, [*raw], trained)
        fits = all(n in raw and raw[n].shape == t.shape for n, t in average.items())
        if average and fits and set(trained) <= set(average):
            notes.append(f"averaged weights (EMA) of {where} are used, not the raw ones")
            return average
    named = [where for where, _ in places if EMA.search(where)]
    if named:
        notes.append(f"{named[0]} does not hold every weight; the raw weights are used")
    return {}


def _named(kept: object, names: list[str], trained: list[str]) -> dict[str, Tensor]:
    """Tensors by plain name; a list has those of the whole state_dict, or of what is trained."""
    if isinstance(kept, Mapping):
        return {_plain_name(name): tensor for name, tensor in _tensors(kept).items()}
    tensors = [t for t in kept if isinstance(t, Tensor)] if isinstance(kept, list | tuple) else []
    order = next((order for order in (names, trained) if len(order) == len(tensors)), [])
    return dict(zip(order, tensors, strict=False))


def _holders(
    value: Mapping[str, object], where: str, depth: int = 4
) -> Iterator[tuple[str, object]]:
    """Mappings and lists inside a file, by path."""
    for key, inner in value.items():
        if isinstance(inner, Mapping | list | tuple):
            path = f"{where}{key}"
            yield path, inner
            if depth > 1 and isinstance(inner, Mapping):
                yield from _holders(inner, f"{path}/", depth - 1)


def find_settings(
    checkpoint: Path, config: Path | Mapping[str, object] | None, inside: Mapping[str, object]
) -> tuple[dict[str, object], str]:
    """Settings by the peer's names, and their origin for messages.

    They come from `config` and the file itself, else from the file itself, else from a
    configuration file beside it.
    """
    if isinstance(config, Mapping):
        return {**inside, **_flat(config)}, "config="
    if config is not None:
        return {**inside, **_flat(_read_settings(config))}, config.name
    if inside:
        return _flat(inside), checkpoint.name
    for name in BESIDE:
        path = checkpoint.parent / name
        if path.is_file():
            return _flat(_read_settings(path)), name
    return {}, "no configuration"


def _flat(values: Mapping[str, object]) -> dict[str, object]:
    """The settings, with those of the network's section lifted out."""
    lifted = {str(name): value for name, value in values.items()}
    for section in SECTIONS:
        inner = values.get(section)
        if isinstance(inner, Mapping):
            lifted.update({str(name): value for name, value in inner.items()})
    return lifted


def _read_settings(path: Path) -> Mapping[str, object]:
    return read_mapping(path, json.loads if path.suffix == ".json" else parse_yaml)


def parse_yaml(text: str) -> dict[str, object]:
    """Nested mappings of plain scalars, by indentation; lists and other YAML are skipped."""
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
            section[name] = _scalar(value)
        else:
            section[name] = inner = dict[str, object]()
            open_sections.append((indent, inner))
    return root


def _scalar(text: str) -> object:
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

"""Folders of learned guides: `guide.safetensors`, `guide.json` and `CARD.md`.

A guide names the weights that it was fitted on. It may be used on other weights of the same sizes;
`guide_note` then says so. In a sum of guides it is `learned:FOLDER`, or `learned:FOLDER@CHECKSUM`
where the content of the folder must not change (stored evaluations).
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as serialise
from torch import Tensor, nn

from tiltrm.errors import CheckpointError
from tiltrm.explore.guides import Guide
from tiltrm.explore.inputs import device_of
from tiltrm.explore.learned import GuideHead, HeadSizes, learned
from tiltrm.folders import replacing
from tiltrm.model.base import RecursiveModel
from tiltrm.model.native import read_mapping
from tiltrm.records import build_record, nan_to_null

LEARNED = "learned:"
WEIGHTS, MANIFEST, CARD = "guide.safetensors", "guide.json", "CARD.md"
MAX_BYTES = 1 << 28  # of the weights
LARGEST = {"width": 1 << 14, "hidden": 1 << 12, "mixed": 1 << 12, "outer_steps": 1 << 20}
HEX = 16  # digits of a checksum that are written behind the name of a folder
PINNED = re.compile(rf"@[0-9a-f]{{{HEX}}}$")
KIND = "learned guide"


@dataclass(frozen=True)
class GuideManifest:
    """The content of guide.json."""

    kind: str  # KIND
    checksum: str  # SHA-256 of guide.safetensors
    sizes: HeadSizes
    cells: int  # of the model's task
    positions: int  # of the model's state
    vocabulary: int
    task: str
    model: str  # weights_digest of the model that it was fitted on; "" where that has no weights
    data: dict[str, Any]  # the puzzles: file, number, checksum
    settings: dict[str, Any]  # of the fit
    figures: dict[str, Any]  # on held-out puzzles


class StoredGuide(NamedTuple):
    """A guide that was read from a folder."""

    head: GuideHead
    manifest: GuideManifest


@dataclass(frozen=True)
class FittedOn:
    """What a guide was fitted on and how, for its manifest."""

    task: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)


def weights_digest(model: RecursiveModel) -> str:
    """16 hex digits of a hash of a model's weights as bfloat16; "" where it has none.

    The same for a model that was loaded in float32 and in bfloat16.
    """
    tensors = model.state_dict() if isinstance(model, nn.Module) else {}
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        plain = tensor.detach().to("cpu", torch.bfloat16).contiguous().view(torch.int16)
        digest.update(name.encode() + plain.numpy().tobytes())
    return digest.hexdigest()[:HEX] if tensors else ""


def state_sizes(model: RecursiveModel) -> tuple[int, int]:
    """Positions and width of a model's state."""
    tokens = torch.ones(1, model.cells, dtype=torch.uint8)
    inputs = model.embed(tokens.to(device_of(model, tokens)))
    return inputs.shape[-2], inputs.shape[-1]


def save_guide(
    head: GuideHead, model: RecursiveModel, folder: Path, about: FittedOn, card: str
) -> Path:
    """Write a guide's folder whole; an older guide in it is replaced, anything else refused."""
    require_place(folder)
    tensors = {name: tensor.detach().cpu() for name, tensor in head.state_dict().items()}
    content = serialise({name: tensor.float().contiguous() for name, tensor in tensors.items()})
    manifest = GuideManifest(
        kind=KIND, checksum=hashlib.sha256(content).hexdigest(), sizes=head.sizes,
        cells=model.cells, positions=state_sizes(model)[0], vocabulary=model.vocabulary,
        model=weights_digest(model), **asdict(about),
    )  # fmt: skip
    text = json.dumps(nan_to_null(asdict(manifest)), indent=1, allow_nan=False)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with replacing(folder) as draft:
            (draft / WEIGHTS).write_bytes(content)
            (draft / CARD).write_text(card, encoding="utf-8")
            (draft / MANIFEST).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise CheckpointError(
            f"expected to write a guide at {folder}, got: {error.strerror}; choose another place"
        ) from error
    return folder


def require_place(folder: Path) -> None:
    """Raise CheckpointError where a guide must not be written."""
    if folder.exists() and not (folder.is_dir() and (folder / MANIFEST).is_file()):
        raise CheckpointError(
            f"expected a new folder or that of a guide at {folder}, got something else; choose "
            "another place"
        )


def load_guide(folder: Path) -> StoredGuide:
    """A guide from its folder, with every size and its checksum checked; CheckpointError.

    Proved by tests/solving/test_guide_folder.py.
    """
    absent = [name for name in (MANIFEST, WEIGHTS) if not (folder / name).is_file()]
    if absent:
        raise CheckpointError(
            f"expected {MANIFEST} and {WEIGHTS} in the folder {folder}, got no {absent[0]}; make "
            "a guide with tiltrm fit-guide"
        )
    where = folder / MANIFEST
    try:
        manifest = build_record(GuideManifest, read_mapping(where), error=CheckpointError)
    except CheckpointError as error:
        raise CheckpointError(f"{where}: {error}; fit the guide again") from None
    sizes = asdict(manifest.sizes)
    wrong = [name for name, most in LARGEST.items() if not 1 <= sizes[name] <= most]
    if manifest.kind != KIND or wrong:
        what = f"{wrong[0]} {sizes[wrong[0]]}" if wrong else f"kind {manifest.kind!r:.60}"
        raise CheckpointError(
            f"{where}: expected a {KIND} of usual sizes, got {what}; fit it again"
        )
    tensors = _tensors(folder / WEIGHTS, manifest.checksum)
    with torch.device("meta"):
        head = GuideHead(manifest.sizes)
    shapes = {name: tensor.shape for name, tensor in head.state_dict().items()}
    if shapes != {name: tensor.shape for name, tensor in tensors.items()}:
        raise CheckpointError(
            f"{folder / WEIGHTS}: expected the weights of a head of the sizes in {MANIFEST}, got "
            "others; fit the guide again"
        )
    head.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
    return StoredGuide(head.eval().requires_grad_(False), manifest)


def _tensors(path: Path, checksum: str) -> dict[str, Tensor]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError
        data = path.read_bytes()
        tensors = load_tensors(data)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RuntimeError,
            MemoryError, OverflowError) as error:  # fmt: skip
        raise CheckpointError(
            f"expected safetensors in {path}, got a broken file ({type(error).__name__}); fit the "
            "guide again"
        ) from error
    finite = all(t.is_floating_point() and bool(torch.isfinite(t).all()) for t in tensors.values())
    if hashlib.sha256(data).hexdigest() != checksum or not finite:
        raise CheckpointError(
            f"{path}: expected finite weights with the checksum that {MANIFEST} gives, got others; "
            "fit the guide again"
        )
    return tensors


def split_name(name: str) -> tuple[Path, str]:
    """The folder of `learned:FOLDER` or `learned:FOLDER@CHECKSUM`, and the checksum or ""."""
    text = name.removeprefix(LEARNED)
    if PINNED.search(text):
        return Path(text[: -HEX - 1]), text[-HEX:]
    return Path(text), ""


def named_guide(name: str, model: RecursiveModel, *, staged: bool = False) -> Guide:
    """The guide of `learned:FOLDER` for a model; CheckpointError where it does not fit."""
    folder, pinned = split_name(name)
    head, manifest = load_guide(folder)
    if not manifest.checksum.startswith(pinned):
        raise CheckpointError(
            f"{folder}: expected the guide {pinned}, got {manifest.checksum[:HEX]}; it was fitted "
            "again since"
        )
    width = state_sizes(model)[1]
    own = (width, model.cells, model.vocabulary)
    fitted = (manifest.sizes.width, manifest.cells, manifest.vocabulary)
    if own != fitted:
        raise CheckpointError(
            f"{folder}: expected a guide for a model of width {own[0]}, {own[1]} cells and "
            f"{own[2]} token ids, got one for {fitted[0]}, {fitted[1]} and {fitted[2]}; fit one on "
            "this model"
        )
    device = device_of(model, torch.empty(0))
    return learned(model, head.to(device), staged=staged)


def learned_terms(guide: object) -> list[str]:
    """The terms `learned:FOLDER` of a sum of guides, without their factors."""
    if not isinstance(guide, str):
        return []
    names = (term.rpartition("*")[2].strip() for term in guide.split("+"))
    return [name for name in names if name.startswith(LEARNED)]


def pinned_guide(guide: str) -> str:
    """The sum with the checksum behind the name of every learned guide."""
    return "+".join(map(_pinned, guide.split("+"))) if learned_terms(guide) else guide


def _pinned(term: str) -> str:
    for name in learned_terms(term):
        folder, pinned = split_name(name)
        if not pinned:
            return f"{term.rstrip()}@{load_guide(folder).manifest.checksum[:HEX]}"
    return term


def guide_note(guide: object, model: RecursiveModel) -> str:
    """A sentence for each learned guide that was fitted on other weights; "" if there is none."""
    own = weights_digest(model) if learned_terms(guide) else ""
    notes = []
    for name in learned_terms(guide):
        folder = split_name(name)[0]
        fitted = load_guide(folder).manifest.model
        if fitted != own:
            notes.append(
                f"{folder}: this guide was fitted on other weights ({fitted or 'unknown'}) than "
                f"these ({own or 'unknown'}); tiltrm diagnose tells how well it transfers"
            )
    return "\n".join(notes)

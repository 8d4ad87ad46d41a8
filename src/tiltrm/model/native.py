"""The native format: a folder with `model.safetensors`, `config.json` and `CARD.md`.

`config.json` holds the manifest below, `CARD.md` a text for people. The manifest has the weights'
checksum, so that an interrupted save, or weights of another model, are noticed. `tuned.json` and
`calibration.json` may lie beside them (`tiltrm tune`); they name the same checksum. A puzzle
embedding of very many rows is a file of its own, `puzzles.safetensors`, of which only the rows in
use are read; `puzzles.json` names the rows.
"""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from reprlib import repr

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as load_tensors
from safetensors.torch import save as serialise
from safetensors.torch import save_file
from torch import Tensor

from tiltrm.errors import CheckpointError
from tiltrm.folders import write_whole
from tiltrm.model.build import CONFIGS, Model, assemble, is_plain, kind_of, sizes
from tiltrm.model.compact import is_compact
from tiltrm.model.describe import describe
from tiltrm.model.int8 import is_int8
from tiltrm.model.puzzle_names import NAMES, names_text, read_names
from tiltrm.model.puzzle_rows import puzzle_rows, with_puzzle
from tiltrm.model.trm import TRMConfig
from tiltrm.records import build_record

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "CARD.md"
PUZZLES, TABLE = "puzzles.safetensors", "rows"  # a large puzzle embedding, and its tensor's name
CALIBRATION, TUNED = "calibration.json", "tuned.json"  # written by `tiltrm tune`
MAX_CONFIG = 10**7  # bytes
MAX_WEIGHTS = 1 << 35  # bytes
LARGEST_LOGIT = 1e6  # a threshold beyond it is a broken file


@dataclass(frozen=True)
class Manifest:
    """The contents of config.json. An unknown name is an error, so that typing errors are seen."""

    kind: str  # trm or hrm
    task: str  # sudoku, maze, or "" where unknown
    dtype: str  # of the stored weights
    checksum: str  # SHA-256 of model.safetensors
    sizes: dict[str, object]
    decide_above: float | None = None  # as in `tiltrm.model.base.ModelInfo`
    notes: list[str] | None = None  # assumptions of the importer
    decide_settled: bool = False
    puzzle_id: int = 0  # row of the puzzle embedding that is used unless another is named
    puzzle_rows: int | None = None  # of puzzles.safetensors; None: there is no such file


def save(
    model: Model, folder: str | os.PathLike[str], *, card: str = "", task: str = "",
    dtype: torch.dtype | None = torch.bfloat16, decide_above: float | None = None,
) -> Path:  # fmt: skip
    """Write a native folder. Files of other names in it are left alone.

    A new folder appears whole. In an existing one each file is replaced whole, the manifest last,
    so that a reader in between sees a wrong checksum. `task` and `decide_above`, if given, replace
    the model's own; this threshold is for settled answers (`tiltrm.solving.threshold`). `dtype`
    None stores the weights as they are.
    Proved by tests/model/test_native.py.
    """
    if is_compact(model, model.config.expansion):
        raise CheckpointError(
            "expected a model with all its hidden units, got one without the idle ones; "
            "load it without compact=True"
        )
    if is_int8(model):
        raise CheckpointError(
            "expected a model without int8 products, got one with them; load it without int8=True"
        )
    try:
        known = copy(model)  # shallow: the weights are shared
        known.task = task or model.task
        if decide_above is not None:
            known.decide_above, known.decide_settled = decide_above, True
        return _write(known, Path(folder), card, dtype)
    except (OSError, SafetensorError) as error:  # a full disk is either
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:120]
        raise CheckpointError(
            f"expected to write a folder at {folder}, got {type(error).__name__}: {reason}; "
            "choose a place that can be written and has room, and no file's name"
        ) from error


def _write(model: Model, target: Path, card: str, dtype: torch.dtype | None) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target if target.is_dir() else target.parent  # a folder may be a disk of its own
    draft = beside / f".{target.name}-{secrets.token_hex(8)}"
    draft.mkdir()
    try:
        stored = {n: t.detach().cpu().to(dtype or t.dtype) for n, t in model.state_dict().items()}
        content = serialise({name: tensor.contiguous() for name, tensor in stored.items()})
        (draft / WEIGHTS).write_bytes(content)  # with the umask's mode; save_file makes it private
        manifest = Manifest(
            kind=kind_of(model),
            task=model.task,
            dtype=str(stored["embedding"].dtype).removeprefix("torch."),
            checksum=hashlib.sha256(content).hexdigest(),
            sizes=model.config.as_mapping(),
            decide_above=model.decide_above,
            notes=model.import_notes,
            decide_settled=model.decide_settled,
            puzzle_id=model.puzzle_id,
            puzzle_rows=None if model.puzzle_table is None else len(model.puzzle_table),
        )
        files = [WEIGHTS, CARD, CONFIG]
        if model.puzzle_table is not None:
            about = {"weights": manifest.checksum}
            save_file({TABLE: model.puzzle_table.contiguous()}, draft / PUZZLES, metadata=about)
            shutil.copymode(draft / WEIGHTS, draft / PUZZLES)  # save_file makes it private
            files.insert(0, PUZZLES)
        if model.puzzle_names is not None:
            (draft / NAMES).write_text(names_text(model.puzzle_names), encoding="utf-8")
            files.insert(0, NAMES)
        text = card or f"# {target.name}\n\n{describe(model)}\n"
        (draft / CARD).write_text(text, encoding="utf-8")
        (draft / CONFIG).write_text(_text(manifest), encoding="utf-8")
        if target.exists():
            for name in {CALIBRATION, TUNED, PUZZLES, NAMES} - {
                *files
            }:  # of weights that are replaced
                (target / name).unlink(missing_ok=True)
            for name in files:
                os.replace(draft / name, target / name)
        else:
            os.replace(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def store_threshold(folder: Path, above: float) -> None:
    """Store another threshold for settled answers in a native folder; nothing else changes."""
    manifest = _manifest(read_mapping(folder / CONFIG), folder)
    _replace(folder / CONFIG, _text(replace(manifest, decide_above=above, decide_settled=True)))


def write_beside(folder: Path, name: str, content: Mapping[str, object]) -> None:
    """Store `calibration.json` or `tuned.json` whole, with the checksum of the folder's weights."""
    manifest = _manifest(read_mapping(folder / CONFIG), folder)
    text = json.dumps({"weights": manifest.checksum, **content}, indent=1, allow_nan=False)
    _replace(folder / name, text + "\n")


def _replace(path: Path, text: str) -> None:
    """Write a file whole: beside it first, then in its place."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise CheckpointError(
            f"expected to write {path}, got {type(error).__name__}; "
            "choose a folder that can be written"
        ) from error


def _read_beside(folder: Path, name: str, checksum: str) -> Mapping[str, object] | None:
    """The content of a file that `write_beside` wrote; None where there is none."""
    path = folder / name
    if not path.is_file():
        return None
    content = read_mapping(path)
    if content.get("weights") != checksum:
        raise CheckpointError(
            f"expected {path} to belong to the weights beside it, got one of other weights; "
            f"delete it and run tiltrm tune --model {folder} again"
        )
    return content


def _text(manifest: Manifest) -> str:
    known = asdict(manifest)
    for name, usual in (("puzzle_id", 0), ("puzzle_rows", None)):  # only where there are several
        if known[name] == usual:
            del known[name]
    return json.dumps(known, indent=1) + "\n"


def is_native_file(path: Path) -> bool:
    """Whether a file is the weights of a native folder."""
    config = path.parent / CONFIG
    return (
        path.name == WEIGHTS and config.is_file() and {"kind", "sizes"} <= {*read_mapping(config)}
    )


def read_mapping(path: Path, parse: Callable[[str], object] = json.loads) -> Mapping[str, object]:
    """The mapping in a configuration file, JSON unless another parser is given."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_CONFIG + 1)
        if len(content) > MAX_CONFIG:
            raise ValueError
        values = parse(content.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"expected a JSON or YAML configuration of at most {MAX_CONFIG:,} bytes in {path}, got "
            f"{type(error).__name__}; "
            "correct the file or give another"
        ) from error
    if not isinstance(values, Mapping) or not values:
        raise CheckpointError(
            f"expected a mapping of settings in {path}, got {repr(values)}; "
            "correct the file or give another"
        )
    return values


def load_folder(
    folder: Path, device: torch.device, dtype: torch.dtype, puzzle_id: int | None = None
) -> Model:
    """The model of a native folder, with a row of its puzzle embedding."""
    absent = [name for name in (CONFIG, WEIGHTS) if not (folder / name).is_file()]
    if absent:
        raise CheckpointError(
            f"expected {CONFIG} and {WEIGHTS} in the folder {folder}, got no {absent[0]}; "
            "for another code's checkpoint give the file itself"
        )
    manifest = _manifest(read_mapping(folder / CONFIG), folder)
    try:
        if (folder / WEIGHTS).stat().st_size > MAX_WEIGHTS:
            raise ValueError
        data = (folder / WEIGHTS).read_bytes()
        tensors = load_tensors(data)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RuntimeError, MemoryError,
            OverflowError) as error:  # fmt: skip
        raise CheckpointError(
            f"expected safetensors in {folder / WEIGHTS}, got a broken file "
            f"({type(error).__name__}); save or fetch it again"
        ) from error
    config = sizes(manifest.kind, manifest.sizes)
    model = assemble(config, tensors, source=str(folder), device=device, dtype=dtype)
    if hashlib.sha256(data).hexdigest() != manifest.checksum:
        raise CheckpointError(
            f"expected weights with the checksum that {folder / CONFIG} gives, got others; "
            "save or fetch the folder again"
        )
    model.task = manifest.task
    model.decide_above, model.decide_settled = manifest.decide_above, manifest.decide_settled
    model.import_notes = list(manifest.notes or [])
    model.calibration = _read_beside(folder, CALIBRATION, manifest.checksum)
    model.tuned = _read_beside(folder, TUNED, manifest.checksum)
    model.puzzle_table = _read_table(folder, manifest, config)
    if (folder / NAMES).is_file():
        rows = puzzle_rows(model) if config.id_cells else None  # else they are names of tasks
        model.puzzle_names = read_names(folder / NAMES, rows)
    model.puzzle_id = 0 if manifest.puzzle_rows is None else manifest.puzzle_id
    return with_puzzle(model, manifest.puzzle_id if puzzle_id is None else puzzle_id)


def _read_table(folder: Path, manifest: Manifest, config: TRMConfig) -> Tensor | None:
    """The large puzzle embedding beside the weights, mapped into memory; None without one."""
    if manifest.puzzle_rows is None:
        return None
    path = folder / PUZZLES
    try:
        with safe_open(path, "pt") as stored:
            about = stored.metadata()
            table: Tensor = stored.get_tensor(TABLE)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise CheckpointError(
            f"expected a puzzle embedding of {manifest.puzzle_rows:,} rows in {path}, got no or a "
            f"broken file ({type(error).__name__}); import the checkpoint again"
        ) from error
    fits = table.ndim == 2 and len(table) == manifest.puzzle_rows and is_plain(table)
    if not fits or table.shape[1] > config.prefix * config.width:
        raise CheckpointError(
            f"expected {manifest.puzzle_rows:,} rows of at most {config.prefix * config.width:,} "
            f"numbers in {path}, got {tuple(table.shape)} of {table.dtype}; import the checkpoint "
            "again"
        )
    if (about or {}).get("weights") != manifest.checksum:
        raise CheckpointError(
            f"expected {path} to belong to the weights beside it, got one of other weights; import "
            "the checkpoint again"
        )
    return table


def _manifest(values: Mapping[str, object], folder: Path) -> Manifest:
    where = folder / CONFIG
    if "kind" not in values:
        raise CheckpointError(
            f"expected a manifest with {', '.join(field.name for field in fields(Manifest))} in "
            f"{where}, got one without kind; for another code's checkpoint give the file itself"
        )
    try:
        manifest = build_record(Manifest, values, error=CheckpointError)
    except CheckpointError as error:
        raise CheckpointError(f"{where}: {error}; correct it") from None
    above = manifest.decide_above
    if manifest.kind not in CONFIGS:
        raise CheckpointError(
            f"{where}: kind must be one of {', '.join(CONFIGS)}, got {repr(manifest.kind)}"
        )
    if above is not None and not abs(above) < LARGEST_LOGIT:
        raise CheckpointError(f"{where}: decide_above must be a halt logit, got {repr(above)}")
    return manifest

"""Abuse of files that tiltrm keeps or is given beside a model: read, refused or made again."""

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from tests.train.toys import trainer

from tiltrm.errors import TiltrmError
from tiltrm.model import load, native, save
from tiltrm.model.trm import TRM
from tiltrm.solving.tune_store import Arrays, PartStore
from tiltrm.train import settings as train_settings
from tiltrm.train.settings import load_preset

from .test_fuzz import CHANGES, MANY, mutated, require_one_line

Changes = list[tuple[int, int, bytes]]
pytestmark = pytest.mark.usefixtures("one_thread")


def recorded() -> Arrays:
    return {"x": np.arange(300) % 7, "y": np.linspace(0, 1, 300)}


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of `tiltrm tune` with one part and one number."""
    folder = tmp_path_factory.mktemp("recordings")
    store = PartStore(folder, "weights", {})
    store.part("a", recorded, shape=(300,), kinds={"x": "i", "y": "f"})
    store.once("n", lambda: 2.5)
    return folder


@given(st.sampled_from(["a.npz", "n.json", "about.json"]), CHANGES)
@MANY
def test_any_recording(
    recordings: Path, bounded: Callable[[], Any], name: str, changes: Changes
) -> None:
    with tempfile.TemporaryDirectory() as folder, bounded():
        shutil.copytree(recordings, folder, dirs_exist_ok=True)
        (path,) = Path(folder).rglob(name)
        path.write_bytes(mutated(path.read_bytes(), changes))
        try:
            store = PartStore(Path(folder), "weights", {})
        except TiltrmError as error:
            require_one_line(error)
            return
        found = store.part("a", recorded, shape=(300,), kinds={"x": "i", "y": "f"})
        assert all(np.array_equal(found[key], value) for key, value in recorded().items())
        assert 0 < store.once("n", lambda: 2.5) < np.inf


PRESETS = Path(train_settings.__file__).parent / "presets"


@given(st.sampled_from(sorted(path.name for path in PRESETS.iterdir())), CHANGES)
@example("sudoku4-toy.toml", [(0, 0, b"a=" + b"[" * 5000)])
@MANY
def test_any_preset(bounded: Callable[[], Any], name: str, changes: Changes) -> None:
    with tempfile.TemporaryDirectory() as folder, bounded():
        path = Path(folder) / "own.toml"
        path.write_bytes(mutated((PRESETS / name).read_bytes(), changes))
        try:
            load_preset("sudoku4", str(path))
        except TiltrmError as error:
            require_one_line(error)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short training run."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    trainer(folder, steps=2).run()
    return folder


def test_a_training_state_without_its_counters_is_named(run_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(run_folder, tmp_path / "run")
    (path,) = (tmp_path / "run").rglob("0.safetensors")
    for old, new in ((b"best", b"bets"), (b"step", b"stop"), (b'seconds\\": ', b'seconds\\":"')):
        whole = path.read_bytes()
        assert old in whole
        path.write_bytes(whole.replace(old, new, 1))
        with pytest.raises(TiltrmError, match="cannot be read"):
            trainer(tmp_path / "run", steps=2).resume()
        path.write_bytes(whole)


@given(st.sampled_from(["*.safetensors", "metrics.jsonl", "*.json"]), st.integers(0, 99), CHANGES)
@MANY
def test_any_training_state(
    run_folder: Path, bounded: Callable[[], Any], kind: str, which: int, changes: Changes
) -> None:
    with tempfile.TemporaryDirectory() as place, bounded():
        folder = Path(place) / "run"
        shutil.copytree(run_folder, folder)
        paths = sorted(folder.rglob(kind))
        path = paths[which % len(paths)]
        path.write_bytes(mutated(path.read_bytes(), changes))
        try:
            trainer(folder, steps=2).resume()
        except TiltrmError as error:
            require_one_line(error)


@pytest.fixture(scope="session")
def with_table(toy: TRM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A native folder with a large puzzle embedding in a file of its own."""
    model = load(save(toy, tmp_path_factory.mktemp("tables") / "plain", dtype=None))
    model.puzzle_table = torch.randn(5, toy.config.width)
    return save(model, tmp_path_factory.mktemp("tables") / "table", dtype=None)


@given(CHANGES, st.integers(0, 6))
@MANY
def test_any_table_of_puzzles(
    with_table: Path, bounded: Callable[[], Any], changes: Changes, puzzle_id: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, bounded():
        shutil.copytree(with_table, folder, dirs_exist_ok=True)
        path = Path(folder) / native.PUZZLES
        path.write_bytes(mutated(path.read_bytes(), changes))
        try:
            load(folder, puzzle_id=puzzle_id)
        except TiltrmError as error:
            require_one_line(error)


CONFIGS = {
    "json": json.dumps({"arch": {"hidden_size": 32, "num_heads": 2, "L_layers": 1, "L_cycles": 2,
                                 "H_cycles": 3, "expansion": 4.0, "puzzle_emb_len": 1}}),
    "yaml": "arch:\n  hidden_size: 32\n  num_heads: 2\n  L_layers: 1\n  L_cycles: 2\n",
}  # fmt: skip


@given(st.sampled_from(sorted(CONFIGS)), CHANGES)
@example("json", [(0, 10**6, b"[" * 100_000)])
@example("yaml", [(0, 10**6, b"a: &a [x]\nb: [*a, *a]\n" + b"[" * 5000)])
@MANY
def test_any_config(
    files: dict[str, str], bounded: Callable[[], Any], kind: str, changes: Changes
) -> None:
    with tempfile.TemporaryDirectory() as folder, bounded():
        path = Path(folder) / f"config.{kind}"
        path.write_bytes(mutated(CONFIGS[kind].encode(), changes))
        try:
            load(files["CKPT"], config=path)
        except TiltrmError as error:
            require_one_line(error)

"""Recordings of a tuning run: a damaged part is made again, and never unpacked beyond its size."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tiltrm.errors import DataError
from tiltrm.solving.tune_store import Arrays, PartStore

SHAPE, KINDS = (20_000,), {"x": "i", "y": "f", "by": "U"}


def make() -> Arrays:
    return {
        "x": np.arange(20_000) % 97, "y": np.linspace(0, 1, 20_000, dtype=np.float32),
        "by": np.array(["halting"] * 20_000),
    }  # fmt: skip


def read(store: PartStore, made: Callable[[], Arrays] = make) -> Arrays:
    return store.part("a", made, shape=SHAPE, kinds=KINDS)


def same(one: Arrays, other: Arrays) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in KINDS)


def unwanted() -> Arrays:
    raise AssertionError("made again")


def test_a_part_is_made_once(tmp_path: Path) -> None:
    store = PartStore(tmp_path, "weights", {})
    made = read(store)
    assert same(read(store, unwanted), made)


def test_a_part_with_any_damage_is_made_again(tmp_path: Path) -> None:
    """Flipped bits made zlib.error, NotImplementedError and struct.error."""
    store = PartStore(tmp_path, "weights", {})
    made = read(store)
    path = store.folder / "a.npz"
    whole = path.read_bytes()
    chance = random.Random(0)
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 3, 20))):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged[: chance.choice((len(damaged), 20, 0))])
        assert same(read(store), made)


@pytest.mark.parametrize(
    "other",
    [
        lambda: make() | {"x": np.arange(20_000).astype(np.float64)},
        lambda: make() | {"x": np.arange(19_999)},
        lambda: make() | {"by": np.array(["x" * 1000] * 20_000)},
        lambda: {"x": make()["x"]},
    ],
)
def test_arrays_of_another_kind_or_shape_are_damage(
    tmp_path: Path, other: Callable[[], Arrays]
) -> None:
    store = PartStore(tmp_path, "weights", {})
    read(store, other)
    assert same(read(store), make())


def test_a_part_that_unpacks_to_more_is_not_unpacked(
    tmp_path: Path, memory_needed: Callable[..., float]
) -> None:
    """400 MB of zeros in 400 kB."""
    store = PartStore(tmp_path, "weights", {})
    np.savez_compressed(store.folder / "a.npz", x=np.zeros(50_000_000))
    imports = """
        import sys
        from pathlib import Path
        import numpy as np
        from tiltrm.solving.tune_store import PartStore
        store = PartStore(Path(sys.argv[1]), "weights", {})
    """
    code = """
        found = store.part("a", lambda: {"x": np.ones(3)}, shape=(3,), kinds={"x": "f"})
        assert found["x"].sum() == 3
    """
    assert memory_needed(imports, code, tmp_path) < 50


@pytest.mark.parametrize(
    "text", ["{", "null", '"3"', "[3]", "true", "NaN", "-1", "1e999", "[" * 10**5]
)
def test_a_number_that_is_damaged_is_made_again(tmp_path: Path, text: str) -> None:
    store = PartStore(tmp_path, "weights", {})
    assert store.once("b", lambda: 3.0) == store.once("b", lambda: 4.0) == 3.0
    (store.folder / "b.json").write_text(text)
    assert store.once("b", lambda: 5.0) == store.once("b", lambda: 6.0) == 5.0


@pytest.mark.parametrize("text", ["{", "[" * 10**5])
def test_a_folder_with_a_damaged_record_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "about.json").write_text(text)
    with pytest.raises(DataError, match="expected a folder for recordings"):
        PartStore(tmp_path, "weights", {})

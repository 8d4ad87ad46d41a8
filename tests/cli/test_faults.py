"""A disk that fills, a read that fails, memory that runs out: a sentence, a code, no half file."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from tiltrm import folders
from tiltrm.model import load, save
from tiltrm.model.trm import TRM
from tiltrm.tasks import Sudoku

Run = Callable[..., tuple[int, str, str]]

TASK = Sudoku(2)
BROKEN = Path("/proc/self/mem")  # a read of its beginning is an input/output error
PUZZLE = TASK.decode(TASK.generate(0)[0])  # it has one solution
SIZES = (0, 100, 2000, 9000)  # bytes after which the disk is full
pytestmark = pytest.mark.usefixtures("one_thread")


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file can be written beyond so many bytes: the system refuses the rest of a write.

    It is the closest to a full disk that needs no rights: also for writers in C++ and Rust.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def own(toy: TRM, tmp_path: Path) -> Path:
    """A native folder that a command may change."""
    return save(toy, tmp_path / "model", dtype=None)


Command = Callable[[Path, Path, Path], list[str]]  # model, puzzles, new folder or file
WRITERS: dict[str, Command] = {
    "train": lambda model, csv, new: [
        "train", "--task", "sudoku4", "--preset", "toy", "--data", str(csv), "--out", str(new),
        "--steps", "2", "--set", "model.width=16", "--set", "batch=4", "--device", "cpu",
        "--resume",
    ],
    "evaluate": lambda model, csv, new: [
        "evaluate", "--model", str(model), "--data", str(csv), "--store", str(new), "--method",
        "deterministic:outer_steps=2", "--folds", "1", "--seeds", "1",
    ],
    "tune": lambda model, csv, new: [
        "tune", "--model", str(model), "--data", str(csv), "--puzzles", "40",
        "--evaluations", "20000",
    ],
    "import": lambda model, csv, new: ["import", str(model), "--out", str(new)],
    "reproduce": lambda model, csv, new: [
        "reproduce", "frontier", "--tiny", "--store", str(new), "--out", str(new) + "-page",
    ],
    "html": lambda model, csv, new: [
        "solve", PUZZLE, "--model", str(model), "--method", "deterministic",
        "--outer-steps", "1", "--html", str(new),
    ],
    "data": lambda model, csv, new: [
        "data", "--task", "sudoku4", "--generate", "40", "--out", str(new),
    ],
    "diagnose": lambda model, csv, new: [
        "diagnose", "--model", str(model), "--data", str(csv), "--puzzles", "2", "--particles", "3",
        "--outer-steps", "2", "--out", str(new),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_a_sentence_and_the_same_command_works_afterwards(
    tiltrm: Run, own: Path, csv: Path, tmp_path: Path, name: str
) -> None:
    command = WRITERS[name](own, csv, tmp_path / ("new.html" if name == "html" else "new"))
    before = {path.name: path.read_bytes() for path in own.iterdir()}
    failed = 0
    for size in SIZES:
        with full_disk(size):
            code, _, err = tiltrm(*command)
        if code == 0 and name in ("data", "import"):  # they replace nothing
            break
        assert code in (0, 1, 2), (size, err)
        assert "Traceback" not in err
        if code == 2:
            failed += 1
            assert err.splitlines()[-1].startswith("tiltrm"), err
            drafts = [path for path in tmp_path.rglob("*") if ".part" in path.name]
            assert drafts == [], size
            load(own)  # the weights are as they were
    assert failed > 0
    if code == 2:
        code, _, err = tiltrm(*command)
    assert code in (0, 1) or "no sign that this model solves" in err, err  # tune, of a random one
    after = {path.name: path.read_bytes() for path in own.iterdir() if path.is_file()}
    assert all(after[kept] == before[kept] for kept in before if kept.endswith("safetensors"))


def test_a_full_disk_keeps_the_old_page(tiltrm: Run, own: Path, csv: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")
    for size in (0, 2, 5000):
        with full_disk(size):
            code, _, err = tiltrm(*WRITERS["html"](own, csv, page))
        assert (code, page.read_text()) == (2, "old"), err
    assert list(tmp_path.glob(".page*")) == []


def test_a_full_disk_keeps_the_old_puzzles(tiltrm: Run, csv: Path, tmp_path: Path) -> None:
    before = csv.read_text()
    with full_disk(100):
        code, _, err = tiltrm(*WRITERS["data"](tmp_path, csv, csv))
    assert (code, csv.read_text()) == (2, before), err


READERS: dict[str, Command] = {
    "train": lambda model, csv, new: [
        "train", "--task", "sudoku4", "--preset", "toy", "--data", str(csv), "--out", str(new),
    ],
    "train val": lambda model, csv, new: [
        "train", "--task", "sudoku4", "--preset", "toy", "--data",
        str(model.parent / "puzzles.csv"), "--val", str(csv), "--out", str(new),
    ],
    "evaluate": lambda model, csv, new: [
        "evaluate", "--model", str(model), "--data", str(csv), "--store", str(new),
    ],
    "tune": lambda model, csv, new: ["tune", "--model", str(model), "--data", str(csv)],
    "calibrate": lambda model, csv, new: ["calibrate", "--model", str(model), "--data", str(csv)],
    "diagnose": lambda model, csv, new: ["diagnose", "--model", str(model), "--data", str(csv)],
    "solve": lambda model, csv, new: ["solve", "--model", str(model), "--file", str(csv)],
    "data": lambda model, csv, new: ["data", str(csv)],
    "import": lambda model, csv, new: ["import", str(csv), "--out", str(new)],
    "reproduce": lambda model, csv, new: [
        "reproduce", "table1", "--tiny", "--model", str(model), "--data", str(csv), "--store",
        str(new), "--out", str(new) + "-page",
    ],
}  # fmt: skip


@pytest.mark.skipif(not BROKEN.exists(), reason="needs Linux")
@pytest.mark.parametrize("name", READERS)
def test_a_read_that_fails_is_a_sentence(
    tiltrm: Run, own: Path, csv: Path, tmp_path: Path, name: str
) -> None:
    broken = tmp_path / "broken.csv"
    broken.symlink_to(BROKEN)
    code, _, err = tiltrm(*READERS[name](own, broken, tmp_path / "new"))
    assert (code, "Traceback" in err) == (2, False), err
    assert len(err.splitlines()) == 1, err


@pytest.mark.skipif(not BROKEN.exists(), reason="needs Linux")
@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tuned.json"])
def test_a_model_that_cannot_be_read_is_a_sentence(tiltrm: Run, own: Path, file: str) -> None:
    (own / file).unlink(missing_ok=True)
    (own / file).symlink_to(BROKEN)
    code, _, err = tiltrm("solve", "1...3..2.1....2.", "--model", str(own))
    assert (code, "Traceback" in err, len(err.splitlines())) == (2, False, 1), err


def test_a_shard_that_cannot_be_read_is_a_sentence(
    tiltrm: Run, own: Path, csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = WRITERS["evaluate"](own, csv, tmp_path / "new")
    assert tiltrm(*command)[0] == 0

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("tiltrm.evaluate.store.decode", fail)
    code, _, err = tiltrm(*command)
    assert (code, "Traceback" in err) == (2, False), err


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("not enough memory: 9 TB")])
@pytest.mark.parametrize("name", WRITERS)
def test_memory_that_runs_out_is_a_sentence(
    tiltrm: Run, own: Path, csv: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, name: str, error: Exception,
) -> None:  # fmt: skip
    def fail(*_: object, **__: object) -> None:
        raise error

    if name == "import":
        monkeypatch.setattr(torch, "equal", fail)
    elif name == "train":
        monkeypatch.setattr(torch.Tensor, "backward", fail)
    elif name == "data":
        monkeypatch.setattr(Sudoku, "generate", fail)
    else:
        monkeypatch.setattr(TRM, "refine", fail)
    code, _, err = tiltrm(*WRITERS[name](own, csv, tmp_path / "new"))
    assert (code, "Traceback" in err) == (2, False), err
    assert "memory" in err.splitlines()[-1]
    assert [path for path in tmp_path.rglob("*") if ".part" in path.name] == []


def test_a_full_disk_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "best"
    with folders.replacing(target) as fresh:
        (fresh / "file").write_text("old")
    with pytest.raises(OSError, match="too large"), full_disk(2), folders.replacing(target) as part:
        (part / "file").write_text("longer than two bytes")
    assert (target / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["best"]

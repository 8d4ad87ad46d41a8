"""Saved models and terminals for the tests of the command line."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tiltrm.cli import main
from tiltrm.model import save
from tiltrm.model.trm import TRM
from tiltrm.tasks import Sudoku


@pytest.fixture(scope="session")
def folder(toy: TRM, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The toy model as a native folder."""
    return str(save(toy, tmp_path_factory.mktemp("models") / "toy", dtype=None))


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """A file of 120 puzzles of 4 x 4 cells with their answers."""
    task, path = Sudoku(2), tmp_path / "puzzles.csv"
    rows = (tuple(map(task.decode, task.generate(seed))) for seed in range(120))
    path.write_text("question,answer\n" + "".join(f"{q},{a}\n" for q, a in rows))
    return path


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tiltrm(capsys: pytest.CaptureFixture[str], no_progress: None) -> Run:
    """Run a command; its exit code, stdout and stderr."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run

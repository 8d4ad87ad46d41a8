"""Tasks of one's own: a mistake in any function is one sentence that names it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tiltrm.errors import SettingsError
from tiltrm.tasks import MAZE, SUDOKU, Sudoku, Symmetry, registry
from tiltrm.tasks.check import check_task
from tiltrm.tasks.registry import adopt, register

LATIN = (Path(__file__).parents[2] / "examples/latin.py").read_text()


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


def own(folder: Path, more: str) -> str:
    """The Latin square with other functions, as FILE.py:NAME."""
    path = folder / "own.py"
    path.write_text(f"{LATIN}\n\n@dataclass(frozen=True)\nclass Own(Latin):\n{more}\n\n"
                    'OWN = Own("own", 5, ".12345")\n')  # fmt: skip
    return f"{path}:OWN"


def test_the_standard_tasks_pass() -> None:
    assert check_task(SUDOKU, 2) == check_task(Sudoku(2), 2) == 2
    assert check_task(MAZE) == 1


@pytest.mark.parametrize(
    ("function", "named"),
    [
        ("    def broken(self, answer): return 0.5", "Own.violations must give a tensor"),
        ("    def broken(self, answer): return None", "Own.violations must not raise, got Type"),
        ("    def broken(self, answer): raise ValueError('boom')", "must not raise, got ValueErr"),
        ("    def broken(self, answer): return torch.tensor(1)", "must give 0 for the answer"),
        ("    def is_solved(self, puzzle, answer): return True", "Own.is_solved must give a tens"),
        ("    def symmetry(self, puzzles, generator): return None", "Own.symmetry must give a Sy"),
        ("    def symmetry(self, puzzles, generator):\n"
         "        drawn = super().symmetry(puzzles, generator)\n"
         "        return Symmetry(drawn.source * 0, drawn.names)", "permutations of 0..24"),
        ("    def symmetry(self, puzzles, generator):\n"
         "        drawn = super().symmetry(puzzles, generator)\n"
         "        return Symmetry(permutations(puzzles, 25, generator), drawn.names)",
         "must give 0 for the answer of its symmetric views"),
        ("    def generate(self, seed): return [1, 2]", "Own.generate must give a puzzle and its"),
        ("    def generate(self, seed): return torch.ones(25), torch.ones(25)", "Own.generate mu"),
        ("    def generate(self, seed): import sys; sys.exit(0)", "Own.generate must not raise"),
        ("    def decode(self, tokens): return 7", "Own.decode must give a text on one line"),
        ("    def encode(self, text, *, answer=False): return [1]", "Own.encode must give a tens"),
        ("    def encode(self, text, *, answer=False):\n"
         "        return super().encode(text, answer=answer).flip(0)", "Own.encode must give the"),
        ("    def render(self, *a, **k): return None", "Own.render must give a text"),
        ("    def picture(self, *a, **k): return 1 / 0", "Own.picture must not raise, got Zero"),
        ("    defaults = 3", "Own.defaults must give a TaskDefaults"),
        ("    cells = 'a'", "Own.cells must give a int, got 'a'"),
        ("    __hash__ = None", "Own.__hash__ must not raise"),
    ],
)  # fmt: skip
def test_a_mistake_names_its_function(tmp_path: Path, function: str, named: str) -> None:
    with pytest.raises(SettingsError) as found:
        adopt(own(tmp_path, function))
    assert named in str(found.value)
    assert "\n" not in str(found.value)
    assert not registry._registered


def test_a_task_without_a_generator_is_fine(tmp_path: Path) -> None:
    spec = own(tmp_path, "    def generate(self, seed): return Grid.generate(self, seed)")
    assert check_task(adopt(spec)) == 0


@pytest.mark.parametrize("text", ["import sys; sys.exit(0)", "raise SystemExit", "exit(3)"])
def test_a_file_that_exits_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(SettingsError, match=r"got SystemExit|got NameError"):
        adopt(f"{tmp_path / 'own.py'}:OWN")


def test_a_class_is_no_task() -> None:
    with pytest.raises(SettingsError, match="got the class Sudoku; name an object of it"):
        adopt("tiltrm.tasks:Sudoku")
    nothing: Any = Symmetry(torch.zeros(1), torch.zeros(1))
    with pytest.raises(SettingsError, match="expected a task, got"):
        register(nothing)

"""Tasks by name: a name finds, and only a command line or a program loads."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tiltrm.errors import SettingsError
from tiltrm.tasks import STANDARD, SUDOKU, Grid, Sudoku, Task, adopt, by_name, register, registry
from tiltrm.tasks.registry import register_source, source_of

LATIN = Path(__file__).parents[2] / "examples/latin.py"


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


@pytest.mark.parametrize("task", STANDARD, ids=lambda task: task.name)
def test_by_name_knows_the_standard_tasks(task: Task) -> None:
    assert by_name(task.name) is task


def test_by_name_names_what_it_knows() -> None:
    with pytest.raises(SettingsError, match=r"sudoku, maze, .*tapa, pencil, sudoku4, got 'chess'"):
        by_name("chess")


def test_a_file_brings_its_task() -> None:
    with pytest.raises(SettingsError, match=r"sudoku4, got 'latin5'; .* --task FILE\.py:NAME"):
        by_name("latin5")
    task = adopt(f"{LATIN}:LATIN")
    assert by_name("latin5") is task
    assert (task.cells, task.vocabulary) == (25, 7)
    assert [by_name(each.name) for each in STANDARD] == list(STANDARD)


def test_a_module_brings_its_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiles.py").write_text(
        "from tiltrm.tasks import Grid\nTILES = Grid('tiles', 3, '.ab')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert by_name(adopt("tiles:TILES").name).side == 3


def test_a_task_says_what_brought_it(tmp_path: Path) -> None:
    """So that another process can be handed it, though the file is gone by then."""
    path = tmp_path / "mine.py"
    path.write_text("from tiltrm.tasks import Grid\nTASK = Grid('mine', 2, '.ab')\n")
    task = adopt(f"{path}:TASK")
    source = source_of("mine")
    assert source == (str(path), "TASK", path.read_bytes())
    path.unlink()
    registry._registered.clear()
    assert register_source(source) == task
    register(task)  # now a program's own
    assert source_of("mine") is None
    assert source_of("sudoku") is None


def test_a_name_loads_nothing(tmp_path: Path) -> None:
    """It may stand in a checkpoint that somebody else made."""
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    for name in (f"{trap}:TASK", "os:path"):
        with pytest.raises(SettingsError):
            by_name(name)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("TASK = (", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("OTHER = 1", "expected a task called 'TASK', got nothing of that name"),
        ("TASK = 3", "got 3 without name, side, cells, vocabulary, encode"),
    ],
)  # fmt: skip
def test_what_is_no_task_is_named(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(content)
    with pytest.raises(SettingsError) as error:
        adopt(f"{path}:TASK")
    assert said in str(error.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(
        SettingsError, match=r"nowhere\.py: expected Python with a task, got: No such"
    ):
        adopt("nowhere.py:TASK")


def test_the_names_that_are_taken_and_sizes_that_cannot_be() -> None:
    @dataclass(frozen=True)
    class Tall(Grid):
        @property
        def cells(self) -> int:
            return 7

    for task in (SUDOKU, Grid("maze", 3, ".ab")):
        with pytest.raises(SettingsError, match="which is taken"):
            register(task)
    with pytest.raises(SettingsError, match="got tall with 7 cells, side 3 and 4 ids"):
        register(Tall("tall", 3, ".ab"))
    assert by_name("sudoku4") == Sudoku(2)

"""ARC tasks in JSON: every layout that is published, and a sentence for every bad one."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tiltrm.data.arc_files import ArcTask, arc_json, is_arc_file, read_arc_tasks
from tiltrm.errors import DataError

SHARED = Path(__file__).parents[3] / "shared" / "data" / "arc"
PAIR = {"input": [[0, 1], [2, 3]], "output": [[9]]}
TASK = {"train": [PAIR, PAIR], "test": [PAIR]}
READ = ArcTask("a", ((((0, 1), (2, 3)), ((9,),)),) * 2, (((0, 1), (2, 3)),), (((9,),),))


def written(folder: Path, content: Any, name: str = "tasks.json") -> Path:
    text = json.dumps(content)
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["tasks.json", "tasks.json.gz"])
def test_a_file_of_many_tasks(tmp_path: Path, name: str) -> None:
    unknown = {"train": [PAIR], "test": [{"input": [[5]]}, PAIR]}
    path = written(tmp_path, {"a": TASK, "b": unknown}, name)
    assert is_arc_file(path)
    first, second = read_arc_tasks(path)
    assert first == READ
    assert (second.name, second.outputs) == ("b", None)
    assert second.tests == (((5,),), ((0, 1), (2, 3)))


def test_one_task_has_the_name_of_its_file(tmp_path: Path) -> None:
    assert read_arc_tasks(written(tmp_path, TASK, "a.json")) == [READ]


def test_a_folder_of_tasks_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.json", "a.json"):
        written(tmp_path, TASK, name)
    (tmp_path / "notes.txt").write_text("no task")
    assert is_arc_file(tmp_path)
    assert [task.name for task in read_arc_tasks(tmp_path)] == ["a", "b"]


def test_tasks_are_written_as_they_are_read(tmp_path: Path) -> None:
    unknown = ArcTask("b", READ.demonstrations, READ.tests)
    assert read_arc_tasks(written(tmp_path, arc_json([READ, unknown]))) == [READ, unknown]


def test_solutions_beside_challenges_are_the_outputs(tmp_path: Path) -> None:
    asked = {"a": {"train": [PAIR, PAIR], "test": [{"input": PAIR["input"]}]}}
    path = written(tmp_path, asked, "x_challenges.json")
    assert read_arc_tasks(path)[0].outputs is None
    written(tmp_path, {"a": [[[9]]]}, "x_solutions.json")
    assert read_arc_tasks(path) == [READ]
    written(tmp_path, {"a": [[[9]], [[9]]]}, "x_solutions.json")
    with pytest.raises(DataError, match="expected 1 outputs"):
        read_arc_tasks(path)


def test_other_files_are_not_taken_for_arc(tmp_path: Path) -> None:
    for name, text in (("a.csv", "question,answer\n"), ("b.txt", "1234"), ("c.json", "[1]")):
        (tmp_path / name).write_text(text)
        assert not is_arc_file(tmp_path / name)
    assert not is_arc_file(tmp_path / "absent")
    folder = tmp_path / "npy"
    folder.mkdir()
    (folder / "dataset.json").write_text("{}")
    assert not is_arc_file(folder)


def with_grid(rows: Any) -> dict[str, Any]:
    return {"a": {"train": [PAIR, {"input": rows, "output": [[0]]}], "test": [PAIR]}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"a": {"train": [], "test": [PAIR]}}, "at least one demonstration in 'train', got none"),
        ({"a": {"test": [PAIR]}}, "task 'a': expected at least one demonstration"),
        ({"a": {"train": [PAIR], "test": []}}, "at least one test in 'test', got none"),
        (with_grid([[0] * 31]), "input of demonstration 2 of at most 30 x 30 cells, got 1 rows"),
        (with_grid([[0, 1], [2]]), "rows of one length, got 2 cells in row 1 and 1 in row 2"),
        (with_grid([[10]]), "the input of demonstration 2 of colours 0 to 9, got 10 in row 1"),
        (with_grid("01"), "as rows of colours"),
        ({"a": {"train": [{"input": [[0]]}], "test": [PAIR]}}, "expected an 'output' in"),
        ({"a": 5}, "task 'a': expected an object with 'train' and 'test', got 5"),
        ({"a": {"train": {}, "test": [PAIR]}}, "at least one demonstration"),
        ({}, "got an empty object"),
        ([TASK], "expected an object with ARC tasks by name, got a list"),
    ],
)
def test_a_bad_file_is_a_sentence_with_its_name(tmp_path: Path, content: Any, said: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as error:
        read_arc_tasks(path)
    assert said in str(error.value)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    "text", ["{", '{"a": ', "[" * 100_000, '{"a": ' + "1" * 5000 + "}", "\xff"]
)
def test_broken_json_is_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=r"x\.json: expected"):
        read_arc_tasks(path)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data/arc")
def test_the_published_files_are_read() -> None:
    counts = {
        "mini-arc": (149, 149, 100),
        "arc-agi-1-evaluation": (400, 419, 400),
        "arc-agi-2-evaluation": (120, 172, 120),
    }
    for name, expected in counts.items():
        tasks = read_arc_tasks(SHARED / f"{name}.json.gz")
        answered = sum(task.outputs is not None for task in tasks)
        assert (len(tasks), sum(len(task.tests) for task in tasks), answered) == expected

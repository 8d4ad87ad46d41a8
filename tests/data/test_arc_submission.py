"""Submission files: written as Kaggle takes them, read back, and scored as ARC's evaluators do."""

import json
from pathlib import Path
from typing import Any

import pytest

from tiltrm.data.arc_files import ArcTask
from tiltrm.data.arc_submission import read_submission, score, write_submission
from tiltrm.errors import DataError

A, B, C = ((1,),), ((2, 2),), ((3,), (3,))
TASKS = [
    ArcTask("one", ((A, A),), (A,), (A,)),
    ArcTask("two", ((A, A),), (A, B), (A, B)),
    ArcTask("asked", ((A, A),), (A,)),
]


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "submission.json"
    found = {"one": [(A, B)], "two": [(A, C), (B, B)]}
    write_submission(path, found)
    plain = json.loads(path.read_text())
    assert plain["two"][0] == {"attempt_1": [[1]], "attempt_2": [[3], [3]]}
    assert read_submission(path) == found


def test_every_test_input_of_a_task_must_be_right() -> None:
    right = score(TASKS, {"one": [(A, B)], "two": [(A, B), (B, A)], "asked": [(A, A)]})
    assert right == ({"one": True, "two": True}, {"one": True, "two": True})
    second = score(TASKS, {"one": [(B, A)], "two": [(A, B), (A, B)]})
    assert second == ({"one": False, "two": False}, {"one": True, "two": True})
    half = score(TASKS, {"one": [(B, C)], "two": [(A, A), (C, A)]})
    assert half == ({"one": False, "two": False}, {"one": False, "two": False})
    assert score(TASKS, {"two": [(A, B)]}).either == {"one": False, "two": False}  # missing inputs


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"a": 5}, "task 'a': expected a list of attempts, got 5"),
        ({"a": [{"attempt_1": [[1]]}]}, "test 1: expected attempt_1 and attempt_2"),
        ({"a": [{"attempt_1": [[1]], "attempt_2": [[11]]}]}, "attempt_2 of colours 0 to 9, got 11"),
        ([], "got a list"),
    ],
)
def test_a_bad_file_is_a_sentence(tmp_path: Path, content: Any, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=said):
        read_submission(path)


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected to write there"):
        write_submission(tmp_path / "absent" / "x.json", {"one": [(A, B)]})

"""Preprocessed NPY folders of HRM and TinyRecursiveModels."""

import json
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tiltrm.data import read
from tiltrm.errors import DataError
from tiltrm.tasks import MAZE, SUDOKU, Sudoku, Task

TOY = Sudoku(2)


def folder(
    path: Path, task: Task, rows: int = 3, **changes: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """A split as the two projects write it."""
    path.mkdir(parents=True)
    pairs = [task.generate(seed) for seed in range(rows)]
    questions, answers = (torch.stack(column) for column in zip(*pairs, strict=True))
    about = {
        "seq_len": task.cells, "vocab_size": task.vocabulary, "pad_id": 0, "ignore_label_id": 0,
        "blank_identifier_id": 0, "num_puzzle_identifiers": 1, "total_groups": rows,
        "mean_puzzle_examples": 1, "sets": ["all"],
    }  # fmt: skip
    (path / "dataset.json").write_text(json.dumps(about | changes))
    np.save(path / "all__inputs.npy", questions.numpy().astype(np.int32))
    np.save(path / "all__labels.npy", answers.numpy().astype(np.int32))
    np.save(path / "all__puzzle_identifiers.npy", np.zeros(rows, np.int32))
    np.save(path / "all__puzzle_indices.npy", np.arange(rows + 1, dtype=np.int32))
    np.save(path / "all__group_indices.npy", np.arange(rows + 1, dtype=np.int32))
    return questions, answers


@pytest.mark.parametrize("task", [SUDOKU, TOY, MAZE], ids=lambda task: task.name)
def test_a_folder_reads_as_the_whole_or_as_a_split(tmp_path: Path, task: Task) -> None:
    questions, answers = folder(tmp_path / "data" / "test", task)
    for found in (read(tmp_path / "data", split="test"), read(tmp_path / "data" / "test")):
        assert found.task == task
        assert found.questions.dtype == torch.uint8
        assert torch.equal(found.questions, questions)
        assert torch.equal(found.labels(), answers)
    assert len(read(tmp_path / "data" / "test", limit=2)) == 2
    with pytest.raises(DataError, match="expected one of train, "):  # it is a split, and not that
        read(tmp_path / "data" / "test", split="train")


def test_a_folder_of_another_task_says_which(tmp_path: Path) -> None:
    folder(tmp_path / "t", MAZE, 1)
    with pytest.raises(DataError, match=r"for sudoku, got 900 and 6; add --task maze$"):
        read(tmp_path / "t", SUDOKU)


def test_sets_follow_each_other_and_the_limit_counts_over_all(tmp_path: Path) -> None:
    questions, answers = folder(tmp_path / "t", TOY, 3, sets=["b", "all"])
    for name, tokens in (("inputs", questions), ("labels", answers)):
        np.save(tmp_path / "t" / f"b__{name}.npy", tokens[1:].numpy())
    order = torch.tensor([1, 2, 0, 1, 2])
    for limit in (None, 1, 2, 3, 5, 9):
        found = read(tmp_path / "t", limit=limit)
        assert torch.equal(found.questions, questions[order][:limit])
        assert torch.equal(found.labels(), answers[order][:limit])


@pytest.mark.parametrize("ignored", [0, -100])
def test_ignored_labels_are_copied_from_the_question(tmp_path: Path, ignored: int) -> None:
    questions, answers = folder(tmp_path / "t", TOY)
    labels = torch.where(TOY.given(questions), ignored, answers.long())
    np.save(tmp_path / "t" / "all__labels.npy", labels.numpy())
    assert torch.equal(read(tmp_path / "t").labels(), answers)
    np.save(tmp_path / "t" / "all__labels.npy", np.full_like(labels.numpy(), ignored))
    assert read(tmp_path / "t").answers is None


def test_a_folder_need_not_name_an_ignored_label(tmp_path: Path) -> None:
    """HRM writes null where there is none."""
    _, answers = folder(tmp_path / "t", TOY, ignore_label_id=None)
    assert torch.equal(read(tmp_path / "t").labels(), answers)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int64, np.uint64, ">i4"])
def test_every_integer_type_reads(tmp_path: Path, dtype: Any) -> None:
    questions, answers = folder(tmp_path / "t", TOY)
    np.save(tmp_path / "t" / "all__inputs.npy", questions.numpy().astype(dtype))
    np.save(tmp_path / "t" / "all__labels.npy", np.asfortranarray(answers.numpy().astype(dtype)))
    found = read(tmp_path / "t")
    assert torch.equal(found.questions, questions)
    assert torch.equal(found.labels(), answers)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((3, 16), np.float32), "array of integers"),
        (np.ones((3, 16), bool), "array of integers"),
        (np.full((3, 16), "a"), "array of integers"),
        (np.ones((3, 15), np.int32), r"array of \(puzzle, 16\), got \(3, 15\)"),
        (np.ones((3, 16, 1), np.int32), r"array of \(puzzle, 16\)"),
        (np.ones(16, np.int32), r"array of \(puzzle, 16\)"),
        (np.array(1), r"array of \(puzzle, 16\)"),
        (np.full((3, 16), 2**40), "numbers from 1099511627776 to 1099511627776"),
        (np.full((3, 16), 2**16 + 1), "numbers from 65537"),  # 1 in 16 bits
        (np.full((3, 16), 1 - 2**16), "numbers from -65535"),
        (np.full((3, 16), 2), "inputs: expected sudoku4 tokens, got others in row 1"),
        (np.full((3, 16), 7), "inputs: expected sudoku4 tokens, got others in row 1"),
        (np.zeros((3, 16), np.int32), "inputs: expected sudoku4 tokens, got others in row 1"),
        (np.ones((2, 16), np.int32), "as many labels as inputs, got 3, 2"),
    ],
)
def test_a_wrong_array_is_named(tmp_path: Path, array: np.ndarray, message: str) -> None:
    folder(tmp_path / "t", TOY)
    np.save(tmp_path / "t" / "all__inputs.npy", array)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "t")


def test_a_label_of_another_puzzle_is_an_error(tmp_path: Path) -> None:
    _, answers = folder(tmp_path / "t", TOY)
    np.save(tmp_path / "t" / "all__labels.npy", answers.roll(1, 0).numpy())
    with pytest.raises(DataError, match="answer of puzzle 1: expected a solution"):
        read(tmp_path / "t")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seq_len": 17}, "got 17; name the task"),
        ({"vocab_size": 12}, "expected 16 cells and 6 ids for sudoku4, got 16 and 12"),
        ({"seq_len": "16"}, "whole number 'seq_len'"),
        ({"seq_len": 10**30}, "whole number 'seq_len'"),
        ({"ignore_label_id": [1]}, "whole number 'ignore_label_id'"),
        ({"sets": ["../all"]}, "'sets'"),
        ({"sets": []}, "'sets'"),
        ({"sets": ["none"]}, "expected an NPY array"),
    ],
)
def test_a_wrong_description_is_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    folder(tmp_path / "t", TOY, **changes)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "t")


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    folder(tmp_path / "t", TOY)
    trap = tmp_path / "sprung"

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (trap,)

    for content in (pickle.dumps(Trap()), None):
        path = tmp_path / "t" / "all__inputs.npy"
        if content is None:
            np.save(path, np.array([Trap()], dtype=object), allow_pickle=True)
        else:
            path.write_bytes(content)
        with pytest.raises(DataError, match="expected an NPY array"):
            read(tmp_path / "t")
    assert not trap.exists()


def test_a_header_that_promises_more_than_the_file_allocates_nothing(tmp_path: Path) -> None:
    folder(tmp_path / "t", TOY)
    path = tmp_path / "t" / "all__inputs.npy"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"(3, 16)", b"(10000000, 16)"))  # 640 MB
    tracemalloc.start()
    with pytest.raises(DataError, match="expected an NPY array"):
        read(tmp_path / "t")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**7

"""The peers' preprocessed ARC folders: tasks without augmentation, and all rows with their ids."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.tasks.arc.arc_samples import FULL, NAMES, filled

from tiltrm.data import read
from tiltrm.data.arc_files import is_arc_file, read_arc_tasks
from tiltrm.errors import DataError
from tiltrm.tasks.arc import ARC
from tiltrm.tasks.arc.augmentation import parse_name
from tiltrm.tasks.arc.grids import ColourGrid

Pairs = dict[int, list[tuple[ColourGrid, ColourGrid]]]


def write_split(folder: Path, pairs: Pairs, corner: tuple[int, int] = (0, 0)) -> None:
    """As TinyRecursiveModels writes a split; pads of labels are ignored labels, 0."""
    folder.mkdir(parents=True)
    about = {"seq_len": 900, "vocab_size": 12, "ignore_label_id": 0, "sets": ["all"]}
    (folder / "dataset.json").write_text(json.dumps(about))
    every = [pair for found in pairs.values() for pair in found]
    for place, what in enumerate(("inputs", "labels")):
        rows = [ARC.question(pair[place], 0, corner)[:900].numpy() for pair in every]
        np.save(folder / f"all__{what}.npy", np.stack(rows))
    starts = np.cumsum([0, *(len(found) for found in pairs.values())])
    np.save(folder / "all__puzzle_identifiers.npy", np.array(list(pairs), dtype=np.int32))
    np.save(folder / "all__puzzle_indices.npy", starts.astype(np.int32))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    train: Pairs = {1: list(FULL[0].demonstrations), 2: list(FULL[1].demonstrations)}
    test: Pairs = {
        number: list(zip(FULL[number - 1].tests, FULL[number - 1].outputs or (), strict=True))
        for number in (1, 2)
    }
    for number in (3, 4):
        own = parse_name(NAMES[number])[1]
        train[number] = [(own.apply(a), own.apply(b)) for a, b in train[1]]
        test[number] = [(own.apply(a), own.apply(b)) for a, b in test[1]]
    write_split(tmp_path / "train", train, corner=(3, 5))  # the peers move some of these
    write_split(tmp_path / "test", test)
    (tmp_path / "identifiers.json").write_text(json.dumps(NAMES))
    (tmp_path / "test_puzzles.json").write_text("{}")
    return tmp_path


def test_the_tasks_are_those_of_the_json(folder: Path) -> None:
    assert is_arc_file(folder)
    assert read_arc_tasks(folder) == FULL


def test_rows_are_puzzles_with_their_numbers(folder: Path) -> None:
    found = read(folder / "test")
    assert found.task is ARC
    assert ARC.task_numbers(found.questions).tolist() == [1, 2, 2, 3, 4]
    assert ARC.question_grid(found.questions[3]) == parse_name(NAMES[3])[1].apply(FULL[0].tests[0])
    assert [ARC.answer_grid(q, a) for q, a in zip(found.questions, found.labels(), strict=True)][
        :2
    ] == [filled(5, 3, 2), filled(1)]
    assert len(read(folder / "test", ARC, limit=2)) == 2


def test_broken_folders_are_sentences(folder: Path) -> None:
    np.save(folder / "test" / "all__puzzle_indices.npy", np.array([0, 1, 9, 4, 5]))
    with pytest.raises(DataError, match="expected 5 rising numbers from 0"):
        read(folder / "test")
    np.save(folder / "test" / "all__puzzle_indices.npy", np.array([0, 1, 1, 1, 2]))
    with pytest.raises(DataError, match="expected a puzzle number for 5 inputs, got 2"):
        read(folder / "test")
    (folder / "identifiers.json").write_text("{}")
    with pytest.raises(DataError, match="expected a JSON list of names"):
        read_arc_tasks(folder)

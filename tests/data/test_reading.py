"""Every format gives the same Puzzles; bad files give one sentence that says where."""

import gzip
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tiltrm.data import Puzzles, read, read_lines
from tiltrm.errors import DataError, PuzzleError, SettingsError
from tiltrm.tasks import MAZE, SUDOKU, Maze, Sudoku, Task

TOY = Sudoku(2)


def made(task: Task, count: int = 3) -> tuple[list[str], list[str]]:
    pairs = [task.generate(seed) for seed in range(count)]
    return [task.decode(q) for q, _ in pairs], [task.decode(a) for _, a in pairs]


def write_csv(path: Path, task: Task, count: int = 3) -> Puzzles:
    questions, answers = made(task, count)
    rows = [f"made,{q},{a},{i}" for i, (q, a) in enumerate(zip(questions, answers, strict=True))]
    content = "\n".join(["source,question,answer,rating", *rows]) + "\n"
    data = content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return Puzzles(task, task.encode_all(questions), task.encode_all(answers, answer=True))


def same(found: Puzzles, wanted: Puzzles) -> bool:
    return found.task == wanted.task and (
        torch.equal(found.questions, wanted.questions)
        and torch.equal(found.labels(), wanted.labels())
    )


@pytest.mark.parametrize("task", [SUDOKU, TOY, MAZE], ids=lambda task: task.name)
@pytest.mark.parametrize("name", ["test.csv", "test.csv.gz"])
def test_csv_reads_with_the_task_told_from_its_size(tmp_path: Path, task: Task, name: str) -> None:
    wanted = write_csv(tmp_path / name, task)
    for found in (read(tmp_path / name), read(tmp_path, split="test"), read(tmp_path)):
        assert same(found, wanted)
        assert found.sources == ("made",) * 3
        assert found.ratings is not None
        assert found.ratings.tolist() == [0, 1, 2]
    assert len(read(tmp_path / name, limit=2)) == 2


def test_a_limit_holds_for_text(tmp_path: Path) -> None:
    path = tmp_path / "puzzles.txt"
    path.write_text("1...3..2.1....2.\n" * 3)
    assert len(read(path, limit=2)) == 2


def test_a_file_is_compressed_or_not_whatever_its_name(tmp_path: Path) -> None:
    wanted = write_csv(tmp_path / "a.csv.gz", TOY)
    (tmp_path / "a.csv.gz").rename(tmp_path / "a.csv")
    assert same(read(tmp_path / "a.csv"), wanted)
    (tmp_path / "b.gz").write_bytes(gzip.decompress((tmp_path / "a.csv").read_bytes()))
    assert same(read(tmp_path / "b.gz"), wanted)


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
@pytest.mark.parametrize("quote", ["", '"'], ids=["bare", "quoted"])
def test_csv_reads_as_any_program_writes_it(
    tmp_path: Path, mark: str, end: str, quote: str
) -> None:
    """With a byte order mark or without, any line ends, and quotes round all fields or none."""
    wanted = write_csv(tmp_path / "a.csv", TOY)
    rows = [line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines()]
    lines = [",".join(f"{quote}{field}{quote}" for field in row) for row in rows]
    (tmp_path / "a.csv").write_bytes((mark + end.join([*lines, ""])).encode())
    table = read(tmp_path / "a.csv")
    assert same(table, wanted)
    assert table.sources == ("made",) * 3  # the first column, which a mark would spoil
    found = [entry for _, entry in read_lines(tmp_path / "a.csv")]
    assert torch.equal(
        torch.stack([t for t in found if isinstance(t, torch.Tensor)]), wanted.questions
    )


def test_csv_rows_over_several_chunks_keep_their_order_and_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiltrm.data.text_files.CHUNK", 2)
    wanted = write_csv(tmp_path / "a.csv", TOY, 7)
    found = read(tmp_path / "a.csv")
    assert same(found, wanted)
    assert found.ratings is not None
    assert found.ratings.tolist() == list(range(7))
    lines = (tmp_path / "a.csv").read_text().splitlines()
    _, question, answer, _ = lines[6].split(",")
    wrong = {
        "puzzle 6: ": f"made,55{question[2:]},{answer},5",
        "answer of puzzle 6: expected 16 cells": f"made,{question},{answer[1:]},5",
        "answer of puzzle 6: expected a solution": f"made,{question},{answer[::-1]},5",
        "rating of puzzle 6: ": f"made,{question},{answer},five",
    }
    for said, row in wrong.items():
        (tmp_path / "a.csv").write_text("\n".join([*lines[:6], row, *lines[7:]]))
        with pytest.raises(DataError, match=rf"a\.csv: {said}"):
            read(tmp_path / "a.csv")


def test_a_csv_needs_no_answers(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("question\r\n" + "." * 81 + "\r\n\r\n")
    found = read(tmp_path / "q.csv")
    assert found.answers is None
    assert found.ratings is None
    assert len(found) == 1
    with pytest.raises(DataError, match="with answers"):
        found.labels()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "a column 'question'"),
        ("question,question\n..,..\n", "one column 'question'"),
        ("question,answer\n" + "." * 81 + "\n", "line 2: expected 2 columns, got 1"),
        ("question,answer\n", "at least one puzzle, got none"),
        ("question\n" + "." * 80 + "\n", "got 80; name the task"),
        ("question\n" + "." * 81 + "\n" + "." * 80 + "\n", "puzzle 2: expected 81 cells, got 80"),
        ("question,rating\n" + "." * 81 + ",hard\n", "rating of puzzle 1: .* got 'hard'"),
        ("question,rating\n" + "." * 81 + ",inf\n", "rating of puzzle 1: .* got 'inf'"),
        ('question\n"' + "." * 81 + "\n", "line 2: expected CSV"),
    ],
)
def test_a_bad_csv_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "bad.csv").write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path / "bad.csv")
    assert str(caught.value).count("bad.csv") == 1


def test_a_label_that_breaks_the_rules_is_an_error(tmp_path: Path) -> None:
    questions, answers = made(TOY, 2)
    rows = [f"{questions[0]},{answers[0]}", f"{questions[0]},{answers[1]}"]
    (tmp_path / "wrong.csv").write_text("\n".join(["question,answer", *rows]))
    with pytest.raises(DataError, match="answer of puzzle 2: expected a solution"):
        read(tmp_path / "wrong.csv")


@pytest.mark.parametrize("task", [SUDOKU, TOY, MAZE], ids=lambda task: task.name)
def test_plain_text_reads_a_line_or_a_grid_each(tmp_path: Path, task: Task) -> None:
    questions, _ = made(task)
    wanted = task.encode_all(questions)
    side = task.side
    grids = ["\n".join(q[i : i + side] for i in range(0, side**2, side)) for q in questions]
    mixed = [grids[0], questions[1], grids[2]]
    forms = ["\n".join(questions), "\n".join(grids), "\n\n".join(grids) + "\n", "\n".join(mixed)]
    for text in [*forms, forms[1].replace("\n", "\r\n")]:
        (tmp_path / "p.txt").write_bytes(text.encode())
        for found in (read(tmp_path / "p.txt"), read(tmp_path / "p.txt", task)):
            assert found.task == task
            assert torch.equal(found.questions, wanted)
        entries = read_lines(text)
        assert torch.equal(
            torch.stack([t for _, t in entries if isinstance(t, torch.Tensor)]), wanted
        )


def test_ruled_grids_and_comments_read() -> None:
    questions, _ = made(SUDOKU, 2)
    tokens = SUDOKU.encode_all(questions)
    grids = [SUDOKU.render(row, colour=False) for row in tokens]
    ascii_grid = grids[0].translate(str.maketrans("│─┌┬┐├┼┤└┴┘", "|-+++++++++"))
    text = f"# two puzzles\n{grids[0]}\n{grids[1]}\n{questions[1]} # again\n{ascii_grid}\n"
    found = [entry for _, entry in read_lines(text)]
    assert len(found) == 4
    for entry, wanted in zip(found, tokens[[0, 1, 1, 0]], strict=True):
        assert isinstance(entry, torch.Tensor)
        assert torch.equal(entry, wanted)


def test_a_bad_puzzle_does_not_stop_the_others(tmp_path: Path) -> None:
    questions, _ = made(SUDOKU, 2)
    bad = ["." * 80, "5" * 81, "x" + "." * 80, "--3" + "-" * 78]
    lines = [*bad, *questions]
    for source in ("\n".join(lines), tmp_path / "p.txt", tmp_path / "p.csv"):
        if isinstance(source, Path):
            head = ["question"] if source.suffix == ".csv" else []
            source.write_text("\n".join(head + lines))
        found = read_lines(source)
        kinds = [type(entry) for _, entry in found]
        assert kinds == [PuzzleError] * 4 + [torch.Tensor] * 2
        assert [text for text, _ in found] == lines
        for word, (_, error) in zip(("got 80", "conflict", "'x'", "'.'"), found[:4], strict=True):
            assert word in str(error)


def test_an_unfinished_grid_is_one_error_and_the_next_one_still_reads() -> None:
    questions, _ = made(TOY, 2)
    rows = [questions[1][i : i + 4] for i in range(0, 16, 4)]
    text = "\n".join([*rows[:3], "", *rows, "12", questions[0]])
    found = read_lines(text, TOY)
    assert [isinstance(entry, torch.Tensor) for _, entry in found] == [False, True, False, True]


def test_a_row_too_long_spoils_its_grid_and_short_puzzles_each_themselves() -> None:
    """More than two rows of cells in a line are a puzzle, up to two are a row."""
    questions, _ = made(TOY, 1)
    rows = [questions[0][i : i + 4] for i in range(0, 16, 4)]
    for extra in (".", "...."):
        text = "\n".join([*rows[:3], rows[3] + extra, *rows])
        found = read_lines(text, TOY)
        assert [isinstance(entry, torch.Tensor) for _, entry in found] == [False, True]
    short = read_lines("\n".join(["." * 9, "." * 15, questions[0]]), TOY)
    assert [isinstance(entry, torch.Tensor) for _, entry in short] == [False, False, True]


def test_bad_rows_do_not_hide_the_task_of_a_table(tmp_path: Path) -> None:
    questions, _ = made(TOY, 2)
    (tmp_path / "p.csv").write_text("\n".join(["question", "." * 15, *questions]))
    found = [entry for _, entry in read_lines(tmp_path / "p.csv")]
    assert [isinstance(entry, torch.Tensor) for entry in found] == [False, True, True]


def test_commas_do_not_make_a_table(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("# hard, by hand\n" + "." * 81 + "\n")
    assert len(read(tmp_path / "p.txt")) == 1
    (tmp_path / "p.txt").write_text("1,2,3\n" + "." * 81 + "\n")
    found = [entry for _, entry in read_lines(tmp_path / "p.txt")]
    assert [type(entry) for entry in found] == [PuzzleError, torch.Tensor]


def test_maze_lines_keep_their_spaces() -> None:
    task = Maze(4)
    text = "   S\n    \n####\nG   \n"
    (entry,) = read_lines(text, task)
    assert isinstance(entry[1], torch.Tensor)
    assert task.decode(entry[1]) == "   S    ####G   "


@pytest.mark.parametrize("kind", ["line.txt", "grid.txt", "table.csv"])
@pytest.mark.parametrize(
    ("asked", "written"), [(SUDOKU, MAZE), (MAZE, SUDOKU), (SUDOKU, TOY), (TOY, SUDOKU)],
    ids=lambda task: task.name,
)  # fmt: skip
def test_puzzles_of_another_task_are_recognised(
    tmp_path: Path, asked: Task, written: Task, kind: str
) -> None:
    """The error names the task that the file seems to be for, and the flag that chooses it."""
    questions, _ = made(written, 2)
    side, path = written.side, tmp_path / kind
    grids = ["\n".join(q[i : i + side] for i in range(0, side**2, side)) for q in questions]
    texts = {"line.txt": questions, "grid.txt": grids, "table.csv": ["question", *questions]}
    path.write_text("\n".join(texts[kind]) + "\n")
    said = (
        rf"{kind}: expected puzzles of {asked.name}, got puzzles that look like {written.name}; "
        rf"add --task {written.name}$"
    )
    for reader in (read, read_lines):
        with pytest.raises(DataError, match=said):
            reader(path, asked)
        reader(path, written)


def test_one_puzzle_that_fits_makes_the_file_one_of_its_task(tmp_path: Path) -> None:
    (sudoku, *_), _ = made(SUDOKU, 1)
    (toy, *_), _ = made(TOY, 1)
    (tmp_path / "p.csv").write_text("\n".join(["question", toy, sudoku]))
    kinds = [type(entry) for _, entry in read_lines(tmp_path / "p.csv", SUDOKU)]
    assert kinds == [PuzzleError, torch.Tensor]
    with pytest.raises(DataError, match="puzzle 1: expected 81 cells, got 16"):
        read(tmp_path / "p.csv", SUDOKU)


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("# nothing\n\n")
    with pytest.raises(DataError, match=r"empty\.txt: expected at least one puzzle"):
        read(tmp_path / "empty.txt")
    assert read_lines(tmp_path / "empty.txt") == []
    (tmp_path / "empty.csv").write_text("question,answer\n")
    assert read_lines(tmp_path / "empty.csv") == []
    with pytest.raises(DataError, match="sudoku-extreme, maze-hard"):
        read(tmp_path / "absent.csv")
    with pytest.raises(DataError, match=r"absent\.txt: expected a readable file, got: No such"):
        read_lines(tmp_path / "absent.txt")
    with pytest.raises(DataError, match=r"test, test\.csv, test\.csv\.gz"):
        read(tmp_path)
    with pytest.raises(SettingsError, match="limit must be at least 1"):
        read(tmp_path, limit=0)


def test_datasets_come_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def download(repository: str, name: str, *, repo_type: str) -> str:
        calls.append((repository, name, repo_type))
        return str(tmp_path / name)

    fake = SimpleNamespace(hf_hub_download=download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    wanted = write_csv(tmp_path / "train.csv", TOY)
    assert same(read("sudoku-extreme", split="train"), wanted)
    assert same(read("sudoku-extreme/train"), wanted)
    assert same(read("sudoku-extreme", default="train"), wanted)
    assert same(read(tmp_path, default="train"), wanted)
    write_csv(tmp_path / "test.csv", TOY)
    read("sapientinc/maze-30x30-hard-1k")
    read("maze-hard/test", default="train")
    assert calls == [
        ("sapientinc/sudoku-extreme", "train.csv", "dataset"),
        ("sapientinc/sudoku-extreme", "train.csv", "dataset"),
        ("sapientinc/sudoku-extreme", "train.csv", "dataset"),
        ("sapientinc/maze-30x30-hard-1k", "test.csv", "dataset"),
        ("sapientinc/maze-30x30-hard-1k", "test.csv", "dataset"),
    ]


def test_the_hub_fails_kindly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DataError, match=r"pip install tiltrm\[hub\]"):
        read("maze-hard")

    def download(*_: object, **__: object) -> str:
        raise RuntimeError("no route to host\nand a long trace")

    fake = SimpleNamespace(hf_hub_download=download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    with pytest.raises(DataError, match=r"got: no route to host$"):
        read("maze-hard")


def test_take_keeps_the_columns_together(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", TOY, 5)
    table = replace(read(tmp_path / "a.csv"), sources=tuple("abcde"))
    part = table.take(torch.tensor([3, 1]))
    assert part.ratings is not None
    assert part.ratings.tolist() == [3, 1]
    assert part.sources == ("d", "b")
    assert TOY.is_solved(part.questions, part.labels()).all()
    assert len(part.take(slice(1))) == 1


def test_columns_of_different_lengths_are_refused() -> None:
    questions = torch.ones(2, 16, dtype=torch.uint8)
    with pytest.raises(DataError, match="expected 2 ratings, got 3"):
        Puzzles(TOY, questions, ratings=torch.zeros(3))
    with pytest.raises(DataError, match="answers of shape"):
        Puzzles(TOY, questions, questions[:1])
    with pytest.raises(DataError, match="questions of shape"):
        Puzzles(SUDOKU, questions)

"""tiltrm data: what a file holds, which rows are bad, and puzzles of one's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from tiltrm.data import SPLITS, read
from tiltrm.tasks import MAZE, Sudoku

TASK = Sudoku(2)
GOOD = "1...3..2.1....2."
VAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "sudoku-extreme" / "val.csv.gz"


def test_generated_puzzles_are_right_and_repeatable(tiltrm: Any, tmp_path: Path) -> None:
    def generate(name: str, seed: int) -> dict[str, Any]:
        code, out, _ = tiltrm("data", "--generate", "6", "--task", "sudoku4", "--seed", str(seed),
                              "--out", tmp_path / name, "--json")  # fmt: skip
        assert code == 0
        found: dict[str, Any] = json.loads(out)
        return found

    first, again, other = generate("a.csv", 0), generate("b.csv", 0), generate("c.csv", 1)
    assert (first["task"], first["puzzles"], first["answers"]) == ("sudoku4", 6, True)
    assert first["sha256"] == again["sha256"]
    rows = [set(map(TASK.decode, read(tmp_path / name).questions)) for name in ("a.csv", "c.csv")]
    assert len(rows[0]) == 6
    assert not rows[0] & rows[1]  # a neighbouring seed shares nothing
    assert other["split"] is None


def test_a_file_is_not_overwritten(tiltrm: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("precious")
    code, _, err = tiltrm("data", "--generate", "1", "--task", "sudoku4", "--out", file)
    assert (code, len(err.splitlines())) == (2, 1)
    assert file.read_text() == "precious"


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt, 130), (OSError, 2)])
def test_half_a_file_is_not_left(
    tiltrm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: type, code: int
) -> None:
    """It would stand in the way of the next try."""
    task, made = Sudoku(2), []

    def generate(_: Sudoku, seed: int) -> Any:
        if len(made) == 2:
            raise stop
        made.append(seed)
        return task.encode(GOOD), task.encode(GOOD)

    monkeypatch.setattr(Sudoku, "generate", generate)
    file = tmp_path / "new.csv"
    found, _, err = tiltrm("data", "--generate", "5", "--task", "sudoku4", "--out", file)
    assert (found, len(err.splitlines()), len(made)) == (code, 1, 2)
    assert not file.exists()


def test_bad_rows_are_counted_and_named(tiltrm: Any, tmp_path: Path) -> None:
    file = tmp_path / "puzzles.txt"
    file.write_text("\n".join([GOOD, *["11.............."] * 6, GOOD, "12x............."]) + "\n")
    code, out, _ = tiltrm("data", file, "--json")
    report = json.loads(out)
    assert code == 2
    assert (report["task"], report["puzzles"]) == ("sudoku4", 9)
    assert [row["puzzle"] for row in report["bad"]] == [2, 3, 4, 5, 6, 7, 9]
    code, out, _ = tiltrm("data", file)
    assert code == 2
    assert out.count("twice in row 1") == 5
    assert "7 bad puzzles" in out


def test_one_puzzle_is_one(tiltrm: Any, tmp_path: Path) -> None:
    file = tmp_path / "puzzles.txt"
    file.write_text(f"{GOOD}\n")
    assert f"{file}: 1 puzzle of sudoku4, without answers\n" in tiltrm("data", file)[1]
    file.write_text("11..............\n")
    code, out, _ = tiltrm("data", file)
    first, *_, last = out.splitlines()
    assert (code, first) == (2, f"{file}: 1 puzzle")  # nobody knows of what
    assert last == "1 bad puzzle; correct or drop it"


def test_a_table_of_something_else_is_one_sentence(tiltrm: Any, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("a,b\n1,2\n")
    code, out, err = tiltrm("data", file)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"{file}: expected a CSV with a column 'question', got 'a,b" in err


def test_puzzles_of_another_task_are_one_sentence(tiltrm: Any, tmp_path: Path) -> None:
    file = tmp_path / "mazes.txt"
    file.write_text(f"{MAZE.decode(MAZE.generate(0)[0])}\n")
    code, out, err = tiltrm("data", file, "--task", "sudoku")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.endswith("got puzzles that look like maze; add --task maze\n")


def test_digits_of_an_answer_are_no_clues(tiltrm: Any, tmp_path: Path) -> None:
    file = tmp_path / "puzzles.csv"
    file.write_text(f"question,answer\n{GOOD},{'1' * 16}\n")
    code, _, err = tiltrm("data", file)
    assert code == 2
    assert "answer of puzzle 1: digits conflict: 1 twice in row 1" in err


def test_a_wrong_answer_is_one_sentence(tiltrm: Any, tmp_path: Path) -> None:
    file = tmp_path / "puzzles.csv"
    file.write_text(f"question,answer\n{GOOD},2143341212344321\n")
    code, out, err = tiltrm("data", file)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "answer of puzzle 1" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected a FILE or --generate"), (("missing",), "'missing'"),
        (("--generate", "3"), "--out F"), (("--generate", "0", "--out", "x"), "got 0"),
        (("--out", "x"), "leave --out out"), (("f", "--seed", "0"), "leave --seed out"),
        (("f", "--generate", "1", "--out", "x"), "got 'f'"), ((".", "--task", "chess"), "chess"),
        ((".",), "expected one of test, test.csv, test.csv.gz in this folder, got none; name the "
         "file or folder itself"),
    ],
)  # fmt: skip
def test_nonsense_is_one_sentence(
    tiltrm: Any, arguments: tuple[str, ...], said: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """It names what was wrong and nothing else."""
    monkeypatch.chdir(tmp_path)
    code, out, err = tiltrm("data", *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err
    assert list(tmp_path.iterdir()) == []


def test_a_named_split_is_recognised(tiltrm: Any) -> None:
    if not VAL.exists():
        pytest.skip("the shared data is not here")
    code, out, _ = tiltrm("data", VAL)
    assert code == 0
    assert "500 puzzles of sudoku, with answers\nsplit: sudoku-extreme/val\n" in out
    assert SPLITS["sudoku-extreme/val"].sha256 in out

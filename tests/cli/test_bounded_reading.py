"""Commands read puzzle files of bounded size in bounded memory."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tiltrm.cli import data_command
from tiltrm.tasks import Sudoku

Run = Callable[..., tuple[int, str, str]]
TASK = Sudoku(2)
READERS = {  # a command with its puzzles, but for their file
    "solve": ["solve", "--file"],
    "data": ["data"],
    "evaluate": ["evaluate", "--data"],
    "diagnose": ["diagnose", "--data"],
    "tune": ["tune", "--dry-run", "--data"],
    "fit-guide": ["fit-guide", "--out", "guide", "--data"],
}


def words_of(command: str, model: str) -> list[str]:
    name, *rest = READERS[command]
    return [name, *([] if name == "data" else ["--model", model]), *rest]


@pytest.mark.parametrize("command", ["solve", "data"])
def test_a_bomb_of_numbers_is_refused_in_little_memory(
    command: str, folder: str, tmp_path: Path, memory_needed: Callable[..., float]
) -> None:
    """80 MB of lines with one digit in a gzip of 78 kB took 550 MB."""
    bomb = tmp_path / "bomb.gz"
    with gzip.open(bomb, "wb", 9) as stream:
        for _ in range(40):
            stream.write(b"1\n" * 10**6)
    imports = """
        import contextlib, io, sys
        import torch
        import tiltrm.cli.data_command, tiltrm.cli.solve_command
        from tiltrm.cli import main
        from tiltrm.model import load
        if "--model" in sys.argv:
            load(sys.argv[sys.argv.index("--model") + 1])
    """
    code = """
        error = io.StringIO()
        with contextlib.redirect_stderr(error):
            code = main(sys.argv[1:])
        lines = error.getvalue().splitlines()
        assert (code, len(lines)) == (2, 1) and "bomb.gz: expected" in lines[0], lines
    """
    assert memory_needed(imports, code, *words_of(command, folder), bomb) < 60


@pytest.mark.parametrize("command", sorted(READERS))
def test_every_command_that_reads_puzzles_has_a_limit(
    command: str,
    folder: str,
    csv: Path,
    tmp_path: Path,
    tiltrm: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = tiltrm(*words_of(command, folder), csv, "--max-bytes", "200")
    assert code == 2
    assert "expected at most 200 bytes of text, got more" in err
    assert "--max-bytes" in err


def test_the_json_lists_the_first_bad_puzzles(
    tmp_path: Path, tiltrm: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_command, "LISTED", 2)
    path = tmp_path / "puzzles.txt"
    path.write_text("\n".join([TASK.decode(TASK.generate(0)[0]), *["11.............."] * 6]))
    code, out, _ = tiltrm("data", path, "--json")
    report = json.loads(out)
    assert (code, report["puzzles"], report["bad_puzzles"], len(report["bad"])) == (2, 7, 6, 2)
    assert "6 bad puzzles" in tiltrm("data", path)[1]

"""tiltrm diagnose: what is wrong is named before the work; the rest is in tests/diagnose."""

from pathlib import Path
from typing import Any

import pytest

from tiltrm.cli import diagnose_command


def test_the_file_without_answers_is_named(tiltrm: Any, folder: str, tmp_path: Path) -> None:
    file = tmp_path / "puzzles.txt"
    file.write_text("1...3..2.1....2.\n")
    code, out, err = tiltrm("diagnose", "--labels", "--model", folder, "--data", file)
    assert (code, out) == (2, "")
    assert f"{file}: expected puzzles with answers, got none" in err


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--puzzles", "0", "--puzzles must be at least 1, got 0"),
        ("--out", "puzzles.txt", "--out must be a folder that can be written"),
    ],
)
def test_the_flag_is_named_before_the_work(
    tiltrm: Any, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str,
    value: str, said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(diagnose_command, "diagnose", lambda *_, **__: pytest.fail("diagnosed"))
    Path("puzzles.txt").write_text("1...3..2.1....2.\n")
    code, out, err = tiltrm("diagnose", "--model", folder, "--data", "puzzles.txt", flag, value)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err

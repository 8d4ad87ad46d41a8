"""Whatever is typed, the command line answers with one sentence and an exit code."""

import os
import subprocess
import sys
from typing import Any

import pytest

from tiltrm.cli.main import COMMANDS


@pytest.mark.parametrize(
    "arguments",
    [
        (), ("fly",), ("solve", "--fly"), ("solve", "--particles", "many"),
        ("import",), ("data", "--generate", "x"), ("data",),
        ("train", "a\nb"),
    ],
)  # fmt: skip
def test_nonsense_gives_one_sentence(tiltrm: Any, arguments: tuple[str, ...]) -> None:
    code, out, err = tiltrm(*arguments)
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("tiltrm")


def test_a_shortened_flag_is_not_guessed(tiltrm: Any, folder: str) -> None:
    code, _, err = tiltrm("solve", "1" + "." * 15, "--model", folder, "--outer", "1")
    assert code == 2
    assert "--outer" in err


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    from tiltrm.cli import main

    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(f"\n    {name}" in out for name in COMMANDS)


def test_a_reader_that_goes_away_is_no_error(folder: str) -> None:
    puzzles = ["1" + "." * 15] * 40
    command = [sys.executable, "-m", "tiltrm.cli", "solve", "--model", folder, "--json",
               "--method", "deterministic", "--outer-steps", "1", *puzzles]  # fmt: skip
    reading, writing = os.pipe()
    os.close(reading)  # every write fails from the start
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_without_the_characters_of_a_grid_still_gets_one(folder: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tiltrm.cli", "solve", "--model", folder, "1" + "." * 15,
         "--method", "deterministic", "--outer-steps", "1"],
        capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == b""
    assert b"not solved by the rules" in done.stdout

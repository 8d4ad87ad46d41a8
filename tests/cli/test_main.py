"""Whatever is typed, the command line answers with one sentence and an exit code."""

import os
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import tiltrm
from tiltrm.cli.main import COMMANDS

TILTRM = (sys.executable, "-m", "tiltrm.cli")
PLAIN = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
PUZZLE = "1...3..2.14...2."  # it has one solution
QUICK = (PUZZLE, "--method", "deterministic", "--outer-steps", "1")


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


def test_the_command_that_was_meant_answers(tiltrm: Any) -> None:
    for words in (("solve", "--particles", "many"), ("import",), ("reproduce",),
                  ("reproduce", "table1", "--quick", "--tiny"), ("solve", "--fly")):  # fmt: skip
        assert tiltrm(*words)[2].startswith(f"tiltrm {words[0]}: ")
    assert tiltrm("fly")[2].startswith("tiltrm: ")
    assert tiltrm()[2].startswith("tiltrm: ")


def test_a_former_command_says_where_it_went(tiltrm: Any) -> None:
    code, out, err = tiltrm("calibrate", "--model", "m", "--data", "d", "--write")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "write tiltrm tune --threshold-only, which stores its result unless --dry-run" in err


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


@pytest.fixture
def puzzles(tmp_path: Path) -> Path:
    file = tmp_path / "puzzles.txt"
    file.write_text("1" + "." * 15 + "\n")
    return file


@pytest.mark.parametrize("words", [("--help",), ("data",)])
def test_nor_is_one_that_goes_before_the_end(words: tuple[str, ...], puzzles: Path) -> None:
    """What is printed waits in a buffer until then."""
    command = [*TILTRM, *words, *([str(puzzles)] if words == ("data",) else [])]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, check=False, env=PLAIN
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("environment", [PLAIN, {**PLAIN, "PYTHONUNBUFFERED": "1"}])
def test_a_full_disk_is_one_sentence(puzzles: Path, environment: dict[str, str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*TILTRM, "data", puzzles], stdout=full, stderr=subprocess.PIPE, check=False,
            env=environment,
        )  # fmt: skip
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(b"tiltrm data: ")
    assert b"No space left" in done.stderr


def test_closed_streams_are_no_error(folder: str) -> None:
    """Without stderr, what was wrong must not turn up among the results."""
    for stream, words, code in ((1, ("solve", "--model", folder, *QUICK), 1),
                                (2, ("data", "absent"), 2)):  # fmt: skip
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {stream}>&-', "sh", *TILTRM, *words],
            capture_output=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "--model", ""), ("solve", "--html="), ("import", "x", "--out", ""),
        ("train", "--data", ""), ("evaluate", "--data", "x", "--store", ""),
        ("diagnose", "--data", "x", "--out", ""), ("serve", "--model", "sudoku-extreme", ""),
    ],
)  # fmt: skip
def test_an_empty_value_is_not_the_usual_one(tiltrm: Any, words: tuple[str, ...]) -> None:
    """A variable that was never set: --model "$MODEL"."""
    code, out, err = tiltrm(*words)
    assert (code, out) == (2, "")
    assert "got an empty one" in err


MODULES = ("tiltrm", "tiltrm.cli")
STARTS = (
    "import tiltrm_entry; sys.exit(tiltrm_entry.main())",
    *(f"import runpy; runpy.run_module({name!r}, run_name='__main__')" for name in MODULES),
)
INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests
sys.argv = ["tiltrm", "data", "x"]
"""


@pytest.mark.parametrize("start", STARTS)
def test_an_interrupt_while_torch_is_imported_is_quiet(tmp_path: Path, start: str) -> None:
    """A slow torch that says when it is being imported, and turns an interrupt into another error.

    By the script and by python -m.
    """
    (tmp_path / "torch.py").write_text(
        "import time\nprint('now', flush=True)\n"
        "try:\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    raise ImportError('broken')\n"
    )
    paths = os.pathsep.join((str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])))
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED + start], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stdout.readline() == b"now\n"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    assert (running.returncode, out, err) == (130, b"", b"tiltrm: interrupted\n")


def test_afterwards_an_interrupt_is_for_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    import tiltrm_entry

    def command() -> int:
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        return 7

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("tiltrm.cli.main", command)
    try:
        assert tiltrm_entry.main() == 7
    finally:
        signal.signal(signal.SIGINT, before)


BUSY = """
import sys, threading, time
from tiltrm.cli import data_command

def run(_):
    print("so far")
    threading.Thread(target=time.sleep, args=(60,)).start()
    raise KeyboardInterrupt

data_command.run = run
sys.argv = ["tiltrm", "data", "x"]
"""


@pytest.mark.parametrize("start", STARTS)
def test_an_interrupt_does_not_wait_for_threads(start: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUSY + start],
        capture_output=True,
        check=False,
        env=PLAIN,
        timeout=45,
    )
    assert done.returncode == 130
    assert (done.stdout, done.stderr) == (b"so far\n", b"tiltrm data: interrupted\n")


def test_an_interrupted_command_says_so(tiltrm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("tiltrm.cli.data_command.run", interrupted)
    assert tiltrm("data") == (130, "", "tiltrm data: interrupted\n")


@pytest.mark.parametrize("words", [("--help",), *((name, "--help") for name in COMMANDS)])
def test_help_needs_no_torch(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Its import takes seconds; this one fails, and so would a command that imports it."""
    (tmp_path / "torch.py").write_text("raise ImportError('imported')\n")
    paths = os.pathsep.join((str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])))
    done = subprocess.run(
        [sys.executable, "-m", "tiltrm", *words], capture_output=True, check=False, text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: {' '.join(('tiltrm', *words[:-1]))} ")


def test_the_version_by_any_name() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-m", name, "--version"], capture_output=True, check=True
        ).stdout
        for name in MODULES
    }
    assert found == {f"tiltrm {tiltrm.__version__}\n".encode()}


def test_a_terminal_without_the_characters_of_a_grid_still_gets_one(folder: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tiltrm.cli", "solve", "--model", folder, PUZZLE,
         "--method", "deterministic", "--outer-steps", "1"],
        capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == b""
    assert b"breaks a rule" in done.stdout


def test_the_script_is_the_entry_that_is_ready_for_an_interrupt() -> None:
    (script,) = (own for own in entry_points(group="console_scripts") if own.name == "tiltrm")
    assert script.value == "tiltrm_entry:main"

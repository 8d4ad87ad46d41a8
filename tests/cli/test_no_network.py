"""No command opens a connection or looks up a name, unless a public data set is named."""

import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]
COMMANDS = {
    "solve": ["--model", "MODEL", "--file", "CSV", "--outer-steps", "2"],
    "data": ["CSV"],
    "data --generate": ["--generate", "3", "--task", "sudoku4", "--out", "NEW"],
    "evaluate": ["--model", "MODEL", "--data", "CSV", "--method", "deterministic:outer_steps=2",
                 "--folds", "1", "--seeds", "1"],
    "diagnose": ["--model", "MODEL", "--data", "CSV", "--particles", "3", "--outer-steps", "2",
                 "--puzzles", "2"],
    "tune": ["--model", "MODEL", "--data", "CSV", "--threshold-only", "--dry-run",
             "--outer-steps", "2"],
    "train": ["--task", "sudoku4", "--preset", "toy", "--data", "CSV", "--out", "NEW", "--set",
              "model.width=16", "--set", "batch=4", "--device", "cpu", "--steps", "2"],
}  # fmt: skip
REFUSED = "expected puzzles that the model can solve"  # of `tune` on random weights


class NetworkError(BaseException):
    """Not an Exception, so that no command can turn it into a sentence."""


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **_: object) -> None:
        raise NetworkError(arguments)

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.mark.usefixtures("no_network", "one_thread")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_needs_no_network(
    tiltrm: Run, folder: str, csv: Path, tmp_path: Path, name: str
) -> None:
    places = {"MODEL": folder, "CSV": str(csv), "NEW": str(tmp_path / "new")}
    code, _, err = tiltrm(name.split()[0], *(places.get(word, word) for word in COMMANDS[name]))
    assert code in (0, 1) or REFUSED in err, err


@pytest.mark.usefixtures("no_network")
def test_the_traps_are_where_connections_are_made() -> None:
    for address in ("http://127.0.0.1:9/", "http://tiltrm.invalid/"):
        with pytest.raises(NetworkError):
            urllib.request.urlopen(address)

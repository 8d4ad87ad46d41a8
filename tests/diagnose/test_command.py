"""tiltrm diagnose: terminal, JSON, page; labels only on request; bad input in one sentence."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tiltrm.cli import main
from tiltrm.diagnose import VERDICTS
from tiltrm.errors import SettingsError
from tiltrm.model import save
from tiltrm.model.trm import TRM
from tiltrm.report import diagnosis
from tiltrm.tasks import Sudoku

SMALL = ("--particles", "3", "--outer-steps", "3", "--puzzles", "2")


@pytest.fixture(scope="module")
def folder(toy: TRM, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save(toy, tmp_path_factory.mktemp("models") / "toy", dtype=None))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same puzzles with answers and without."""
    task = Sudoku(2)
    rows = [tuple(map(task.decode, task.generate(seed))) for seed in range(3)]
    where = tmp_path_factory.mktemp("data")
    (where / "known.csv").write_text("question,answer\n" + "".join(f"{q},{a}\n" for q, a in rows))
    (where / "plain.txt").write_text("".join(f"{q}\n" for q, _ in rows))
    return {"known": where / "known.csv", "plain": where / "plain.txt"}


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["diagnose", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_json_page_and_words(
    capsys: Any, folder: str, data: dict[str, Path], tmp_path: Path
) -> None:
    known = ("--model", folder, "--data", data["known"], *SMALL)
    code, out, err = run(capsys, *known, "--labels", "--json", "--out", tmp_path / "new" / "page")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["verdict"] in VERDICTS
    assert found["puzzles"] == 2
    assert "accuracy" in found
    text = (tmp_path / "new" / "page" / "index.html").read_text()
    assert found["verdict"] in text
    (run_,) = (study["whole_run"] for study in found["alignment"].values())
    words = re.sub("<[^>]+>", " ", text).partition("All tilts of a whole run")[2].split()
    moved, gained = (f"{run_[name]:.4g}" for name in ("moved", "gained"))
    assert words[words.index("halting") :][1:3] == [moved, gained]
    assert "http" not in text.replace("http://www.w3.org", "").replace(
        "http://purl.org", ""
    ).replace("https://matplotlib.org", "").replace("http://creativecommons.org", "")
    assert ("<svg" in text) == (importlib.util.find_spec("matplotlib") is not None)
    assert json.loads((tmp_path / "new" / "page" / "diagnosis.json").read_text()) == found

    code, out, _ = run(capsys, "--model", folder, "--data", data["plain"], *SMALL)
    assert code == 0
    assert out.startswith(found["verdict"])  # labels made no difference
    assert "no labels were read" in out


def test_bad_input(capsys: Any, folder: str, data: dict[str, Path], tmp_path: Path) -> None:
    for wrong in (
        ("--data", data["plain"], "--labels"),
        ("--data", data["plain"], "--guide", "nonsense"),
        ("--data", data["plain"], "--noise", "0"),
        ("--data", tmp_path / "absent"),
        ("--data", data["known"], "--out", data["known"], *SMALL),
    ):
        code, _, err = run(capsys, "--model", folder, *wrong)
        assert (code, len(err.splitlines())) == (2, 1), wrong


def test_without_matplotlib_the_error_is_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(SettingsError, match=r"pip install 'tiltrm\[report\]'"):
        diagnosis.draw({})

"""The documentation says what is there: public names, paths, the sample, notebooks, the version.

That every link and anchor of the site resolves is proved by `make docs`, which builds strictly.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tiltrm
import tiltrm.evaluate
import tiltrm.tasks
from tiltrm.cli.solve_command import SAMPLE

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
LIGHT = 300_000  # bytes of a notebook with its outputs


def text(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def referenced(*pages: str) -> set[str]:
    """The names that these pages of the reference document, without their modules."""
    found = re.findall(r"^::: (\S+)$", "\n".join(text(page) for page in pages), re.MULTILINE)
    assert len(found) == len(set(found))
    return {name.rpartition(".")[2] for name in found}


def test_the_reference_has_every_public_name() -> None:
    here = referenced("docs/api/index.md", "docs/api/errors.md")
    assert here == set(tiltrm.__all__) - {"guides", "__version__"}
    assert referenced("docs/api/tasks.md") == set(tiltrm.tasks.__all__)
    assert referenced("docs/api/evaluate.md") == set(tiltrm.evaluate.__all__)
    guides = vars(tiltrm.guides)
    own = {
        n for n, each in guides.items() if getattr(each, "__module__", "") == tiltrm.guides.__name__
    }
    assert referenced("docs/api/guides.md") == {name for name in own if not name.startswith("_")}


def test_the_readme_is_one_page() -> None:
    readme = text("README.md")
    assert len(readme.split()) <= 900
    assert "make solve" in readme
    assert "make test" in readme


def test_there_is_one_first_sample() -> None:
    """What `make solve` shows is what the README, its picture and the notebook show."""
    for path in ("README.md", "docs/get-started.md", "docs/cloud.py", "scripts/release.sh"):
        assert SAMPLE in text(path), path
    assert SAMPLE in text("docs/notebooks/solve-and-look-inside.ipynb")


def test_paths_that_contributing_names_are_there() -> None:
    named = set(re.findall(r"`((?:src|tests|docs|benchmarks|examples|evidence)/[\w./-]*)`",
                           text("CONTRIBUTING.md")))  # fmt: skip
    assert len(named) > 30
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_changelog_is_about_this_version() -> None:
    version = tomllib.loads(text("pyproject.toml"))["project"]["version"]
    (heading,) = re.findall(r"^## (\S+) \(", text("CHANGELOG.md"), re.MULTILINE)[:1]
    assert heading == version


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    """In a process of its own, as plain Python, and it ends without an error."""
    words = [sys.executable, str(DOCS / "notebook.py"), path.stem]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"# {path.stem}" in done.stdout


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_its_outputs(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    shown = [bool(cell["outputs"]) for cell in cells if cell["cell_type"] == "code"]
    assert shown
    assert all(shown), "run `make notebooks`"
    assert path.stat().st_size < LIGHT

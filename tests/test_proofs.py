"""Whatever is said to prove something is there: in docstrings, in docs/THEORY.md, in the README."""

import fnmatch
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
NAMED = re.compile(r"(?:Proved by|See|see)\s+(tests/[\w/]+\.py)(?:::(\w+\*?))?")
PATH = re.compile(r"`((?:[a-z]+/)+[a-z_]+\.py)")
TEST = re.compile(r"\btest_\w+(?=[`(])")


def declared(path: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_proofs_that_docstrings_name(path: Path) -> None:
    for file, name in NAMED.findall(path.read_text("utf-8")):
        assert (ROOT / file).is_file(), file
        assert not name or fnmatch.filter(declared(ROOT / file), name), f"{file}::{name}"


def test_proofs_that_the_theory_names() -> None:
    said = (ROOT / "docs/THEORY.md").read_text("utf-8")
    places = set(PATH.findall(said))
    for place in places:
        assert any((ROOT / base / place).is_file() for base in ("src/tiltrm", "tests")), place
    known = set().union(*map(declared, (ROOT / "tests").rglob("test_*.py")))
    named = set(TEST.findall(said))
    assert len(named) > 20
    assert named <= known, named - known


def test_places_that_the_readme_names() -> None:
    """Its links; the paths of CONTRIBUTING are in tests/test_docs.py."""
    said = (ROOT / "README.md").read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", said) if "://" not in link]
    assert len(links) > 5
    for place in links:
        assert (ROOT / place).exists(), place

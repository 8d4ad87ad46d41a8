"""Imports go one way, as CONTRIBUTING.md says."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tiltrm

ROOT = Path(tiltrm.__file__).parent
ORDER = (  # a line imports from the lines above it and from its own folder
    ("errors", "statistics"),
    ("checks", "records", "folders"),
    ("settings", "tasks", "model", "device", "provenance"),
    ("data", "kernels", "cpu_precision"),
    ("explore",),
    ("solving",),
    ("diagnose", "train"),
    ("evaluate",),
    ("report", "serve"),
    ("export",),
    ("cli",),
    ("__init__", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
UPWARDS = {("model/checkpoint.py", "kernels")}  # `load` fuses a model for CUDA, if it is wanted
STRANGERS = {"explore": {"data"}, "report": {"model", "kernels"}}  # below it, and yet unknown to it


def imported(path: Path) -> Iterator[str]:
    """The parts of tiltrm that a file imports from, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            head, _, rest = name.partition(".")
            part = rest.partition(".")[0]
            if head == "tiltrm" and part in LEVEL:
                yield part


def parts() -> list[str]:
    return sorted({path.relative_to(ROOT).with_suffix("").parts[0] for path in ROOT.rglob("*.py")})


def test_every_part_has_its_place() -> None:
    assert set(parts()) <= set(LEVEL)


@pytest.mark.parametrize("part", parts())
def test_no_part_knows_what_comes_after_it(part: str) -> None:
    own = [p for p in ROOT.rglob("*.py") if p.relative_to(ROOT).with_suffix("").parts[0] == part]
    for path in own:
        for other in set(imported(path)) - {part}:
            if (path.relative_to(ROOT).as_posix(), other) in UPWARDS:
                continue
            assert LEVEL[other] < LEVEL[part], f"{path.relative_to(ROOT)} imports {other}"
            assert other not in STRANGERS.get(part, ()), f"{path.relative_to(ROOT)} knows {other}"


def test_explore_knows_symmetries_and_clues_and_no_task() -> None:
    for path in (ROOT / "explore").glob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "tiltrm.tasks" in line:
                module, _, names = line.removeprefix("from ").partition(" import ")
                assert module == "tiltrm.tasks.base", path.name
                assert set(names.split(", ")) <= {"PAD", "Clues", "Symmetry"}, path.name

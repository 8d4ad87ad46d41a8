"""What `import tiltrm` offers, pinned."""

import subprocess
import sys
from importlib import metadata

import pytest

import tiltrm

PUBLIC = {
    "Adaptive", "CheckpointError", "DataError", "DegenerateError", "DeviceError", "Exploration",
    "PuzzleError", "RecursiveModel", "Result", "SettingsError", "Solution", "Stage", "State",
    "TiltrmError", "diagnose", "explore", "guides", "load", "save", "solve",
}  # fmt: skip


def test_exported_names_are_these_and_no_others() -> None:
    assert set(tiltrm.__all__) == PUBLIC
    assert tiltrm.__all__ == sorted(tiltrm.__all__)
    assert set(dir(tiltrm)) >= PUBLIC
    for name in PUBLIC:
        assert getattr(tiltrm, name) is not None
        assert getattr(tiltrm, name).__name__.rpartition(".")[2] == name
    with pytest.raises(AttributeError, match="module 'tiltrm' has no attribute 'solv'"):
        tiltrm.solv  # noqa: B018


def alone(code: str) -> None:
    """Run this in an interpreter of its own, in which nothing is imported yet."""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_tasks_are_there_without_an_import_of_their_own() -> None:
    alone("import tiltrm; assert tiltrm.tasks.SUDOKU.cells == 81")


def test_import_does_not_load_torch() -> None:
    alone("import sys, tiltrm; assert tiltrm.__version__; assert 'torch' not in sys.modules")


@pytest.mark.parametrize(
    "first",
    [
        "import tiltrm",
        "from tiltrm.explore.plan import Adaptive",
        "import tiltrm.explore.cloud, tiltrm.diagnose.entropy",
        "from tiltrm import explore, diagnose",
        "from tiltrm import *",
    ],
)
def test_explore_and_diagnose_are_functions_whatever_is_imported(first: str) -> None:
    """Python binds a package to the name of the function when it imports the package."""
    later = "from tiltrm.explore import cloud; from tiltrm import diagnose as again"
    functions = "all(type(f).__name__ == 'function' for f in (tiltrm.explore, tiltrm.diagnose))"
    alone(f"{first}; import tiltrm; assert {functions}; {later}; assert {functions}")


def test_the_version_is_that_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tiltrm.__version__ == metadata.version("tiltrm")

    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    monkeypatch.delitem(vars(tiltrm), "__version__")
    assert tiltrm.__version__ == "0+unknown"
    del tiltrm.__version__

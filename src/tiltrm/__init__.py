"""More right answers from a frozen tiny recursive model, and when to trust them, without labels.

The public names are imported when they are first used, so that `import tiltrm` does not load torch.
`tiltrm.explore` and `tiltrm.diagnose` are functions. To import from the packages of the same names,
write `from tiltrm.explore import ...`, never `import tiltrm.explore as ...`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tiltrm.errors import (
    CheckpointError,
    DataError,
    DegenerateError,
    DeviceError,
    PuzzleError,
    SettingsError,
    TiltrmError,
)

if TYPE_CHECKING:
    from tiltrm.diagnose import diagnose
    from tiltrm.explore import Result, explore, guides
    from tiltrm.explore.plan import Adaptive, Stage
    from tiltrm.model import RecursiveModel, State, load, save
    from tiltrm.settings import Exploration
    from tiltrm.solving import Solution, solve

    __version__: str

__all__ = [
    "Adaptive",
    "CheckpointError",
    "DataError",
    "DegenerateError",
    "DeviceError",
    "Exploration",
    "PuzzleError",
    "RecursiveModel",
    "Result",
    "SettingsError",
    "Solution",
    "Stage",
    "State",
    "TiltrmError",
    "diagnose",
    "explore",
    "guides",
    "load",
    "save",
    "solve",
]
_MODULES = {  # where each name comes from; as imported above for type checkers
    "diagnose": "tiltrm.diagnose",
    **dict.fromkeys(("Result", "explore", "guides"), "tiltrm.explore"),
    **dict.fromkeys(("Adaptive", "Stage"), "tiltrm.explore.plan"),
    **dict.fromkeys(("RecursiveModel", "State", "load", "save"), "tiltrm.model"),
    "Exploration": "tiltrm.settings",
    **dict.fromkeys(("Solution", "solve"), "tiltrm.solving"),
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
    elif name == "tasks":
        value = import_module("tiltrm.tasks")
    elif name == "__version__":
        value = _version()
    else:
        raise AttributeError(f"module 'tiltrm' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tiltrm")
    except PackageNotFoundError:
        return "0+unknown"  # a source tree that is not installed


class _Package(ModuleType):
    """Keeps the import of a package such as `tiltrm.explore` from hiding the function."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

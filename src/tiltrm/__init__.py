"""More right answers from a frozen tiny recursive model, and when to trust them, without labels.

`tiltrm.explore` is the function here; the package of that name is reached by `from tiltrm.explore
import ...`, never by `import tiltrm.explore as ...`.
"""

from tiltrm.diagnose import diagnose
from tiltrm.errors import (
    CheckpointError,
    DataError,
    DegenerateError,
    DeviceError,
    PuzzleError,
    SettingsError,
    TiltrmError,
)
from tiltrm.explore import Exploration, Result, explore, guides
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.model import RecursiveModel, State, load, save
from tiltrm.solving import Solution, solve

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

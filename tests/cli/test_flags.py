"""The flags' module repeats a few constants, because it must not import torch: they agree."""

from tiltrm.diagnose.run import SMALL
from tiltrm.explore.calibrate import STEPS
from tiltrm.solver import METHODS

from tiltrm.cli import flags
from tiltrm.evaluate.options import NAMES


def test_constants_are_those_of_the_modules_that_use_them() -> None:
    assert flags.METHODS == METHODS
    assert flags.EVALUATED == NAMES
    assert set(flags.USUALLY_EVALUATED) <= set(NAMES)
    assert (SMALL.particles, SMALL.outer_steps) == (
        flags.DIAGNOSIS_PARTICLES,
        flags.DIAGNOSIS_STEPS,
    )
    assert flags.CALIBRATION_STEPS == STEPS

"""The flags' module repeats a few constants, because it must not import torch: they agree."""

from tiltrm.cli import flags
from tiltrm.cpu_precision import PRECISIONS
from tiltrm.diagnose import SMALL
from tiltrm.evaluate.options import NAMES
from tiltrm.solving.methods import FIXED
from tiltrm.solving.threshold import STEPS
from tiltrm.train.guide_clouds import Sampling
from tiltrm.train.guide_fit import FitSettings


def test_constants_are_those_of_the_modules_that_use_them() -> None:
    assert ("adaptive", *FIXED) == flags.METHODS
    assert set(NAMES) >= set(flags.METHODS)
    assert set(flags.USUALLY_EVALUATED) <= set(NAMES)
    assert (SMALL.particles, SMALL.outer_steps) == (
        flags.DIAGNOSIS_PARTICLES,
        flags.DIAGNOSIS_STEPS,
    )
    assert flags.THRESHOLD_STEPS == STEPS
    assert flags.PRECISIONS == PRECISIONS
    usual = FitSettings(Sampling(flags.GUIDE_PARTICLES, flags.GUIDE_STEPS, (0.3,)), puzzles=1)
    assert usual.held_out == flags.GUIDE_HELD_OUT

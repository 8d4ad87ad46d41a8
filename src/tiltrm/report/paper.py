"""Published numbers that ours are compared with; rates are in percent.

They come from *Boosting Inference with Guided Reasoning: Stochastic Exploration for Recursive
Models* (Corbett et al., 2026) unless another work is named.
"""

from typing import NamedTuple


class Value(NamedTuple):
    """A published number, and its standard deviation over seeds and folds."""

    mean: float
    spread: float | None = None


# Table 1: exact-solve rates at N = 48, S = 16, by (task, split) and method.
TABLE1: dict[tuple[str, str], dict[str, Value]] = {
    ("sudoku", "Test"): {
        "deterministic": Value(85.9, 0.6), "unguided": Value(84.3, 0.7),
        "oracle": Value(98.0, 0.2), "guided": Value(98.0, 0.3),
    },
    ("sudoku", "DF"): {
        "deterministic": Value(0.0), "unguided": Value(35.7, 2.8),
        "oracle": Value(86.0, 1.5), "guided": Value(85.9, 1.5),
    },
    ("maze", "Test"): {
        "deterministic": Value(86.6, 2.1), "unguided": Value(85.3, 3.0),
        "oracle": Value(90.9, 2.4), "guided": Value(85.3, 2.5),
    },
}  # fmt: skip
SIZES = {("sudoku", "Test"): 10_000, ("sudoku", "DF"): 1_400, ("maze", "Test"): 1_000}
BETA = {"sudoku": 0.25, "maze": 1.0}  # Table 2

STEP_PASSING_BASELINE = 10  # Fig. 1: guided passes the deterministic terminal accuracy by this step
BEST_NOISE = 0.3  # Fig. 2, left
STABLE_NOISE = 0.3  # Fig. 5: the maze model stays in tubes of alpha >= 0.5 up to this noise


class TiltBound(NamedTuple):
    """Fig. 3: what the paper says of the bound on the mass that one tilt can move, at its beta."""

    percent: float
    every_step: bool  # True: at most so much at every step; False: more than this at its largest
    spread: float | None = None  # largest spread of the score, over t up to beta and n


TILT_BOUND = {"sudoku": TiltBound(12.5, False), "maze": TiltBound(2.0, True, 0.04)}

# Fig. 4 and section 6.
TOKEN_AUROC = {"Test": Value(0.834, 0.011), "DF": Value(0.710, 0.014)}
ABSTAINING = {"Test": Value(100.0, 0.0), "DF": Value(99.7, 0.3)}  # on the upper decile of H

SWEEP_CHANGE = {"maze": 0.0}  # Fig. 6: points that beta and the number of particles change, if told
CONTRACTION = {"solved": 0.028, "unsolved": -0.002}  # Fig. 7, means on DF
TIMES_EARLIER = 3.1  # Fig. 8: guided reaches the final deterministic accuracy so much earlier
CHECKPOINTS = 19


class PublishedPoint(NamedTuple):
    """A published point of the frontier: other weights, the same benchmark."""

    name: str
    exact: float
    evaluations: int  # a puzzle
    method: str  # gives the colour
    weights: str
    nearest: tuple[str, str] | None  # series and setting of our frontier that are nearest to it


FRONTIER = {
    "sudoku": (
        PublishedPoint("TRM", 87.4, 336, "deterministic", "trained", ("deterministic", "N = 48")),
        PublishedPoint("the paper, S=16", 98.0, 5_376, "guided", "frozen TRM",
                       ("guided", "S = 16")),
        PublishedPoint("PTRM, K=100, D=64", 98.75, 134_400, "ptrm", "frozen TRM",
                       ("ptrm", "K = 100")),
        PublishedPoint("Speed is Confidence, 12", 97.2, 1_110, "halt_first", "retrained",
                       ("halt_first", "K = 12")),
        PublishedPoint("EqR, 128 x 64", 99.79, 172_032, "oracle", "retrained", None),
    ),
    "maze": (
        PublishedPoint("TRM", 85.3, 240, "deterministic", "trained", ("deterministic", "N = 48")),
        PublishedPoint("the paper, S=16", 85.3, 3_840, "guided", "frozen TRM",
                       ("guided", "S = 16")),
        PublishedPoint("PTRM, K=100, mode", 86.73, 24_000, "ptrm", "frozen TRM",
                       ("ptrm majority", "K = 100")),
    ),
}  # fmt: skip

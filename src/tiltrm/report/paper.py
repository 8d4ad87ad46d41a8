"""The published figures that ours stand beside, in percent where they are rates.

From *Boosting Inference with Guided Reasoning: Stochastic Exploration for Recursive Models*
(Corbett et al., 2026) unless another work is named. `spread` is its seed-fold standard deviation.
"""

from typing import NamedTuple


class Value(NamedTuple):
    """One published number."""

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

STEP_PASSING_BASELINE = 10  # Fig. 1: guided passes the deterministic terminal accuracy by this step
BEST_NOISE = 0.3  # Fig. 2, left
STABLE_NOISE = 0.3  # Fig. 5: the maze model stays in tubes of alpha >= 0.5 up to this noise

# Fig. 3: the bound on the mass that one tilt can move, percent. Sudoku exceeds it, the maze stays
# below it.
SPREAD_BOUND = {"sudoku": 12.5, "maze": 2.0}
BOUND_BETA = {"sudoku": 0.25, "maze": 1.0}
MAZE_SPREAD = 0.04  # largest, over t up to beta and n

# Fig. 4 and section 6.
TOKEN_AUROC = {"Test": Value(0.834, 0.011), "DF": Value(0.710, 0.014)}
ABSTAINING = {"Test": Value(100.0, 0.0), "DF": Value(99.7, 0.3)}  # on the upper decile of H

CONTRACTION = {"solved": 0.028, "unsolved": -0.002}  # Fig. 7, means on DF
TIMES_EARLIER = 3.1  # Fig. 8: guided reaches the final deterministic accuracy so much earlier
CHECKPOINTS = 19

# Table 2: by task (noise, beta); S = 16, N = 48, tau = 0.3 on both.
OPERATING = {"sudoku": (0.3, 0.25), "maze": (0.5, 1.0)}


class Peer(NamedTuple):
    """A published point of the frontier: other people's weights, the same benchmark."""

    name: str
    exact: float
    evaluations: int  # a puzzle
    method: str  # whose colour it has
    weights: str
    here: tuple[str, str] | None  # series and setting of the frontier that are nearest to it


PEERS: dict[str, tuple[Peer, ...]] = {
    "sudoku": (
        Peer("TRM", 87.4, 336, "deterministic", "trained", ("deterministic", "N = 48")),
        Peer("the paper, S=16", 98.0, 5_376, "guided", "frozen TRM", ("guided", "S = 16")),
        Peer("PTRM, K=100, D=64", 98.75, 134_400, "ptrm", "frozen TRM", ("ptrm", "K = 100")),
        Peer(
            "Speed is Confidence, 12",
            97.2,
            1_110,
            "halt_first",
            "retrained",
            ("halt_first", "K = 12"),
        ),
        Peer("EqR, 128 x 64", 99.79, 172_032, "oracle", "retrained", None),
    ),
    "maze": (
        Peer("TRM", 85.3, 240, "deterministic", "trained", ("deterministic", "N = 48")),
        Peer("the paper, S=16", 85.3, 3_840, "guided", "frozen TRM", ("guided", "S = 16")),
        Peer(
            "PTRM, K=100, mode", 86.73, 24_000, "ptrm", "frozen TRM", ("ptrm majority", "K = 100")
        ),
    ),
}

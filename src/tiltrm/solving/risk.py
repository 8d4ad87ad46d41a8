"""Answers with a promise: at most a share `risk` of the answers given is wrong.

Answers are ordered by trust, in a way that was fixed before any label was seen. On the calibration
puzzles a ladder of sets is fixed by ranks: the most trusted quarter, half, ... and all that break
no rule. Going up, each set is tested by a one-sided Clopper-Pearson bound at 95 %; the last set
before the first failure is answered, and all other puzzles are abstained on. A fixed sequence of
tests needs no correction for their number, so the promise holds with a probability of 95 % over the
draw of the calibration puzzles, for puzzles that are exchangeable with them.
Proved by simulation in tests/solving/test_risk.py.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.statistics import at_most, largest_share, trials_needed

CONFIDENCE = 0.95
SHARES = (0.25, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)  # ranks of the ladder
ALL = -0.5  # below the trust of every answer that breaks no rule


class Rung(NamedTuple):
    """A set of answers: those with more trust than `above`, on the calibration puzzles."""

    above: float
    answered: int
    wrong: int  # of them

    @property
    def bound(self) -> float:
        """The share of wrong answers is at most this, at 95 % confidence."""
        return largest_share(self.wrong, self.answered, CONFIDENCE)

    def supports(self, risk: float) -> bool:
        """Whether the bound is at most `risk`."""
        return at_most(self.wrong, self.answered, risk) <= 1.0 - CONFIDENCE


def trust(decided: Tensor, halt_probability: Tensor, valid: Tensor) -> Tensor:
    """The order of answers: decided ones by the halting head, then undecided ones: (puzzle,).

    Decided answers are in [1, 2], undecided ones in [0, 1], and those that break a rule at -1.
    """
    return (decided.double() + halt_probability.double()).masked_fill(~valid, -1.0)


def ladder(trusted: Tensor, right: Tensor) -> tuple[Rung, ...]:
    """The sets that `rung_for` tests, the most trusted first: (puzzle,) each.

    A rung's limit is the trust of a puzzle of fixed rank, and only answers strictly above it are
    counted: given the limit, they are independent draws from all answers above it.
    """
    ranked = trusted.double().sort(descending=True).values
    limits = [float(ranked[math.floor(share * len(ranked))]) for share in SHARES if len(ranked)]
    limits = [limit for limit in limits if limit > ALL]
    rungs = []
    for limit in (*dict.fromkeys(limits), ALL):
        given = trusted.double() > limit
        rungs.append(Rung(limit, int(given.sum()), int((given & ~right).sum())))
    return tuple(rungs)


def check_risk(risk: float) -> float:
    """The risk; SettingsError unless it is a share between 0 and 1."""
    if not 0.0 < risk < 1.0:
        raise SettingsError(
            f"risk must be a share of wrong answers between 0 and 1, such as 0.01, got {risk:g}"
        )
    return risk


def rung_for(rungs: Sequence[Rung], risk: float) -> Rung:
    """The largest set whose share of wrong answers is at most `risk`, at 95 % confidence.

    SettingsError where the calibration puzzles cannot support that.
    """
    check_risk(risk)
    needed = trials_needed(risk, CONFIDENCE)
    enough = [rung for rung in rungs if rung.answered >= needed]
    if not enough:
        most = max((rung.answered for rung in rungs), default=0)
        raise SettingsError(
            f"a risk of {risk:g} needs at least {needed:,} calibration puzzles with an answer that "
            f"breaks no rule, got {most:,}; calibrate on more (tiltrm tune --data ...), or ask for "
            f"a risk of {smallest_risk(rungs):.2g}"
        )
    found = None
    for rung in enough:
        if not rung.supports(risk):
            break
        found = rung
    if found is None:
        first = enough[0]
        is_are = "is" if first.wrong == 1 else "are"
        raise SettingsError(
            f"a risk of {risk:g} cannot be promised: of the {first.answered:,} most trusted "
            f"answers to the calibration puzzles {first.wrong:,} {is_are} wrong, so that up to "
            f"{first.bound:.2g} may be; ask for a risk of {smallest_risk(rungs):.2g}, or calibrate "
            "on more puzzles"
        )
    return found


def smallest_risk(rungs: Sequence[Rung]) -> float:
    """The smallest risk, rounded up to two digits, that these puzzles support."""
    tried = sorted({_rounded_up(rung.bound) for rung in rungs if rung.answered})
    for risk in tried:
        if risk < 1.0 and _supported(rungs, risk):
            return risk
    return 1.0


def _supported(rungs: Sequence[Rung], risk: float) -> bool:
    first = next((r for r in rungs if r.answered >= trials_needed(risk, CONFIDENCE)), None)
    return first is not None and first.supports(risk)


def _rounded_up(value: float) -> float:
    if value >= 1.0:
        return 1.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit - 1e-9) * unit

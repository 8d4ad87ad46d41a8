"""The table of settings: every setting of `solve` once, with its type, range, help and methods.

The command line's flags, the HTTP model, the options of `tiltrm evaluate` and the page's form are
made from `TABLE`, so a new setting is one new row. The settings of Algorithm 1 are the fields of
`Exploration`; those of the stopping rules and of the guide follow below. Nothing here needs torch.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from tiltrm.checks import require_number, require_whole
from tiltrm.errors import SettingsError

ORACLE = "oracle"  # the choice that needs labels


@dataclass(frozen=True)
class Setting:
    """One setting: a row of the table that the command line, HTTP and the page are made from."""

    name: str
    kind: type  # int, float, bool or str
    default: Any  # of Algorithm 1; None: the method's own
    help: str  # one clause for `--help` and the page
    methods: tuple[str, ...]  # the methods that have it
    least: float = 0.0
    most: float = math.inf
    choices: tuple[str, ...] = ()  # of a str; (): any text
    symbol: str = ""  # placeholder in `--help`
    label: str = ""  # on the page, and only settings with a label are there
    accepts: Callable[[object], bool] | None = None  # objects that may stand for a choice

    @property
    def unlabelled_choices(self) -> tuple[str, ...]:
        """The choices of those who have no labels."""
        return tuple(choice for choice in self.choices if choice != ORACLE)

    def check(self, value: object) -> Any:
        """The value in its one form (1 as 1.0 where a number is meant); else SettingsError."""
        if self.accepts is not None and not isinstance(value, str) and self.accepts(value):
            return value
        if self.kind is int:
            number = require_whole(self.name, value, int(self.least))
            if number > self.most:
                raise SettingsError(f"{self.name} must be at most {self.most:g}, got {value!r:.60}")
            return number
        if self.kind is float:
            return require_number(self.name, value, self.most, self.least)
        if self.kind is bool:
            if not isinstance(value, bool):
                raise SettingsError(f"{self.name} must be true or false, got {value!r:.60}")
            return value
        if not isinstance(value, str) or (self.choices and value not in self.choices):
            expected = f"one of {', '.join(self.choices)}" if self.choices else "a name"
            raise SettingsError(f"{self.name} must be {expected}, got {value!r:.60}")
        return value


def setting(default: Any, help: str, methods: str, **row: Any) -> Any:
    """A dataclass field that is a row of the table; `methods` are names with spaces between."""
    return field(default=default, metadata={"help": help, "methods": tuple(methods.split()), **row})


@cache
def settings_of(record: Any) -> dict[str, Setting]:
    """The rows of the table that the fields of a record are, by name."""
    return {
        each.name: Setting(each.name, type(each.default), each.default, **each.metadata)
        for each in fields(record)
        if "help" in each.metadata
    }


LARGEST_CLOUD, LONGEST_RUN = 2**16, 2**20  # larger numbers are typing errors
LARGEST_SCALE = 1e6  # of noise and beta: float32 overflows at 1e38


@dataclass(frozen=True)
class Exploration:
    """Algorithm 1 with the paper's Sudoku settings (Table 2).

    Strings name the usual choices. `placement`, `resampler` and `select` also take a function,
    and `potential` a Potential (tiltrm.explore.choices).
    """

    particles: int = setting(
        16, "number of particles; adaptive: of the largest cloud",
        "adaptive guided unguided ptrm halt_first", least=1, most=LARGEST_CLOUD, symbol="S",
        label="Particles",
    )  # fmt: skip
    noise: float = setting(
        0.3, "scale of the noise; adaptive: the same in all stages",
        "adaptive guided unguided ptrm halt_first", most=LARGEST_SCALE, symbol="SIGMA",
        label="Noise σ",
    )  # fmt: skip
    beta: float = setting(
        0.25, "inverse temperature: strength of the tilt towards the guide", "adaptive guided",
        most=LARGEST_SCALE, label="Tilt β",
    )  # fmt: skip
    resample_below: float = setting(
        0.3, "resample when ESS / particles falls below this; adaptive: without symmetric views",
        "adaptive guided", most=1.0, symbol="TAU", label="Resample below",
    )  # fmt: skip
    outer_steps: int = setting(
        48, "outer steps; adaptive: the most that a puzzle gets",
        "adaptive guided unguided deterministic ptrm halt_first symmetry", least=1,
        most=LONGEST_RUN, symbol="N", label="Outer steps",
    )  # fmt: skip
    placement: Any = setting(
        "everywhere", "updates that get noise", "guided unguided",
        choices=("everywhere", "latent", "answer", "supervision"), accepts=callable,
    )  # fmt: skip
    resampler: Any = setting(
        "systematic", "how ancestors are drawn", "guided",
        choices=("systematic", "stratified", "multinomial", "residual"), accepts=callable,
    )  # fmt: skip
    trigger: str = setting("ess", "when to resample", "guided", choices=("ess", "never", "always"))
    potential: Any = setting(
        "every_step", "how scores become weights", "guided",
        choices=("every_step", "difference", "terminal"),
        accepts=lambda value: hasattr(value, "tilt"),
    )  # fmt: skip
    target_ess: float = setting(
        0.0, "above 0: at every step the largest tilt up to beta that keeps this share of the "
        "conditional ESS", "guided", most=1.0, symbol="TAU",
    )  # fmt: skip
    score_every: int = setting(
        1, "ask the guide at multiples of this step, and at the last", "guided", least=1
    )
    select: Any = setting(
        "map", "how the final cloud answers", "guided ptrm",
        choices=("map", "best_score", "majority", ORACLE, "best_so_far"), accepts=callable,
    )  # fmt: skip
    entropy_every: int = setting(
        1, "steps between the terms of the path entropy; 0 leaves it out", ""
    )
    on_degenerate: str = setting(
        "raise", "what to do when no particle is left", "", choices=("raise", "abstain")
    )

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, row in settings_of(kind).items():
            row.check(getattr(self, name))


ADAPTIVE = "adaptive"
METHODS = (ADAPTIVE, "guided", "unguided", "deterministic", "ptrm")
EVALUATED = (  # the methods of `tiltrm evaluate`: those of `solve`, and peers' for comparison
    "deterministic", "guided", "unguided", "ptrm", "halt_first", "symmetry", "c_voting", ADAPTIVE,
    "adaptive_rules",
)  # fmt: skip
MOST_PUZZLES = 2**31 - 1
AGREE_SHARE, AGREE_AMONG = 0.9, 16  # agreement: share of the particles, in at least so many
HALT_ABOVE = 2.0  # halt logit of a settled answer, for a model without a calibrated threshold

TABLE: dict[str, Setting] = {
    row.name: row
    for row in (
        *(row for row in settings_of(Exploration).values() if row.methods),
        Setting(
            "guide", str, "halting",
            "halting, confidence, residual, rules, shortest, learned:FOLDER (tiltrm fit-guide), or "
            "a sum such as halting+2*rules",
            ("adaptive", "guided", "ptrm"), symbol="G", label="Guide", accepts=callable,
        ),
        Setting(
            "rules", bool, False, "stop at the first valid solution and for no other reason",
            ("adaptive",), label="Stop at a valid solution only",
        ),
        Setting(
            "shortest_visited", bool, False,
            "mazes: look at the maze under symmetries, stop when enough of them agree on the "
            "length of a valid path, and answer with the shortest visited (the default there)",
            ("adaptive",),
        ),
        Setting(
            "halt_above", float, None,
            "stop when the halt logit of a particle exceeds this; else the model's threshold",
            ("adaptive", "halt_first"), least=-math.inf, symbol="LOGIT", label="Halt above",
        ),
        Setting(
            "agree_share", float, AGREE_SHARE, "stop when this share of the particles agrees",
            ("adaptive",), most=1.0, symbol="P",
        ),
        Setting(
            "agree_among", int, AGREE_AMONG, "the smallest cloud whose agreement counts",
            ("adaptive",), least=1, symbol="S",
        ),
        Setting(
            "seconds", float, None,
            "stop after so many seconds of computing a puzzle, with the best answer so far",
            (*METHODS, "halt_first"), symbol="T",
        ),
        Setting(
            "puzzle_id", int, None,
            "row of the puzzle embedding, for a model with several; else the model's own",
            EVALUATED, symbol="K", most=MOST_PUZZLES,
        ),
        Setting(
            "copies", int, 8, "symmetric copies of the puzzle that vote", ("symmetry",), least=1,
            most=4096,
        ),
    )
}  # fmt: skip


def settings_for(method: str) -> dict[str, Setting]:
    """The rows of the table that a method has, by name."""
    return {name: row for name, row in TABLE.items() if method in row.methods}


def check_settings(method: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are not None, each in its one form; SettingsError for any other."""
    known = settings_for(method)
    set_ = {name: value for name, value in given.items() if value is not None}
    unknown = [name for name in set_ if name not in known]
    if unknown:
        raise SettingsError(
            f"the settings of {method} are {', '.join(known)}, got {', '.join(unknown)}; leave it "
            "out or choose another method"
        )
    checked = {name: known[name].check(value) for name, value in set_.items()}
    if checked.get("rules") and "halt_above" in checked:
        raise SettingsError(
            "halt_above must be left out with rules, which stop at a valid solution only, got "
            f"{checked['halt_above']}"
        )
    if checked.get("rules") and checked.get("shortest_visited"):
        raise SettingsError("shortest_visited must be left out with rules, got both")
    return checked

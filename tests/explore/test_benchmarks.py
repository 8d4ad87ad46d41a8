"""What the benchmarks say of plans: only what was recorded, and every row that none beats."""

import math
import sys
from pathlib import Path

import numpy
import pytest
from benchmarks import restarts
from benchmarks import settled as settling
from benchmarks.adaptive import Row, noises, unbeaten
from benchmarks.trajectories import Plan, Trajectories, save
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore.plan import Adaptive, Stage, parse_stages
from tiltrm.model.base import evaluations_per_step
from tiltrm.model.trm import TRM
from tiltrm.tasks import Sudoku
from tiltrm.tasks.base import TaskDefaults

QUIET = Trajectories(numpy.zeros((2, 1, 20)), numpy.zeros((2, 1, 20), bool))
FRESH = Trajectories(numpy.zeros((2, 4, 10)), numpy.zeros((2, 4, 10), bool))


@pytest.mark.parametrize(
    ("quiet", "plan"),
    [
        (QUIET, ((1, 20), (8, 10))),
        (QUIET, ((1, 20), (2, 10), (3, 10))),
        (QUIET, ((1, 20), (2, 11))),
        (QUIET, ((1, 21),)),
        (QUIET, ((2, 20),)),
        (None, ((5, 10),)),
    ],
)
def test_a_plan_larger_than_the_recording_is_refused(
    quiet: Trajectories | None, plan: Plan
) -> None:
    with pytest.raises(SettingsError, match="recorded"):
        restarts.play(quiet, FRESH, plan, 1.0)


def test_a_plan_may_use_all_that_was_recorded() -> None:
    found = restarts.play(QUIET, FRESH, ((1, 20), (1, 10), (3, 10)), 1.0)
    assert found[-1] == (0.0, 1.0, restarts.EVALUATIONS * (20 + 10 + 30))


def test_the_command_ends_with_that_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trajectories.npz"
    save(path, QUIET, FRESH)
    monkeypatch.setattr(sys, "argv", ["restarts", "--load", str(path), "--plan", "1x20", "8x10"])
    with pytest.raises(SystemExit):
        restarts.main()
    said = capsys.readouterr()
    assert said.out == ""
    assert "8x10" in said.err.splitlines()[-1]


def test_where_nothing_was_decided_nothing_is_said_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert math.isnan(restarts.wrong(FRESH, 1.0))
    assert restarts.wrong(FRESH, -1.0) == 1.0
    restarts.show(QUIET, FRESH, ((1, 20), (4, 10)), [1.0], 2)
    assert "nan % of decided" in capsys.readouterr().out


def test_equal_rows_do_not_beat_each_other() -> None:
    def row(name: str, accuracy: float, evaluations: float) -> Row:
        return Row(name, accuracy, evaluations, 1.0, 1.0, 0.0)

    rows = [
        row("twin", 0.9, 100), row("other twin", 0.9, 100), row("as good, dearer", 0.9, 101),
        row("worse, as dear", 0.8, 100), row("cheap", 0.5, 10), row("best", 0.95, 500),
        row("worse, dearer", 0.4, 11),
    ]  # fmt: skip
    assert [row.name for row in unbeaten(rows)] == ["cheap", "twin", "other twin", "best"]


def test_a_row_says_the_noises_of_its_stages() -> None:
    assert noises(Adaptive()) == "0.5"
    louder = Adaptive(parse_stages(TaskDefaults().stages), noise=0.3)
    assert noises(louder) == "0.3 then 0.6"
    assert noises(Adaptive((Stage(1, 2, noise=0.2),), noise=0.5)) == "0.2"


def test_settled_answers_are_counted_apart(model: TRM, tokens: Tensor) -> None:
    """A model that never settles decides all at once, and nothing once it must."""
    inputs = model.embed(tokens)
    labels = model.decode(model.step(inputs, model.start(inputs)).answer).argmax(-1)
    labels[0] = (labels[0] + 1) % 5 + 1  # the first is wrong
    quiet = Adaptive((Stage(1, 3),))
    at_once, settled = settling.rows(model, Sudoku(2), tokens, labels, [-math.inf], quiet)
    each, count = evaluations_per_step(model), len(tokens)
    assert at_once == (-math.inf, False, count, 1, (count - 1) / count, each)
    assert settled[:4] == (-math.inf, True, 0, 0)
    assert settled.evaluations == 3 * each
    assert str(at_once).startswith(f"above -inf, at once: {count} decided, 1 of them wrongly; ")

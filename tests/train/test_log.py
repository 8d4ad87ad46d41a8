"""The record and the progress line."""

import io
import json
import math
import sys
from pathlib import Path

import pytest
import torch

from tiltrm.errors import DataError
from tiltrm.train import log
from tiltrm.train.distributed import World
from tiltrm.train.learner import Statistics
from tiltrm.train.log import Log
from tiltrm.train.monitor import Report
from tiltrm.train.pace import Pace
from tiltrm.train.record import METRICS, Evaluation

from . import toys

REPORT = Report({3: 0.25, 48: 0.5}, 0.9, 0.99, math.nan, 0.01, 0.2)
STATISTICS = Statistics(1.25, 0.5, 0.875, 0.2, 4.5)


def pace(**changes: float) -> Pace:
    made = Pace(toys.settings(**changes), World(), torch.device("cpu"))
    made.step, made.seconds, made.aside = 5, 90.0, 30.0
    return made


def strict(text: str) -> object:
    """JSON as the standard has it, without NaN."""

    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_line_says_how_far_how_good_how_fast_how_long() -> None:
    line = log.progress_line(pace(), STATISTICS, 216.4)
    assert line == (
        "[#####...............]  25.0 %  step 5  loss 1.250  exact 0.500  q 0.875  "
        "216 TFLOP/s  6.0 min left"
    )


def test_the_line_of_a_plan_by_the_clock() -> None:
    assert "50.0 %" in log.progress_line(pace(minutes=4.0), STATISTICS, 0.0312)
    assert "0.0312 TFLOP/s  2.0 min left" in log.progress_line(
        pace(minutes=4.0), STATISTICS, 0.0312
    )


def test_every_line_is_json_and_nan_is_null(tmp_path: Path) -> None:
    record = Log(tmp_path, True)
    record.write("start", 0, settings={"a": (1, 2), "b": math.inf})
    record.training(pace(), STATISTICS._replace(right=math.nan), 0.5)
    record.evaluation(Evaluation(5, 90.0, REPORT, REPORT._replace(halt_auroc=0.75)))
    lines = [strict(line) for line in (tmp_path / METRICS).read_text().splitlines()]
    assert lines[0] == {"kind": "start", "step": 0, "settings": {"a": [1, 2], "b": None}}
    assert lines[1] == {
        "kind": "train", "step": 5, "seconds": 90.0, "loss": 1.25, "right": None,
        "halt_accuracy": 0.875, "halted": 0.2, "steps_at_halt": 4.5, "tflops": 0.5,
    }  # fmt: skip
    assert isinstance(lines[2], dict)
    assert lines[2]["val"]["halt_auroc"] is None
    assert lines[2]["val"]["exact"] == {"3": 0.25, "48": 0.5}


def test_evaluations_are_read_back_from_the_last_fresh_start(tmp_path: Path) -> None:
    record = Log(tmp_path, True)
    assert record.evaluations() == []
    first = Evaluation(5, 90.0, REPORT._replace(halt_auroc=0.5), REPORT._replace(halt_auroc=0.75))
    for step in (0, 0, 5):  # begun, begun again, resumed
        record.write("start", step, settings={})
        record.evaluation(first._replace(step=step + 5))
    assert record.evaluations() == [first, first._replace(step=10)]
    assert math.isnan(_reread(record, REPORT).halt_auroc)


def _reread(record: Log, report: Report) -> Report:
    record.evaluation(Evaluation(9, 1.0, report, report))
    return record.evaluations()[-1].val


def test_a_line_cut_off_by_a_full_disk_is_removed(tmp_path: Path) -> None:
    path = tmp_path / METRICS
    path.write_text('{"kind": "resume", "step": 1}\n{"kind": "tr')
    record = Log(tmp_path, True)
    record.write("resume", 2)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2]


@pytest.mark.parametrize(
    "line",
    [
        "hello", "[]", '{"step": 1}', '{"kind": "train", "step": "1"}',
        '{"kind": "evaluation", "step": 1, "seconds": 1, "val": [], "train": []}',
        '{"kind": "resume", "step": 1, "best": null}',
    ],
)  # fmt: skip
def test_a_foreign_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / METRICS).write_text(f'{{"kind": "resume", "step": 1}}\n{line}\n')
    with pytest.raises(DataError, match=r"metrics.jsonl, line 2: expected a record"):
        Log(tmp_path, True).evaluations()


def test_only_the_leader_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = Log(tmp_path / "none", False)
    record.training(pace(), STATISTICS, 1.0)
    record.evaluation(Evaluation(1, 1.0, REPORT, REPORT))
    assert not (tmp_path / "none").exists()
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_line_is_written_over_and_a_file_gets_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, file = Terminal(), io.StringIO()
    for stream in (screen, file):
        monkeypatch.setattr(sys, "stderr", stream)
        record = Log(tmp_path, True)
        for _ in range(3):
            record.training(pace(), STATISTICS, 1.0)  # too soon after the first
        record.evaluation(Evaluation(5, 90.0, REPORT, REPORT))
    assert screen.getvalue().count("loss") == 1
    assert "\n" not in screen.getvalue().partition("step 5, 1.50 min")[0]
    assert screen.getvalue().endswith("\n")
    assert file.getvalue().count("\n") == 2
    assert "\x1b" not in file.getvalue()

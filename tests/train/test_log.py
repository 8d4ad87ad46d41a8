"""The log: what is written, which lines are valid, and the status lines."""

import io
import json
import math
import sys
from pathlib import Path

import pytest
import torch

from tiltrm.errors import DataError
from tiltrm.train import log
from tiltrm.train.clock import TrainingClock
from tiltrm.train.distributed import World
from tiltrm.train.learner import TrainStatistics
from tiltrm.train.log import METRICS, Evaluation, RunLog, current_lines
from tiltrm.train.validation import ValidationReport

from . import toys

REPORT = ValidationReport({3: 0.25, 48: 0.5}, 0.9, 0.99, math.nan, 0.01, 0.2)
STATISTICS = TrainStatistics(1.25, 0.5, 0.875, 0.2, 4.5)


def clock(**changes: float) -> TrainingClock:
    made = TrainingClock(toys.settings(**changes), World(), torch.device("cpu"))
    made.step, made.seconds, made.aside = 5, 90.0, 30.0
    return made


def strict(text: str) -> object:
    """JSON as the standard has it, without NaN."""

    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_line_says_how_far_how_good_how_fast_how_long() -> None:
    line = log.progress_line(clock(), STATISTICS, 216.4)
    assert line == (
        "training  25.0 %  step 5  loss 1.250  exact 0.500  q 0.875  216 TFLOP/s  6.0 min left"
    )


def test_the_line_of_a_plan_by_the_clock() -> None:
    assert "50.0 %" in log.progress_line(clock(minutes=4.0), STATISTICS, 0.0312)
    assert "0.0312 TFLOP/s  2.0 min left" in log.progress_line(
        clock(minutes=4.0), STATISTICS, 0.0312
    )


def test_every_line_is_json_and_nan_is_null(tmp_path: Path) -> None:
    run_log = RunLog(tmp_path, True)
    run_log.write("start", 0, settings={"a": (1, 2), "b": math.inf})
    run_log.training(clock(), STATISTICS._replace(right=math.nan), 0.5)
    run_log.evaluation(Evaluation(5, 90.0, REPORT, REPORT._replace(halt_auroc=0.75)))
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
    run_log = RunLog(tmp_path, True)
    assert run_log.evaluations() == []
    first = Evaluation(5, 90.0, REPORT._replace(halt_auroc=0.5), REPORT._replace(halt_auroc=0.75))
    for step in (0, 0, 5):  # begun, begun again, resumed
        run_log.write("start", step, settings={})
        run_log.evaluation(first._replace(step=step + 5))
    assert run_log.evaluations() == [first, first._replace(step=10)]
    assert math.isnan(_reread(run_log, REPORT).halt_auroc)


def _reread(run_log: RunLog, report: ValidationReport) -> ValidationReport:
    run_log.evaluation(Evaluation(9, 1.0, report, report))
    return run_log.evaluations()[-1].val


def test_a_line_cut_off_by_a_full_disk_is_removed(tmp_path: Path) -> None:
    path = tmp_path / METRICS
    path.write_text('{"kind": "resume", "step": 1}\n{"kind": "tr')
    run_log = RunLog(tmp_path, True)
    run_log.write("resume", 2)
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
    with pytest.raises(
        DataError, match=r"metrics.jsonl, line 2: expected a record of tiltrm train"
    ):
        RunLog(tmp_path, True).evaluations()


def test_only_the_leader_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_log = RunLog(tmp_path / "none", False)
    run_log.training(clock(), STATISTICS, 1.0)
    run_log.evaluation(Evaluation(1, 1.0, REPORT, REPORT))
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
        run_log = RunLog(tmp_path, True)
        for _ in range(3):
            run_log.training(clock(), STATISTICS, 1.0)  # too soon after the first
        run_log.evaluation(Evaluation(5, 90.0, REPORT, REPORT))
    assert screen.getvalue().count("loss") == 1
    assert "\n" not in screen.getvalue().partition("step 5, 1.50 min")[0]
    assert screen.getvalue().endswith("\n")
    assert file.getvalue().count("\n") == 2
    assert "\x1b" not in file.getvalue()


Kinds = list[tuple[str, int]]


def written(folder: Path, done: Kinds) -> Path:
    """A log with these kinds and steps, each line with its number from 0."""
    path = folder / "metrics.jsonl"
    path.write_text("".join(
        json.dumps({"kind": kind, "step": step, "line": line}) + "\n"
        for line, (kind, step) in enumerate(done)
    ))  # fmt: skip
    return path


def kept(path: Path, *kinds: str) -> list[tuple[int, int]]:
    """Step and line number of the valid lines."""
    return [(line.step, line.values["line"]) for line in current_lines(path, *kinds)]


def test_only_the_last_run_in_a_file_counts(tmp_path: Path) -> None:
    done = [("scan", 1), ("start", 0), ("scan", 10), ("start", 0), ("scan", 20), ("start", 20)]
    path = written(tmp_path, done)
    assert kept(path, "scan") == [(20, 4)]
    assert kept(path, "start") == [(0, 3), (20, 5)]
    assert kept(path) == []


def test_a_resumed_run_has_every_step_once(tmp_path: Path) -> None:
    """What was done again counts, and each kind of line goes back for itself."""
    done = [("scan", 10), ("train", 25), ("scan", 20), ("scan", 30), ("train", 35), ("scan", 20),
            ("train", 29), ("scan", 30), ("scan", 40)]  # fmt: skip
    path = written(tmp_path, done)
    assert kept(path, "scan") == [(10, 0), (20, 5), (30, 7), (40, 8)]
    both = [(10, 0), (25, 1), (20, 5), (29, 6), (30, 7), (40, 8)]
    assert kept(path, "scan", "train") == both


def test_what_a_resumed_run_had_lost_does_not_count(tmp_path: Path) -> None:
    """Nor what comes before the first new line; and what was saved stays."""
    done = [("start", 0), ("scan", 10), ("train", 20), ("scan", 20), ("train", 30), ("scan", 25),
            ("scan", 30), ("resume", 20), ("scan", 28)]  # fmt: skip
    path = written(tmp_path, done)
    assert [step for step, _ in kept(path, "scan")] == [10, 20, 28]
    assert [step for step, _ in kept(path, "train")] == [20]
    again = written(tmp_path, [*done, ("scan", 29), ("resume", 28), ("scan", 40)])
    assert [step for step, _ in kept(again, "scan")] == [10, 20, 28, 40]


def test_the_run_itself_reads_its_log_by_the_same_rule(tmp_path: Path) -> None:
    """A card has no evaluation twice, nor one that was lost, though it still stands there."""
    report = {"exact": {"2": 0.5}, "cells": 0.5, "halt_accuracy": 1.0, "halt_auroc": None,
              "halt_calibration": 0.0, "halt_bce": 0.1}  # fmt: skip
    own = RunLog(tmp_path, True)
    for kind, step in (("evaluation", 5), ("evaluation", 9), ("resume", 6), ("evaluation", 8),
                       ("evaluation", 8)):  # fmt: skip
        own.write(kind, step, seconds=1.0, val=report, train=report)
    assert [each.step for each in own.evaluations()] == [5, 8]


@pytest.mark.parametrize(
    "content",
    ["{}", "no json", "[1, 2]", '{"kind": "scan"}', '{"kind": "scan", "step": null}'],
)
def test_a_foreign_line_is_named_with_what_to_do(tmp_path: Path, content: str) -> None:
    path = written(tmp_path, [("scan", 10)])
    with path.open("a") as out:
        out.write(content + "\n")
    said = r"metrics\.jsonl, line 2: expected a record of tiltrm train, got .*; mend or remove"
    for read in (lambda: current_lines(path, "scan"), RunLog(tmp_path, True).evaluations):
        with pytest.raises(DataError, match=said):
            read()


def test_files_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xed\xa0\x80\n")
    for name in ("bytes", "absent"):
        with pytest.raises(DataError, match=f"{name}: expected the log of .*; name another"):
            current_lines(tmp_path / name, "scan")

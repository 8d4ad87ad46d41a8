"""Which lines of a run's record count, and one sentence for what is no record."""

import json
from pathlib import Path

import pytest

from tiltrm.errors import DataError
from tiltrm.train import record
from tiltrm.train.log import Log

Kinds = list[tuple[str, int]]


def written(folder: Path, done: Kinds) -> Path:
    """A record with these kinds and steps, each line with its number from 0."""
    path = folder / "metrics.jsonl"
    path.write_text("".join(
        json.dumps({"kind": kind, "step": step, "line": line}) + "\n"
        for line, (kind, step) in enumerate(done)
    ))  # fmt: skip
    return path


def kept(path: Path, *kinds: str) -> list[tuple[int, int]]:
    """Step and line number of those that count."""
    return [(line.step, line.values["line"]) for line in record.records(path, *kinds)]


def test_only_the_last_run_in_a_file_counts(tmp_path: Path) -> None:
    done = [("scan", 1), ("start", 0), ("scan", 10), ("start", 0), ("scan", 20), ("start", 20)]
    path = written(tmp_path, done)
    assert kept(path, "scan") == [(20, 4)]
    assert kept(path, "start") == [(0, 3), (20, 5)]
    assert kept(path) == []


def test_a_resumed_run_has_every_step_once(tmp_path: Path) -> None:
    """What was done again counts, and each kind of record goes back for itself."""
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


def test_the_run_itself_reads_its_record_by_the_same_rule(tmp_path: Path) -> None:
    """A card has no evaluation twice, nor one that was lost, though it still stands there."""
    report = {"exact": {"2": 0.5}, "cells": 0.5, "halt_accuracy": 1.0, "halt_auroc": None,
              "halt_calibration": 0.0, "halt_bce": 0.1}  # fmt: skip
    log = Log(tmp_path, True)
    for kind, step in (("evaluation", 5), ("evaluation", 9), ("resume", 6), ("evaluation", 8),
                       ("evaluation", 8)):  # fmt: skip
        log.write(kind, step, seconds=1.0, val=report, train=report)
    assert [each.step for each in log.evaluations()] == [5, 8]


@pytest.mark.parametrize(
    "content",
    ["{}", "no json", "[1, 2]", '{"kind": "scan"}', '{"kind": "scan", "step": null}'],
)
def test_a_foreign_line_is_named_with_what_to_do(tmp_path: Path, content: str) -> None:
    path = written(tmp_path, [("scan", 10)])
    with path.open("a") as out:
        out.write(content + "\n")
    said = r"metrics\.jsonl, line 2: expected a record of tiltrm train, got .*; mend or remove"
    for read in (lambda: record.records(path, "scan"), Log(tmp_path, True).evaluations):
        with pytest.raises(DataError, match=said):
            read()


def test_files_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xed\xa0\x80\n")
    for name in ("bytes", "absent"):
        with pytest.raises(DataError, match=f"{name}: expected the record of .*; name another"):
            record.records(tmp_path / name, "scan")

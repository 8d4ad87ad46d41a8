"""Curves and scans from the files of a training run, and sentences for files that are none."""

from dataclasses import replace
from pathlib import Path

import pytest

from tiltrm.errors import DataError
from tiltrm.report import training
from tiltrm.report.catalogue import ITEMS
from tiltrm.report.evidence import Evidence


def test_only_the_last_run_in_a_file_counts(run_folder: Path) -> None:
    steps = [r["step"] for r in training.records(run_folder / "metrics.jsonl", "evaluation")]
    assert steps == [10, 20]


def test_fig8_counts_how_much_earlier(evidence: Evidence) -> None:
    """Deterministic ends at 48 % at step 40; guided has 50 % at step 20."""
    sheet = ITEMS["fig8"].draw(evidence)
    assert sheet.compared[0].ours == 40 / 20
    assert sheet.compared[1].ours == 4
    assert len(sheet.panels) == 2  # the loss is beside the scan
    assert ("training loss", 5, 2.0) in sheet.data.rows


def test_fig5_has_a_curve_for_each_run_and_says_what_is_missing(evidence: Evidence) -> None:
    sheet = ITEMS["fig5"].draw(evidence)
    runs = {(line[-2], line[-1]) for line in sheet.data.rows if line[-2]}
    assert runs == {("sudoku", 10), ("sudoku", 20)}
    bare = ITEMS["fig5"].draw(replace(evidence, metrics=()))
    assert any("--metrics" in note for note in bare.notes)
    assert any("--scan" in note for note in ITEMS["fig8"].draw(replace(evidence, scan=None)).notes)


@pytest.mark.parametrize("content", ["{}", "no json", "[1, 2]", '{"kind": "scan"}', "\ud800"])
def test_other_files(tmp_path: Path, content: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(content.encode("utf-8", "surrogatepass") + b"\n")
    with pytest.raises(DataError, match=r"metrics\.jsonl"):
        training.records(path, "scan")
    with pytest.raises(DataError, match="absent"):
        training.records(tmp_path / "absent", "scan")


def test_a_record_without_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "evaluation", "step": 3}\n')
    with pytest.raises(DataError, match=r"val\.halt_bce"):
        training.curves([path])

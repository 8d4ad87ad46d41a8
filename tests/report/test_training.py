"""Curves and scans from the files of a training run, and sentences for files that are none."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tiltrm.errors import DataError
from tiltrm.report import training
from tiltrm.report.catalogue import ITEMS
from tiltrm.report.evidence import Evidence
from tiltrm.report.style import SERIES, styled


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


def test_runs_of_one_task_are_told_apart(
    tmp_path: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their folder, and by a number where that is the same too."""
    files = [tmp_path / name / "metrics.jsonl" for name in ("a/run", "run_b", "b/run", "c/run")]
    for path in files:
        path.parent.mkdir(parents=True)
        shutil.copy(run_folder / "metrics.jsonl", path)
    monkeypatch.chdir(files[3].parent)
    _, rows, _ = training.curves([*files[:3], Path("metrics.jsonl"), files[0]])
    names = ["sudoku", "sudoku (run_b)", "sudoku (run)", "sudoku (run, 2)", "sudoku (run, 3)"]
    assert list(dict.fromkeys(row[1] for row in rows)) == names


def test_every_run_is_drawn_however_many() -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    lines = {f"run {n}": [(10, 0.5), (20, 0.4)] for n in range(len(SERIES) + 2)}
    with styled() as figure:
        axes = figure(4.2, 3.15).subplots()
        training._draw_curves(lines, "halt_bce", axes)
    assert [line.get_label() for line in axes.lines] == list(lines)


def test_steps_are_drawn_from_0_with_their_thousands(tmp_path: Path, evidence: Evidence) -> None:
    """Twice as early is half as far, so 0 must be there; and no mark is cut by the axis."""
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    path = tmp_path / "scan.jsonl"
    way = {"exact": 0.5}
    path.write_text("".join(
        json.dumps({"kind": "scan", "step": step} | dict.fromkeys(training.WAYS, way)) + "\n"
        for step in (4000, 8000)
    ))  # fmt: skip
    (panel,) = ITEMS["fig8"].draw(replace(evidence, scan=path)).panels
    with styled() as figure:
        sheet = figure(4.2, 3.15)
        axes = sheet.subplots()
        panel.draw(axes)
        sheet.draw_without_rendering()
    low, high = axes.get_xlim()
    assert low < 0 < 8000 < high
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert {"0", "2,000", "8,000"} <= set(shown)


@pytest.mark.parametrize("settings", [None, [], {"task": None}])
def test_a_run_that_does_not_say_its_task_has_the_name_of_its_folder(
    tmp_path: Path, settings: object
) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = [
        {"kind": "start", "step": 0, "settings": settings},
        {"kind": "evaluation", "step": 1, "val": {"halt_bce": 0.3, "halt_accuracy": 0.9}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, rows, _ = training.curves([path])
    assert {row[1] for row in rows} == {tmp_path.name}


def test_a_record_without_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "evaluation", "step": 3}\n')
    with pytest.raises(DataError, match=r"metrics.jsonl, line 1: .* val\.halt_bce, got .*mend"):
        training.curves([path])

"""Curves and scans from the files of a training run, and sentences for files that are none."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tiltrm.errors import DataError
from tiltrm.report import fig5_stability, fig8_training
from tiltrm.report.drawing import SERIES, figure_style
from tiltrm.report.items import ITEMS
from tiltrm.report.results import StoredResults


def test_fig8_counts_how_much_earlier(results: StoredResults) -> None:
    """Deterministic ends at 48 % at step 40; guided has 50 % at step 20."""
    section = ITEMS["fig8"].section(results)
    assert section.comparisons[0].ours == 40 / 20
    assert section.comparisons[1].ours == 4
    assert len(section.panels) == 2  # the loss is beside the scan
    assert ("training loss", 5, 2.0) in section.data.rows


def test_fig5_has_a_curve_for_each_run_and_says_what_is_missing(results: StoredResults) -> None:
    section = ITEMS["fig5"].section(results)
    runs = {(line[-2], line[-1]) for line in section.data.rows if line[-2]}
    assert runs == {("sudoku", 10), ("sudoku", 20)}
    bare = ITEMS["fig5"].section(replace(results, metrics=()))
    assert any("--metrics" in note for note in bare.notes)
    assert any(
        "--scan" in note for note in ITEMS["fig8"].section(replace(results, scan=None)).notes
    )


def test_runs_of_one_task_are_told_apart(
    tmp_path: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their folder, and by a number where that is the same too."""
    files = [tmp_path / name / "metrics.jsonl" for name in ("a/run", "run_b", "b/run", "c/run")]
    for path in files:
        path.parent.mkdir(parents=True)
        shutil.copy(run_folder / "metrics.jsonl", path)
    monkeypatch.chdir(files[3].parent)
    _, rows, _ = fig5_stability.halting_curves([*files[:3], Path("metrics.jsonl"), files[0]])
    names = ["sudoku", "sudoku (run_b)", "sudoku (run)", "sudoku (run, 2)", "sudoku (run, 3)"]
    assert list(dict.fromkeys(row[1] for row in rows)) == names


def test_every_run_is_drawn_however_many() -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    lines = {f"run {n}": [(10, 0.5), (20, 0.4)] for n in range(len(SERIES) + 2)}
    with figure_style() as figure:
        axes = figure(4.2, 3.15).subplots()
        fig5_stability._draw_curves(lines, "halt_bce", axes)
    assert [line.get_label() for line in axes.lines] == list(lines)


def test_steps_are_drawn_from_0_with_their_thousands(
    tmp_path: Path, results: StoredResults
) -> None:
    """Twice as early is half as far, so 0 must be there; and no mark is cut by the axis."""
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    path = tmp_path / "scan.jsonl"
    ways = {method: {"exact": 0.5} for method in fig8_training.METHODS}
    scans = [{"kind": "scan", "step": step} | ways for step in (4000, 8000)]
    path.write_text("".join(json.dumps(scan) + "\n" for scan in scans))
    (panel,) = ITEMS["fig8"].section(replace(results, scan=path)).panels
    with figure_style() as figure:
        canvas = figure(4.2, 3.15)
        axes = canvas.subplots()
        panel.draw(axes)
        canvas.draw_without_rendering()
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
    _, rows, _ = fig5_stability.halting_curves([path])
    assert {row[1] for row in rows} == {tmp_path.name}


def test_a_record_without_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "evaluation", "step": 3}\n')
    with pytest.raises(DataError, match=r"metrics.jsonl, line 1: .* val\.halt_bce, got .*mend"):
        fig5_stability.halting_curves([path])

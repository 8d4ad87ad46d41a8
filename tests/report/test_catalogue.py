"""What is drawn where a part is not there, or not computed yet."""

from dataclasses import replace
from pathlib import Path

import pytest

from tiltrm.evaluate.store import Store
from tiltrm.report.catalogue import ITEMS
from tiltrm.report.evidence import MAZE, Evidence


@pytest.mark.parametrize("name", ["table1", "fig3", "fig5", "fig6", "frontier"])
def test_without_mazes_it_says_so_and_draws_the_rest(evidence: Evidence, name: str) -> None:
    alone = {part: s for part, s in evidence.subjects.items() if part != MAZE}
    less = replace(evidence, subjects=alone, absent={MAZE: "no mazes here"})
    sheet = ITEMS[name].draw(less)
    assert "no mazes here" in sheet.notes
    assert not any("Maze" in panel.title for panel in sheet.panels)
    assert len(sheet.panels) < len(ITEMS[name].draw(evidence).panels)


def test_curves_are_drawn_before_the_mazes_are_computed(tmp_path: Path, evidence: Evidence) -> None:
    """Files of a training run need no shard; without them nothing would be left of fig5."""
    bare = replace(evidence, store=Store(tmp_path))
    within = ITEMS["fig5"].within(bare)
    assert within is not None
    sheet = ITEMS["fig5"].draw(within)
    assert [panel.title.partition(":")[0] for panel in sheet.panels] == ["Halting head"] * 2
    assert "Maze-Hard is left out, since it is not computed yet." in sheet.notes
    assert ITEMS["fig5"].within(replace(bare, metrics=())) is None
    assert ITEMS["fig3"].within(bare) is None  # its Sudoku is lacking too
    alone = replace(bare, subjects={}, absent={MAZE: "no mazes here"})
    assert ITEMS["fig5"].within(alone) is not None
    assert ITEMS["fig5"].within(replace(alone, metrics=())) is None
    assert evidence.scan is not None
    assert ITEMS["fig5"].within(replace(alone, metrics=(evidence.scan,))) is None  # no curves
    assert ITEMS["fig8"].within(alone) is not None
    assert ITEMS["fig8"].within(replace(alone, scan=None)) is None
    assert MAZE in ITEMS["fig5"].within(evidence).subjects  # type: ignore[union-attr]

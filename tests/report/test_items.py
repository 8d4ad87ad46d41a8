"""What is drawn where a part is not there, or not computed yet."""

from dataclasses import replace
from pathlib import Path

import pytest

from tiltrm.evaluate.store import Store
from tiltrm.report.items import ITEMS
from tiltrm.report.results import MAZE, StoredResults


@pytest.mark.parametrize("name", ["table1", "fig3", "fig5", "fig6", "frontier"])
def test_without_mazes_it_says_so_and_draws_the_rest(results: StoredResults, name: str) -> None:
    alone = {part: s for part, s in results.targets.items() if part != MAZE}
    less = replace(results, targets=alone, absent={MAZE: "no mazes here"})
    section = ITEMS[name].section(less)
    assert "no mazes here" in section.notes
    assert not any("Maze" in panel.title for panel in section.panels)
    assert len(section.panels) < len(ITEMS[name].section(results).panels)


def test_curves_are_drawn_before_the_mazes_are_computed(
    tmp_path: Path, results: StoredResults
) -> None:
    """Files of a training run need no shard; without them nothing would be left of fig5."""
    bare = replace(results, store=Store(tmp_path))
    within = ITEMS["fig5"].drawable(bare)
    assert within is not None
    section = ITEMS["fig5"].section(within)
    assert [panel.title.partition(":")[0] for panel in section.panels] == ["Halting head"] * 2
    assert "Maze-Hard is left out, since it is not computed yet." in section.notes
    assert ITEMS["fig5"].drawable(replace(bare, metrics=())) is None
    assert ITEMS["fig3"].drawable(bare) is None  # its Sudoku is lacking too
    alone = replace(bare, targets={}, absent={MAZE: "no mazes here"})
    assert ITEMS["fig5"].drawable(alone) is not None
    assert ITEMS["fig5"].drawable(replace(alone, metrics=())) is None
    assert results.scan is not None
    assert ITEMS["fig5"].drawable(replace(alone, metrics=(results.scan,))) is None  # no curves
    assert ITEMS["fig8"].drawable(alone) is not None
    assert ITEMS["fig8"].drawable(replace(alone, scan=None)) is None
    assert MAZE in ITEMS["fig5"].drawable(results).targets  # type: ignore[union-attr]

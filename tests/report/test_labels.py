"""Words keep off marks, lines and each other where there is room."""

from typing import Any

import pytest

from tiltrm.report import labels
from tiltrm.report.labels import Label, settle
from tiltrm.report.style import paint, styled

pytest.importorskip("matplotlib", reason="figures need matplotlib")
EXTENT = (400.0, 300.0)


def settled(marks: list[list[tuple[float, float]]], words: list[str]) -> tuple[Any, list[Any]]:
    """The boxes of the labels and of the marks in pixels, once all is drawn."""
    with styled() as figure:
        sheet = figure(400 / 72, 300 / 72)
        sheet.set_layout_engine("none")
        axes = sheet.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 10), ylim=(0, 10))
        own = [
            Label(*line[0], word, 8, paint("ink")) for line, word in zip(marks, words, strict=True)
        ]
        settle(axes, own, marks, EXTENT)
        sheet.draw_without_rendering()
        spots = [axes.transData.transform(point) for line in marks for point in line]
        return [text.get_window_extent() for text in axes.texts], spots


def overlaps(one: Any, other: Any) -> bool:
    return bool(one.overlaps(other))


def test_a_crowd_of_labels_does_not_overlap() -> None:
    marks = [[(5 + dx, 5 + dy)] for dx in (-0.5, 0, 0.5) for dy in (-0.4, 0.4)]
    boxes, spots = settled(marks, [f"word {n}" for n in range(6)])
    assert not any(overlaps(a, b) for n, a in enumerate(boxes) for b in boxes[:n])
    assert not any(box.contains(*spot) for box in boxes for spot in spots)


def test_labels_stay_inside_and_off_the_lines() -> None:
    marks = [[(0.1, 9.9), (0.1, 0.2)], [(9.9, 0.1)], [(5, 5), (9, 5)]]
    boxes, _ = settled(marks, ["top left", "bottom right", "on a line"])
    for box in boxes:
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= 401 * 100 / 72
        assert box.y1 <= 301 * 100 / 72
    line, middle = boxes[2], 150 * 100 / 72
    assert not (line.y0 < middle < line.y1 and line.x1 > 201 * 100 / 72)


def test_a_free_mark_has_its_words_above() -> None:
    (box,), (spot,) = settled([[(5, 5)]], ["free"])
    assert box.y0 > spot[1]
    assert abs((box.x0 + box.x1) / 2 - spot[0]) < 1
    assert labels.PLACES[0] == (0, 1)

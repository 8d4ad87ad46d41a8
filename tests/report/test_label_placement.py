"""Words keep off marks, lines and each other where there is room."""

from typing import Any

import pytest

from tiltrm.report import label_placement
from tiltrm.report.drawing import colour, figure_style
from tiltrm.report.label_placement import Label, LabelPlacer

pytest.importorskip("matplotlib", reason="figures need matplotlib")
EXTENT = (400.0, 300.0)
Marks = list[list[tuple[float, float]]]


def ready() -> Any:
    """Axes of that extent, ten by ten."""
    with figure_style() as figure:
        canvas = figure(400 / 72, 300 / 72)
        canvas.set_layout_engine("none")
        axes = canvas.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 10), ylim=(0, 10))
        return axes


def boxes_on(axes: Any) -> list[Any]:
    """The boxes of the words in pixels, once all is drawn, without the lines to their marks."""
    text = pytest.importorskip("matplotlib.text").Text
    axes.figure.draw_without_rendering()
    return [text.get_window_extent(own) for own in axes.texts]


def settled(marks: Marks, words: list[str]) -> tuple[list[Any], list[Any]]:
    """The boxes of the labels and of the marks in pixels."""
    axes = ready()
    own = [Label(*line[0], word, 8, colour("ink")) for line, word in zip(marks, words, strict=True)]
    placer = LabelPlacer(axes, marks, EXTENT)
    for label in own:
        placer.place(label)
    return boxes_on(axes), [axes.transData.transform(point) for line in marks for point in line]


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
    assert label_placement.DIRECTIONS[0] == (0, 1)


REGION = (0.0, 6.0, 4.0, 10.0)  # of ten by ten
PIXEL = 100 / 72


@pytest.mark.parametrize(
    ("lines", "left", "right", "bottom"),
    [
        ([], 0, 160, 240),  # free: at the top left
        ([[(0, 8.5), (2, 10)]], 0, 160, 180),  # lower down where the top is crossed
        ([[(0.5, 6), (0.5, 10)]], 80, 160, 180),  # on the right where the left is
        ([[(0.5, 6), (0.5, 10)], [(3.5, 6), (3.5, 10)]], 160, 400, 180),  # and else beside it
    ],
)
def test_the_words_of_a_region_find_its_free_side(
    lines: Marks, left: float, right: float, bottom: float
) -> None:
    axes = ready()
    label = Label(0, 0, "two words\nor three", 8, colour("ink"))
    LabelPlacer(axes, lines, EXTENT).place_in_region(label, REGION)
    (box,) = boxes_on(axes)
    assert box.x0 > left * PIXEL
    assert box.x1 < right * PIXEL
    assert bottom * PIXEL < box.y0 < box.y1 < 300 * PIXEL
    spots = [axes.transData.transform(point) for line in lines for point in line]
    assert not any(box.contains(*spot) for spot in spots)


def test_only_words_far_off_are_tied_to_their_mark() -> None:
    axes = ready()
    ring = [[(5 + dx, 5 + dy)] for dx in (-0.45, 0, 0.45) for dy in (-0.6, 0, 0.6) if dx or dy]
    crowded, free = Label(5, 5, "crowded", 8, colour("ink")), Label(1, 1, "free", 8, colour("ink"))
    placer = LabelPlacer(axes, [*ring, [(5, 5)], [(1, 1)]], EXTENT)
    placer.place(crowded)
    placer.place(free)
    tied = {text.get_text(): text.arrow_patch is not None for text in axes.texts}
    assert tied == {"crowded": True, "free": False}

"""Colours that everybody can tell apart, and SVG that keeps to itself inside a page."""

import itertools
import re

import numpy as np
import pytest

from tiltrm.report.drawing import (
    COLOURS,
    STYLES,
    colour,
    css_variables,
    figure_style,
    halo,
    inline_svg,
    to_png,
    to_svg,
)

pytest.importorskip("matplotlib", reason="figures need matplotlib")

# Machado, Oliveira and Fernandes (2009), severity 1.
SIGHT = {
    "normal": np.eye(3),
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
THEMES = pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])


def linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    x, y, z = (np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116
               for v in XYZ @ rgb / XYZ.sum(1))  # fmt: skip
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    dark, light = sorted(float(XYZ[1] @ linear(colour)) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


@THEMES
def test_marks_stand_out_from_the_paper_and_words_more(theme: int) -> None:
    paper = COLOURS["sheet"][theme]
    for style in STYLES.values():
        assert contrast(COLOURS[style.colour_name][theme], paper) >= 3
    for name in ("ink", "soft", "adaptive", "adaptive_rules", "wrong"):
        assert contrast(COLOURS[name][theme], paper) >= 4.5, name


@THEMES
@pytest.mark.parametrize("sight", SIGHT)
def test_methods_are_told_apart_whatever_the_eye(theme: int, sight: str) -> None:
    seen = {
        style.colour_name: lab(
            np.clip(SIGHT[sight] @ linear(COLOURS[style.colour_name][theme]), 0, 1)
        )
        for style in STYLES.values()
    }
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)


def test_no_method_relies_on_colour_alone() -> None:
    assert len({style.marker for style in STYLES.values()}) == len(STYLES)
    assert len({light for light, _ in COLOURS.values()}) == len(COLOURS)  # or inline_svg mixes them


def drawn() -> tuple[str, str, bytes]:
    with figure_style() as figure:
        canvas = figure(3, 2)
        axes = canvas.subplots()
        axes.plot([1, 2], [1, 2], color=colour("guided"), marker="o", label="guided")
        axes.text(1, 1, "a word", path_effects=halo())
        axes.legend()
        inline = inline_svg(canvas, "here", 'one "figure" <b>')
        return inline, to_svg(canvas), to_png(canvas)


def test_inlined_svg_takes_the_pages_colours_and_letters() -> None:
    text = drawn()[0]
    assert text.startswith('<svg role="img" aria-label="one &quot;figure&quot; &lt;b&gt;"')
    assert "var(--guided)" in text
    assert not any(light in text for light, _ in COLOURS.values())
    assert "font-family" not in text
    assert "<style" not in text
    assert set(re.findall(r"var\(--(\w+)\)", text)) <= set(re.findall(r"--(\w+):", css_variables()))


def test_inlined_ids_are_its_own_and_every_reference_finds_one() -> None:
    text = drawn()[0]
    ids = re.findall(r'\sid="([^"]*)"', text)
    used = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', text)
    assert all(name.startswith("here-") for name in ids)
    assert len(set(ids)) == len(ids)
    assert {a or b for a, b in used} <= set(ids)


def test_the_same_figure_is_the_same_bytes() -> None:
    assert drawn() == drawn()

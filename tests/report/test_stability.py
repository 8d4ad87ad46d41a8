"""The paper's bound on deviations: drawn, written down, and said to hold only where it does."""

from typing import Any

import pytest

from tiltrm.report import diagnosis, fig2_noise, fig5_stability
from tiltrm.report.drawing import figure_style
from tiltrm.report.results import SUDOKU, StoredResults

from . import mock

pytest.importorskip("matplotlib", reason="figures need matplotlib")
RHO = {"power iteration": {"mean": 5.25, "largest": 9.0, "below_one": 0.0}}


def found(*tubes: dict[str, Any]) -> dict[str, Any]:
    return {"stability": {"tubes": list(tubes), "rho": RHO}}


def drawn(plot: diagnosis.Plot, what: dict[str, Any]) -> Any:
    with figure_style() as figure:
        canvas = figure(4.2, 3.15)
        axes = canvas.subplots()
        plot(axes, what)
        canvas.draw_without_rendering()
        return axes


def dotted(axes: Any) -> list[list[float]]:
    return [list(line.get_ydata()) for line in axes.lines if line.get_linestyle() == ":"]


def test_the_table_has_the_secants_bound_apart_from_the_valid_one(results: StoredResults) -> None:
    section = fig2_noise.section(results)
    assert any("the hypothesis of Prop. 5.1 fails" in note for note in section.notes)
    lines = [dict(zip(section.data.head, line, strict=True)) for line in section.data.rows]
    mine = [line for line in lines if line["panel"] == "deviation"]
    assert all(line["bound"] is None for line in mine)
    tubes = results.diagnosis(SUDOKU)["stability"]["tubes"]
    assert [line["secant bound"] for line in mine] == [v for t in tubes for v in t["secant_bound"]]
    assert fig5_stability.bound_sentence(results.diagnosis(SUDOKU)) in section.notes


def test_it_is_dotted_beside_every_line_and_named_once() -> None:
    tubes = [mock._tube(sigma, alpha, 4) for sigma in (0.1, 0.3) for alpha in (1.0, 1.5)]
    wide = [tube for tube in tubes if tube["alpha"] == 1.5]
    axes = drawn(diagnosis.draw_deviation, found(*tubes))
    assert dotted(axes) == [tube["secant_bound"] for tube in wide]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [diagnosis.SECANTS]
    other = drawn(diagnosis.draw_excess, found(*tubes))
    for tube, line in zip(wide, dotted(other), strict=True):
        size = 7.0  # L D, which drops out
        radius, unit = tube["alpha"] ** 2 * size, tube["noise"] ** 2 * size
        assert line == pytest.approx([v * radius / unit for v in tube["secant_bound"]])
        assert line[0] == pytest.approx(1.0)
    low = axes.get_window_extent().y0
    assert axes.get_legend().get_window_extent().y1 < axes.transData.transform(
        (1, min(wide[0]["deviation"]))
    )[1]  # fmt: skip
    assert axes.get_legend().get_window_extent().y0 > low


def test_the_ends_of_the_noises_are_named_apart() -> None:
    tubes = [mock._tube(sigma, 1.5, 4) for sigma in (0.1, 0.2, 0.3)]
    text = pytest.importorskip("matplotlib.text").Text
    axes = drawn(diagnosis.draw_excess, found(*tubes))  # whose lines are one and the same
    assert {own.get_text() for own in axes.texts} == {"σ = 0.1", "σ = 0.3"}
    one, other = (text.get_window_extent(own) for own in axes.texts)
    assert not one.overlaps(other)


def test_no_bound_and_nothing_inside() -> None:
    bare = mock._tube(0.3, 1.5, 4) | {"secant_bound": None}
    assert dotted(drawn(diagnosis.draw_deviation, found(bare))) == []
    gone = mock._tube(0.3, 1.5, 4) | {"deviation": [0.0] * 4}
    for plot in (diagnosis.draw_deviation, diagnosis.draw_excess):
        axes = drawn(plot, found(gone))
        assert dotted(axes) == []
        assert not axes.texts


def test_a_tube_without_noise_has_no_unit() -> None:
    quiet = {**mock._tube(0.1, 1.5, 4), "noise": 0.0, "deviation": [0.0] * 4}
    axes = drawn(diagnosis.draw_excess, found(quiet, mock._tube(0.3, 1.5, 4)))
    assert len(dotted(axes)) == 1


def test_words_say_whether_the_deviations_keep_below() -> None:
    over, under = mock._tube(0.1, 1.5, 4), mock._tube(0.1, 1.5, 2)
    assert (over["exceeds_secant_bound"], under["exceeds_secant_bound"]) == (True, False)
    said = fig5_stability.bound_sentence(found(over, under))
    most = 100 * (1.45 / 1.248 - 1)
    assert f"exceed it in 1 of 2 tubes (a noise and an α each), by up to {most:.1f} %" in said
    assert "power iteration finds ρ = 5.2 on average" in said
    assert "by no more than chance in all 1 tubes" in fig5_stability.bound_sentence(found(under))
    assert "does not exist" in fig5_stability.bound_sentence(found(under | {"secant_bound": None}))

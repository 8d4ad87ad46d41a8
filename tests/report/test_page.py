"""The page by itself: complete, the same every time, and readable by everybody."""

from dataclasses import replace
from pathlib import Path

import pytest

from serve.browser import PHONE, WIDE, Tab, chromium
from tiltrm.evaluate.store import Store
from tiltrm.report.items import ITEMS
from tiltrm.report.page import PageHeader, write
from tiltrm.report.results import StoredResults
from tiltrm.report.section import DataTable, PaperComparison

pytest.importorskip("matplotlib", reason="figures need matplotlib")
SOME = ("frontier", "fig4", "fig8")


def made(results: StoredResults, folder: Path) -> dict[str, bytes]:
    sections = [ITEMS[name].section(results) for name in SOME]
    commands = {name: f"tiltrm reproduce {name} --data 'a & b'" for name in SOME}
    files = write(sections, PageHeader(["weights & data"], ["less of it"], commands), folder)
    return {path.name: path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def files(results: StoredResults, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return made(results, tmp_path_factory.mktemp("page"))


def test_every_item_has_its_files_and_its_section(files: dict[str, bytes]) -> None:
    html = files["index.html"].decode()
    for name in SOME:
        assert {f"{name}.png", f"{name}.svg", f"{name}.csv"} <= set(files)
        assert f'<section id="{name}"' in html
        assert f"tiltrm reproduce {name} --data &#x27;a &amp; b&#x27;" in html
    assert "less of it" in html
    assert files["frontier.png"].startswith(b"\x89PNG")


def test_another_store_of_the_same_shards_gives_the_same_bytes(
    results: StoredResults, files: dict[str, bytes], tmp_path: Path
) -> None:
    """Shards computed in another order, by other machines, at another time."""
    other = Store(tmp_path / "store")
    jobs = [job for name in SOME for job in ITEMS[name].jobs(results)]
    for shard in reversed(results.read({job.key: job for job in jobs}.values())):
        columns = {n: None if c is None else c.copy() for n, c in shard.columns.items()}
        other._put(
            replace(shard, columns=columns, about={"seconds": 7.0, "commit": "x"}), ".parquet"
        )
    again = made(replace(results, store=other), tmp_path / "page")
    assert [name for name in files if files[name] != again[name]] == []


@pytest.mark.parametrize(("size", "theme"), [(WIDE, "light"), (WIDE, "dark"), (PHONE, "light")])
def test_in_a_browser(
    files: dict[str, bytes], tmp_path: Path, size: dict[str, int], theme: str
) -> None:
    """No fault that axe-core finds, nothing wider than the screen, nothing asked of a network."""
    page = tmp_path / "index.html"
    page.write_bytes(files["index.html"])
    with chromium() as browser:
        tab = Tab(browser, size=size, color_scheme=theme)
        tab.page.goto(page.as_uri())
        assert tab.violations() == []
        assert tab.overflow() <= 0
        assert tab.requests == [page.as_uri()]
        assert tab.complaints == []
        seen = tab.page.locator("figure:visible").count()
        assert seen == tab.page.locator("figure").count() - 2  # one of wide and narrow each


def test_words_of_a_comparison() -> None:
    line = PaperComparison("x", 98.0, 97.25, "%", 0.3, None)
    assert line.texts() == ("98.0 ± 0.3 %", "97.2 %", "-0.8 points")
    assert PaperComparison("x", None, 3.0, "×").texts() == ("–", "3.0 ×", "–")
    assert PaperComparison("x", 0.834, 0.9, "", digits=3).texts() == ("0.834", "0.900", "+0.066")
    assert PaperComparison("x", 0.0, 3.12, "points").texts() == ("0.0", "3.1", "+3.1 points")
    both = PaperComparison("x", 98.0, 97.0, "%", 0.3, 0.2)
    assert both.texts() == ("98.0 ± 0.3 %", "97.0 ± 0.2 %", "-1.0 points")


def test_a_zero_has_no_minus() -> None:
    assert PaperComparison("x", -0.04, -0.0).texts() == ("0.0 %", "0.0 %", "+0.0 points")
    assert PaperComparison("x", 0.0, -0.04).texts() == ("0.0 %", "0.0 %", "+0.0 points")
    assert PaperComparison("x", 0.0, -0.06).texts() == ("0.0 %", "-0.1 %", "-0.1 points")


def test_csv() -> None:
    table = DataTable(("a", "b"), [(1 / 3, None), ("x, y", True), (float("nan"), 7)])
    assert table.as_csv() == 'a,b\n0.333333,\n"x, y",True\n,7\n'

"""The page's files without a browser: samples, and the replay as one file."""

import json
import re
from pathlib import Path

import pytest

import tiltrm
from tiltrm.explore.cloud import StepInfo
from tiltrm.serve.recording import STATIC, bundle, page
from tiltrm.tasks import SUDOKU, by_name
from tiltrm.tasks.pencil import TASKS as PENCIL_TASKS

from . import stub

SAMPLES = json.loads((STATIC / "samples.json").read_text("utf-8"))


@pytest.mark.parametrize("task", ["sudoku", "maze", "lightup", "nurikabe", "heyawake", "tapa"])
def test_samples_are_puzzles_of_the_generators(task: str) -> None:
    for sample in SAMPLES[task]:
        tokens = by_name(task).encode(sample["puzzle"])
        if sample["seed"] is not None:
            assert (by_name(task).generate(sample["seed"])[0] == tokens).all()


def test_every_sample_has_one_solution() -> None:
    assert all(SUDOKU.solutions(sample["puzzle"]) == 1 for sample in SAMPLES["sudoku"])
    pytest.importorskip("ortools", reason="needs OR-Tools: pip install .[generate]")
    for task in PENCIL_TASKS:
        for sample in SAMPLES[task.name]:
            assert task.count_solutions(task.encode(sample["puzzle"])) == 1, sample


def test_the_first_sample_shows_a_cloud_that_resamples() -> None:
    """The first run on the page is solved, and its ancestry is more than one band."""
    first = SAMPLES["sudoku"][0]
    chosen: list[int] = []

    def watch(info: StepInfo) -> None:
        chosen.append(len(set(info.ancestors[0].tolist())))

    model = tiltrm.load("sudoku-extreme")
    found = tiltrm.solve(model, first["puzzle"], watch=watch, **first["settings"])
    assert SUDOKU.is_solved(SUDOKU.encode(first["puzzle"])[None], found.answers).all()
    assert chosen[0] == first["settings"]["particles"] > min(chosen)


def test_a_replay_cannot_leave_its_script() -> None:
    """Text of a user stands in the file; it must come back as it was and never as markup."""
    nasty = '</script><script>alert("x")</script><!-- \u2028 & é'
    html = page({"start": {"puzzle": nasty}, "steps": [], "baseline": None, "result": {}})
    data = re.search(r'id="replay">(.*?)</script>', html, re.DOTALL)
    assert data is not None
    assert "<" not in data[1]
    assert json.loads(data[1])["start"]["puzzle"] == nasty
    assert html.count("<script") == 2


def test_a_file_needs_no_other_file() -> None:
    html = page(stub.replay(SUDOKU, *(tokens.tolist() for tokens in SUDOKU.generate(0))))
    head, _, body = html.partition('<script type="module">')
    assert not re.search(r'(?:src|href)="', head + body.partition("</script>")[2])
    assert "default-src 'none'" in head


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        page({"steps": [float("nan")]})


def test_bundle_holds_every_module_once_and_no_import() -> None:
    script = bundle()
    names = {file.stem for file in STATIC.glob("*.js")}
    assert sorted(re.findall(r"^const (\w+)_js = ", script, re.MULTILINE)) == sorted(names)
    assert not re.search(r"^(?:import|export)\b", script, re.MULTILINE)
    assert "</" not in script  # would end the element that holds it


def test_the_page_names_nothing_elsewhere() -> None:
    """No inline script or style that the policy would refuse, and no address to load from.

    The SVG namespace and the addresses of puzzles are texts.
    """
    for file in filter(Path.is_file, STATIC.rglob("*")):
        found = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", file.read_text("utf-8"))
        assert set(found) <= {"http://www.w3.org", "https://puzz.link"}, file.name
    html = (STATIC / "index.html").read_text("utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", html)

"""tiltrm reproduce: everything on a CPU, again from the store, without extras, and bad input."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tiltrm.cli import main, reproducing
from tiltrm.cli.main import _parser
from tiltrm.cli.progress import Bar
from tiltrm.evaluate import Store, plans, sizes
from tiltrm.evaluate.target import EvalTarget, eval_target
from tiltrm.report import ITEM_NAMES
from tiltrm.report import results as report_results
from tiltrm.report.items import ITEMS
from tiltrm.report.results import MAZE, SUDOKU, describe_reductions

Run = Callable[..., tuple[int, str, str]]
BLOCKED = """
import sys
sys.modules["matplotlib"] = sys.modules["pyarrow"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "pyarrow" else real(name, *rest)
from tiltrm.cli import main
code = main(sys.argv[1:])
assert not [name for name in sys.modules if name.startswith(("matplotlib.", "pyarrow."))]
sys.exit(code)
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`reproduce all --tiny`, once; the folder has `store` and `out`."""
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    folder = tmp_path_factory.mktemp("all")
    places = ("--store", folder / "store", "--out", folder / "out")
    assert main(["reproduce", "all", "--tiny", "--device", "cpu", *map(str, places)]) == 0
    return folder


def test_all_of_it_is_there(everything: Path) -> None:
    files = contents(everything / "out")
    html = files["index.html"].decode()
    assert tuple(ITEMS) == ITEM_NAMES
    for name in ITEM_NAMES:
        assert f"{name}.csv" in files
        assert f'<section id="{name}"' in html
        assert f"tiltrm reproduce {name} --store DIR --out DIR --tiny" in html
        assert (f"{name}.png" in files) == (name not in ("fig5", "fig8"))  # no mazes, no scan
    assert "Maze-Hard is left out" in html
    assert "give --scan" in html
    assert "say only that all runs" in html
    assert str(everything) not in html


def test_random_weights_are_called_random(everything: Path) -> None:
    """Nowhere does the page of --tiny call them ours; `adaptive (ours)` names a method."""
    html = contents(everything / "out")["index.html"].decode()
    assert "<h1>The paper's evidence, on random weights</h1>" in html
    assert f"on {sizes.TINY_PUZZLES} generated 4 x 4 Sudokus" in html
    assert "no figure here says anything about a trained model" in html
    assert html.count('<th scope="col">random weights</th>') == html.count(">paper</th>") > 0
    assert ">ours</th>" not in html
    assert "our weights" not in html


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--data", "x.csv"], "expected --model with --data, got --data alone"),
        (["--model", "sudoku-extreme"], "expected --data with --model, got --model alone"),
        (["--val", "x.csv"], "expected --data with --val, got --val alone"),
        (["--maze", "maze-hard"], "expected --maze-data with --maze, got --maze alone"),
        (["--maze-data", "x.csv"], "expected --maze with --maze-data, got --maze-data alone"),
    ],
)
def test_tiny_refuses_a_model_without_puzzles_and_puzzles_without_a_model(
    tiltrm: Run, tmp_path: Path, given: list[str], said: str
) -> None:
    """Else the other half would be the bundled weights, which are not tiny."""
    places = ("--store", tmp_path / "store", "--out", tmp_path / "out")
    code, out, err = tiltrm("reproduce", "all", "--tiny", *given, *places)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err
    assert list(tmp_path.iterdir()) == []


def test_tiny_never_looks_for_the_bundled_mazes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    real = report_results.eval_target

    def examine_too(model: str, data: str, split: str) -> EvalTarget:
        seen.append(Path(model).name)
        return real(model, data, split)

    monkeypatch.setattr(report_results, "eval_target", examine_too)
    given = _parser().parse_args(["reproduce", "all", "--tiny"])
    found = reproducing._find_results(given, list(ITEMS), Store(tmp_path))
    assert seen == ["model"]  # the random one
    assert "Maze-Hard is left out" in found.absent[MAZE]


def test_drawing_reports_its_progress(
    everything: Path, tiltrm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a Bar, which decides what it says with and without a terminal."""
    told: list[tuple[str, float, int]] = []

    class Recorder(Bar):
        def __call__(self, done: float | None = None) -> None:
            assert done is not None
            told.append((self.label, done, self.total))

    monkeypatch.setattr(reproducing, "Bar", Recorder)
    places = ("--store", everything / "store", "--out", tmp_path / "out")
    assert tiltrm("reproduce", "table1", "fig8", "--tiny", "--draw-only", *places)[0] == 0
    assert told == [("reading and drawing", done, 4) for done in (1, 2, 3)]  # fig8 has no scan


def test_a_store_that_is_full_is_only_drawn_and_a_new_one_gives_the_same(
    everything: Path, tiltrm: Run, tmp_path: Path
) -> None:
    """The same bytes, whether drawn again or computed anew in another place."""
    some = ("table1", "fig7")
    first = tmp_path / "first"
    again = ("--store", everything / "store", "--out", first)
    code, out, err = tiltrm("reproduce", *some, "--tiny", *again)
    assert (code, err) == (0, "")
    assert "the store has all that is needed" in out
    anew = ("--store", tmp_path / "store", "--out", tmp_path / "second")
    code, out, _ = tiltrm("reproduce", *reversed(some), "--tiny", "--device", "cpu", *anew)
    assert code == 0
    (said,) = (line for line in out.splitlines() if "evaluations" in line and "fig7" in line)
    assert said.startswith("fig7: 4 jobs")  # named first, computed first
    assert "table1: 6 jobs" in out
    assert "to compute: 10 jobs, about 2,448 evaluations" in out
    assert contents(first) == contents(tmp_path / "second")
    assert (
        contents(everything / "out").items()
        >= {name: text for name, text in contents(first).items() if name.endswith(".csv")}.items()
    )


def test_computing_needs_no_extras_and_drawing_goes_on_from_there(
    everything: Path, tiltrm: Run, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    alone = [sys.executable, "-c", BLOCKED, "reproduce", "fig4", "--tiny", "--compute-only"]
    done = subprocess.run(
        [*alone, "--store", str(store), "--device", "cpu"], capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.suffix for path in store.iterdir() if path.is_file()} == {".safetensors"}
    code, out, err = tiltrm(
        "reproduce", "fig4", "--tiny", "--store", store, "--out", tmp_path / "o"
    )
    assert (code, err) == (0, "")
    assert "the store has all that is needed" in out
    assert contents(tmp_path / "o")["fig4.csv"] == contents(everything / "out")["fig4.csv"]


def test_a_half_full_store_is_drawn_as_far_as_it_goes(
    everything: Path, tiltrm: Run, tmp_path: Path
) -> None:
    """Table 1 of the first seed, nothing of the frontier; and nothing is computed."""
    full, own = Store(everything / "store"), Store(tmp_path / "store")
    subject = eval_target(*map(str, sizes.write_tiny(everything / "store" / "tiny")), "Test")
    jobs = plans.table1(subject, "tiny")
    kept = [job for job in jobs if job.seed == 0]
    assert 0 < len(kept) < len(jobs)
    for job, shard in zip(kept, full.read(kept), strict=True):
        own.write(job, shard.columns, shard.about)
    shutil.copytree(everything / "store" / "tiny", tmp_path / "store" / "tiny")
    there = contents(tmp_path / "store")
    places = ("--store", tmp_path / "store", "--out", tmp_path / "out")
    code, out, err = tiltrm("reproduce", "table1", "frontier", "--tiny", "--draw-only", *places)
    assert (code, err) == (0, "")
    assert "left out, since the store or a file lacks something: frontier" in out
    assert contents(tmp_path / "store") == there
    files = contents(tmp_path / "out")
    assert "frontier.csv" not in files
    assert files["table1.csv"] != contents(everything / "out")["table1.csv"]


@pytest.mark.parametrize("choose", [False, True])
def test_a_store_whose_folds_all_lack_rows_is_refused(
    everything: Path, tiltrm: Run, tmp_path: Path, choose: bool
) -> None:
    """Each fold has lost its last puzzle, so that they fit each other, but not the puzzles."""
    shutil.copytree(everything / "store", tmp_path / "store")
    words = ["table1", "--tiny", "--store", str(tmp_path / "store"), "--out", str(tmp_path / "out")]
    if choose:
        tiny = tmp_path / "store" / "tiny"
        words += ["--choose", "--val", str(tiny / "puzzles.csv"), "--compute-only"]
        words += ["--model", str(tiny / "model"), "--data", str(tiny / "puzzles.csv")]
        assert tiltrm("reproduce", *words)[0] == 0
    own = Store(tmp_path / "store")
    for job in own.jobs():
        if job.kind == "solve":
            (shard,) = own.read([job])
            cut = {name: None if c is None else c[:-1] for name, c in shard.columns.items()}
            own.write(job, cut, shard.about)
    code, out, err = tiltrm("reproduce", *words)
    assert code == 2, out
    assert "which does not fit the others; remove the one that lacks rows" in err


@pytest.mark.parametrize("name", ["fig3", "fig5", "fig8", "all"])
def test_drawing_only_computes_nothing(
    tiltrm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nor does it write a page without a figure."""
    monkeypatch.setattr(reproducing, "compute_jobs", lambda *_: pytest.fail("computed"))
    store = tmp_path / "store"
    places = ("--store", store, "--out", tmp_path / "out")
    words = ("reproduce", name, "--tiny", "--draw-only", *places)
    code, out, err = tiltrm(*words)
    assert (code, out) == (2, "")
    assert f"{store}: expected a store to draw from, got no such folder" in err
    assert not store.exists()
    store.mkdir()
    code, _, err = tiltrm(*words)
    assert code == 2
    assert "too few for any item" in err
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("flag", "size"), [("--tiny", "tiny"), ("--quick", "quick"), ("--draw-only", "full")]
)
def test_every_flag_reaches_the_drawings(tmp_path: Path, flag: str, size: str) -> None:
    metrics, scan = (tmp_path / name for name in ("metrics.jsonl", "scan.jsonl"))
    given = ["reproduce", "fig8", flag, "--frontier-puzzles", "3", "--metrics", str(metrics),
             "--metrics", "other", "--scan", str(scan)]  # fmt: skip
    found = reproducing._find_results(_parser().parse_args(given), ["fig8"], Store(tmp_path))
    assert (found.size, found.frontier, found.partial) == (size, 3, flag == "--draw-only")
    assert (found.metrics, found.scan) == ((metrics, Path("other")), scan)


MINE, MAZES = "50 of 2,000 puzzles of Sudoku-Extreme", "24 of 100 puzzles of Maze-Hard"


@pytest.mark.parametrize(
    ("size", "puzzles", "said"),
    [
        ("full", 50, [MINE]),
        ("full", 2000, []),
        ("quick", 50, [f"{MINE}; {MAZES}"]),
        ("quick", 2000, [MAZES]),
        ("quick", None, [f"400 of 2,000 puzzles of Sudoku-Extreme; {MAZES}"]),
    ],
)
def test_a_frontier_of_ones_own_size_is_said(
    size: str, puzzles: int | None, said: list[str]
) -> None:
    targets = {
        part: EvalTarget("weights", "0" * 16, part, "data", "Test", "0" * 64, count)
        for part, count in ((SUDOKU, 10_000), (MAZE, 1000))
    }
    found = describe_reductions(size, targets, puzzles)
    assert [line for line in found if "frontier" in line] == [f"The frontier: {s}." for s in said]
    assert size == "quick" or len(found) == len(said)


def test_the_page_says_how_much_of_the_frontier(
    everything: Path, tiltrm: Run, tmp_path: Path
) -> None:
    places = ("--store", everything / "store", "--out", tmp_path)
    assert tiltrm("reproduce", "table1", "--tiny", "--frontier-puzzles", "3", *places)[0] == 0
    html = contents(tmp_path)["index.html"].decode()
    assert f"The frontier: 3 of {sizes.TINY_PUZZLES} puzzles of Sudoku-Extreme." in html


SCAN = '{"kind": "scan", "step": 1, "guided": {"exact": 1}}\n'
EVALUATION = '{"kind": "evaluation", "step": 1, "val": {"halt_accuracy": 1}}\n'


@pytest.mark.parametrize(
    ("flag", "text", "said"),
    [
        ("--scan", "", "expected at least one scan, got none"),
        ("--scan", EVALUATION, "expected at least one scan, got none"),
        ("--scan", SCAN, "unguided.exact"),
        ("--metrics", EVALUATION, "val.halt_bce"),
        ("--scan", None, "expected the record of a training run, got no file; name another"),
        ("--metrics", None, "expected the record of a training run, got no file; name another"),
    ],
)
def test_a_record_that_cannot_be_drawn_is_refused_before_computing(
    tiltrm: Run, tmp_path: Path, flag: str, text: str | None, said: str
) -> None:
    record, store = tmp_path / "record.jsonl", tmp_path / "store"
    if text is not None:
        record.write_text(text)
    places = ("--store", store, "--out", tmp_path / "out")
    code, out, err = tiltrm("reproduce", "table1", "--tiny", flag, record, *places)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err
    assert (err.count(str(record)), "Errno" in err) == (1, False)
    assert not store.exists()


def test_settings_chosen_on_val_are_written_down_and_used(
    everything: Path, tiltrm: Run, tmp_path: Path
) -> None:
    own = everything / "store" / "tiny"
    code, out, err = tiltrm(
        "reproduce", "table1", "--tiny", "--choose", "--compute-only", "--device", "cpu",
        "--model", own / "model", "--data", own / "puzzles.csv", "--val", own / "puzzles.csv",
        "--store", tmp_path / "store",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "chosen on val: beta 0.1, noise 0.1" in out  # all solve none, so the first stands
    assert (tmp_path / "store" / "chosen-sudoku4.json").exists()
    assert "table1: 10 jobs" in out


def test_bad_input_is_one_sentence(tiltrm: Run, folder: str, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "store")
    (tmp_path / "store").mkdir()
    (tmp_path / "file").write_text("not a record\n")
    for wrong, said in (
        (("fig9",), "items are frontier"),
        (("fig8", "--scan", tmp_path / "absent"), "absent"),
        (("fig5", "--metrics", tmp_path / "file"), "expected a record of tiltrm train"),
        (("fig8", "--out", tmp_path / "file"), "--out must be a folder"),
        (("table1", "--tiny", "--choose"), "--val"),
        (("table1", "--tiny", "--quick"), "not allowed"),
        (("table1", "--draw-only", "--compute-only"), "not allowed"),
        (("table1", "--tiny", "--draw-only"), "expected results to draw"),
        (("frontier", "--frontier-puzzles", "0"), "at least 1"),
        (("table1", "--model", folder, "--data", tmp_path / "absent"), "absent"),
        (("table1", "--tiny", "--maze", tmp_path / "absent", "--maze-data", "x"), "absent"),
        (("fig1", "--store", tmp_path / "file"), "store must be a folder"),
        ((), "ITEM"),
    ):
        code, _, err = tiltrm("reproduce", *store, "--out", tmp_path / "out", *wrong)
        assert (code, len(err.splitlines())) == (2, 1), (wrong, err)
        assert said in err
        assert err.startswith("tiltrm reproduce: ")


def test_without_matplotlib_it_says_so_before_computing(
    tiltrm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, err = tiltrm("reproduce", "table1", "--tiny", "--store", tmp_path / "s", "--out",
                            tmp_path / "o")  # fmt: skip
    assert (code, out) == (2, "")
    assert "pip install 'tiltrm[report]'" in err
    assert not (tmp_path / "s").exists()


def test_the_command_line_starts_without_loading_it() -> None:
    light = "import sys, tiltrm.cli.reproduce_command; sys.exit('tiltrm.evaluate' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", light], check=False).returncode == 0

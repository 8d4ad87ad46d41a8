"""tiltrm solve: what it prints, what it returns, and that nothing typed at it breaks it."""

import gzip
import io
import json
import os
import re
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tiltrm import cpu_precision
from tiltrm.cli import main, solve_command
from tiltrm.cpu_precision import Comparison, Measurement
from tiltrm.errors import SettingsError
from tiltrm.explore.plan import Adaptive, parse_stages
from tiltrm.model import load
from tiltrm.model.native import TUNED, write_beside
from tiltrm.settings import METHODS
from tiltrm.solving import build_search
from tiltrm.solving.plans import TunedPlan
from tiltrm.solving.solution import KEYS
from tiltrm.tasks import MAZE, SUDOKU, Sudoku

TASK = Sudoku(2)
ANSWER = "1234341221434321"
PUZZLE, OTHER, BAD = "1...3..2.14...2.", "2...3..1.24...1.", "11.............."
SEVERAL, NONE = "1...3..2.1....2.", "2...3..1.1....3."  # solutions
QUICK = ("--method", "deterministic", "--outer-steps", "1")


@pytest.fixture
def solver(stubborn: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command line with a model that always gives ANSWER; its `halt` may be changed."""
    model = stubborn(TASK.encode(ANSWER))
    monkeypatch.setattr(solve_command, "load", lambda *_, **__: model)
    return model


def objects(out: str) -> list[dict[str, Any]]:
    return [json.loads(line, parse_constant=pytest.fail) for line in out.splitlines()]


def test_json_keeps_the_order_with_a_bad_puzzle_in_the_middle(
    tiltrm: Any, folder: str, tmp_path: Path
) -> None:
    file = tmp_path / "puzzles.txt"
    file.write_text(f"{PUZZLE}\n{BAD}\n# a comment\n{OTHER}\n")
    code, out, err = tiltrm("solve", OTHER, "--file", file, "--model", folder, "--json", *QUICK)
    found = objects(out)
    assert (code, err) == (2, "")
    assert [record["puzzle"] for record in found] == [OTHER, PUZZLE, BAD, OTHER]
    assert [record["error"] is None for record in found] == [True, True, False, True]
    assert all(tuple(record) == KEYS for record in found)
    assert all(len(record["entropy"]) == 16 for record in found if record["error"] is None)


@pytest.mark.parametrize(
    ("precision", "method", "compact"),
    [("auto", "guided", True), ("float32", "guided", False), ("auto", "deterministic", False)],
)
def test_idle_units_are_left_out_unless_the_model_itself_is_asked_for(
    stubborn: Any, tiltrm: Any, monkeypatch: pytest.MonkeyPatch, precision: str, method: str, *,
    compact: bool,
) -> None:  # fmt: skip
    """AI Escargot: the model alone fails, and succeeds without units that contribute nothing."""
    asked: dict[str, Any] = {}

    def loaded(_: str, **given: Any) -> Any:
        asked.update(given)
        return stubborn(TASK.encode(ANSWER))

    monkeypatch.setattr(solve_command, "load", loaded)
    quick = ("--method", method, "--outer-steps", "1")
    assert tiltrm("solve", PUZZLE, "--precision", precision, *quick)[0] == 0
    assert asked["compact"] is compact


def test_batches_do_not_show(tiltrm: Any, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def answers() -> list[tuple[Any, ...]]:
        arguments = (PUZZLE, BAD, OTHER, PUZZLE, "--model", folder, "--json", "--method", "guided",
                     "--outer-steps", "3")  # fmt: skip
        out = tiltrm("solve", *arguments)[1]
        return [tuple(r[key] for key in KEYS if key != "seconds") for r in objects(out)]

    whole = answers()
    monkeypatch.setattr(solve_command, "BATCH", {"cpu": 1})
    assert answers() == whole
    assert len(whole) == 4


def test_exit_codes(tiltrm: Any, solver: Any) -> None:
    assert tiltrm("solve", PUZZLE)[0] == 0
    assert tiltrm("solve", PUZZLE, OTHER)[0] == 1
    assert tiltrm("solve", OTHER, BAD, PUZZLE)[0] == 2
    solver.halt = 4.5  # confidence 0.989
    assert tiltrm("solve", OTHER, "--abstain", "0.99")[0] == 0
    assert tiltrm("solve", OTHER, "--abstain", "0.98")[0] == 0, "sure, but against the rules"


def test_text_says_what_came_out(tiltrm: Any, solver: Any) -> None:
    out = tiltrm("solve", PUZZLE, "--no-color")[1]
    assert "│ 1 2 │ 3 4 │" in out
    assert "\x1b" not in out
    assert "valid solution; confidence 0.993; " in out
    assert "; stopped by the halting head; 3 evaluations; " in out
    _, out, err = tiltrm("solve", OTHER, BAD)
    assert "breaks a rule" in out
    assert err == (
        "tiltrm solve: puzzle 2: clues conflict: 1 twice in row 1 (columns 1 and 2); "
        "correct one of them\n"
    )
    solver.halt = 4.5
    out = tiltrm("solve", PUZZLE, "--abstain", "1")[1]
    assert "│ 1 . │ . . │" in out
    assert "abstained; confidence 0.989" in out


def test_puzzles_without_a_single_solution(tiltrm: Any, solver: Any) -> None:
    code, out, _ = tiltrm("solve", SEVERAL, "--no-color")
    assert (code, "valid solution, one of several; confidence 0.993; " in out) == (2, True)
    code, out, err = tiltrm("solve", NONE, "--no-color")
    assert (code, out) == (2, "")
    assert "puzzle 1: no valid solution found: the clues contradict each other; " in err
    out = tiltrm("solve", SEVERAL, "--abstain", "1")[1]
    assert "abstained (the puzzle has several solutions); confidence 0.993" in out


def test_colours_are_for_terminals_that_want_them(
    solver: Any, terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def coloured(*arguments: str) -> bool:
        terminal.seek(0)
        terminal.truncate()
        with redirect_stdout(terminal):
            assert main(["solve", PUZZLE, *arguments]) == 0
        return "\x1b[1m1" in terminal.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured()
    assert not coloured("--no-color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs(tiltrm: Any, folder: str, method: str) -> None:
    code, out, err = tiltrm(
        "solve", PUZZLE, "--model", folder, "--method", method, "--outer-steps", "2", "--json"
    )
    assert code in (0, 1)
    assert err == ""
    expected = {"adaptive": 1, "guided": 16, "unguided": 16, "deterministic": 1, "ptrm": 100}
    assert objects(out)[0]["evaluations"] == expected[method] * 2 * 3


def test_the_flags_arrive(tiltrm: Any, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(solve_command, "solve_texts", lambda *_, **given: seen.update(given) or [])
    tiltrm("solve", PUZZLE, "--model", folder, "--method", "adaptive", "--particles", "3",
           "--noise", "0.1", "--beta", "0.2", "--resample-below", "0.4", "--outer-steps", "5",
           "--guide", "residual", "--seed", "7", "--rules", "--abstain", "0.6")  # fmt: skip
    for name in ("progress", "watch", "task"):
        seen.pop(name)
    assert seen == {
        "method": "adaptive", "particles": 3, "noise": 0.1, "beta": 0.2, "resample_below": 0.4,
        "outer_steps": 5, "guide": "residual", "seed": 7, "rules": True, "abstain": 0.6,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        ("auto", {"dtype": None, "compact": True, "int8": False, "fp8": False}),
        ("float32", {"dtype": torch.float32, "compact": False, "int8": False, "fp8": False}),
        ("bfloat16", {"dtype": torch.bfloat16, "compact": True, "int8": False, "fp8": False}),
        ("int8", {"dtype": torch.float32, "compact": True, "int8": True, "fp8": False}),
    ],
)
def test_the_model_is_loaded_in_the_precision_that_was_asked_for(
    tiltrm: Any, solver: Any, monkeypatch: pytest.MonkeyPatch, precision: str, expected: Any
) -> None:
    """auto is float32 here: the measurement of tests/conftest.py says so."""
    seen: dict[str, Any] = {}
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", os.environ.get("ONEDNN_MAX_CPU_ISA", "DEFAULT"))
    monkeypatch.setattr(solve_command, "load", lambda *_, **given: seen.update(given) or solver)
    assert tiltrm("solve", PUZZLE, "--precision", precision)[0] == 0
    assert {name: seen[name] for name in expected} == expected


def test_after_the_answer_a_person_is_told_the_measured_precision(
    solver: Any, terminal: Any, monkeypatch: pytest.MonkeyPatch, no_progress: None
) -> None:
    found = Measurement(int8=Comparison(2.0, 0.04))
    monkeypatch.setattr(cpu_precision, "may_measure", lambda: True)
    monkeypatch.setattr(cpu_precision, "measure", lambda: found)
    with redirect_stderr(terminal):
        assert main(["solve", PUZZLE]) == 0
    assert "from now on it computes in int8; --precision" in terminal.getvalue()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--guide", "hope"), "halting, confidence, residual, rules"),
        (("--method", "magic"), "adaptive, guided, unguided, deterministic, ptrm"),
        (("--method", "ptrm", "--beta", "1"), "got beta"),
        (("--noise", "nan"), "noise"),
        (("--particles", "9" * 40), "particles"),
        (("--abstain", "2"), "abstain"),
        (("--task", "maze"), "900 cells"),
        (("--task", "chess"), "chess"),
        (("--device", "abacus"), "abacus"),
        (("--file", "no such file"), "no such file"),
        (("--file", "."), ""),
        (("--watch", "--json"), "--json"),
        (("--config", "missing.json"), "config"),
    ],
)
def test_what_is_wrong_is_named(
    tiltrm: Any, folder: str, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = tiltrm("solve", PUZZLE, "--model", folder, *arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_cuda_without_cuda_is_one_sentence(tiltrm: Any, folder: str) -> None:
    code, out, err = tiltrm("solve", PUZZLE, "--model", folder, "--device", "cuda")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "CUDA" in err


def test_only_one_puzzle_can_be_watched(tiltrm: Any, folder: str) -> None:
    code, out, err = tiltrm("solve", PUZZLE, OTHER, "--model", folder, "--watch")
    assert (code, out) == (2, "")
    assert "2 puzzles" in err


def test_a_model_that_is_not_there(tiltrm: Any) -> None:
    code, out, err = tiltrm("solve", "--model", "missing")
    assert (code, out, len(err.splitlines())) == (2, "", 1)


def test_a_file_where_a_puzzle_was_expected(tiltrm: Any, folder: str, tmp_path: Path) -> None:
    file = tmp_path / "puzzles.txt"
    file.write_text("")
    code, _, err = tiltrm("solve", file, "--model", folder)
    assert code == 2
    assert f"--file {file}" in err
    code, _, err = tiltrm("solve", "--file", file, "--model", folder)
    assert code == 2
    assert "at least one puzzle" in err


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_may_be_a_csv_or_gzip(
    tiltrm: Any, folder: str, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    text = f"source,question,answer\na,{PUZZLE},{ANSWER}\nb,{OTHER},{ANSWER}\n".encode()
    stream = SimpleNamespace(buffer=io.BytesIO(gzip.compress(text) if packed else text))
    monkeypatch.setattr(sys, "stdin", stream)
    code, out, _ = tiltrm("solve", "--file", "-", "--model", folder, "--json", *QUICK)
    assert [record["puzzle"] for record in objects(out)] == [PUZZLE, OTHER]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\xff\xfe")))
    code, out, err = tiltrm("solve", "--file", "-", "--model", folder)
    assert (code, out) == (2, "")
    assert err.startswith("tiltrm solve: standard input: expected UTF-8")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    code, out, err = tiltrm("solve", "--file", "-", "--model", folder)
    assert (code, out) == (2, "")
    assert err.startswith("tiltrm solve: standard input: expected at least one puzzle")


def test_without_a_puzzle_there_is_a_sample(tiltrm: Any, folder: str) -> None:
    code, out, _ = tiltrm("solve", "--model", folder, *QUICK)
    assert code in (0, 1)
    assert "yours: tiltrm solve PUZZLE (16 cells)" in out
    assert SUDOKU.solutions(solve_command.SAMPLE) == 1
    assert (SUDOKU.defaults.model, MAZE.defaults.model) == ("sudoku-extreme", "maze-hard")


def survives(arguments: list[str]) -> int:
    """Run a command that may be nonsense; its exit code, and what it wrote is in order."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    assert code in (0, 1, 2)
    assert code != 2 or out.getvalue() or len(err.getvalue().splitlines()) == 1
    for record in objects(out.getvalue()):
        assert tuple(record) == KEYS
    return code


CELLS = st.text(st.sampled_from(".1234 \n|-x"), max_size=40)
HOSTILE = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@HOSTILE
@given(texts=st.lists(st.text(max_size=60) | CELLS, min_size=1, max_size=4))
@example(texts=["\udcff\x00"])
@example(texts=[PUZZLE, ""])
def test_random_text_as_puzzles(folder: str, texts: list[str]) -> None:
    survives(["solve", "--model", folder, "--json", *QUICK, "--", *texts])


@HOSTILE
@given(words=st.lists(st.text(max_size=12).map(lambda word: "--" + word), min_size=1, max_size=3))
def test_random_text_as_flags(folder: str, words: list[str]) -> None:
    words = [word for word in words if word not in ("--", "--help", "--watch", "--json", "--rules")]
    if words:
        assert survives(["solve", "--model", folder, "--json", *QUICK, *words]) == 2


@HOSTILE
@given(content=st.binary(max_size=200) | CELLS.map(str.encode) | st.text().map(str.encode))
@example(content=b"question\n1234\n")
@example(content=b"\x1f\x8b")
def test_random_bytes_as_a_file(folder: str, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    survives(["solve", "--model", folder, "--json", *QUICK, "--file", str(file)])


def test_a_page_that_has_no_place_is_told_before_the_solving(
    tiltrm: Any, solver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solve_command, "solve_texts", lambda *_, **__: pytest.fail("solved"))
    for place in (tmp_path / "none" / "page.html", tmp_path):
        code, _, err = tiltrm("solve", PUZZLE, "--html", place)
        assert code == 2
        assert "a file in a folder that exists" in err


@pytest.fixture
def tuned(folder: str, tmp_path: Path) -> Path:
    """The toy with a plan of its own beside its weights."""
    own = tmp_path / "tuned"
    shutil.copytree(folder, own)
    plan = TunedPlan(Adaptive(parse_stages("1x2 3x2"), noise=0.2), 90.0)
    write_beside(own, TUNED, {"task": "sudoku4", **plan.as_mapping()})
    return own


@pytest.mark.parametrize("flags", [(), ("--untuned",)])
def test_a_page_draws_the_plan_that_ran(
    tiltrm: Any, tuned: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """Stages, and particles that begin afresh, are those of the run with and without --untuned."""
    page = tmp_path / "page.html"
    command = ("solve", PUZZLE, "--model", tuned, "--outer-steps", 21, "--html", page, *flags)
    assert tiltrm(*command)[0] in (0, 1)
    found = re.search(r'id="replay">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert found is not None
    replay = json.loads(found[1])
    plan = build_search(load(tuned), tuned=not flags, outer_steps=21).plan
    stages = [number for number, stage in enumerate(plan.stages) for _ in range(stage.outer_steps)]
    assert [step["stage"] for step in replay["steps"]] == stages
    assert [step["particles"] for step in replay["steps"]] == [
        plan.stages[number].particles for number in stages
    ]
    assert ("--untuned" in replay["start"]["command"]) == bool(flags)


def test_a_risk_reaches_the_calibration(tiltrm: Any, folder: str) -> None:
    code, out, err = tiltrm("solve", PUZZLE, "--model", folder, "--risk", 0.1)
    assert (code, out) == (2, "")
    assert "a risk needs a model with a calibration beside its weights" in err


def test_the_oracle_is_refused_before_the_solving(
    tiltrm: Any, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solve_command, "solve_texts", lambda *_, **__: pytest.fail("solved"))
    wrong = ("solve", PUZZLE, "--model", folder, "--method", "guided", "--select", "oracle")
    code, out, err = tiltrm(*wrong)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "--select" in err
    with pytest.raises(SettingsError, match=r"select must be one of map.* got oracle"):
        build_search(load(folder), method="guided", select="oracle")


@pytest.mark.parametrize("method", ["deterministic", "unguided"])
def test_a_guide_is_refused_where_none_is_asked(tiltrm: Any, solver: Any, method: str) -> None:
    """Even the usual one."""
    code, out, err = tiltrm("solve", PUZZLE, "--method", method, "--guide", "halting")
    assert (code, out) == (2, "")
    assert "got guide" in err
    assert tiltrm("solve", PUZZLE, "--method", "guided", "--guide", "halting")[0] == 0


def test_a_risk_is_promised_or_refused(tiltrm: Any) -> None:
    """With the bundled weights and their calibration of 5,000 puzzles."""
    easy = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
    code, out, _ = tiltrm("solve", easy, "--risk", "0.001", "--json")
    assert code == 0
    assert objects(out)[0]["answer"] == (
        "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
    )
    code, out, err = tiltrm("solve", easy, "--risk", "0.0005")
    assert (code, out) == (2, "")
    assert "a risk of 0.0005 needs at least 5,990 calibration puzzles" in err
    code, _, err = tiltrm("solve", easy, "--risk", "0.01", "--outer-steps", "30")
    assert code == 2
    assert "a risk needs the settings that the calibration was made with" in err

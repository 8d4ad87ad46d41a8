"""Settings from plain values: what is wrong is one sentence, what is right comes back the same."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from tiltrm.errors import SettingsError
from tiltrm.model.trm import TRMConfig
from tiltrm.records import build_record
from tiltrm.tasks import by_name
from tiltrm.train.settings import Depth, Scan, Schedule, TrainSettings, differences, load_preset

PRESETS = sorted(
    file.name.removesuffix(".toml")
    for file in (resources.files("tiltrm.train") / "presets").iterdir()
)
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"batch": True}, "batch must be a whole number, got True"),
    ({"batch": 1.0}, "batch must be a whole number, got 1.0"),
    ({"batch": "8"}, "batch must be a whole number, got '8'"),
    ({"batch": None}, "batch must be a whole number, got None"),
    ({"batch": 0}, "batch must be a number in"),
    ({"batch": 10**30}, "batch must be a number in"),
    ({"rate": "fast"}, "rate must be a number, got 'fast'"),
    ({"rate": False}, "rate must be a number, got False"),
    ({"rate": math.nan}, "rate must be a number at least 0, got nan"),
    ({"rate": math.inf}, "rate must be a number at least 0, got inf"),
    ({"rate": 10**400}, "of usual size, got a huge one"),
    ({"rate": [0.1]}, "rate must be a number, got"),
    ({"betas": 0.9}, "betas must be a list, got 0.9"),
    ({"betas": [0.9]}, "betas must be a list of 2, got"),
    ({"betas": [0.9, "x"]}, r"betas\[1\] must be a number, got 'x'"),
    ({"betas": [0.9, 1.0]}, r"betas must be in \[0, 1\)"),
    ({"loss": "hinge"}, "loss must be one of softmax, stablemax, got 'hinge'"),
    ({"loss": 3}, "loss must be a text"),
    ({"model": 3}, "model must be a group of settings, got 3"),
    ({"model": {"width": 512.0}}, "model.width must be a whole number"),
    ({"model": {"token_mixing": 1}}, "model.token_mixing must be true or false"),
    ({"model": {"width": 2**40}}, "width must be above 0 and at most"),
    ({"model": {"depth": 3}}, "unknown setting model.depth"),
    ({"schedule": {"shape": "saw"}}, "schedule.shape must be one of"),
    ({"schedule": {"hold": 1.5}}, r"schedule.hold must be a number in \[0, 1\]"),
    ({"depth": {"start": [2, 1]}}, "depth.start must be 1 <= low <= high"),
    ({"depth": {"start": 2}}, "depth.start must be a list"),
    ({"depth": {"over": [0.5, 0.1]}}, "depth.over must be"),
    ({"scan": {"steps": [5, True]}}, r"scan.steps\[1\] must be a whole number"),
    ({"scan": {"steps": [0]}}, "scan.steps must be at least 1"),
    ({"seed": -1}, "seed must be a number in"),
    ({"ema": 1.5}, "ema must be a number in"),
    ({"learning_rate": 0.1}, "unknown setting learning_rate; expected one of task, model"),
    ({3: 4}, "unknown setting 3"),
]


@pytest.mark.parametrize(("values", "reason"), WRONG)
def test_wrong_settings_are_named(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason) as caught:
        build_record(TrainSettings, {"task": "sudoku"} | values)
    assert "\n" not in str(caught.value)


def test_the_task_must_be_given_and_the_rest_need_not() -> None:
    with pytest.raises(SettingsError, match="the setting task is missing"):
        build_record(TrainSettings, {})
    assert build_record(TrainSettings, {"task": "sudoku"}) == TrainSettings("sudoku")


def test_whole_numbers_become_floats_where_a_float_is_meant() -> None:
    built = build_record(TrainSettings, {"task": "sudoku", "rate": 1, "schedule": {"hold": 0}})
    assert isinstance(built.rate, float)
    assert isinstance(built.schedule.hold, float)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["softmax", "muon", "none", "cosine", 1, 2, 0.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)  # fmt: skip
LIKELY = {
    int: st.integers(-2, 40), float: st.floats(-0.5, 1.5), bool: st.booleans(), str: st.text(),
}  # fmt: skip


def group(kind: type[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some fields of a record, each of them likely right and perhaps anything."""
    known = {f.name: LIKELY.get(f.type, VALUES) | VALUES for f in fields(kind)}  # type: ignore[call-overload]
    return st.fixed_dictionaries({}, optional=known)


GROUPS = {"model": TRMConfig, "schedule": Schedule, "depth": Depth, "scan": Scan}


@hypothesis(deadline=None)
@given(
    group(TrainSettings),
    st.fixed_dictionaries({}, optional={name: group(kind) for name, kind in GROUPS.items()}),
)
def test_fuzz(values: dict[str, Any], groups: dict[str, Any]) -> None:
    """Any plain values give settings that survive a file, or one sentence."""
    try:
        built = build_record(TrainSettings, {"task": "sudoku"} | values | groups)
    except SettingsError as error:
        sentence = str(error)
    else:
        sentence = ""
        plain = json.loads(json.dumps(asdict(built)))
        assert build_record(TrainSettings, plain) == built
    assert "\n" not in sentence
    assert len(sentence) < 600


@pytest.mark.parametrize("name", PRESETS)
def test_presets_fit_their_tasks(name: str) -> None:
    """Those for any task have the sizes of the one that asks."""
    own, _, which = name.rpartition("-")
    for task in ("sudoku", "maze") if own == "any" else (own,):
        settings, grid = load_preset(task, which), by_name(task)
        assert settings.task == task
        model = settings.model
        assert (model.cells + model.id_cells, model.vocabulary) == (grid.cells, grid.vocabulary)


@pytest.mark.parametrize("name", ["paper", "fast"])
def test_presets_have_the_papers_architecture(name: str) -> None:
    sudoku, maze = load_preset("sudoku", name).model, load_preset("maze", name).model
    for model, inner in ((sudoku, 6), (maze, 4)):
        assert (model.width, model.layers, model.heads, model.expansion) == (512, 2, 8, 4.0)
        assert (model.inner_steps, model.cycles) == (inner, 3)
    assert (sudoku.token_mixing, sudoku.rotary) == (True, False)
    assert (maze.token_mixing, maze.rotary) == (False, True)


def test_the_paper_preset_is_nano_trm() -> None:
    for task, augment in (("sudoku", "fixed"), ("maze", "none")):
        paper = load_preset(task, "paper")
        assert (paper.optimiser, paper.rate, paper.betas) == ("adamw", 1e-4, (0.9, 0.95))
        assert (paper.weight_decay, paper.head_weight_decay, paper.clip) == (1.0, 1.0, 1.0)
        assert (paper.batch, paper.steps, paper.ema) == (768, 50_000, 0.999)
        assert (paper.loss, paper.halt_weight, paper.label_smoothing) == ("stablemax", 0.5, 0.0)
        assert (paper.halt_max_steps, paper.halt_exploration) == (16, 0.1)
        assert paper.schedule == Schedule("constant", warmup_steps=2000)
        assert paper.depth == Depth((3, 3), (3, 3))
        assert (paper.augment, paper.shuffles, paper.noise) == (augment, 1000, 0.0)


def test_a_preset_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("batch = 5\n[schedule]\nfinal = 0.5\n")
    mine = load_preset("maze", str(path))
    assert (mine.task, mine.batch, mine.schedule.final) == ("maze", 5, 0.5)
    path.write_text("batch = \n")
    with pytest.raises(SettingsError, match="not valid TOML"):
        load_preset("maze", str(path))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="expected a preset file"):
        load_preset("maze", str(path))
    with pytest.raises(SettingsError, match="expected a preset file"):
        load_preset("maze", str(tmp_path / "no.toml"))
    with pytest.raises(
        SettingsError, match="no preset 'slow' for maze; expected one of small, fast, fresh, paper"
    ):
        load_preset("maze", "slow")


def test_differences_see_through_a_file() -> None:
    old: Mapping[str, Any] = json.loads(json.dumps(asdict(TrainSettings("sudoku"))))
    assert differences(old, asdict(TrainSettings("sudoku"))) == {}
    changed = differences(old, asdict(TrainSettings("sudoku", batch=4, depth=Depth((1, 1)))))
    assert changed.keys() == {"batch", "depth"}

"""tiltrm train on ARC files: from the JSON to weights that solve, with the names of their ids."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from tiltrm.cli import main
from tiltrm.data.arc_files import arc_json
from tiltrm.model import load
from tiltrm.train import validation
from tiltrm.train.settings import TrainSettings

from . import arc_toys


def toml(settings: TrainSettings) -> str:
    """The settings as a preset; groups after plain values, as TOML wants them."""
    plain = asdict(settings)
    groups = {name: plain.pop(name) for name in [*plain] if isinstance(plain[name], dict)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in plain.items()]
    for group, values in groups.items():
        lines += [f"[{group}]", *(f"{name} = {json.dumps(v)}" for name, v in values.items())]
    return "\n".join(lines) + "\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(arc_json(arc_toys.tasks(3))))
    return path


@pytest.mark.parametrize("task", ["mini-arc", "arc"])
def test_from_tasks_to_attempts(
    tmp_path: Path, data: Path, task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = arc_toys.settings() if task == "mini-arc" else arc_toys.table_settings()
    preset, out = tmp_path / "tiny.toml", tmp_path / "run"
    preset.write_text(toml(settings))
    words = ["--task", task, "--preset", str(preset), "--data", str(data), "--out", str(out)]
    assert main(["train", *words, "--steps", "2", "--set", "hold_out=0.4", "--device", "cpu"]) == 0
    model = load(out / "best")
    names = json.loads((out / "best/puzzles.json").read_text())
    assert model.task == task
    assert [name for name in names if "|" not in name and name != "<blank>"] == ["a0", "a1", "a2"]
    card = (out / "best/CARD.md").read_text()
    assert "- training data: 11 puzzles" in card
    assert "chosen: 1 puzzles" in card
    capsys.readouterr()
    asked = ["--task", task, "--model", str(out / "best"), "--file", str(data), "--json"]
    assert main(["solve", *asked, "--method", "deterministic", "--outer-steps", "1"]) in (0, 1, 2)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["task_name"] for line in lines} == {"a0", "a1", "a2"}
    assert len(lines) == 6


def test_the_newest_weights_are_kept_if_nothing_is_held_out(tmp_path: Path) -> None:
    """Else the first weights that know all demonstrations by heart would stay."""
    run = arc_toys.trainer(tmp_path, arc_toys.settings(evaluate_steps=1))
    assert not run.held_out
    run.evaluate()
    first = (tmp_path / "best/model.safetensors").read_bytes()
    run.learner.model.embedding.data.add_(1.0)
    run.learner.ema.average[0].add_(1.0)
    run.best = 1.0
    run.evaluate()
    assert (tmp_path / "best/model.safetensors").read_bytes() != first


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--val", "other.json"], "--val must be left out for ARC tasks"),
        (["--set", "augment=moved"], "augment 'moved' is for mazes"),
        (["--data", "nowhere.json"], "nowhere.json"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    preset = tmp_path / "tiny.toml"
    preset.write_text(toml(arc_toys.settings()))
    words = ["--task", "mini-arc", "--preset", str(preset), "--data", str(data), "--device", "cpu"]
    assert main(["train", *words, "--out", str(tmp_path / "run"), *more]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert said in err


def test_without_data_there_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--task", "mini-arc", "--preset", "fast"]) == 2
    assert "there is no public set for mini-arc; give --data" in capsys.readouterr().err


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_no_threshold_is_chosen_on_training_puzzles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """The head is sure of them, so the lowest threshold would seem best and stop at any answer."""
    run = arc_toys.trainer(tmp_path, arc_toys.settings(evaluate_steps=1, hold_out=share))
    report = validation.validate(
        run.learner.model, run.val, outer_steps=1, batch=8, dtype=torch.float32
    )._replace(decide_above=-7.5)
    monkeypatch.setattr("tiltrm.train.trainer.validate", lambda *_, **__: report)
    run.evaluate()
    assert load(tmp_path / "best").decide_above == (-7.5 if share else None)
    assert ("the newest weights" in (tmp_path / "best/CARD.md").read_text()) == (not share)

"""What can go wrong gives one clear sentence and exit code 2; a run gone wrong names its step."""

import errno
import resource
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError

from tiltrm.cli import main
from tiltrm.errors import DataError, DegenerateError, SettingsError
from tiltrm.train import state
from tiltrm.train.batches import batch_seed
from tiltrm.train.trainer import Trainer, check_losses

from . import toys

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """`tiltrm train` with a tiny model; returns the exit code and what it said."""
    data = toys.write_csv(tmp_path / "data.csv", toys.puzzles())

    def run(*words: str, data: Path = data) -> tuple[int, str]:
        code = main([
            "train", "--task", "sudoku4", "--preset", "toy", "--data", str(data),
            "--out", str(tmp_path / "run"), "--device", "cpu", "--steps", "3",
            "--set", "model.width=16", "--set", "batch=4", *words,
        ])  # fmt: skip
        captured = capsys.readouterr()
        return code, captured.err

    return run


def sentence(said: str) -> str:
    """The error: one line, after the lines of progress if there are any."""
    *progress, last = said.splitlines()
    assert last.startswith("tiltrm train: "), said
    assert all(line.startswith(("training ", "step ")) for line in progress), said
    return last


def test_the_command_works(command: Command, tmp_path: Path) -> None:
    assert command()[0] == 0
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        ".lock",
        "best",
        "metrics.jsonl",
        "state",
    }


BAD_DATA = {
    "wrong answers": "expected a solution of its question",
    "empty": "expected at least one puzzle, got none",
    "no answers": "expected puzzles with answers, got none",
    "missing": "expected a file, a folder or a dataset",
    "another task": "expected puzzles of sudoku4, got puzzles that look like sudoku",
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data(command: Command, tmp_path: Path, name: str) -> None:
    path, table = tmp_path / "bad.csv", toys.puzzles()
    if name == "wrong answers":
        toys.write_csv(path, replace(table, answers=table.labels().roll(1, 0)))
    elif name == "empty":
        path.write_text("question,answer\n")
    elif name == "no answers":
        toys.write_csv(path, replace(table, answers=None))
    elif name == "another task":
        path.write_text("question,answer\n" + "." * 81 + "," + "1" * 81 + "\n")
    code, said = command(data=path)
    assert code == 2
    assert BAD_DATA[name] in sentence(said)
    assert "bad.csv" in said
    assert command("--val", str(path))[0] == 2
    assert not (tmp_path / "run").exists()  # said before anything was begun


FULL = [
    OSError(errno.ENOSPC, "No space left on device"),
    SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
]


def refuse(error: Exception) -> Callable[..., None]:
    def raising(*_: object, **__: object) -> None:
        raise error

    return raising


@pytest.mark.parametrize("error", FULL)
def test_a_full_disk_for_the_state(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    monkeypatch.setattr(state, "serialise", refuse(error))
    code, said = command()
    assert code == 2
    assert "the training state could not be written" in sentence(said)
    assert "go on with --resume" in said
    assert list((tmp_path / "run" / "state").iterdir()) == []


@pytest.mark.parametrize("error", FULL)
def test_a_full_disk_for_the_best_weights(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    monkeypatch.setattr("tiltrm.model.native.serialise", refuse(error))
    code, said = command()
    assert code == 2
    assert "the best weights could not be written" in sentence(said)
    assert not list((tmp_path / "run").glob("*best*"))


def test_a_full_disk_for_the_log(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def opened(path: Path, mode: str = "r", **options: Any) -> Any:
        if path.name == "metrics.jsonl" and "a" in mode:
            raise FULL[0]
        return real(path, mode, **options)

    monkeypatch.setattr(Path, "open", opened)
    code, said = command()
    assert code == 2
    assert "metrics.jsonl could not be written" in sentence(said)


def test_a_disk_that_takes_no_large_file(command: Command) -> None:
    """Nothing is pretended here: the system itself refuses to write on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**14, hard))
    try:
        code, said = command()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 2
    assert "could not be written" in sentence(said)


def test_a_folder_that_is_a_file(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, said = command("--out", str(tmp_path / "file" / "run"))
    assert code == 2
    assert "expected to write there, got: Not a directory" in sentence(said)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu(command: Command) -> None:
    code, said = command("--device", "cuda")
    assert code == 2
    assert "expected a CUDA device 0, got 0 devices; use --device cpu" in sentence(said)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--preset", "quick"], "no preset 'quick' for sudoku4"),
        (["--task", "chess"], "'chess'"),
        (["--task", "sudoku", "--preset", "fast"], "got puzzles that look like sudoku4"),
        (["--set", "shuffles=0"], "shuffles must be a number in"),
        (["--set", "sched.final=0.1"], "unknown setting sched"),
        (["--set", "rate.x=1"], "rate is not a group of settings"),
        (["--set", "rate"], "expected a setting as KEY=VALUE"),
        (["--set", "rate=1 2"], "expected a TOML value or a bare word"),
        (["--set", "rate=1\nseed=2"], "expected a TOML value or a bare word"),
        (["--set", "model.cells=9"], "model.cells must be 16 for the task sudoku4, got 9"),
        (["--piece-minutes", "0"], "--piece-minutes must be above 0"),
        (["--piece-minutes", "nan"], "--piece-minutes must be above 0"),
        (["--tensorboard"], "tensorboard"),
    ],
)
def test_wrong_words(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: list[str], reason: str
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    code, said = command(*words)
    assert code == 2
    assert reason in sentence(said)


def test_a_task_without_a_public_set_needs_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--task", "sudoku4", "--preset", "toy"]) == 2
    assert "no public set for sudoku4; give --data" in capsys.readouterr().err


def poisoned(folder: Path, value: float) -> Trainer:
    run = toys.trainer(folder, steps=40)
    toys.advance(run, 4)
    run.save()
    run = toys.trainer(folder, steps=40)
    run.resume()
    toys.advance(run, 1)
    with torch.no_grad():
        run.learner.model.token_head.weight.mul_(value)
    return run


@pytest.mark.parametrize("value", [float("nan"), 1e6])
def test_a_loss_gone_wrong_names_step_seed_and_last_good_state(
    tmp_path: Path, value: float
) -> None:
    run = poisoned(tmp_path, value)
    with pytest.raises(DegenerateError) as caught:
        run.run()
    said = str(caught.value)
    assert "at step 5 " in said
    assert f"(batch seed {batch_seed(0, 5)})" in said
    assert said.endswith(f"the last good state is {tmp_path / 'state' / '00000004'}")
    assert state.latest(tmp_path) == tmp_path / "state" / "00000004"


def test_the_step_named_is_the_first_bad_one(tmp_path: Path) -> None:
    settings = toys.settings()
    check_losses([2.0, 3.0], 7, settings, tmp_path)
    for bad in (float("nan"), float("inf"), 100.0):
        with pytest.raises(DegenerateError, match=r"at step 9 .*last good state is none"):
            check_losses([2.0, 3.0, bad, bad], 7, settings, tmp_path)


def test_the_first_loss_of_a_fresh_model_is_no_explosion(tmp_path: Path) -> None:
    for scale in (0.1, 1.0, 3.0):
        run = toys.trainer(tmp_path, initial_scale=scale, halt_weight=0.0)
        losses = toys.advance(run, 1)
        check_losses(losses, 0, run.settings, tmp_path)  # raises DegenerateError otherwise
        assert len(losses) == 1


def test_labels_are_asked_for_before_training(tmp_path: Path) -> None:
    table, bare = toys.puzzles(), replace(toys.puzzles(), answers=None)
    for train, val in ((table, bare), (bare, table)):
        with pytest.raises(DataError, match="with answers"):
            Trainer(toys.settings(), train, val, tmp_path, device="cpu")


def test_too_large_a_batch_is_one_sentence(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tiltrm.train.learner.supervise", refuse(torch.OutOfMemoryError("CUDA out of memory"))
    )
    code, said = command()
    assert code == 2
    assert "a batch of 4 must fit in the device's memory" in sentence(said)


def test_settings_of_another_task_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"model.vocabulary must be 6"):
        toys.trainer(tmp_path, model=toys.TINY["model"] | {"vocabulary": 7})

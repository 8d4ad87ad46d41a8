"""A run by the clock, by steps, by signal; what it leaves behind."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tiltrm.cli import main
from tiltrm.cli.train_command import assign
from tiltrm.cli.values import parse_assignment
from tiltrm.data import read
from tiltrm.data.splits import checksum, token_checksum
from tiltrm.errors import SettingsError
from tiltrm.model import load, save
from tiltrm.train import log, state, trainer
from tiltrm.train.clock import TrainingClock
from tiltrm.train.distributed import World
from tiltrm.train.learner import statistics

from . import toys


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    data = toys.write_csv(tmp_path / "data.csv", toys.puzzles())
    return [
        "train", "--task", "sudoku4", "--preset", "toy", "--data", str(data),
        "--out", str(tmp_path / "run"), "--device", "cpu",
        "--set", "model.width=16", "--set", "batch=4",
    ]  # fmt: skip


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_minutes_stop_in_time_with_everything_saved(words: list[str], tmp_path: Path) -> None:
    begun = time.monotonic()
    assert main([*words, "--minutes", "0.05"]) == 0
    assert time.monotonic() - begun < 3 + 30  # of a busy machine
    found = records(tmp_path / "run")
    steps = [record["step"] for record in found if record["kind"] == "train"]
    evaluated = [record for record in found if record["kind"] == "evaluation"]
    saved = state.latest(tmp_path / "run")
    assert saved is not None
    assert int(saved.stem) == steps[-1] == evaluated[-1]["step"]
    assert found[-1]["seconds"] < 3 + 20  # likewise
    load(tmp_path / "run" / "best")


def test_the_clock_counts_what_is_no_training_and_leaves_time_for_the_end() -> None:
    pace = TrainingClock(toys.settings(minutes=1.0), World(), torch.device("cpu"))
    pace.seconds, pace.aside = 20.0, 7.0
    assert pace.progress == pytest.approx(27 / 60)
    pace.closing = 6.0
    assert pace.progress == pytest.approx(27 / 54)
    assert not pace.over_budget(time.monotonic())
    assert pace.over_budget(time.monotonic() - 27.5)
    pace.closing = 1e9  # a silly estimate, as of a first step that compiles
    assert pace.progress == pytest.approx(27 / 30)
    with pace.not_training():
        time.sleep(0.02)
    assert 7.02 <= pace.aside < 8


def test_looks_scans_and_saves_come_at_their_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock on which ten steps take ten seconds, and everything else takes ten as well."""
    monkeypatch.setattr(TrainingClock, "since", lambda *_: 10.0)
    run = toys.trainer(
        tmp_path, steps=100, evaluate_every=25.0, save_every=35.0, restart_every=10,
        scan={"every": 45.0, "puzzles": 2, "particles": 2, "outer_steps": 2},
    )  # fmt: skip
    done: dict[str, list[int]] = {"evaluate": [], "save": [], "scan": []}

    def noting(name: str) -> None:
        real = getattr(run, name)
        monkeypatch.setattr(run, name, lambda: done[name].append(run.clock.step) or real())

    for name in done:
        noting(name)
    run.run()
    assert done == {"evaluate": [30, 60, 90, 100], "save": [40, 80, 100], "scan": [50, 100]}
    assert (run.clock.seconds, run.clock.aside) == (100.0, 160.0)  # 7 times rounded, not saved


def test_the_last_look_is_expected_to_take_what_its_evaluations_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 puzzles x 2 outer steps against 10 steps of 8 rows x 4 outer steps, which took 10 s."""
    monkeypatch.setattr(TrainingClock, "since", lambda *_: 10.0)
    run = toys.trainer(tmp_path, steps=10, depth={"start": [2, 2], "end": [2, 2]})
    run.run()
    assert run.clock.closing == pytest.approx(10 * (16 * 2) / (10 * 8 * 4))


def test_a_piece_is_a_part_of_the_plan(words: list[str], tmp_path: Path) -> None:
    assert main([*words, "--steps", "1000000", "--piece-minutes", "0.01"]) == 0
    saved = state.latest(tmp_path / "run")
    assert saved is not None
    assert 0 < int(saved.stem) < 1000000
    assert main([*words, "--steps", str(int(saved.stem) + 1), "--resume"]) == 0
    assert state.latest(tmp_path / "run") != saved


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_ends_the_run(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Exit code 128 + signal, everything saved, and the handlers as they were."""
    both = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(each) for each in both]
    real = log.RunLog.training
    signalled: list[int] = []  # steps; a slow machine may not come to a round number

    def training(self: log.RunLog, pace: TrainingClock, *rest: Any) -> None:
        real(self, pace, *rest)
        if pace.step >= 20 and not signalled:
            signalled.append(pace.step)
            os.kill(os.getpid(), number)

    monkeypatch.setattr(log.RunLog, "training", training)
    assert main([*words, "--steps", "1000000"]) == 128 + number
    assert [signal.getsignal(each) for each in both] == before
    saved = state.latest(tmp_path / "run")
    assert saved is not None
    assert [int(saved.stem)] == signalled
    assert records(tmp_path / "run")[-1]["kind"] == "evaluation"


def test_a_signal_in_a_stretch_is_heard_after_the_step(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path, steps=100)
    run.run(stop=lambda: run.clock.step == 13)
    assert run.clock.step == 13


def test_slow_steps_are_looked_at_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "PATIENCE", 0.0)
    toys.trainer(tmp_path, steps=4).run()
    steps = [record["step"] for record in records(tmp_path) if record["kind"] == "train"]
    assert steps == [1, 2, 3, 4]


def test_the_record_of_a_run(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path, steps=25)
    run.run()
    found = records(tmp_path)
    kinds = [(record["kind"], record["step"]) for record in found]
    assert kinds == [
        ("start", 0), ("train", 10), ("train", 20), ("train", 25), ("evaluation", 25),
    ]  # fmt: skip
    assert found[0]["settings"]["batch"] == 8
    assert found[-1]["val"].keys() == found[-1]["train"].keys()
    assert {"exact", "halt_accuracy", "halt_auroc", "halt_calibration"} <= found[-1]["val"].keys()


def test_the_command_line_says_how_it_went(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--steps", "11"]) == 0
    out, err = capsys.readouterr()
    for word in ("loss", "exact", "q ", "TFLOP/s", "min left", "AUROC"):
        assert word in err
    assert "val exact at N=6:" in out
    assert "11 steps" in out


def test_the_last_report_as_json(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--steps", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["steps"] == 2
    assert found["val"]["exact"].keys() == {"3", "6"}
    assert found["val"]["halt_auroc"] is None  # nothing is right yet


def test_a_plan_is_by_minutes_or_by_steps(words: list[str]) -> None:
    assert main([*words, "--steps", "2", "--minutes", "1"]) == 2


def test_without_val_a_tenth_is_held_out(words: list[str], tmp_path: Path) -> None:
    assert main([*words, "--steps", "1"]) == 0
    card = (tmp_path / "run" / "best" / "CARD.md").read_text()
    table = read(tmp_path / "data.csv", toys.TASK)
    kept = table.take(torch.arange(40)[torch.arange(40) % 10 != 0])
    assert f"36 puzzles, SHA-256 {checksum(kept)}" in card
    assert f"4 puzzles, SHA-256 {checksum(table.take(slice(0, None, 10)))}" in card


def test_large_sets_are_told_apart_by_their_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their text is not written: that takes a minute for 120,000 pencil puzzles."""
    monkeypatch.setattr("tiltrm.train.best_weights.LARGE", 3)
    monkeypatch.setattr("tiltrm.train.best_weights.checksum", None)
    run = toys.trainer(tmp_path)
    assert run.origin.val.endswith(f"SHA-256 of their tokens {token_checksum(run.val)}")


def test_the_card_has_command_data_device_and_curve(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path)
    run.origin = run.origin._replace(command="tiltrm train --data x")
    toys.advance(run, 2)
    run.evaluate()
    toys.advance(run, 2)
    run.best = -1.0
    run.evaluate()
    card = (tmp_path / "best" / "CARD.md").read_text()
    assert "- command: `tiltrm train --data x`" in card
    assert "SHA-256 " + checksum(run.val) in card
    assert "minutes of training on 1 x CPU" in card
    assert [line.split(" | ")[0] for line in card.splitlines() if line[:3] in ("| 2", "| 4")] == [
        "| 2", "| 4",
    ]  # fmt: skip
    assert '"batch": 8' in card
    assert load(tmp_path / "best").task == "sudoku4"


def test_only_a_better_model_replaces_the_best(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path)
    run.best = 2.0
    run.evaluate()
    assert not (tmp_path / "best").exists()
    run.best = -1.0
    run.evaluate()
    first = load(tmp_path / "best").embedding
    assert torch.equal(first, run.learner.ema.average[0].bfloat16().float())
    run.clock.step = 7
    run.evaluate()  # as good, and later: the first stays
    assert "# sudoku4, 0 steps" in (tmp_path / "best" / "CARD.md").read_text()


def test_val_and_as_many_training_puzzles_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, real = toys.trainer(tmp_path), trainer.validate
    seen: list[torch.Tensor] = []

    def validate(model: Any, puzzles: Any, **options: Any) -> Any:
        seen.append(puzzles.questions)
        return real(model, puzzles, **options)._replace(cells=float(len(seen)))

    monkeypatch.setattr(trainer, "validate", validate)
    run.evaluate()
    all_of, train = toys.puzzles().questions, run.train_sample.questions
    assert torch.equal(torch.cat(seen), torch.cat((all_of[:8], train)))  # val, then train
    places = [int((all_of == row).all(1).nonzero()[0]) for row in train]
    assert len(train) == 8
    assert places[0] == 8
    assert places[-1] == len(all_of) - 1, "a file may be sorted by type: all parts must be there"
    assert [records(tmp_path)[-1][name]["cells"] for name in ("val", "train")] == [1, 2]


def test_statistics_are_shares_of_the_rows_that_halted() -> None:
    """Sums first, then the ratio: a step in which nothing halted has no say."""
    sums = torch.tensor([[2.0, 0.0, 0.5, 0.0, 0.0], [1.0, 0.1, 1.0, 0.2, 0.8]])
    found = statistics(sums)
    assert found == pytest.approx((1.5, 0.5, 0.75, 0.1, 4.0))
    assert statistics(sums[:1]).right != statistics(sums[:1]).right  # NaN: nothing halted


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b=0.5", 0.5), ("a.b=[1, 2]", [1, 2]), ("a.b='x'", "x"), ("a.b=word", "word"),
        ("a.b=true", True), ("a.b = 3", 3),
    ],
)  # fmt: skip
def test_assignments(text: str, value: object) -> None:
    values: dict[str, Any] = {"a": {"c": 1}}
    assign(values, *parse_assignment(text))
    assert values == {"a": {"b": value, "c": 1}}


def test_a_run_can_begin_with_the_weights_of_another(tmp_path: Path) -> None:
    """The weights and their average are the model's; a model of other sizes is refused."""
    first = toys.trainer(tmp_path / "first")
    toys.advance(first, 3)
    first.evaluate()
    saved = load(tmp_path / "first" / "best")
    second = toys.trainer(tmp_path / "second", seed=5)
    second.begin_with(tmp_path / "first" / "best")
    for name, value in second.learner.model.state_dict().items():
        assert torch.equal(value, saved.state_dict()[name])
    for value, average in zip(
        second.learner.model.parameters(), second.learner.ema.average, strict=True
    ):
        assert torch.equal(value, average)
    toys.advance(second, 3)
    assert not torch.equal(second.learner.ema.average[0], saved.embedding)
    other = toys.trainer(tmp_path / "third", model={**toys.TINY["model"], "width": 32})
    with pytest.raises(SettingsError, match="sizes"):
        other.begin_with(tmp_path / "first" / "best")


@pytest.mark.parametrize("flags", [(), ("--json",)])
@pytest.mark.parametrize(
    ("best", "stop_after", "advice"),
    [
        (0.0, 2, "train longer (--resume with more --minutes or --steps) or try another --preset"),
        (0.0, 1, "the run is not finished: go on with --resume"),
        (0.125, 2, None),
    ],
)
def test_a_run_that_learned_nothing_says_so_last(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...], best: float, stop_after: int, advice: str | None,
) -> None:  # fmt: skip
    """Whether the plan was done or not; and a run that solves one puzzle does not."""
    real = trainer.validate

    def validate(*parts: Any, **options: Any) -> Any:
        return real(*parts, **options)._replace(exact={6: best}, cells=0.25)

    def run(self: trainer.Trainer, **_: Any) -> Any:
        return whole(self, stop=lambda: self.clock.step >= stop_after)

    whole = trainer.Trainer.run
    monkeypatch.setattr(trainer, "validate", validate)
    monkeypatch.setattr(trainer.Trainer, "run", run)
    assert main([*words, "--steps", "2", *flags]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    warning = json.loads(said)["warning"] if flags else said
    if advice is None:
        assert warning is None or warning.endswith("best val 12.50 %")
    else:
        assert (
            f"solves none of the 4 validation puzzles after {stop_after} steps (25.0 % of"
            in warning
        )
        assert warning.endswith(advice)
        assert warning.startswith("the model" if flags else "warning: the model")


def test_the_files_of_a_run_have_the_usual_modes(tmp_path: Path) -> None:
    """Those that the umask leaves: neither private nor open to all."""
    before = os.umask(0o027)
    try:
        run = toys.trainer(tmp_path / "run", steps=1)
        run.run()
        save(run.learner.model, tmp_path / "run" / "saved")
    finally:
        os.umask(before)
    paths = [tmp_path / "run", *(tmp_path / "run").rglob("*")]
    assert {path.suffix for path in paths} >= {".safetensors", ".json", ".md", ".jsonl"}
    for path in paths:
        assert path.stat().st_mode & 0o777 == (0o750 if path.is_dir() else 0o640), path

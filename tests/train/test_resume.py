"""A resumed run goes on as if nothing had happened, bit for bit on a CPU."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from tiltrm.errors import DataError, DegenerateError, SettingsError
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.train import optimiser, state
from tiltrm.train.optimiser import EMA
from tiltrm.train.state import TrainState
from tiltrm.train.trainer import Trainer

from . import toys

RANDOM: dict[str, Any] = {"noise": 0.3, "halt_exploration": 0.5}


@pytest.fixture(autouse=True)
def small_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny matrices are stored in 8 bits too, and cut into several files."""
    monkeypatch.setattr(state, "SMALL", 64)
    monkeypatch.setattr(state, "PIECE_BYTES", 2**14)


def assert_same(one: Trainer, other: Trainer) -> None:
    ours, theirs = toys.numbers(one.learner), toys.numbers(other.learner)
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []
    for a, b in zip(one.learner.carry, other.learner.carry, strict=True):
        assert torch.equal(torch.as_tensor(a[0]), torch.as_tensor(b[0]))


@pytest.mark.parametrize("kind", ["muon", "normuon", "adamw"])
def test_resume_equals_no_interruption(tmp_path: Path, kind: str) -> None:
    whole = toys.trainer(tmp_path / "whole", optimiser=kind, **RANDOM)
    losses = toys.advance(whole, 7)
    whole.save()
    losses += toys.advance(whole, 6)
    cut = toys.trainer(tmp_path / "cut", optimiser=kind, **RANDOM)
    again = toys.advance(cut, 7)
    cut.save()
    torch.manual_seed(99)  # nothing hangs on the global generator
    resumed = toys.trainer(tmp_path / "cut", optimiser=kind, **RANDOM)
    assert resumed.resume()
    again += toys.advance(resumed, 6)
    assert losses == again
    assert_same(whole, resumed)
    assert len(list((tmp_path / "cut").glob("state/00000007/*.safetensors"))) > 1


def test_run_saves_stops_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same through `run`, saving after every stretch of ten steps."""
    whole = toys.trainer(tmp_path / "whole", steps=30, save_every=0.0, restart_every=10, **RANDOM)
    report = whole.run()
    cut = toys.trainer(tmp_path / "cut", steps=30, save_every=0.0, restart_every=10, **RANDOM)
    cut.run(stop=lambda: cut.clock.step >= 20)
    assert cut.clock.step == 20
    resumed = toys.trainer(tmp_path / "cut", steps=30, save_every=0.0, restart_every=10, **RANDOM)
    assert resumed.resume()
    assert resumed.clock.seconds == pytest.approx(cut.clock.seconds)
    assert resumed.best == cut.best
    assert resumed.run().exact == report.exact
    assert_same(whole, resumed)
    done = toys.trainer(tmp_path / "cut", steps=30, restart_every=10, **RANDOM)
    assert done.resume()
    assert done.run().exact == report.exact  # nothing left to do but to look
    assert done.clock.step == 30


def test_a_run_that_is_done_by_the_clock_stays_done(tmp_path: Path) -> None:
    """It ended early, to leave time for a last look that then took less than was thought."""
    run = toys.trainer(tmp_path, minutes=1.0)
    run.clock.step, run.clock.seconds, run.clock.aside, run.clock.closing = 9, 40.0, 8.0, 15.0
    run.save()
    again = toys.trainer(tmp_path, minutes=1.0)
    assert again.resume()
    assert again.clock.progress == 48 / 45
    again.run()
    assert again.clock.step == 9


def test_the_carry_of_a_saved_run_starts_anew(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path)
    toys.advance(run, 3)
    run.save()
    assert run.learner.carry.halted.all()


def test_there_is_nothing_to_resume_at_first(tmp_path: Path) -> None:
    assert not toys.trainer(tmp_path).resume()


def test_a_fresh_run_does_not_overwrite_another(tmp_path: Path) -> None:
    toys.trainer(tmp_path, steps=3).run()
    said = (tmp_path / "metrics.jsonl").read_text()
    other = toys.trainer(tmp_path)
    for begin in (other.run, lambda: other.begin_with(tmp_path / "best")):
        with pytest.raises(SettingsError, match=r"holds a run at step 3; add --resume"):
            begin()
    assert (tmp_path / "metrics.jsonl").read_text() == said


def test_only_the_newest_state_is_kept_and_other_folders_left_alone(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path)
    (tmp_path / "state" / "notes").mkdir(parents=True)
    for _ in range(3):
        toys.advance(run, 1)
        run.save()
    assert sorted(p.name for p in (tmp_path / "state").iterdir()) == ["00000003", "notes"]


def test_best_is_what_the_record_says_though_the_state_is_older(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path)
    run.save()
    run.best = -1.0
    report = run.evaluate()  # killed before the next save
    resumed = toys.trainer(tmp_path)
    resumed.resume()
    assert resumed.best == report.final > -1.0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"optimiser": "adamw"}, "of another model or optimiser"),
        ({"model": toys.TINY["model"] | {"width": 32}}, "of another model or optimiser"),
        ({"model": toys.TINY["model"] | {"layers": 2}}, "of another model or optimiser"),
    ],
)
def test_another_model_or_optimiser_is_refused(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    run = toys.trainer(tmp_path)
    toys.advance(run, 1)
    run.save()
    with pytest.raises(DataError, match=reason) as caught:
        toys.trainer(tmp_path, **changes).resume()
    assert "\n" not in str(caught.value)


def test_a_broken_state_is_one_sentence(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path)
    run.save()
    for path in (tmp_path / "state" / "00000000").iterdir():
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="cannot be read"):
        toys.trainer(tmp_path).resume()


def test_a_state_with_nan_is_not_saved(tmp_path: Path) -> None:
    """The loss may look fine before the step that breaks the weights."""
    run = toys.trainer(tmp_path)
    toys.advance(run, 1)
    run.save()
    toys.advance(run, 1)
    with torch.no_grad():
        run.learner.model.network.layers[0].mlp.down_proj.weight[0, 0] = float("nan")
    with pytest.raises(DegenerateError, match=r"down_proj.*was not saved"):
        run.save()
    assert state.latest(tmp_path) == tmp_path / "state" / "00000001"


def test_a_replaced_state_wins_over_its_forerunner(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path)
    run.save()
    target = tmp_path / "state" / "00000000"
    shutil.copytree(target, tmp_path / "state" / "00000000.old")
    shutil.copytree(target, tmp_path / "state" / "00000009.part")
    assert state.latest(tmp_path) == target
    target.rename(tmp_path / "gone")  # as a kill between the two renamings leaves it
    assert state.latest(tmp_path) == tmp_path / "state" / "00000000.old"


def test_the_state_of_the_papers_model_is_under_32_megabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    model = TRM(TRMConfig())
    optimisers = optimiser.build_optimisers(model, toys.settings())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for each in optimisers:
        each.step()
    live = TrainState(model, optimisers, EMA(list(model.parameters()), 0.9))
    state.write(tmp_path, {"step": 1}, state.collect(live))
    sizes = [path.stat().st_size for path in tmp_path.glob("state/*/*")]
    weights = sum(parameter.numel() for parameter in model.parameters())
    assert sum(sizes) < 32e6 * weights / 5e6
    assert max(sizes) < 16 * 2**20


def test_quantising_keeps_what_it_says() -> None:
    tensor = torch.randn(5, 300) * torch.tensor([1e-30, 1e-3, 1.0, 1e6, 0.0])[:, None]
    quantised, scale = state.quantise(tensor)
    kept = state.dequantise(quantised, scale)
    error = (kept - tensor).abs().amax(-1)
    assert (error <= 0.501 * scale[:, 0]).all()
    assert quantised.dtype == torch.int8
    assert (kept[-1] == 0).all()


def test_saving_does_not_change_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights are the same however often the clock asked for a save."""
    often, never = (
        toys.trainer(tmp_path / name, steps=25, save_every=every, restart_every=7, **RANDOM)
        for name, every in (("often", 0.0), ("never", 1e9))
    )
    often.run()
    never.run()
    assert_same(often, never)
    saved = toys.trainer(tmp_path / "cut", steps=25, save_every=0.0, restart_every=7, **RANDOM)
    saved.run(stop=lambda: saved.clock.step >= 21)
    resumed = toys.trainer(tmp_path / "cut", steps=25, restart_every=7, **RANDOM)
    assert resumed.resume()
    resumed.run()
    assert_same(often, resumed)

"""The table of puzzle ids: SignSGD as written, sparse as dense, a resume that changes nothing."""

import json
from pathlib import Path

import pytest
import torch

from tiltrm.errors import DataError, SettingsError
from tiltrm.model import load
from tiltrm.model.puzzle_ids import cut_rows
from tiltrm.model.trm import TRM
from tiltrm.tasks.arc import ARC
from tiltrm.train import carry, state
from tiltrm.train.distributed import SINGLE_PROCESS, World
from tiltrm.train.puzzle_table import PuzzleTable
from tiltrm.train.supervision import supervise

from . import arc_toys, toys

CPU = torch.device("cpu")
ROWS = 16


def filled(rows: int = ROWS) -> PuzzleTable:
    table = PuzzleTable(rows, arc_toys.table_settings(), SINGLE_PROCESS, CPU)
    table.weights.copy_(torch.randn(table.weights.shape, generator=toys_generator()))
    return table


def toys_generator() -> torch.Generator:
    return torch.Generator().manual_seed(2)


def questions(ids: list[int]) -> torch.Tensor:
    """Questions with these ids; no two have the same grid."""
    rows = [ARC.question(((1, 2), (3, place)), number) for place, number in enumerate(ids)]
    return torch.stack(rows)


def test_sign_sgd_against_a_plain_reference() -> None:
    """A loop over rows and batch places, with decoupled decay; repeated ids add up first."""
    table = filled()
    before = table.weights.clone()
    ids = [3, 1, 3, 15, 3, 1, 8, 8]
    table.gather(questions(ids))
    assert torch.equal(table.batch_rows.detach(), before[ids])
    slope = torch.randn(table.batch_rows.shape, generator=toys_generator())
    slope[6] = -slope[7]  # they cancel out: no step, only decay
    table.batch_rows.grad = slope.clone()
    table.update(0.5)
    rate, decay = 0.5 * 0.01, 0.1
    for row in range(ROWS):
        expected = before[row].clone()
        places = [place for place, number in enumerate(ids) if number == row]
        if places:
            total = sum(slope[place] for place in places)
            expected = expected * (1 - rate * decay) - rate * torch.sign(total)
        torch.testing.assert_close(table.weights[row], expected, rtol=0, atol=1e-7)


def test_sparse_equals_dense() -> None:
    """A step of the learner's own loss: the table as one parameter gets the same gradient."""
    settings = arc_toys.table_settings(batch=6)
    torch.manual_seed(0)
    model = TRM(settings.model)
    table = PuzzleTable(ROWS, settings, SINGLE_PROCESS, CPU)
    table.weights.copy_(0.1 * torch.randn(table.weights.shape, generator=toys_generator()))
    ids = [1, 2, 2, 9, 1, 2]
    asked = questions(ids)
    labels = torch.cat((asked[:, :900], torch.zeros(6, 4, dtype=torch.uint8)), 1)
    config = settings.model
    start = model.start(torch.empty(1, config.positions, config.width))
    begun = carry.refill(carry.empty(asked, labels, start), asked, labels, start)

    def loss(rows: torch.Tensor) -> torch.Tensor:
        result = supervise(model, begun, 2, lambda each: each, settings, torch.float32, rows)
        return result.loss.mean()

    dense = table.weights.clone().requires_grad_(True)
    loss(dense[torch.tensor(ids)]).backward()
    assert dense.grad is not None
    used = sorted(set(ids))
    unused = [row for row in range(ROWS) if row not in used]
    assert not dense.grad[unused].any()
    assert dense.grad[used].abs().sum() > 0
    rate, decay = settings.table.rate, settings.table.weight_decay
    expected = table.weights.clone()
    expected[used] = expected[used] * (1 - rate * decay) - rate * dense.grad[used].sign()
    table.gather(asked)
    loss(table.batch_rows).backward()
    table.update(1.0)
    close = (table.weights - expected).abs() < 1e-6
    small = dense.grad.abs() < 1e-7  # a rounding error may decide the sign of such a slope
    assert bool((close | small).all())
    assert float(small[used].float().mean()) < 0.05


def test_rows_of_the_batch_are_those_that_embed_reads() -> None:
    """Training on `batch_rows` and solving with `puzzle_table` see the same inputs."""
    settings = arc_toys.table_settings(batch=4)
    torch.manual_seed(0)
    model, table = TRM(settings.model), PuzzleTable(ROWS, settings, SINGLE_PROCESS, CPU)
    table.weights.copy_(torch.randn(table.weights.shape, generator=toys_generator()))
    model.puzzle_table = table.weights
    asked = questions([5, 0, 5, 2])
    table.gather(asked)
    prefix = cut_rows(table.batch_rows, settings.model.prefix, settings.model.width)
    assert torch.equal(model.embed(asked), model.embed_after(prefix, asked))


def test_a_process_holds_its_share_of_the_rows() -> None:
    table = PuzzleTable(ROWS, arc_toys.table_settings(batch=8), World(1, 4), CPU)
    assert len(table.batch_rows) == 2


def test_resume_equals_no_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, averages, moments and table; the table is cut into several files."""
    monkeypatch.setattr(state, "PIECE_BYTES", 2**8)
    monkeypatch.setattr(state, "SMALL", 64)
    settings = arc_toys.table_settings(noise=0.2)

    def rows(run) -> torch.Tensor:
        return run.learner.table.weights.clone()

    whole = arc_toys.trainer(tmp_path / "whole", settings)
    losses = toys.advance(whole, 4)
    whole.save()
    saved = rows(whole)
    losses += toys.advance(whole, 3)
    cut = arc_toys.trainer(tmp_path / "cut", settings)
    again = toys.advance(cut, 4)
    cut.save()
    resumed = arc_toys.trainer(tmp_path / "cut", settings)
    assert resumed.resume()
    assert torch.equal(rows(resumed), saved)
    assert saved.abs().sum() > 0
    again += toys.advance(resumed, 3)
    assert losses == again
    assert torch.equal(rows(whole), rows(resumed))
    assert not torch.equal(rows(whole), saved)
    ours, theirs = toys.numbers(whole.learner), toys.numbers(resumed.learner)
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []
    other = arc_toys.trainer(tmp_path / "cut", arc_toys.table_settings(augmentations=2))
    with pytest.raises(DataError, match=r"of another model or optimiser .*puzzle embedding"):
        other.resume()


def test_the_saved_model_reads_its_table_and_names(tmp_path: Path) -> None:
    settings = arc_toys.table_settings(steps=3, evaluate_steps=1, hold_out=0.4)
    run = arc_toys.trainer(tmp_path, settings)
    run.run()
    model = load(tmp_path / "best")
    assert model.puzzle_table is not None
    assert model.puzzle_names == run.learner.model.puzzle_names
    assert json.loads((tmp_path / "best/puzzles.json").read_text())[1] == "a0"
    torch.testing.assert_close(
        model.puzzle_table.float(), run.learner.table.weights, rtol=2**-8, atol=0
    )
    begun = arc_toys.trainer(tmp_path / "next", settings)
    begun.begin_with(tmp_path / "best")
    assert torch.equal(begun.learner.table.weights, model.puzzle_table.float())
    other = arc_toys.trainer(tmp_path / "other", arc_toys.table_settings(hold_out=0.4, seed=3))
    with pytest.raises(SettingsError, match="puzzle ids of this run"):
        other.begin_with(tmp_path / "best")


def test_a_table_needs_id_cells() -> None:
    with pytest.raises(SettingsError, match="must both be above 0 or both 0, got 2 and 0"):
        arc_toys.settings(table={"augmentations": 2})
    with pytest.raises(SettingsError, match=r"augment 'endless' .* got sudoku4"):
        toys.trainer(
            Path("none"),
            table={"augmentations": 2},
            model=toys.TINY["model"] | {"id_cells": 1, "cells": 15},
        )


def test_windows_and_whole_boards_share_the_table(tmp_path: Path) -> None:
    """A run that begins on windows of 8 x 8 goes on with whole boards, with the same rows."""
    settings = arc_toys.table_settings(steps=4, window={"side": 8, "until": 0.5})
    run = arc_toys.trainer(tmp_path, settings)
    assert run.learner.carry.questions.shape[1] == 68
    toys.advance(run, 2)
    seen = run.learner.table.weights.clone()
    assert seen.abs().sum() > 0
    toys.advance(run, 2)
    assert run.learner.carry.questions.shape[1] == 904
    assert run.learner.model.puzzle_table is run.learner.table.weights
    assert not torch.equal(run.learner.table.weights, seen)

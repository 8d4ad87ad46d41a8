"""Training on windows of a maze: the same weights, other angles, and the whole maze afterwards."""

import pytest
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from tiltrm.data import Puzzles
from tiltrm.errors import SettingsError
from tiltrm.model.trm import TRM
from tiltrm.tasks import Maze
from tiltrm.train.distributed import World
from tiltrm.train.learner import Learner
from tiltrm.train.settings import TrainSettings, Window
from tiltrm.train.windows import windowed

from . import toys

TASK = Maze(6)
SIDE = 3
MODEL = {
    "cells": 36, "vocabulary": 6, "width": 16, "heads": 2, "layers": 1, "prefix": 2,
    "token_mixing": False, "rotary": True, "inner_steps": 1, "cycles": 2,
}  # fmt: skip


def settings(**changes: object) -> TrainSettings:
    window = {"side": SIDE, "until": 0.5}
    values = {"model": MODEL, "task": "maze6", "augment": "moved", "shuffles": 9, "window": window}
    return toys.settings(**values | changes)


def learner() -> Learner:
    mazes = Puzzles(TASK, *TASK.fresh(4, Generator().manual_seed(0)))
    return Learner(settings(), mazes, World(), torch.device("cpu"))


def test_a_window_is_the_model_with_the_rest_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    model = TRM(settings().model)
    torch.nn.init.normal_(model.prefix)
    whole = torch.randint(1, 6, (2, 6, 6))
    seen = torch.zeros(6, 6, dtype=torch.bool)
    seen[:SIDE, :SIDE] = True
    view = windowed(model, SIDE)
    small = view.embed(whole[:, :SIDE, :SIDE].flatten(1))
    with torch.no_grad():
        found = view.decode(view.step(small, view.start(small)).answer)
        attend = F.scaled_dot_product_attention
        mask = torch.cat((torch.ones(2, dtype=torch.bool), seen.flatten()))

        def masked(*parts: Tensor) -> Tensor:
            return attend(*parts, attn_mask=mask.expand(38, 38))

        monkeypatch.setattr(F, "scaled_dot_product_attention", masked)
        large = model.embed(whole.flatten(1))
        truth = model.decode(model.step(large, model.start(large)).answer)[:, seen.flatten()]
    assert torch.allclose(found, truth, atol=1e-5)


def test_the_whole_maze_takes_over_with_the_same_weights() -> None:
    made = learner()
    made.step(0, 0.49)
    assert made.carry.questions.shape == (8, SIDE**2)
    assert made.carry.state.answer.shape == (8, 2 + SIDE**2, 16)
    cheap = made.flops
    assert made.view.embedding is made.model.embedding
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    made.step(1, 0.5)
    assert made.view is made.model
    assert made.carry.questions.shape == (8, 36)
    assert made.flops - cheap > 2 * cheap
    after = made.model.state_dict()
    still = [name for name in before if torch.equal(before[name], after[name])]
    assert still == ["first_answer", "first_latent"]


def test_a_saved_run_goes_on_where_its_progress_says() -> None:
    """The stage is no state: it follows from the progress alone, in either direction."""
    made = learner()
    made.step(0, 0.7)
    assert made.carry.questions.shape == (8, 36)
    made.step(1, 0.2)
    assert made.carry.questions.shape == (8, SIDE**2)


@pytest.mark.parametrize(
    "changes",
    [
        {"augment": "fixed"}, {"window": {"side": 7}}, {"window": {"side": -1}},
        {"window": {"until": 1.5}}, {"model": MODEL | {"rotary": False}},
        {"model": MODEL | {"learned_positions": True}}, {"model": MODEL | {"token_mixing": True}},
    ],
)  # fmt: skip
def test_windows_that_cannot_be_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="window"):
        settings(**changes)


def test_no_window_is_the_default() -> None:
    assert toys.settings().window == Window(0, 0.1)

"""One supervision step: where the gradient flows, what the noise is, what is embedded how."""

import pytest
import torch
from torch import Generator, Tensor

from tiltrm.model.base import State
from tiltrm.model.trm import TRM
from tiltrm.train import carry, optimiser, supervision
from tiltrm.train.distributed import World

from . import toys


def live(model: TRM, rows: int = 5) -> carry.Carry:
    table = toys.puzzles().take(slice(0, rows))
    start = model.start(torch.empty(1, 17, 16))
    new = carry.empty(table.questions, table.labels(), start)
    return carry.refill(new, table.questions, table.labels(), start)


def gradients(model: TRM) -> list[Tensor]:
    found = [parameter.grad for parameter in model.parameters()]
    assert all(gradient is not None for gradient in found)
    model.zero_grad()
    return [gradient for gradient in found if gradient is not None]


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("kind", ["softmax", "stablemax"])
def test_gradient_goes_through_the_last_outer_step_only(model: TRM, depth: int, kind: str) -> None:
    """By hand: the earlier steps detached, then cross-entropy + weight x BCE."""
    settings = toys.settings(loss=kind, label_smoothing=0.1, halt_weight=0.7)
    begun = live(model)
    got = supervision.supervise(model, begun, depth, lambda s: s, settings, torch.float32)
    got.loss.mean().backward()
    found = gradients(model)
    inputs, state = model.embed(begun.questions), begun.state
    for _ in range(depth):
        state = State(state.answer.detach(), state.latent.detach())
        for _ in range(model.inner_steps):
            state = State(state.answer, model.refine(inputs, state))
        state = State(model.answer(state), state.latent)
    logits, halt = model.decode(state.answer), model.halt_logit(state.answer)
    right = (logits.argmax(-1) == begun.labels).all(-1)
    loss = supervision.token_loss(logits, begun.labels, kind, 0.1) + 0.7 * supervision.halt_loss(
        halt, right
    )
    loss.mean().backward()
    torch.testing.assert_close(got.loss, loss)
    torch.testing.assert_close(got.halt_logit, halt.detach())
    for ours, by_hand in zip(found, gradients(model), strict=True):
        assert by_hand.abs().sum() > 0
        torch.testing.assert_close(ours, by_hand)


def test_a_cast_made_without_a_gradient_does_not_serve_the_last_step(model: TRM) -> None:
    """Autocast keeps cast weights; those of the first outer steps know no gradient."""
    optimiser.build_optimisers(model, toys.settings())  # which makes bfloat16 safe on this CPU
    with torch.autocast("cpu", torch.bfloat16):
        got = supervision.supervise(
            model, live(model), 3, lambda s: s, toys.settings(), torch.bfloat16
        )
    got.loss.mean().backward()
    assert all(gradient.abs().sum() > 0 for gradient in gradients(model))


def test_embedding_in_parts_changes_nothing(model: TRM, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = toys.puzzles().questions[:7]
    whole = model.embed(questions)
    monkeypatch.setattr(supervision, "EMBED_NUMBERS", 3 * 17 * 16)
    sizes = []
    monkeypatch.setattr(model, "embed", lambda t: sizes.append(len(t)) or TRM.embed(model, t))
    assert torch.equal(supervision.embed(model, questions, torch.float32), whole)
    assert sizes == [3, 3, 1]
    assert supervision.embed(model, questions, torch.bfloat16).dtype == torch.bfloat16


def test_noise_falls_on_the_latent_alone_with_a_scale_per_puzzle() -> None:
    rows, scale = 2000, 0.5
    disturb = supervision.latent_noise(scale, rows, World(), Generator().manual_seed(0))
    before = State(torch.zeros(rows, 4, 8), torch.ones(rows, 4, 8))
    after = disturb(before)
    assert after.answer is before.answer
    spread = (after.latent - 1).square().mean((1, 2)).sqrt()  # scale x U, chi of 32 around it
    assert abs(float((after.latent - 1).mean())) < 5 * 0.29 / (rows * 32) ** 0.5
    assert float(spread.square().mean()) == pytest.approx(scale**2 / 3, rel=0.1)
    assert spread.min() < 0.01
    assert scale < spread.max() < 1.5 * scale
    assert not torch.equal(disturb(before).latent, after.latent)


def test_no_noise_draws_nothing() -> None:
    generator = Generator().manual_seed(3)
    state = State(torch.zeros(2, 4, 8), torch.ones(2, 4, 8))
    assert supervision.latent_noise(0.0, 2, World(), generator)(state) is state
    assert torch.equal(generator.get_state(), Generator().manual_seed(3).get_state())


def test_noise_of_a_row_does_not_depend_on_the_processes() -> None:
    def noise(world: World) -> Tensor:
        share = world.rows(6)
        state = State(torch.zeros(6, 4, 8)[share], torch.zeros(6, 4, 8)[share])
        disturb = supervision.latent_noise(0.5, 6, world, Generator().manual_seed(0))
        disturb(state)
        return disturb(state).latent

    shares = [noise(World(rank, 3)) for rank in range(3)]
    assert torch.equal(torch.cat(shares), noise(World()))

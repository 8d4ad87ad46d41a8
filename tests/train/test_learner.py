"""One step does what the settings say: rates, clipping, average, depth, noise, halting, seeds."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tiltrm.errors import DeviceError
from tiltrm.train.distributed import World
from tiltrm.train.learner import Learner, choose_dtype
from tiltrm.train.optimiser import EMA

from . import toys

PLAIN: dict[str, Any] = {"depth": {"start": [2, 2], "end": [2, 2]}, "halt_exploration": 0.0}


def learner(**changes: Any) -> Learner:
    settings = toys.settings(**PLAIN | changes)
    return Learner(settings, toys.puzzles(), World(), torch.device("cpu"))


def rates(made: Learner) -> list[float]:
    return [group["lr"] for each in made.optimisers for group in each.param_groups]


def weights(made: Learner) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in made.model.parameters()]


def differ(one: Learner, other: Learner) -> bool:
    return not torch.equal(torch.cat([w.flatten() for w in weights(one)]),
                           torch.cat([w.flatten() for w in weights(other)]))  # fmt: skip


def always_halts(made: Learner, logit: float) -> None:
    """Every row gets this halt logit."""
    with torch.no_grad():
        made.model.halt_head.weight.zero_()
        made.model.halt_head.bias.fill_(logit)


def test_the_rate_follows_step_and_progress() -> None:
    schedule = {"shape": "linear", "hold": 0.5, "warmup_steps": 8}
    made = learner(rate=0.01, head_rate=0.001, schedule=schedule)
    full = rates(made)
    made.step(3, 0.75)
    assert rates(made) == pytest.approx([rate * (4 / 8) * 0.5 for rate in full])


def test_the_average_takes_in_the_step_by_its_number() -> None:
    made = learner(ema=0.9)
    before = [average.clone() for average in made.ema.average]
    made.step(20, 0.5)
    share = 1 - EMA([], 0.9).decay_at(20)
    for old, new, average in zip(before, weights(made), made.ema.average, strict=True):
        torch.testing.assert_close(average, torch.lerp(old, new, share))


@pytest.mark.parametrize("clip", [0.0, 1e-3])
def test_gradients_are_clipped_before_the_optimisers_see_them(
    monkeypatch: pytest.MonkeyPatch, clip: float
) -> None:
    made, seen = learner(clip=clip), []

    def norm() -> None:
        grads = [p.grad for p in made.model.parameters() if p.grad is not None]
        seen.append(float(torch.stack([grad.norm() for grad in grads]).norm()))

    monkeypatch.setattr(made.optimisers[0], "step", norm)
    made.step(0, 0.0)
    (found,) = seen
    assert found == pytest.approx(clip, rel=1e-3) if clip else found > 0.01


def test_depth_follows_the_progress_and_is_paid_for() -> None:
    """A backward pass costs two forward ones, and only the last outer step has one."""
    made = learner(depth={"start": [1, 1], "end": [5, 5]})
    spent = []
    for number, progress in enumerate((0.0, 0.5, 1.0)):
        before = made.flops
        made.step(number, progress)
        spent.append(made.flops - before)
    assert spent == pytest.approx([spent[0] * (depth + 2) / 3 for depth in (1, 3, 5)])


@pytest.mark.parametrize("changes", [{"noise": 0.5}, {"seed": 1}, {"halt_weight": 0.9},
                                     {"label_smoothing": 0.3}, {"loss": "stablemax"},
                                     {"rate": 0.01}, {"momentum": 0.1}, {"newton_schulz": 1},
                                     {"head_rate": 0.1}, {"betas": [0.1, 0.2]}])  # fmt: skip
def test_every_setting_has_a_say(changes: dict[str, Any]) -> None:
    """Both begin alike; after three steps they do not."""
    one, other = learner(), learner(**changes)
    other.load_weights(one.model.state_dict())
    assert not differ(one, other)
    for number in range(3):
        one.step(number, 0.0)
        other.step(number, 0.0)
    assert differ(one, other)


def test_the_first_weights_are_of_the_seed_and_the_scale() -> None:
    assert not differ(learner(seed=3), learner(seed=3))
    assert differ(learner(seed=3), learner(seed=4))
    assert differ(learner(), learner(initial_scale=2.0))


@pytest.mark.parametrize(("exploration", "halted"), [(0.0, 1.0), (1.0, 0.0)])
def test_a_row_that_would_halt_goes_on_where_it_explores(exploration: float, halted: float) -> None:
    made = learner(halt_exploration=exploration, head_rate=0.0)
    always_halts(made, 5.0)
    made.step(0, 0.0)
    assert made.carry.halted.double().mean() == halted


def test_a_row_that_never_would_halt_has_so_many_steps() -> None:
    made = learner(halt_max_steps=3, head_rate=0.0)
    always_halts(made, -5.0)
    for number, halted in enumerate((False, False, True, False, False, True)):
        made.step(number, 0.0)
        assert made.carry.halted.all() == made.carry.halted.any() == halted


def test_bfloat16_is_for_states_and_products_only() -> None:
    """Two steps in both precisions: float32 weights, and losses that differ by rounding alone."""
    exact, rounded = learner(), learner(precision="bfloat16")
    losses = [[float(made.step(n, 0.5)[0]) for n in range(2)] for made in (exact, rounded)]
    assert rounded.carry.state.latent.dtype == torch.bfloat16
    assert exact.carry.state.latent.dtype == torch.float32
    assert {weight.dtype for weight in weights(rounded)} == {torch.float32}
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


@pytest.mark.parametrize(
    ("precision", "device", "dtype"),
    [
        ("auto", "cpu", torch.float32),
        ("auto", "cuda", torch.bfloat16),
        ("float32", "cpu", torch.float32),
        ("bfloat16", "cuda", torch.bfloat16),
    ],
)
def test_the_precision_follows_the_device_unless_it_is_named(
    precision: str, device: str, dtype: torch.dtype
) -> None:
    assert choose_dtype(precision, torch.device(device)) == dtype


def test_float32_is_refused_where_the_kernels_compute_in_bfloat16() -> None:
    with pytest.raises(DeviceError, match="bfloat16 or auto on a GPU"):
        choose_dtype("float32", torch.device("cuda"))


@pytest.mark.parametrize("asked", [False, True])
def test_a_cpu_compiles_the_network_if_asked(monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    compiled: list[dict[str, Any]] = []
    monkeypatch.setattr(nn.Module, "compile", lambda _, **options: compiled.append(options))
    learner(compile=asked)
    assert compiled == [{"dynamic": False}] * asked

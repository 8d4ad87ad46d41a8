"""Stability on linear maps: norms are known, and survival can be integrated numerically."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from tests.diagnose.wells import Linear, Wells
from torch import Tensor
from torch.nn import functional as F

from tiltrm.diagnose.lipschitz import along, directions, local_norm, secants
from tiltrm.diagnose.stability import (
    Stability,
    Tube,
    deviation_bound,
    deviations,
    exit_bound,
    first_exit,
    in_tube,
    inner_path,
)
from tiltrm.explore.keys import derive
from tiltrm.model.base import State
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.model.unfused import MathAttention

RHO, SIGMA, STEPS = 0.7, 0.5, 5
KEY = torch.tensor(7)


def origin(model: Linear) -> tuple[Tensor, State]:
    inputs = model.embed(torch.zeros(model.cells))
    return inputs, model.start(inputs)


def truth(radius: float) -> tuple[float, list[float]]:
    """P(tau > M) and E[e_m^2 1(tau > m)] / r^2 for the scalar contraction, by quadrature."""
    grid = torch.linspace(-radius, radius, 1201).double()
    weight = torch.full_like(grid, 2 * radius / 1200)
    weight[0] = weight[-1] = radius / 1200

    def density(x: Tensor) -> Tensor:
        return torch.exp(-0.5 * (x / SIGMA).square()) / (SIGMA * math.sqrt(2 * math.pi))

    here = density(grid)
    found = [float((weight * here * grid.square()).sum()) / radius**2]
    for _ in range(STEPS - 1):
        here = density(grid[:, None] - RHO * grid) @ (weight * here)
        found.append(float((weight * here * grid.square()).sum()) / radius**2)
    return float((weight * here).sum()), found


def test_survival_and_deviation_of_a_scalar_contraction() -> None:
    model = Linear(torch.tensor([[RHO]]), inner_steps=STEPS)
    count = 20000
    study = Stability(model, (SIGMA,), alphas=(1.0, 1.5), rollouts=count)
    study.add(study.probe(*origin(model), KEY))
    for tube in study.figures()["tubes"]:
        survival, deviation = truth(tube["alpha"])
        error = math.sqrt(survival * (1 - survival) / count)
        assert abs(tube["survival"] - survival) < 4 * error
        assert sum(tube["first_exit"]) == count
        for got, expected, bound in zip(tube["deviation"], deviation, tube["bound"], strict=True):
            assert abs(got - expected) < 4 / math.sqrt(count)  # each term lies in [0, 1]
            assert expected <= bound
        assert 1 - survival <= tube["exit_bound"]
    assert study.survival(1.0)[SIGMA] < study.survival(1.5)[SIGMA]


def test_free_deviations_reach_the_geometric_sum() -> None:
    """Without a tube, E|e_m|^2 is the bound itself: sigma^2 L D sum rho^(2j)."""
    model = Linear(RHO * torch.eye(8), inner_steps=STEPS)
    inputs, state = origin(model)
    path = inner_path(model, inputs, state)
    assert torch.allclose(path[3], torch.full((8, 1), RHO**3))
    squares = deviations(model, inputs, state, path, (SIGMA,), 4000, KEY)[0].double().square()
    expected = deviation_bound(SIGMA, 8, RHO, STEPS)
    assert expected is not None
    error = squares.std(0) / math.sqrt(4000)
    assert ((squares.mean(0) - torch.tensor(expected)).abs() < 4 * error).all()
    assert expected[0] == pytest.approx(8 * SIGMA**2)


def test_first_exit_and_in_tube_by_loops() -> None:
    norms = torch.rand(50, 4, generator=torch.Generator().manual_seed(0)) * 2
    for row, got, inside in zip(norms, first_exit(norms, 1.2), in_tube(norms, 1.2), strict=True):
        exits = [m for m in range(1, 5) if float(row[m - 1]) > 1.2]
        assert int(got) == (exits[0] if exits else 5)
        for m in range(1, 5):
            stays = all(float(row[j]) <= 1.2 for j in range(m))
            assert float(inside[m - 1]) == pytest.approx(float(row[m - 1]) ** 2 / 1.44 * stays)


def test_on_the_edge_is_in_the_tube() -> None:
    """Eq. 13 has |e_m| > r."""
    assert first_exit(torch.tensor([[1.0, 1.0], [1.0, 1.1]]), 1.0).tolist() == [3, 2]


def test_one_direction_that_stretches_takes_the_bound_away() -> None:
    for local, bound in ((0.9, True), (1.0, False), (3.0, False)):
        tube = Tube(0.1, 1.0, 2)
        tube.add(torch.full((4, 2), 0.1), 10, rho=0.5, local=local)
        found = tube.figures()
        assert found["secant_bound"] is not None
        assert (found["bound"] is not None) is bound
        assert (found["exit_bound"] is not None) is bound
        assert ("fails" in found["hypothesis"]) is not bound


def test_bounds_say_nothing_where_the_map_stretches() -> None:
    assert deviation_bound(0.3, 10, 1.0, 3) is None
    assert exit_bound(0.3, 10, math.nan, 3, 1.0) is None
    assert exit_bound(0.1, 10, 0.5, 3, 2.0) == pytest.approx(3 * 0.1 / (4 * 0.75))
    model = Linear(1.1 * torch.eye(3), inner_steps=STEPS)
    study = Stability(model, (0.1,), alphas=(1.0,), rollouts=4)
    study.add(study.probe(*origin(model), KEY))
    (tube,) = study.figures()["tubes"]
    assert tube["bound"] is tube["exit_bound"] is None
    assert "rho >= 1 at 1 of 1 states" in tube["hypothesis"]


def test_power_iteration_finds_the_direction_that_secants_miss() -> None:
    """One direction in 60 stretches by 3, the others shrink to 0.2: random secants see 0.4-1."""
    values = torch.full((60,), 0.2)
    values[7] = 3.0
    turn = torch.linalg.qr(torch.randn(60, 60, generator=torch.Generator().manual_seed(1)))[0]
    other = torch.linalg.qr(torch.randn(60, 60, generator=torch.Generator().manual_seed(2)))[0]
    model = Linear(turn @ torch.diag(values) @ other)  # not symmetric: J'J matters
    inputs, state = origin(model)

    def update(points: Tensor) -> Tensor:
        return model.refine(inputs, State(points, points))

    points = inner_path(model, inputs, state)
    assert local_norm(update, points, KEY).tolist() == pytest.approx([3.0] * 6, rel=1e-3)
    found = secants(update, points, 2.0, KEY)
    assert found.shape == (6,)
    assert (found < 2.0).all()
    assert (found >= 0.2).all()
    study = Stability(model, (0.1,), alphas=(1.0,), rollouts=2)
    study.add(study.probe(inputs, state, KEY))
    rho = study.figures()["rho"]
    assert rho["power iteration"]["largest"] == pytest.approx(3.0, rel=1e-3)
    assert rho["power iteration"]["below_one"] == 0
    (tube,) = study.figures()["tubes"]
    assert tube["hypothesis"].endswith("the hypothesis of Prop. 5.1 fails")
    assert tube["bound"] is None  # whatever the secants say


def test_rho_is_the_largest_of_all_secants() -> None:
    """The paper's estimate: the maximum over probes at every point z_0, ..., z_M."""
    values = torch.linspace(0.1, 2.0, 12)
    model = Linear(torch.diag(values), inner_steps=3)
    inputs, state = origin(model)
    points = inner_path(model, inputs, state)

    def update(points: Tensor) -> Tensor:
        return model.refine(inputs, State(points, points))

    found = secants(update, points, 0.7, KEY)
    for number in range(4):
        keys = derive(KEY, number, torch.arange(16))
        stretched = (values[:, None] * directions(keys, points)).square().sum((-2, -1)).sqrt()
        assert float(found[number]) == pytest.approx(float(stretched.max()), rel=1e-4)


def test_secants_are_as_long_as_the_tube_is_wide() -> None:
    """r = alpha sqrt(L D). A bent map has another slope on longer secants; a linear one has not."""
    model = Wells()
    inputs = model.embed(torch.tensor([1, 1, 1, 2, 2, 1]))
    state = model.start(inputs)

    def update(points: Tensor) -> Tensor:
        return model.refine(inputs, State(points, points))

    path = inner_path(model, inputs, state)
    study = Stability(model, (0.1,), alphas=(0.5, 1.5), rollouts=2)
    wanted = [
        float(secants(update, path, alpha * math.sqrt(6), derive(KEY, 1, number)).max())
        for number, alpha in enumerate((0.5, 1.5))
    ]
    probed = study.probe(inputs, state, KEY)
    assert probed.rho == pytest.approx(wanted)
    assert wanted[0] > 1.2 * wanted[1]
    steepest = local_norm(update, path[:-1], derive(KEY, 2))  # where the map is applied
    assert probed.local == pytest.approx(float(steepest.max()))
    assert float(steepest.max()) > 2 * float(local_norm(update, path[-1:], KEY))


def test_deviations_beyond_the_secants_are_told() -> None:
    for rho, beyond in ((0.7, False), (0.3, True)):  # the map stretches by 0.5
        tube = Tube(0.1, 3.0, 4)
        norms = torch.tensor(
            [0.1**2 * 90000 * sum(0.25**j for j in range(m + 1)) for m in range(4)]
        )
        tube.add(norms.sqrt()[None], 90000, rho)
        assert tube.figures()["exceeds_secant_bound"] is beyond


def test_gain_along_the_path() -> None:
    model = Linear(RHO * torch.eye(4), inner_steps=STEPS)
    path = inner_path(model, *origin(model))
    assert along(path).tolist() == pytest.approx([RHO] * (STEPS - 1), rel=1e-4)
    assert along(path[:1].expand(3, -1, -1)).isnan().all()
    trembling = 100.0 + torch.tensor([0.0, 1e-5, 0.0])[:, None, None].expand(3, 4, 1)
    assert trembling.diff(dim=0).abs().min() > 0
    assert along(trembling).isnan().all()  # rounding has no direction


@pytest.mark.parametrize("token_mixing", [True, False])
def test_local_norm_is_that_of_the_whole_jacobian(token_mixing: bool) -> None:
    torch.manual_seed(0)
    config = TRMConfig(
        cells=3, vocabulary=4, width=8, layers=1, heads=2, prefix=0, inner_steps=2,
        token_mixing=token_mixing, rotary=not token_mixing,
    )  # fmt: skip
    model = TRM(config).requires_grad_(False)
    inputs = model.embed(torch.tensor([1, 2, 3]))
    state = model.start(inputs)

    def update(points: Tensor) -> Tensor:
        return model.refine(inputs, State(state.answer.expand_as(points), points))

    points = inner_path(model, inputs, state)[:2]
    found = local_norm(update, points, KEY, iterations=60)
    for point, got in zip(points, found, strict=True):
        whole = torch.autograd.functional.jacobian(lambda z: update(z[None])[0], point)
        exact = torch.linalg.matrix_norm(whole.view(24, 24), 2)
        assert float(got) == pytest.approx(float(exact), rel=1e-3)


class Borrowed:
    """Not one of ours, though its attention is torch's own."""

    def __init__(self, model: TRM) -> None:
        self.model, self.inner_steps = model, model.inner_steps

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        return self.model.refine(inputs, state)


@pytest.mark.parametrize("ours", [True, False])
def test_attention_is_differentiated_twice(ours: bool) -> None:
    torch.manual_seed(0)
    config = TRMConfig(
        cells=3, vocabulary=4, width=8, layers=1, heads=2, prefix=0, inner_steps=2,
        token_mixing=False, rotary=True,
    )  # fmt: skip
    model = TRM(config).requires_grad_(False)
    inputs = model.embed(torch.tensor([1, 2, 3]))
    study = Stability(model if ours else Borrowed(model), [0.1], iterations=3)  # type: ignore[arg-type]
    assert study.probe(inputs, model.start(inputs), KEY).local > 0


def test_attention_is_open_in_this_thread_alone() -> None:
    """torch's own switch is for all threads, and others may be solving."""
    query = torch.randn(1, 2, 5, 4, requires_grad=True)

    def attend(**given: Any) -> Tensor:
        return F.scaled_dot_product_attention(query, query, query, **given)

    def made_by() -> str:
        return type(attend().grad_fn).__name__

    with ThreadPoolExecutor(1) as other:
        fast = made_by()
        with MathAttention():
            assert made_by() != fast == other.submit(made_by).result()
            (slope,) = torch.autograd.grad(attend(is_causal=True).sum(), query, create_graph=True)
            assert slope.square().sum().requires_grad
            opened = attend(is_causal=True, scale=0.3)
        assert made_by() == fast
    torch.testing.assert_close(opened, attend(is_causal=True, scale=0.3))

"""NorMuon: orthogonal updates, equal units, the size of Muon's updates, units that stay alive."""

import pytest
import torch
from torch import nn

from tiltrm.cpu_precision import avoid_illegal_instructions
from tiltrm.train.normuon import NorMuon, normalised_units, orthogonalised

avoid_illegal_instructions()  # products in bfloat16


def drawn(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("rows", "columns"), [(24, 64), (64, 24)])
def test_five_steps_bring_all_singular_values_near_one(rows: int, columns: int) -> None:
    found = torch.linalg.svdvals(orthogonalised(drawn(rows, columns), 5).float())
    assert float(found.min()) > 0.6
    assert float(found.max()) < 1.3


@pytest.mark.parametrize(("rows", "columns"), [(32, 8), (8, 32)])
def test_units_are_equal_and_the_norm_stays(rows: int, columns: int) -> None:
    tall = rows > columns
    scale = torch.logspace(-3, 0, 32)
    update = drawn(rows, columns) * (scale[:, None] if tall else scale)
    square = torch.ones((rows, 1) if tall else (1, columns))
    found = normalised_units(update, square, decay=0.0)
    assert float(found.norm()) == pytest.approx(float(update.norm()), rel=1e-5)
    units = found.norm(dim=1 if tall else 0)
    assert float(units.max() / units.min()) < 1.05


@pytest.mark.parametrize("tall", [True, False])
def test_units_with_small_gradients_are_not_lost_to_weight_decay(*, tall: bool) -> None:
    """Half of the units see gradients a thousand times smaller, as idle hidden units do.

    Muon with three Newton-Schulz steps lets their weights decay to less than a fifth of the
    others' norm; here they keep more than half of it.
    """
    scale = torch.where(torch.arange(64) < 32, 1.0, 1e-3)[:, None]

    def turned(units: torch.Tensor) -> torch.Tensor:
        return units if tall else units.T

    def norms(build: type[torch.optim.Optimizer]) -> float:
        weight = nn.Parameter(turned(0.1 * drawn(64, 16)))
        groups = [{"params": [weight], "lr": 0.02, "weight_decay": 0.5}]
        if build is NorMuon:
            optimiser: torch.optim.Optimizer = NorMuon(
                groups, momentum=0.6, ns_steps=3, unit_decay=0.95
            )
        else:
            optimiser = torch.optim.Muon(
                groups, momentum=0.6, ns_steps=3, adjust_lr_fn="original"
            )  # fmt: skip
        for step in range(300):
            weight.grad = turned(drawn(64, 16, seed=step) * scale)
            optimiser.step()
        units = turned(weight.detach()).norm(dim=1)
        return float(units[32:].mean() / units[:32].mean())

    assert norms(NorMuon) > 0.5
    assert norms(torch.optim.Muon) < 0.2

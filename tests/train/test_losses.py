"""The losses against their definitions, in float64 and one number at a time."""

import math

import pytest
import torch
from torch import Tensor

from tiltrm.train.supervision import halt_loss, log_stablemax, token_loss


def s(x: float) -> float:
    return x + 1 if x >= 0 else 1 / (1 - x)


def slope(x: float) -> float:
    return 1.0 if x >= 0 else 1 / (1 - x) ** 2


LOGITS = [[-3.0, 0.0, 1.0, 2.5], [1.0, 1.0, 1.0, 1.0], [-1.0, -0.5, -7.0, 40.0]]


@pytest.mark.parametrize("row", LOGITS)
def test_stablemax_is_its_definition(row: list[float]) -> None:
    total = sum(map(s, row))
    expected = torch.tensor([math.log(s(x) / total) for x in row], dtype=torch.float64)
    torch.testing.assert_close(log_stablemax(torch.tensor(row, dtype=torch.float64)), expected)
    torch.testing.assert_close(log_stablemax(torch.tensor(row)), expected.float())


@pytest.mark.parametrize("row", LOGITS)
def test_stablemax_gradient_is_finite_at_one(row: list[float]) -> None:
    """Also where the branch not taken divides by zero; and it is the slope of the definition."""
    label = 2
    logits = torch.tensor([[row]], requires_grad=True)
    token_loss(logits, torch.tensor([[label]]), "stablemax", 0.0).sum().backward()
    total = sum(map(s, row))
    expected = [slope(x) / total - (i == label) * slope(x) / s(x) for i, x in enumerate(row)]
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad[0, 0], torch.tensor(expected))


def brute(logits: Tensor, labels: Tensor, kind: str, smoothing: float) -> list[float]:
    out = []
    for puzzle, label in zip(logits.tolist(), labels.tolist(), strict=True):
        terms = []
        for row, wanted in zip(puzzle, label, strict=True):
            mass = [s(x) if kind == "stablemax" else math.exp(x) for x in row]
            target = [
                smoothing / len(row) + (1 - smoothing) * (i == wanted) for i in range(len(row))
            ]
            if wanted != 0:
                terms.append(
                    -sum(t * math.log(m / sum(mass)) for t, m in zip(target, mass, strict=True))
                )
        out.append(sum(terms) / max(1, len(terms)))
    return out


@pytest.mark.parametrize("kind", ["softmax", "stablemax"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2, 1.0])
def test_token_loss_by_brute_force(kind: str, smoothing: float) -> None:
    """Smoothing spreads over all ids; cells labelled as pad do not count, a row of them is 0."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(4, 5, 6, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 6, (4, 5), generator=generator, dtype=torch.uint8)
    labels[0, :3], labels[3] = 0, 0
    expected = torch.tensor(brute(logits, labels, kind, smoothing), dtype=torch.float64)
    torch.testing.assert_close(token_loss(logits, labels, kind, smoothing), expected)
    assert expected[3] == 0


def test_softmax_is_that_of_torch() -> None:
    logits, labels = torch.randn(3, 4, 6), torch.randint(1, 6, (3, 4))
    wanted = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), labels, label_smoothing=0.2, reduction="none"
    )
    torch.testing.assert_close(token_loss(logits, labels, "softmax", 0.2), wanted.mean(-1))


def test_pad_cells_get_no_gradient() -> None:
    logits = torch.randn(1, 3, 6, requires_grad=True)
    token_loss(logits, torch.tensor([[2, 0, 3]]), "softmax", 0.1).sum().backward()
    assert logits.grad is not None
    assert (logits.grad[0].abs().sum(-1) > 0).tolist() == [True, False, True]


def test_halt_loss_is_binary_cross_entropy() -> None:
    logit = torch.tensor([-5.0, 0.0, 2.0, 2.0], dtype=torch.float64)
    right = torch.tensor([False, True, True, False])
    p = 1 / (1 + torch.exp(-logit))
    expected = -torch.where(right, p.log(), (1 - p).log())
    torch.testing.assert_close(halt_loss(logit, right), expected)
    assert halt_loss(torch.tensor([200.0]), torch.tensor([False])).isfinite().all()

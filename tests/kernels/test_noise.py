"""Keyed noise: the published generator, normal, independent of batch, the same on both paths."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.kernels import keyed_normal_, plain


def test_known_answers_of_philox() -> None:
    """The known answer published with Philox 4x32-10 for a zero key and counter."""
    zero = plain.philox(torch.zeros(1, dtype=torch.int64), 0, 1)[0, 0]
    assert [f"{int(w):08x}" for w in zero] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


def test_moments_and_independence() -> None:
    rows, n = 64, 20_000
    xi = plain.normals(torch.arange(rows), 3, n).double()
    error = (rows * n) ** -0.5
    assert abs(xi.mean()) < 5 * error
    assert abs(xi.square().mean() - 1) < 5 * 2**0.5 * error
    assert abs(xi.pow(4).mean() - 3) < 5 * 96**0.5 * error
    between = torch.corrcoef(xi) - torch.eye(rows)
    assert between.abs().max() < 6 * n**-0.5
    assert abs((xi[:, 1:] * xi[:, :-1]).mean()) < 5 * error
    other = plain.normals(torch.arange(rows), 4, n).double()
    assert abs((xi * other).mean()) < 5 * error


def test_a_row_depends_on_its_key_alone() -> None:
    keys = torch.tensor([3, 2**33 + 3, -1])
    together = keyed_normal_(torch.zeros(3, 5, 8), keys, 2, 1.0)
    for row in range(3):
        alone = keyed_normal_(torch.zeros(1, 5, 8), keys[row : row + 1], 2, 1.0)
        assert torch.equal(alone[0], together[row])
    assert not torch.equal(together[0], together[1])


def test_kernel_equals_plain(
    device: str, dtype: torch.dtype, draw: Callable[..., Tensor], close: Callable[..., bool]
) -> None:
    x = draw(3, 81, 64)
    keys = torch.tensor([3, 2**33 + 3, -1], device=device)
    truth = x.double() + 0.5 * plain.normals(keys, 9, 81 * 64).view(3, 81, 64)
    assert keyed_normal_(x, keys, 9, 0.5) is x
    assert close(x, truth)


def test_a_strided_tensor_is_refused() -> None:
    with pytest.raises(SettingsError, match="contiguous"):
        keyed_normal_(torch.zeros(4, 6).T, torch.arange(6), 0, 1.0)


def test_a_site_past_31_bits_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"\[0, 2\^31\)"):
        keyed_normal_(torch.zeros(1, 8), torch.arange(1), 2**31, 1.0)


@pytest.mark.parametrize("elements", [2 * 2048, 81 * 64, 4099])
def test_the_explorers_noise(
    device: str, dtype: torch.dtype, draw: Callable[..., Tensor], close: Callable[..., bool],
    elements: int,
) -> None:  # fmt: skip
    """One pass gives what `explore.keys` gives in plain torch, for odd lengths too."""
    from tiltrm.explore.keys import normals, pair_counters
    from tiltrm.kernels.noise import perturbed

    keys = torch.tensor([3, 2**33 + 3, -1], device=device)
    scales = torch.tensor([0.5, 0.0, 1.0], device=device)[:, None]
    x = draw(3, elements)
    truth = x.double() + scales * normals(keys, elements).double()
    found = perturbed(x, keys, scales, pair_counters(elements, x.device))
    assert close(found, truth)
    assert torch.equal(found[1], x[1])

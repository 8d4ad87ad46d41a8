"""Floating-point operations of one evaluation, counted from the sizes."""

from tiltrm.model.layers import multiple_of
from tiltrm.model.trm import TRMConfig


def evaluation_flops(config: TRMConfig, layers: int | None = None) -> int:
    """Multiply-adds of the matrix products in one call of the network, times two."""
    positions, width = config.positions, config.width
    hidden = multiple_of(config.expansion * width * 2 / 3, 256)
    total = 2 * positions * 3 * width * hidden
    if config.token_mixing:
        total += 2 * width * 3 * positions * multiple_of(config.expansion * positions * 2 / 3, 256)
    else:
        total += 2 * positions * 4 * width * width + 4 * positions * positions * width
    return total * (config.layers if layers is None else layers)

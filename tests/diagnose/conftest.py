"""Draws that do not depend on which tests ran before."""

import pytest


@pytest.fixture(autouse=True)
def same_draws(request: pytest.FixtureRequest) -> None:
    """A module's generator DRAW begins anew with every test."""
    draw = getattr(request.module, "DRAW", None)
    if draw is not None:
        draw.manual_seed(0)

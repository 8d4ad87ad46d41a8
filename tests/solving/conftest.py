"""The tiny TRM of the explorer's tests."""

from tests.explore.conftest import model, tokens

__all__ = ["model", "tokens"]

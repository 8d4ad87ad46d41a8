"""Twelve small Sudokus, and the model that knows them."""

import pytest

from tiltrm.data import Puzzles

from .toys import Wells, sudokus, wells


@pytest.fixture(scope="session")
def puzzles() -> Puzzles:
    return sudokus(12)


@pytest.fixture(scope="session")
def model(puzzles: Puzzles) -> Wells:
    return wells(puzzles)

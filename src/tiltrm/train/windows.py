"""A model in training seen through a window: its weights on a part of its grid."""

import copy
import math
from dataclasses import replace

import torch

from tiltrm.model.trm import TRM


def windowed(model: TRM, side: int) -> TRM:
    """The same weights for a square window of `side` x `side` cells of the model's grid.

    The cells of the window have the rotary angles of the grid's upper left corner.
    Proved by tests/train/test_window.py::test_a_window_is_the_model_with_the_rest_unseen.
    """
    config = model.config
    cells = torch.arange(config.cells).view(math.isqrt(config.cells), -1)[:side, :side].flatten()
    seen = torch.cat((torch.arange(config.prefix), config.prefix + cells))
    view = copy.copy(model)
    view.config = replace(config, cells=side * side)
    view._buffers = dict(model._buffers)  # its own, so that the model keeps its angles
    view.cos, view.sin = (
        None if table is None else table[seen.to(table.device)] for table in (model.cos, model.sin)
    )
    return view

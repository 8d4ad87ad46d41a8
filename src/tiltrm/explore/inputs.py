"""Checks of the arguments that every exploration takes: tokens, keys, labels."""

import torch
from torch import Tensor, nn

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.model.base import RecursiveModel, model_info
from tiltrm.model.puzzle_rows import require_rows

TOKENS = 256  # answers are uint8


def device_of(model: RecursiveModel, tokens: Tensor) -> torch.device:
    """The device of the model's weights, or of the tokens if it has none."""
    weight = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    return tokens.device if weight is None else weight.device


def checked_inputs(
    model: RecursiveModel, tokens: Tensor, keys: Tensor | None, labels: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The arguments of an exploration; PuzzleError or SettingsError where they do not fit."""
    if model.vocabulary > TOKENS:
        raise SettingsError(
            f"a model may tell at most {TOKENS} token ids apart, since answers are kept as uint8, "
            f"got {model.vocabulary}"
        )
    if tokens.dim() != 2 or tokens.shape[1] != model.cells or len(tokens) == 0:
        raise PuzzleError(
            f"tokens must be (puzzle, {model.cells}) with at least one puzzle, "
            f"got {tuple(tokens.shape)}"
        )
    if tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch.bool:
        raise PuzzleError(f"tokens must be whole numbers, got {tokens.dtype}")
    held = tokens[:, : model.cells - model_info(model).id_cells]
    low, high = int(held.min()), int(held.max())
    if low < 0 or high >= model.vocabulary:
        raise PuzzleError(
            f"tokens must lie in 0..{model.vocabulary - 1} for this model, got {low}..{high}"
        )
    require_rows(model, tokens)
    if keys is not None and (keys.shape != tokens.shape[:1] or keys.dtype != torch.int64):
        raise PuzzleError(
            f"keys must be {len(tokens)} int64, one a puzzle, got {tuple(keys.shape)} {keys.dtype}"
        )
    if labels is not None and labels.shape != tokens.shape:
        raise PuzzleError(
            f"labels must have the shape of tokens {tuple(tokens.shape)}, got {tuple(labels.shape)}"
        )
    return tokens, keys, labels

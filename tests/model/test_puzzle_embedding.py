"""Models with several rows in their puzzle embedding: chosen by id, or told from the tokens."""

from pathlib import Path

import pytest
import torch

from tiltrm import load
from tiltrm.errors import SettingsError
from tiltrm.evaluate.target import fingerprint
from tiltrm.model import native
from tiltrm.model.trm import TRM, TRMConfig

SIZES = {"cells": 4, "vocabulary": 9, "width": 16, "heads": 2, "prefix": 2}
TOKENS = torch.tensor([[1, 2, 1, 1], [1, 1, 4, 3], [8, 1, 1, 2], [7, 7, 1, 2]])


def made(**sizes: object) -> TRM:
    """A model whose rows of the puzzle embedding are 1, 2, 3, ... throughout."""
    torch.manual_seed(0)
    model = TRM(TRMConfig(**SIZES, **sizes))  # type: ignore[arg-type]
    with torch.no_grad():
        rows = torch.arange(1.0, model.config.puzzles + 1)
        model.prefix.copy_(rows[:, None, None].expand_as(model.prefix))
    return model.eval().requires_grad_(False)


def rows_of(model: TRM, puzzle_ids: torch.Tensor | None = None) -> list[int]:
    """The row of each puzzle, as its prefix shows it."""
    prefix = model.embed(TOKENS, puzzle_ids)[:, :2] / 16**0.5
    assert bool((prefix == prefix[:, :1, :1]).all())
    return [int(value) - 1 for value in prefix[:, 0, 0]]


def test_the_largest_token_says_which_puzzle_it_is() -> None:
    model = made(puzzles=4, puzzle_starts=(3, 5, 8))
    assert rows_of(model) == [0, 1, 3, 2]
    assert model.embed(TOKENS.view(2, 2, 4)).shape == (2, 2, 6, 16)


def test_ids_are_taken_as_given_or_as_the_model_has_them() -> None:
    model = made(puzzles=4)
    assert rows_of(model) == [0, 0, 0, 0]
    model.puzzle_id = 2
    assert rows_of(model) == [2, 2, 2, 2]
    assert rows_of(model, torch.tensor([3, 1, 0, 2])) == [3, 1, 0, 2]


def test_every_row_learns_from_its_own_puzzles() -> None:
    model = made(puzzles=4, puzzle_starts=(3, 5, 8)).requires_grad_(True)
    model.embed(TOKENS[:2]).sum().backward()
    assert model.prefix.grad is not None
    assert (model.prefix.grad.abs().sum((1, 2)) > 0).tolist() == [True, True, False, False]


def test_a_folder_holds_the_whole_table(tmp_path: Path) -> None:
    model = made(puzzles=4, puzzle_starts=(3, 5, 8))
    again = load(native.save(model, tmp_path / "m", dtype=torch.float32))
    assert again.config == model.config
    assert torch.equal(again.embed(TOKENS), model.embed(TOKENS))


def test_one_puzzle_is_stored_and_named_as_before(tmp_path: Path) -> None:
    model = TRM(TRMConfig(**SIZES))  # type: ignore[arg-type]
    assert not {"puzzles", "puzzle_starts"} & set(model.config.as_mapping())
    text = (native.save(model, tmp_path / "m") / "config.json").read_text()
    assert "puzzle" not in text
    assert fingerprint(load("sudoku-extreme")) == "dea6af13b5e48d9d"  # of the stored evidence


@pytest.mark.parametrize("starts", [(3,), (3, 3, 8), (8, 5, 3), (3, 5, 8, 9)])
def test_starts_must_fit_the_table(starts: tuple[int, ...]) -> None:
    with pytest.raises(SettingsError, match="puzzle_starts must be 3 rising token ids"):
        TRMConfig(**SIZES, puzzles=4, puzzle_starts=starts)  # type: ignore[arg-type]


@pytest.mark.parametrize("starts", [(), (3, 5, 8)])
def test_the_exported_graph_takes_the_same_row(tmp_path: Path, starts: tuple[int, ...]) -> None:
    pytest.importorskip("onnxruntime")
    from tiltrm.export.graph import SharedWeights
    from tiltrm.export.networks import ModelGraphs

    model = made(puzzles=4, puzzle_starts=starts)
    model.puzzle_id = 3
    graph = ModelGraphs(model).build("embed")
    weights = SharedWeights(tmp_path / "weights.bin")
    weights.move_out(graph)
    weights.save()
    (tmp_path / "embed.onnx").write_bytes(graph.SerializeToString())
    import onnxruntime

    session = onnxruntime.InferenceSession(str(tmp_path / "embed.onnx"))
    found = session.run(None, {"tokens": TOKENS.int().numpy()})[0]
    assert torch.allclose(torch.from_numpy(found), model.embed(TOKENS), atol=1e-6)

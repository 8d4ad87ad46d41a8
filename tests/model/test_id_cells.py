"""Models whose puzzles hold their ids in cells of their own, with small and with mapped tables."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy_model import NumpyModel
from peer_files import nano_file, peer_state, trm_settings, write
from test_importers import ATTENTION, MLP, TWO, make

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.explore import Exploration, explore
from tiltrm.export.networks import exportable
from tiltrm.model import describe, load, puzzle_rows, save
from tiltrm.model.base import model_info
from tiltrm.model.puzzle_ids import cut_rows, ids_in_cells
from tiltrm.model.puzzle_rows import chosen_puzzle, require_rows, with_puzzle
from tiltrm.model.trm import TRMConfig

ROWS = 300  # more than one byte
NUMBERS = 40  # fewer than the prefix has places, as in ARC models
FIXTURE = Path(__file__).resolve().parents[3] / "shared/fixtures/trm-arc/checkpoint.pt"
IDS = torch.tensor([7, 299, 0, 256, 7])


def cells_of(ids: torch.Tensor) -> torch.Tensor:
    """(puzzle,) -> (puzzle, 4) uint8, written out with Python's own bytes."""
    rows = [list(int(number).to_bytes(4, "big")) for number in ids]
    return torch.tensor(rows, dtype=torch.uint8)


def arc_like(config: TRMConfig) -> TRMConfig:
    return replace(config, vocabulary=12, prefix=3)


@pytest.fixture(params=["parameter", "file"])
def table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    if request.param == "file":
        monkeypatch.setattr(puzzle_rows, "HELD", 0)
    return torch.randn(ROWS, NUMBERS, generator=torch.Generator().manual_seed(3))


def questions(config: TRMConfig, ids: torch.Tensor = IDS) -> torch.Tensor:
    generator = torch.Generator().manual_seed(4)
    cells = torch.randint(config.vocabulary, (len(ids), config.cells), generator=generator)
    return torch.cat((cells.to(torch.uint8), cells_of(ids)), 1)


def checkpoint(folder: Path, table: torch.Tensor, config: TRMConfig) -> tuple[Path, dict]:
    state = peer_state(make(config)) | {"puzzle_emb.weights": table}
    return write(folder / "step_1", state), trm_settings(config, puzzle_emb_ndim=NUMBERS)


@pytest.mark.parametrize("base", [MLP, ATTENTION, TWO])
def test_every_puzzle_gets_the_row_that_its_cells_name(tmp_path, table, base):
    """TinyRecursiveModels and HRM; from the checkpoint and from a native folder."""
    config = arc_like(base)
    path, settings = checkpoint(tmp_path, table, config)
    tokens = questions(config)
    imported = load(path, config=settings)
    folder = save(imported, tmp_path / "model", dtype=None)
    plain = make(config)
    for model in (imported, load(folder)):
        assert model.cells == config.cells + 4
        assert model.config.positions == config.positions
        assert model_info(model).id_cells == 4
        inputs = model.embed(tokens)
        prefix = cut_rows(table[IDS], config.prefix, config.width)
        assert torch.equal(inputs, plain.embed_after(prefix, tokens[:, : config.cells]))
        assert torch.equal(model.embed(tokens[:, : config.cells], IDS), inputs)
        assert model.embed(tokens.view(5, 1, -1)).shape == (5, 1, config.positions, config.width)


def test_nano_trm_too(tmp_path, table):
    config = arc_like(MLP)
    payload = nano_file(make(config))
    payload["state_dict"]["puzzle_emb.weights"] = table
    payload["hyper_parameters"]["puzzle_emb_dim"] = NUMBERS
    model = load(write(tmp_path / "last.ckpt", payload))
    prefix = model.prefixes(questions(config))
    assert torch.equal(prefix, cut_rows(table[IDS], config.prefix, config.width))


def test_an_answer_holds_pads_in_its_id_cells(tmp_path, table):
    config = arc_like(MLP)
    path, settings = checkpoint(tmp_path, table, config)
    model, plain = load(path, config=settings), make(config)
    tokens = questions(config)
    inputs = model.embed(tokens)
    state = model.step(inputs, model.start(inputs))
    logits = model.decode(state.answer)
    assert logits.shape == (5, config.cells + 4, 12)
    assert torch.equal(logits[:, :-4], plain.decode(state.answer))
    shares = torch.softmax(logits[:, -4:], -1)
    assert torch.equal(shares[..., 0], torch.ones(5, 4))
    result = explore(model, tokens, Exploration(particles=3, outer_steps=2), seed=0)
    assert bool((result.answers[:, -4:] == 0).all())
    assert bool(torch.isfinite(result.terminal_entropy).all())


def test_ids_beyond_the_table_and_a_chosen_row_are_refused(tmp_path, table):
    config = arc_like(MLP)
    path, settings = checkpoint(tmp_path, table, config)
    model = load(path, config=settings)
    wrong = questions(config, torch.tensor([3, 300]))
    with pytest.raises(PuzzleError, match=r"the id of puzzle 2 must lie in 0\.\.299, .* got 300"):
        explore(model, wrong, Exploration(particles=1, outer_steps=1), seed=0)
    require_rows(model, questions(config))
    assert torch.equal(model.prefixes(wrong)[1], model.prefixes(wrong * 0)[1])  # no crash: row 0
    wrong[0, 0] = 12
    with pytest.raises(PuzzleError, match=r"tokens must lie in 0\.\.11"):
        explore(model, wrong, Exploration(particles=1, outer_steps=1), seed=0)
    with pytest.raises(SettingsError, match=r"puzzle_id must be left out .* got 5"):
        with_puzzle(model, 5)
    with pytest.raises(SettingsError, match="300 ids; choose one"):
        exportable(model)
    assert chosen_puzzle(model) is None
    assert "300 puzzle ids, which 4 cells of a puzzle hold" in describe(model)
    fixed = load(path, config=settings, puzzle_id=5)  # as before: one row for every puzzle
    assert fixed.cells == config.cells
    assert chosen_puzzle(fixed) == 5


def test_sizes_are_checked():
    with pytest.raises(SettingsError, match="id_cells must be 0 to 4"):
        TRMConfig(id_cells=5)
    with pytest.raises(SettingsError, match="0 beside puzzle_starts"):
        TRMConfig(id_cells=1, puzzles=2, puzzle_starts=(3,))
    assert "id_cells" not in TRMConfig().as_mapping()


def test_ids_in_base_256():
    ids = torch.tensor([[0, 255], [256, 2**32 - 1]])
    cells = cells_of(ids.flatten()).view(2, 2, 4)
    assert torch.equal(ids_in_cells(cells, 4), ids)
    assert torch.equal(ids_in_cells(cells, 1), ids % 256)


def test_the_peers_outputs_with_ids_in_cells():
    """After each of 4 supervision steps: to 1e-4, or to what float32 itself leaves open.

    The weights are random and multiply a rounding error in every step; the tolerance is three
    times the distance of our float32 from float64 (see tests/model/test_fixtures.py).
    """
    if not FIXTURE.exists():
        pytest.skip("needs ../shared/fixtures/trm-arc")
    with np.load(FIXTURE.parent / "outputs.npz") as stored:
        outputs = dict(stored)
    model = load(FIXTURE)
    ids = torch.from_numpy(outputs["puzzle_identifiers"])
    assert len(ids.unique()) > 1
    tokens = torch.cat((torch.from_numpy(outputs["inputs"]).to(torch.uint8), cells_of(ids)), 1)
    inputs = model.embed(tokens)
    exact = NumpyModel(model.config, model.state_dict())
    wide = inputs.double().numpy()
    state, pair = model.start(inputs), exact.start(wide)
    for number in range(1, 5):
        for _ in range(model.cycles):
            state, pair = model.step(inputs, state), exact.step(wide, *pair)
        logits = model.decode(state.answer)[:, :-4].numpy()
        halt = model.halt_logit(state.answer).numpy()
        rounding = np.abs(logits - exact.decode(pair[0])).max()
        tolerance = 1e-4 if number == 1 else max(1e-4, 3 * rounding)
        np.testing.assert_allclose(logits, outputs[f"logits_{number}"], atol=tolerance)
        np.testing.assert_allclose(halt, outputs[f"q_{number}"], atol=tolerance)


OPENED = """
import json, resource, sys, time
import torch
from tiltrm.model import load
from tiltrm.model.importers import files
files.MAPPED = 0
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
torch.zeros(8, 8) @ torch.zeros(8, 8)
before, begun = peak(), time.monotonic()
model = load(sys.argv[1])
tokens = torch.zeros(2, model.cells, dtype=torch.uint8)
tokens[1, -4:] = torch.tensor([0, 1, 134, 159])
row = model.prefixes(tokens)[1].flatten()[:3].tolist()
print(json.dumps({"mib": peak() - before, "seconds": time.monotonic() - begun, "row": row}))
"""


def test_a_large_table_stays_in_its_file(tmp_path, monkeypatch):
    """100,000 rows of 512 numbers are 195 MiB; opening the model and reading two takes far less."""
    config = replace(arc_like(MLP), width=64, prefix=8)
    table = torch.zeros(100_000, 512)
    table[99_999] = torch.arange(512.0)
    path, settings = checkpoint(tmp_path, table, config)
    (tmp_path / "config.json").write_text(json.dumps(settings | {"puzzle_emb_ndim": 512}))
    folder = save(load(path), tmp_path / "model", dtype=None)
    for source in (path, folder):
        ran = subprocess.run(
            [sys.executable, "-c", OPENED, str(source)], capture_output=True, text=True, check=True
        )
        found = json.loads(ran.stdout)
        assert found["row"] == [0.0, 1.0, 2.0]
        assert found["mib"] < 100, found
        assert found["seconds"] < 30, found

"""Models with several puzzle ids: the right row, whether the table is a parameter or a file."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from peer_files import assert_same, nano_file, peer_state, trm_settings, write
from safetensors.torch import save_file
from test_importers import MLP, TWO, make

from tiltrm.errors import CheckpointError, SettingsError
from tiltrm.model import describe, load, puzzle_rows, save
from tiltrm.model.native import PUZZLES
from tiltrm.model.puzzle_rows import chosen_puzzle, with_puzzle

ROWS = 5
FIXTURE = Path(__file__).resolve().parents[3] / "shared/fixtures/trm-arc/checkpoint.pt"


@pytest.fixture(params=["parameter", "file"])
def table(request, monkeypatch):
    """(row, number): fewer numbers than the prefix has places, as in ARC models."""
    if request.param == "file":
        monkeypatch.setattr(puzzle_rows, "HELD", 0)
    return torch.randn(ROWS, 40, generator=torch.Generator().manual_seed(3))


def checkpoint(folder, table, config=MLP):
    state = peer_state(make(config)) | {"puzzle_emb.weights": table}
    return write(folder / "step_1", state), trm_settings(config, puzzle_emb_ndim=40)


def expected(table, row, config=MLP):
    """The same model with this row as its only one."""
    model = make(config)
    numbers = torch.cat((table[row], torch.zeros(config.prefix * config.width - 40)))
    model.prefix.copy_(numbers.reshape(config.prefix, config.width))
    return model


def test_a_row_of_an_imported_table(tmp_path, table):
    path, settings = checkpoint(tmp_path, table)
    for row in range(ROWS):
        got = load(path, config=settings, puzzle_id=row)
        assert chosen_puzzle(got) == row
        assert_same(got, expected(table, row), sizes=False)
    assert_same(load(path, config=settings), expected(table, 0), sizes=False)
    assert any("5 puzzle ids; 0 (the blank one)" in note for note in got.import_notes)


def test_hrm_and_nano_trm_have_rows_too(tmp_path, table):
    config = replace(TWO, prefix=2)
    path, settings = checkpoint(tmp_path, table, config)
    got = load(path, config=settings, puzzle_id=3)
    assert_same(got, expected(table, 3, config), sizes=False)
    payload = nano_file(make(MLP))
    payload["state_dict"]["puzzle_emb.embedding.weight"] = table  # an older nano-trm's name
    del payload["state_dict"]["puzzle_emb.weights"]
    payload["hyper_parameters"]["puzzle_emb_dim"] = 40
    got = load(write(tmp_path / "last.ckpt", payload), puzzle_id=3)
    assert_same(got, expected(table, 3), sizes=False)


def test_a_native_folder_keeps_every_row_and_the_one_that_was_chosen(tmp_path, table):
    path, settings = checkpoint(tmp_path, table)
    folder = save(load(path, config=settings, puzzle_id=2), tmp_path / "model", dtype=None)
    held = puzzle_rows.HELD > 0
    assert (folder / PUZZLES).exists() != held
    if not held:
        assert (folder / PUZZLES).stat().st_mode == (folder / "config.json").stat().st_mode
    assert_same(load(folder), expected(table, 2), sizes=False)
    for row in range(ROWS):
        again = load(folder, puzzle_id=row)
        assert_same(again, expected(table, row), sizes=False)
        assert again.prefix.ndim == (3 if held else 2)
    save(make(MLP), folder)  # one row only: the table of the model before must not stay
    assert not (folder / PUZZLES).exists()
    assert puzzle_rows.puzzle_rows(load(folder)) == 1


def test_a_row_is_chosen_without_touching_the_model(tmp_path, table):
    path, settings = checkpoint(tmp_path, table)
    model = load(path, config=settings)
    view = with_puzzle(model, 4)
    assert_same(view, expected(table, 4), sizes=False)
    assert_same(model, expected(table, 0), sizes=False)
    assert view.embedding is model.embedding
    assert with_puzzle(model, None) is model
    assert with_puzzle(view, 4) is view


@pytest.mark.parametrize("row", [-1, 5, 2**40])
def test_a_row_that_is_not_there_gets_a_sentence(tmp_path, table, row):
    path, settings = checkpoint(tmp_path, table)
    folder = save(load(path, config=settings), tmp_path / "model", dtype=None)
    for source, config in ((path, settings), (folder, None)):
        with pytest.raises(SettingsError, match=r"puzzle_id must .*got -?\d+"):
            load(source, config=config, puzzle_id=row)
    with pytest.raises(SettingsError, match=r"in 0\.\.0, because .* has one row, got 1"):
        with_puzzle(make(MLP), 1)
    assert with_puzzle(make(MLP), 0).puzzle_id == 0


def test_puzzles_that_say_their_row_leave_nothing_to_choose():
    model = make(replace(MLP, puzzles=3, puzzle_starts=(3, 4)))
    assert puzzle_rows.puzzle_rows(model) == 3
    assert chosen_puzzle(model) is None
    assert with_puzzle(model, None) is model
    assert "3 puzzle ids, which the tokens tell" in describe(model)
    with pytest.raises(SettingsError, match=r"puzzle_id must be left out .* got 1"):
        with_puzzle(model, 1)


def test_rows_of_other_weights_and_broken_ones_get_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(puzzle_rows, "HELD", 0)
    table = torch.randn(ROWS, 40)
    path, settings = checkpoint(tmp_path, table)
    folder = save(load(path, config=settings), tmp_path / "model", dtype=None)
    whole = (folder / PUZZLES).read_bytes()

    def refused(message):
        with pytest.raises(CheckpointError, match=message):
            load(folder)

    (folder / PUZZLES).write_bytes(whole[:100])
    refused("a broken file")
    (folder / PUZZLES).unlink()
    refused("expected a puzzle embedding of 5 rows")
    save_file({"rows": table}, folder / PUZZLES, metadata={"weights": "others"})
    refused("got one of other weights")
    save_file({"rows": table[:3].clone()}, folder / PUZZLES)
    refused(r"expected 5 rows of at most 96 numbers .* got \(3, 40\)")
    (folder / PUZZLES).write_bytes(whole)
    manifest = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(manifest | {"puzzle_id": 9}))
    with pytest.raises(SettingsError, match=r"puzzle_id must lie in 0\.\.4"):
        load(folder)


def test_a_large_file_is_mapped_and_not_read(tmp_path, table, monkeypatch):
    """Mapped or read, the weights are the same; a compressed file is read."""
    path, settings = checkpoint(tmp_path, table)
    plain = load(path, config=settings, puzzle_id=1)
    monkeypatch.setattr("tiltrm.model.importers.files.MAPPED", 0)
    assert_same(load(path, config=settings, puzzle_id=1), plain)


def test_the_peers_own_outputs_with_several_ids():
    """Every row of the fixture was run with its own id; the first supervision step agrees."""
    if not FIXTURE.exists():
        pytest.skip("needs ../shared/fixtures/trm-arc")
    with np.load(FIXTURE.parent / "outputs.npz") as stored:
        outputs = dict(stored)
    tokens = torch.from_numpy(outputs["inputs"])
    ids = torch.from_numpy(outputs["puzzle_identifiers"])
    together = load(FIXTURE).embed(tokens, ids)
    for number, row in enumerate(outputs["puzzle_identifiers"].tolist()):
        model = load(FIXTURE, puzzle_id=row)
        inputs = model.embed(tokens[number : number + 1])
        assert torch.equal(inputs[0], together[number])
        state = model.start(inputs)
        for _ in range(model.cycles):
            state = model.step(inputs, state)
        logits, halt = model.decode(state.answer)[0], model.halt_logit(state.answer)[0]
        np.testing.assert_allclose(logits.numpy(), outputs["logits_1"][number], atol=1e-4)
        np.testing.assert_allclose(halt.numpy(), outputs["q_1"][number], atol=1e-4)

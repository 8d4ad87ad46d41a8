"""The native folder: what goes in comes out, whole or not at all."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from peer_files import assert_same, peer_state, trm_settings, write

from tiltrm.errors import CheckpointError, SettingsError
from tiltrm.model import HRM, TRM, HRMConfig, TRMConfig, bundled, checkpoint, describe, load, save

SMALL = {"cells": 9, "vocabulary": 5, "width": 32, "heads": 2, "inner_steps": 2, "cycles": 2}
CONFIGS = {
    "mlp": TRMConfig(**SMALL, prefix=3),
    "rotary": TRMConfig(**SMALL, prefix=0, token_mixing=False, rotary=True),
    "learned": TRMConfig(**SMALL, prefix=2, token_mixing=False, learned_positions=True),
    "hrm": HRMConfig(**SMALL, prefix=1, layers=2, answer_layers=1),
}


def make(name="mlp"):
    torch.manual_seed(1)
    config = CONFIGS[name]
    return HRM(config) if isinstance(config, HRMConfig) else TRM(config)


@pytest.fixture
def folder(tmp_path):
    return save(make(), tmp_path / "model", task="sudoku", decide_above=2.5, card="# A card\n")


@pytest.mark.parametrize("name", CONFIGS)
def test_round_trip(tmp_path, name):
    model = make(name)
    save(model, tmp_path / "kept", dtype=None)
    got = load(tmp_path / "kept")
    assert_same(got, model)
    assert type(got) is type(model)
    assert not got.training
    assert not any(parameter.requires_grad for parameter in got.parameters())
    save(model, tmp_path / "small")
    half = model.to(torch.bfloat16).float()
    half.cos, half.sin = got.cos, got.sin  # the angles are not stored, hence not rounded
    assert_same(load(tmp_path / "small"), half)
    assert load(tmp_path / "small", dtype=torch.bfloat16).embedding.dtype == torch.bfloat16


def test_what_is_known_travels(folder, tmp_path):
    got = load(folder)
    assert (got.task, got.decide_above, got.decide_settled) == ("sudoku", 2.5, True)
    assert (folder / "CARD.md").read_text() == "# A card\n"
    stored = json.loads((folder / "config.json").read_text())
    assert (stored["kind"], stored["dtype"]) == ("trm", "bfloat16")
    got.import_notes = ["a note"]
    again = load(save(got, tmp_path / "again"))
    assert (again.task, again.decide_above, again.import_notes) == ("sudoku", 2.5, ["a note"])
    assert (tmp_path / "again/CARD.md").read_text() == f"# again\n\n{describe(again)}\n"
    assert again.decide_settled
    again.decide_settled = False
    assert not load(save(again, tmp_path / "at once")).decide_settled
    plain = make()
    save(plain, tmp_path / "plain", task="maze", decide_above=0.0)
    assert "for maze" in (tmp_path / "plain/CARD.md").read_text()
    assert load(tmp_path / "plain").decide_above == 0.0
    assert (plain.task, plain.decide_above) == ("", None)


def test_an_import_can_be_saved(tmp_path):
    model = make("hrm")
    path = write(tmp_path / "step_1", peer_state(model))
    imported = load(path, config=trm_settings(model.config))
    assert_same(load(save(imported, tmp_path / "native", dtype=None)), model)


def test_saving_over_a_folder_keeps_other_files(folder):
    (folder / "log.jsonl").write_text("{}\n")
    save(make("hrm"), folder, card="# Another card\n")
    assert isinstance(load(folder), HRM)
    assert (folder / "CARD.md").read_text() == "# Another card\n"
    assert (folder / "log.jsonl").read_text() == "{}\n"


def test_a_folder_that_is_a_disk_of_its_own_can_be_saved_to(folder, monkeypatch):
    """A mounted folder, or a link to another disk: files cannot be moved in from beside it."""
    move, disk = os.replace, folder.resolve()

    def within_a_disk(source, target):
        sides = [disk in Path(side).resolve().parents for side in (source, target)]
        if sides[0] != sides[1]:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        move(source, target)

    monkeypatch.setattr(os, "replace", within_a_disk)
    save(make("hrm"), folder)
    assert isinstance(load(folder), HRM)
    assert sorted(p.name for p in folder.iterdir()) == [
        "CARD.md", "config.json", "model.safetensors",
    ]  # fmt: skip


def test_a_save_that_fails_leaves_the_old_model_and_nothing_else(folder, monkeypatch):
    before = {path.name: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(json, "dumps", fail)
    with pytest.raises(CheckpointError, match=r"expected to write a folder .* got OSError"):
        save(make("hrm"), folder)
    assert list(folder.parent.iterdir()) == [folder]
    after = {path.name: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}
    assert after == before


def test_a_folder_cannot_replace_a_file(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(CheckpointError, match="no file's name"):
        save(make(), tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


def test_weights_of_another_save_are_noticed(folder, tmp_path):
    torch.manual_seed(9)
    other = save(TRM(CONFIGS["mlp"]), tmp_path / "other")
    (folder / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    with pytest.raises(CheckpointError, match="checksum"):
        load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "lstm"}, "kind must be one of trm, hrm, got 'lstm'"),
        ({"task": 3}, "task must be a text in quotes, got 3"),
        ({"decide_above": "high"}, "decide_above must be a number or null, got 'high'"),
        ({"decide_settled": "no"}, "decide_settled must be true or false, got 'no'"),
        ({"decide_above": float("nan")}, "decide_above must be a halt logit, got nan"),
        ({"notes": [1]}, r"notes\[0\] must be a text in quotes, got 1"),
        ({"decide_abov": 1.0}, "unknown setting decide_abov"),
        ({"sizes": {"cells": "81"}}, "cells must be a whole number, got '81'"),
        ({"sizes": {"cell": 81}}, "unknown setting cell;"),
        ({"sizes": {"width": 10**12}}, "width must be above 0 and at most"),
        ({"sizes": {"eps": float("nan")}}, "eps above 0, got 10000.0 and nan"),
        ({"sizes": {"token_mixing": 1}}, "token_mixing must be true or false"),
        ({"sizes": {"width": 64}}, r"misshapen: embedding \(expected \(11, 64\), got \(5, 32\)\)"),
    ],
)
def test_a_manifest_that_is_wrong(folder, change, message):
    stored = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(stored | change))
    with pytest.raises((CheckpointError, SettingsError), match=message):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_that_is_absent(folder, name):
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"got no {name}"):
        load(folder)


def test_a_peers_folder_asks_for_its_file(tmp_path):
    write(tmp_path / "model.safetensors", {})
    (tmp_path / "config.json").write_text('{"hidden_size": 64}')
    with pytest.raises(CheckpointError, match="give the file itself"):
        load(tmp_path)


def test_the_weights_file_stands_for_its_folder(folder):
    assert load(folder / "model.safetensors").task == "sudoku"


def test_configuration_is_not_for_native_folders(folder):
    with pytest.raises(SettingsError, match="leave the config out"):
        load(folder, config={"hidden_size": 64})


def test_bundled_names(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoint, "BUNDLED", folder.parent)
    assert bundled() == ["model"]
    assert load("model").task == "sudoku"
    with pytest.raises(CheckpointError, match=r"bundled name \(model\).* got 'sudoku-extrem'"):
        load("sudoku-extrem")
    monkeypatch.setattr(checkpoint, "BUNDLED", tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="none is bundled"):
        load("model")


@pytest.mark.parametrize("name", bundled())
def test_what_ships_loads(name):
    model = load(name)
    assert model.task in ("sudoku", "maze", "pencil")
    assert (
        model.decode(model.start(model.embed(torch.ones(1, model.cells))).answer).isfinite().all()
    )


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_files_have_the_mode_that_the_umask_gives(tmp_path, mask):
    before = os.umask(mask)
    try:
        folder = save(make(), tmp_path / "new")
        save(make(), folder)
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == {0o666 & ~mask}
    assert folder.stat().st_mode & 0o777 == 0o777 & ~mask


@pytest.mark.parametrize("name", bundled())
def test_native_loading_imports_no_importer_and_no_kernel(name):
    """In a process of its own: other tests import both."""
    code = f"import sys, tiltrm; tiltrm.load({name!r}); print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    unwanted = ("tiltrm.model.importers", "tiltrm.kernels", "triton", "yaml")
    assert not [name for name in result.stdout.split() if name.startswith(unwanted)]

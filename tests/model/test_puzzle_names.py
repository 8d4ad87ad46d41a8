"""puzzles.json: the names of puzzle ids go with a model, and wrong ones get a sentence."""

import json

import pytest
import torch
from peer_files import peer_state, trm_settings, write
from test_id_cells import arc_like
from test_importers import MLP, make

from tiltrm.cli.main import main
from tiltrm.errors import CheckpointError
from tiltrm.model import describe, load, save

NAMES = ["<blank>", "a", "a|||t3|||0213456789", "b"]


@pytest.fixture
def peer(tmp_path):
    config = arc_like(MLP)
    state = peer_state(make(config)) | {"puzzle_emb.weights": torch.randn(4, 96)}
    write(tmp_path / "step_1", state)
    (tmp_path / "config.json").write_text(json.dumps(trm_settings(config)))
    (tmp_path / "identifiers.json").write_text(json.dumps(NAMES))
    return tmp_path


def imported(peer, *more):
    command = ["import", str(peer / "step_1"), "--out", str(peer / "model"), *more]
    return main(command)


def test_names_go_with_the_model(peer):
    assert imported(peer, "--identifiers", str(peer / "identifiers.json")) == 0
    assert json.loads((peer / "model/puzzles.json").read_text()) == NAMES
    model = load(peer / "model")
    assert model.puzzle_names == tuple(NAMES)
    assert "the last 'b'" in describe(model)
    again = save(model, peer / "again")
    assert load(again).puzzle_names == tuple(NAMES)
    save(make(MLP), again)  # without names: those of the model before must not stay
    assert load(again).puzzle_names is None
    assert not (again / "puzzles.json").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (json.dumps(NAMES[:3]), "expected 4 names .* got 3"),
        ('{"a": 1}', "expected a JSON list of names"),
        ("[1, 2, 3, 4]", "expected a JSON list of names"),
        ("[", "got JSONDecodeError"),
    ],
)
def test_wrong_names_get_a_sentence(peer, capsys, content, said):
    (peer / "identifiers.json").write_text(content)
    assert imported(peer, "--identifiers", str(peer / "identifiers.json")) != 0
    assert not (peer / "model").exists()
    assert capsys.readouterr().err.startswith("tiltrm import: expected ")
    (peer / "identifiers.json").write_text(json.dumps(NAMES))
    imported(peer, "--identifiers", str(peer / "identifiers.json"))
    (peer / "model/puzzles.json").write_text(content)
    with pytest.raises(CheckpointError, match=said):
        load(peer / "model")

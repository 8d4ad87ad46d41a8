"""tiltrm import: a native folder that is the checkpoint, bit for bit, and what was inferred."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tiltrm import load, save
from tiltrm.model.trm import TRM

FIXTURES = Path(__file__).resolve().parents[3] / "shared" / "fixtures"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nothing_is_lost(tiltrm: Any, toy: TRM, tmp_path: Path, dtype: torch.dtype) -> None:
    source = save(toy, tmp_path / "source", dtype=dtype)
    code, out, _ = tiltrm("import", source, "--out", tmp_path / "copy", "--json")
    about = json.loads(out)
    assert code == 0
    assert (about["kind"], about["task"]) == ("trm", "sudoku4")
    assert about["dtype"] == str(dtype).removeprefix("torch.")
    copy = load(about["out"]).state_dict()
    for name, weight in load(source).state_dict().items():
        assert torch.equal(copy[name], weight)


@pytest.mark.parametrize("name", ["trm-mlp/checkpoint.pt", "nano/checkpoint.ckpt"])
def test_a_checkpoint_of_another_code(tiltrm: Any, tmp_path: Path, name: str) -> None:
    if not (FIXTURES / name).exists():
        pytest.skip("the shared fixtures are not here")
    code, out, _ = tiltrm("import", FIXTURES / name, "--out", tmp_path / "copy")
    assert code == 0
    assert "TRM for sudoku" in out
    assert "note: read from a checkpoint of" in out
    assert f"written to {tmp_path / 'copy'} in " in out
    assert f"next: tiltrm tune --model {tmp_path / 'copy'} --data PUZZLES" in out
    original, copy = load(FIXTURES / name), load(tmp_path / "copy")
    assert copy.import_notes == original.import_notes
    for weight, same in zip(original.parameters(), copy.parameters(), strict=True):
        assert torch.equal(weight, same)


def test_the_task_can_be_named_if_it_fits(tiltrm: Any, toy: TRM, tmp_path: Path) -> None:
    source = save(toy, tmp_path / "source")
    (source / "config.json").write_text(
        (source / "config.json").read_text().replace('"sudoku4"', '""')
    )
    assert load(source).task == ""
    code, _, err = tiltrm("import", source, "--out", tmp_path / "copy", "--task", "maze")
    assert (code, len(err.splitlines())) == (2, 1)
    assert not (tmp_path / "copy").exists()
    assert tiltrm("import", source, "--out", tmp_path / "copy", "--task", "sudoku4")[0] == 0
    assert load(tmp_path / "copy").task == "sudoku4"


def test_bad_input_is_one_sentence(tiltrm: Any, toy: TRM, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pt"
    broken.write_bytes(b"not a checkpoint")
    for source, out in (
        (broken, "x"),
        (tmp_path / "missing", "x"),
        (save(toy, tmp_path / "m"), "broken.pt"),
    ):
        code, _, err = tiltrm("import", source, "--out", tmp_path / out)
        assert (code, len(err.splitlines())) == (2, 1)


def test_an_existing_folder_is_replaced_only_by_force(
    tiltrm: Any, toy: TRM, tmp_path: Path
) -> None:
    source, out = save(toy, tmp_path / "source"), tmp_path / "copy"
    out.mkdir()
    assert tiltrm("import", source, "--out", out)[0] == 0  # empty: nothing is lost
    kept = {path.name: path.read_bytes() for path in out.iterdir()}
    other = save(TRM(toy.config), tmp_path / "other", task="sudoku4", dtype=None)
    code, _, err = tiltrm("import", other, "--out", out)
    assert (code, len(err.splitlines())) == (2, 1)
    assert f"got {out}, which is there; choose another, or replace it with --force" in err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == kept
    assert tiltrm("import", other, "--out", out, "--force")[0] == 0
    assert torch.equal(load(out).embedding, load(other).embedding)


def test_the_missing_configuration_is_asked_for_by_its_flag(tiltrm: Any, tmp_path: Path) -> None:
    checkpoint = FIXTURES / "trm-arc/checkpoint.pt"
    if not checkpoint.exists():
        pytest.skip("the shared fixtures are not here")
    alone = tmp_path / "checkpoint.pt"
    alone.write_bytes(checkpoint.read_bytes())  # without the config.json that lies beside it
    code, _, err = tiltrm("import", alone, "--out", tmp_path / "copy")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "expected seq_len and num_heads" in err
    assert "--config FILE" in err
    config = checkpoint.parent / "config.json"
    assert tiltrm("import", alone, "--out", tmp_path / "copy", "--config", config)[0] == 0
    assert load(tmp_path / "copy").config == load(checkpoint).config

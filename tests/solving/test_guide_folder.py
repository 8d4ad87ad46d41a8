"""Folders of learned guides: they come back as they were, and nothing damaged is used."""

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tiltrm.errors import CheckpointError, SettingsError
from tiltrm.explore import Exploration, explore
from tiltrm.explore.guides import halting
from tiltrm.explore.learned import GuideHead, HeadSizes, learned
from tiltrm.model.trm import TRM
from tiltrm.solving import guide_folder, parse_guide, solve
from tiltrm.solving.guide_folder import (
    MANIFEST,
    WEIGHTS,
    FittedOn,
    guide_note,
    load_guide,
    pinned_guide,
    save_guide,
)

TOKENS = torch.ones(2, 16, dtype=torch.uint8)
SETTINGS = Exploration(particles=3, outer_steps=2)


@pytest.fixture
def folder(toy: TRM, tmp_path: Path) -> Path:
    return save_guide(head(), toy, tmp_path / "guide", FittedOn("sudoku4"), "# a guide\n")


def head(width: int = 32) -> GuideHead:
    torch.manual_seed(0)
    own = GuideHead(HeadSizes(width, 16, 8, outer_steps=10)).eval().requires_grad_(False)
    torch.nn.init.normal_(own.out.weight)
    return own


def scores(model: TRM, guide: str) -> torch.Tensor:
    return explore(model, TOKENS, SETTINGS, guide=parse_guide(guide, model)).scores


def test_a_guide_comes_back(toy: TRM, folder: Path) -> None:
    stored = load_guide(folder)
    assert asdict(stored.manifest.sizes) == asdict(head().sizes)
    truth = explore(toy, TOKENS, SETTINGS, guide=learned(toy, head())).scores
    assert torch.equal(scores(toy, f"learned:{folder}"), truth)
    solved = solve(toy, TOKENS, method="guided", outer_steps=2, guide=f"learned:{folder}")
    assert len(solved.answers) == 2


def test_sums(toy: TRM, folder: Path) -> None:
    both = explore(
        toy, TOKENS, SETTINGS, guide=halting(toy) + 0.5 * learned(toy, head())
    ).scores  # fmt: skip
    assert torch.equal(scores(toy, f"halting + 0.5*learned:{folder}"), both)
    with pytest.raises(SettingsError, match="learned:FOLDER"):
        parse_guide("lerned:x", toy)


def test_a_pinned_guide_must_not_change(toy: TRM, folder: Path) -> None:
    name = pinned_guide(f"halting+2*learned:{folder}")
    assert name.startswith(f"halting+2*learned:{folder}@")
    assert pinned_guide(name) == name
    assert pinned_guide("halting+2*rules") == "halting+2*rules"
    parse_guide(name, toy)
    other = head()
    torch.nn.init.zeros_(other.out.weight)
    save_guide(other, toy, folder, FittedOn(), "")
    with pytest.raises(CheckpointError, match="fitted again since"):
        parse_guide(name, toy)


def test_another_width_is_refused(toy: TRM, tmp_path: Path) -> None:
    where = save_guide(head(8), toy, tmp_path / "narrow", FittedOn(), "")
    with pytest.raises(CheckpointError, match=r"width 32.*got one for 8"):
        parse_guide(f"learned:{where}", toy)


def test_other_weights_of_the_same_sizes_get_a_note(toy: TRM, folder: Path) -> None:
    torch.manual_seed(5)
    other = TRM(toy.config).eval().requires_grad_(False)
    assert guide_note(f"learned:{folder}", toy) == ""
    assert guide_note("halting", other) == ""
    assert "other weights" in guide_note(f"halting+learned:{folder}", other)
    parse_guide(f"learned:{folder}", other)


@pytest.mark.parametrize("damage", ["absent", "weights", "bits", "nan", "names", "sizes", "huge",
                                    "kind", "json", "unknown"])  # fmt: skip
def test_damage_is_one_sentence(toy: TRM, folder: Path, damage: str) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    data = bytearray((folder / WEIGHTS).read_bytes())
    own = load_guide(folder).head.state_dict()
    if damage == "absent":
        (folder / WEIGHTS).unlink()
    elif damage == "weights":
        (folder / WEIGHTS).write_bytes(b"\x80\x04pickle")
    elif damage == "bits":
        data[-1] ^= 1
        (folder / WEIGHTS).write_bytes(data)
    elif damage in ("nan", "names"):
        own = (
            {"x": torch.ones(1)}
            if damage == "names"
            else {**own, "halt_scale": torch.tensor(torch.nan)}
        )
        save_file(own, folder / WEIGHTS)
        manifest["checksum"] = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    elif damage == "sizes":
        manifest["sizes"]["hidden"] = 17
    elif damage == "huge":
        manifest["sizes"]["hidden"] = 10**9
    elif damage == "kind":
        manifest["kind"] = "a poem"
    elif damage == "unknown":
        manifest["extra"] = 1
    text = "{" if damage == "json" else json.dumps(manifest)
    (folder / MANIFEST).write_text(text)
    with pytest.raises(CheckpointError) as error:
        load_guide(folder)
    assert "\n" not in str(error.value)


def test_nothing_else_is_overwritten(toy: TRM, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(CheckpointError, match="something else"):
        save_guide(head(), toy, tmp_path / "mine", FittedOn(), "")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"


def test_the_digest_is_that_of_the_weights(toy: TRM) -> None:
    same = TRM(replace(toy.config)).eval()
    same.load_state_dict(toy.state_dict())
    assert guide_folder.weights_digest(same) == guide_folder.weights_digest(toy)
    assert guide_folder.weights_digest(same.bfloat16()) == guide_folder.weights_digest(toy)
    with torch.no_grad():
        same.halt_head.weight[0, 0] += 1
    assert guide_folder.weights_digest(same) != guide_folder.weights_digest(toy)

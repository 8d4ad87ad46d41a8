"""tiltrm fit-guide: what it stores and says, and its guide wherever a guide is named."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train import toys

from tiltrm.evaluate import eval_target, plans
from tiltrm.model import save
from tiltrm.model.trm import TRM
from tiltrm.solving.guide_folder import CARD, MANIFEST, load_guide
from tiltrm.tasks import Sudoku

PUZZLE = Sudoku(2).decode(toys.puzzles(1).questions[0])
FIT = ("--puzzles", 12, "--particles", 3, "--outer-steps", 3, "--held-out", 4)


@pytest.fixture
def folder(toy: TRM, tmp_path: Path) -> Path:
    return save(toy, tmp_path / "model", dtype=None)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return toys.write_csv(tmp_path / "puzzles.csv", toys.puzzles(30))


@pytest.fixture
def guide(tiltrm: Any, folder: Path, data: Path, tmp_path: Path) -> str:
    where = tmp_path / "guide"
    code, out, err = tiltrm(
        "fit-guide", "--model", folder, "--data", data, "--out", where, "--target", "rules", *FIT
    )
    assert code == 0, err
    assert "on 4 held-out clouds" in out
    assert "fitted on 12 clouds" in out
    assert "of the time of an evaluation" in out
    return f"learned:{where}"


def test_the_guide_is_stored_with_its_figures(guide: str, data: Path) -> None:
    where = Path(guide.removeprefix("learned:"))
    stored = load_guide(where)
    assert stored.manifest.data["puzzles"] == 30
    assert stored.manifest.task == "sudoku4"
    assert stored.manifest.settings["target"] == "rules"
    figures = json.loads((where / MANIFEST).read_text())["figures"]
    assert figures["clouds"] == 12
    assert figures["evaluations"] == 16 * 3 * 3 * 3
    assert figures["cost"]["guide_flops"] > 0
    card = (where / CARD).read_text()
    assert "puzzles.csv" in card
    assert "in-cloud AUROC" in card
    assert str(where.parent) not in card


def test_it_is_a_guide_everywhere(tiltrm: Any, guide: str, folder: Path, data: Path) -> None:
    code, _, err = tiltrm(
        "solve", PUZZLE, "--model", folder, "--method", "guided", "--particles", 2,
        "--outer-steps", 2, "--guide", f"halting+0.5*{guide}",
    )  # fmt: skip
    assert code in (0, 1), err
    assert "note" not in err
    code, _, err = tiltrm("solve", PUZZLE, "--model", folder, "--outer-steps", 4, "--guide", guide)
    assert code in (0, 1), err
    code, out, err = tiltrm(
        "evaluate", "--model", folder, "--data", data, "--limit", 4, "--folds", 1, "--seeds", 1,
        "--json", "--method", "deterministic:outer_steps=2",
        f"guided:particles=2,outer_steps=2,guide={guide}",
        f"adaptive:outer_steps=4,guide={guide}",
    )  # fmt: skip
    assert code == 0, err
    assert len(json.loads(out)["paired"]) == 2
    code, out, err = tiltrm(
        "diagnose", "--model", folder, "--data", data, "--puzzles", 3, "--guide", guide,
        "--guide", "halting", "--outer-steps", 3, "--json",
    )  # fmt: skip
    assert code == 0, err
    assert list(json.loads(out)["alignment"]) == [guide, "halting"]


def test_a_guide_of_other_weights_is_noted(
    tiltrm: Any, guide: str, data: Path, toy: TRM, tmp_path: Path
) -> None:
    torch.manual_seed(7)
    other = TRM(toy.config).eval().requires_grad_(False)
    other.task = "sudoku4"
    where = save(other, tmp_path / "other", dtype=None)
    code, _, err = tiltrm(
        "diagnose", "--model", where, "--data", data, "--puzzles", 3, "--guide", guide,
        "--outer-steps", 3,
    )  # fmt: skip
    assert code == 0
    assert "note" in err
    assert "other weights" in err


def test_the_key_of_a_job_is_that_of_the_guides_content(
    guide: str, folder: Path, data: Path
) -> None:
    target = eval_target(str(folder), str(data), "val")
    first = plans.jobs(target, "guided", {"guide": guide})[0]
    assert dict(first.settings)["guide"].startswith(f"{guide}@")
    where = Path(guide.removeprefix("learned:"))
    text = (where / MANIFEST).read_text()
    checksum = json.loads(text)["checksum"]
    assert dict(first.settings)["guide"].endswith(checksum[:16])


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--minutes", 1, "--puzzles", 5), "got both"),
        (("--puzzles", 0), "above 0"),
        (("--particles", 1, "--puzzles", 5), "at least 2"),
        (("--noise", "nan", "--puzzles", 5), "noise"),
        (("--outer-steps", 0, "--puzzles", 5), "outer_steps"),
    ],
)
def test_bad_settings_are_one_sentence(
    tiltrm: Any, folder: Path, data: Path, tmp_path: Path, flags: tuple[Any, ...], sentence: str
) -> None:
    out = tmp_path / "g"
    code, _, err = tiltrm("fit-guide", "--model", folder, "--data", data, "--out", out, *flags)
    assert code == 2
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert not out.exists()


def test_a_folder_that_is_no_guide_is_refused_before_the_fit(
    tiltrm: Any, folder: Path, data: Path
) -> None:
    code, _, err = tiltrm("fit-guide", "--model", folder, "--data", data, "--out", folder, *FIT)
    assert code == 2
    assert "something else" in err

"""The table of guides on checkpoints that they were not fitted on."""

import sys
from pathlib import Path

import pytest
import torch
from benchmarks import guide_transfer
from benchmarks.guide_transfer import TransferRow
from tests.train import toys

from tiltrm.evaluate import Paired, Row
from tiltrm.evaluate.summary import Spread
from tiltrm.explore.learned import GuideHead, HeadSizes
from tiltrm.model import save
from tiltrm.model.trm import TRM
from tiltrm.solving.guide_folder import FittedOn, save_guide


def row(exact: float, oracle: float | None = None) -> Row:
    known = None if oracle is None else Spread(oracle, None)
    return Row("sudoku4", "x", "guided", (), 10, 1, Spread(exact, None), known, None, None,
               Spread(30.0, None))  # fmt: skip


def test_the_share_of_the_way_to_the_oracle() -> None:
    gain = Paired(10, 0.1, 0.0, 0.2, 1, 0, 1.0)

    def made(guided: float, deterministic: float, oracle: float) -> float:
        return TransferRow("m", "g", "-", row(guided), row(0.5, oracle), row(deterministic), gain,
                           0.1, 0.6, "").recovered  # fmt: skip

    assert made(0.9, 0.8, 1.0) == pytest.approx(0.5)
    assert made(0.7, 0.8, 1.0) == pytest.approx(-0.5)
    assert made(0.9, 0.9, 0.9) != made(0.9, 0.9, 0.9)  # NaN: there is no way to go


def test_both_models_are_in_the_table(
    toy: TRM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = save(toy, tmp_path / "first", dtype=None)
    torch.manual_seed(9)
    other = TRM(toy.config).eval().requires_grad_(False)
    other.task = "sudoku4"
    second = save(other, tmp_path / "second", dtype=None)
    head = GuideHead(HeadSizes(32, 8, 8)).requires_grad_(False)
    guide = save_guide(head, toy, tmp_path / "guide", FittedOn(), "")
    data = toys.write_csv(tmp_path / "puzzles.csv", toys.puzzles(6))
    monkeypatch.setattr(sys, "argv", [
        "guide_transfer", "--model", str(first), str(second), "--guide", f"learned:{guide}",
        "--data", str(data), "--puzzles", "4", "--particles", "3", "--outer-steps", "2",
        "--diagnosis-steps", "2", "--device", "cpu",
    ])  # fmt: skip
    guide_transfer.main()
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 5
    assert "this model" in lines[2]
    assert "other weights" in lines[4]
    # An unfitted guide is the halting head: the same clouds, whatever they are.
    assert lines[1].split()[3:6] == lines[2].replace("this model", "-").split()[3:6]
    assert lines[1].rstrip().endswith("18")  # 3 particles, 2 steps, 3 evaluations each

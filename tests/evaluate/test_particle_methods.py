"""The table of the pieces of a particle method."""

import sys
from pathlib import Path

import pytest
from benchmarks import particle_methods
from tests.train import toys

from tiltrm.model import save
from tiltrm.model.trm import TRM


def test_every_variant_has_a_line(
    toy: TRM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save(toy, tmp_path / "model", dtype=None)
    data = toys.write_csv(tmp_path / "puzzles.csv", toys.puzzles(3))
    monkeypatch.setattr(sys, "argv", [
        "particle_methods", "--model", str(model), "--data", str(data), "--particles", "2",
        "--outer-steps", "2", "--device", "cpu",
    ])  # fmt: skip
    particle_methods.main()
    first, second = capsys.readouterr().out.strip().split("\n\n")
    lines = {line[:28].strip(): line.split() for line in first.splitlines()[1:]}
    assert set(lines) == set(particle_methods.VARIANTS)
    assert lines["deterministic"][-1] == "6"  # 2 steps of 3 evaluations
    assert all(own[-1] == "12" for name, own in lines.items() if name != "deterministic")
    assert len(second.splitlines()) == len(particle_methods.VARIANTS)  # a head, and one fewer

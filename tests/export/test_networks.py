"""ONNX graphs beside torch: every part, every kind of model, three precisions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tiltrm.errors import DataError, SettingsError
from tiltrm.model.hrm import HRM, HRMConfig
from tiltrm.model.trm import TRM, Recursive, TRMConfig
from tiltrm.solving import solve
from tiltrm.tasks import by_name

pytest.importorskip("onnx", reason="onnx is not installed (pip install 'tiltrm[export]')")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from tiltrm.export.folder import OnnxModel, export, largest_difference  # noqa: E402
from tiltrm.export.graph import quantise  # noqa: E402
from tiltrm.export.networks import exportable  # noqa: E402

SMALL = TRMConfig(cells=16, vocabulary=6, width=64, layers=2, heads=2, prefix=1, inner_steps=2)
MODELS = {
    "mixing": SMALL,
    "attention": replace(SMALL, token_mixing=False, rotary=True),
    "positions": replace(SMALL, token_mixing=False, learned_positions=True),
    "no prefix": replace(SMALL, prefix=0),
    "hrm": HRMConfig(cells=16, vocabulary=6, width=64, layers=2, answer_layers=1, heads=2),
}
TOLERANCE = {"float32": 2e-5, "float16": 1e-2, "int8": 0.4}  # of states whose rms is 1


def build(config: TRMConfig) -> Recursive:
    torch.manual_seed(0)
    model: Recursive = HRM(config) if isinstance(config, HRMConfig) else TRM(config)
    model.eval().requires_grad_(False)
    torch.nn.init.normal_(model.halt_head.weight, std=0.2)
    torch.nn.init.normal_(model.prefix, std=0.1)
    model.task = "sudoku4"
    return model


@pytest.mark.parametrize("name", MODELS)
def test_a_noisy_step_is_torchs(name: str, tmp_path: Path) -> None:
    """Tolerances of one outer step: 2e-5 float32, 1e-2 float16 weights, 0.4 int8 weights."""
    model = build(MODELS[name])
    export(model, name, by_name("sudoku4"), tmp_path / "onnx")
    for precision, most in TOLERANCE.items():
        found = largest_difference(model, OnnxModel(tmp_path / "onnx", precision), rows=3)
        assert 0 < max(found.values()) < most, (precision, found)


def test_the_parts_are_a_model_that_solves(toy: TRM, tmp_path: Path) -> None:
    """Leading dimensions are free, inputs are shared, and a search takes the same decisions."""
    export(toy, "toy", by_name("sudoku4"), tmp_path / "onnx", ["float32"])
    exported = OnnxModel(tmp_path / "onnx")
    puzzles = [by_name("sudoku4").decode(by_name("sudoku4").generate(seed)[0]) for seed in (0, 1)]
    settings: dict[str, Any] = {"method": "guided", "particles": 3, "outer_steps": 3, "seed": 2}
    one, other = solve(toy, puzzles, **settings), solve(exported, puzzles, **settings)
    assert torch.equal(one.answers, other.answers)
    assert torch.equal(one.evaluations, other.evaluations)
    torch.testing.assert_close(one.confidence, other.confidence, rtol=1e-3, atol=1e-4)


def test_int8_has_a_scale_for_every_output() -> None:
    weight = torch.randn(5, 7, generator=torch.Generator().manual_seed(0)).numpy()
    weight[2] *= 100.0  # would cost the other rows all their digits if they shared its scale
    codes, scale = quantise(weight, (1,))
    assert scale.shape == (5, 1)
    assert codes.min() >= -127
    assert abs(codes * scale - weight).max(axis=1)[0] < abs(weight[0]).max() / 200


def test_precisions_share_one_file_of_weights(toy: TRM, tmp_path: Path) -> None:
    sizes = export(toy, "toy", by_name("sudoku4"), tmp_path / "onnx")
    graphs = list((tmp_path / "onnx" / "float32").glob("*.onnx"))
    assert len(graphs) == 7
    assert all(graph.stat().st_size < 60_000 for graph in graphs)
    assert sizes["float32"] > 1.5 * sizes["float16"] > 2 * sizes["int8"]


def test_what_cannot_be_exported_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="expected a TRM or an HRM to export, got object"):
        exportable(object())
    with pytest.raises(DataError, match="expected a folder that tiltrm export wrote"):
        OnnxModel(tmp_path)

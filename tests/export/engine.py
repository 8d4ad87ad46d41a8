"""The page's engine in Node beside the library, for the tests of both."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import tiltrm
from tiltrm.explore.running import run_search
from tiltrm.model.trm import TRM
from tiltrm.serve import frames
from tiltrm.solving import build_search
from tiltrm.solving.solution import puzzle_record
from tiltrm.tasks import Task

ENGINE = Path(tiltrm.__file__).parent / "serve" / "static" / "engine"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no node on this machine (apt install nodejs)")
EXACT = {"step", "steps", "particles", "evaluations", "ancestors", "leading", "stage", "fresh"}


def node(job: dict[str, Any]) -> dict[str, Any]:
    """The answer of engine.mjs to a job."""
    assert NODE is not None
    script = Path(__file__).parent / "engine.mjs"
    words = json.dumps({"engine": ENGINE.as_posix(), **job})
    done = subprocess.run([NODE, script], input=words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def weights_of(model: TRM) -> dict[str, Any]:
    def flat(tensor: torch.Tensor) -> list[float]:
        return tensor.flatten().tolist()

    def mlp(layer: Any) -> dict[str, list[float]]:
        return {
            "gate_up": flat(layer.gate_up_proj.weight), "down": flat(layer.down_proj.weight)
        }  # fmt: skip

    layers: Any = model.network.layers
    return {
        "embedding": flat(model.embedding), "prefix": flat(model.prefix),
        "token_head": flat(model.token_head.weight), "halt_head": flat(model.halt_head.weight),
        "halt_bias": float(model.halt_head.bias), "eps": model.config.eps,
        "layers": [{"tokens": mlp(own.mlp_t), "channels": mlp(own.mlp)} for own in layers],
    }  # fmt: skip


def of_library(model: TRM, task: Task, run: dict[str, Any]) -> dict[str, Any]:
    """The events of a run by the library; `run` has a puzzle, a seed, a method and settings."""
    puzzle, seed, method = task.encode(run.pop("puzzle")), run.pop("seed"), run.pop("method")
    search = build_search(model, task, method=method, **run)
    builder, steps = frames.FrameBuilder(search, task), list[dict[str, Any]]()
    result = run_search(
        search, puzzle[None], seed=seed, watch=lambda info: steps.append(builder.frame(info))
    )
    record = puzzle_record(task, puzzle, result, 0, 0.0, None)
    start = frames.start(
        task, model, puzzle, method=method, seed=seed, settings=run, model_name="toy"
    )
    return {"start": start, "steps": steps, "result": frames.result(record)}


def compare(run: dict[str, Any], wanted: dict[str, Any], found: dict[str, Any]) -> None:
    """The events of the page are those of the library; numbers to 1e-3."""
    assert found["start"].pop("note").startswith("toy is the model folder")
    assert found["start"] == wanted["start"], run
    assert len(found["steps"]) == len(wanted["steps"]), run
    for one, other in zip(wanted["steps"], found["steps"], strict=True):
        assert one.keys() == other.keys()
        assert {name: one[name] for name in EXACT} == {name: other[name] for name in EXACT}, run
        for name in one.keys() - EXACT - {"grids"}:
            assert other[name] == pytest.approx(one[name], abs=1e-3), (run, name)
    for name, value in wanted["result"].items():
        if name in ("confidence", "entropy", "halt_probability"):
            assert found["result"][name] == pytest.approx(value, abs=1e-4), (run, name)
        else:
            assert found["result"][name] == value, (run, name)

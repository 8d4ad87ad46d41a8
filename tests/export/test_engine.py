"""The page's engine in Node, beside the library: the same draws, decisions, answers and events."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import tiltrm
from tiltrm.explore import keys
from tiltrm.explore.choices import RESAMPLERS
from tiltrm.explore.running import run_search
from tiltrm.export.description import describe
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.serve import frames
from tiltrm.solving import build_search
from tiltrm.solving.solution import puzzle_record
from tiltrm.tasks import MAZE, SUDOKU, Maze, by_name

ENGINE = Path(tiltrm.__file__).parent / "serve" / "static" / "engine"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="no node on this machine (apt install nodejs)")
FOUR = by_name("sudoku4")


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


def test_draws_are_the_librarys() -> None:
    key = -8123456789012345678
    found = node({"draws": {"count": 4096, "key": str(key)}})
    own = torch.tensor([key])
    assert found["derived"] == str(int(keys.derive(own, 3, -7, 2**40)))
    assert found["uniforms"] == keys.uniforms(own, 5)[0].tolist()
    normals = torch.tensor(found["normals"])
    torch.testing.assert_close(normals, keys.normals(own, 4096)[0], rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("resampler", RESAMPLERS)
def test_ancestors_are_the_librarys(resampler: str) -> None:
    draw = torch.Generator().manual_seed(1)
    clouds = torch.log_softmax(3 * torch.randn(40, 7, generator=draw), -1)
    clouds[3, 2:] = -torch.inf
    clouds[3] = torch.log_softmax(clouds[3], -1)
    own = torch.arange(40) * 7919
    wanted = RESAMPLERS[resampler](clouds, own)
    jobs = [
        {"resampler": resampler, "key": str(int(key)),
         "weights": [w if w > -torch.inf else -1e9 for w in row.tolist()]}
        for row, key in zip(clouds, own, strict=True)
    ]  # fmt: skip
    assert node({"ancestors": jobs})["ancestors"] == wanted.tolist()


def test_rules_are_the_librarys() -> None:
    draw = torch.Generator().manual_seed(2)
    judged, wanted = [], []
    for task in (SUDOKU, FOUR, MAZE, Maze(6)):
        for seed in range(2):
            puzzle, answer = task.generate(seed)
            wrong = answer.clone()
            places = torch.randint(task.cells, (3,), generator=draw)
            wrong[places] = torch.randint(1, task.vocabulary, (3,), generator=draw).to(wrong.dtype)
            other = task.generate(seed + 5)[1]
            for given in (answer, wrong, other, puzzle):
                judged.append({"task": task.name, "side": task.side, "puzzle": puzzle.tolist(),
                               "answer": given.tolist()})  # fmt: skip
                wanted.append([int(task.violations(puzzle, given)),
                               bool(task.is_solved(puzzle, given))])  # fmt: skip
    assert node({"judged": judged})["judged"] == wanted
    assert [solved for _, solved in wanted].count(True) == 8


RUNS: list[dict[str, Any]] = [  # few particles and steps: the network here is plain JavaScript
    {"method": "adaptive", "seed": 0, "outer_steps": 23},
    {"method": "adaptive", "seed": 5, "particles": 4, "outer_steps": 23, "noise": 0.5},
    {"method": "adaptive", "seed": 1, "resample_below": 0.9, "outer_steps": 27, "particles": 4,
     "beta": 2.5},
    {"method": "adaptive", "seed": 2, "halt_above": 0.8, "outer_steps": 23},
    {"method": "adaptive", "seed": 3, "rules": True, "outer_steps": 3},
    {"method": "guided", "seed": 3, "particles": 4, "outer_steps": 6, "beta": 3.5,
     "resample_below": 0.95},
    {"method": "guided", "seed": 4, "particles": 3, "outer_steps": 3, "guide": "halting+.5*rules"},
    {"method": "guided", "seed": 4, "particles": 3, "outer_steps": 3, "guide": "confidence"},
    {"method": "guided", "seed": 4, "particles": 3, "outer_steps": 3, "guide": "2*residual"},
    {"method": "unguided", "seed": 0, "particles": 4, "outer_steps": 3},
    {"method": "deterministic", "seed": 0, "outer_steps": 9},
    {"method": "ptrm", "seed": -3, "outer_steps": 7, "particles": 3},
]  # fmt: skip


@pytest.fixture
def calm() -> TRM:
    """A random TRM with small weights, which does not magnify the last bits of float32."""
    torch.manual_seed(0)
    config = TRMConfig(cells=16, vocabulary=6, width=32, layers=1, heads=2, prefix=1, inner_steps=2)
    tiny = TRM(config, scale=0.5).eval().requires_grad_(False)
    torch.nn.init.normal_(tiny.halt_head.weight, std=0.2)
    torch.nn.init.zeros_(tiny.halt_head.bias)
    tiny.task, tiny.decide_above = "sudoku4", 100.0
    return tiny


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("block", "most_rows"), [(None, None), (3, None), (4, 1)])
def test_searches_take_the_librarys_decisions(
    calm: TRM, block: int | None, most_rows: int | None
) -> None:
    """Every frame of every method: ancestors, answers, stages, evaluations; numbers to 1e-3.

    With a block of 3, clouds of 4 are stepped in two calls. Where memory suffices for one row at a
    time only, calls get smaller until they fit.
    """
    runs = [{"puzzle": FOUR.decode(FOUR.generate(0)[0]), **run} for run in RUNS]
    if block is not None:
        runs = [run for run in runs if run.get("particles") == 4]
    known = describe(calm, "toy", FOUR)
    limits = {"block": block, "most_rows": most_rows}
    found = node({"known": known, "weights": weights_of(calm), "runs": runs, **limits})
    moved = 0
    for run, events in zip(runs, found["runs"], strict=True):
        wanted = of_library(calm, dict(run))
        compare(run, wanted, events)
        moved += sum(
            step["ancestors"] != sorted(set(step["ancestors"])) for step in wanted["steps"]
        )
    assert moved > 0  # some cloud was resampled
    if block is None:
        assert {run["result"]["decided_by"] for run in found["runs"]} == {"budget", "halting"}


def of_library(model: TRM, run: dict[str, Any]) -> dict[str, Any]:
    puzzle, seed, method = FOUR.encode(run.pop("puzzle")), run.pop("seed"), run.pop("method")
    search = build_search(model, FOUR, method=method, **run)
    builder, steps = frames.FrameBuilder(search, FOUR), list[dict[str, Any]]()
    result = run_search(
        search, puzzle[None], seed=seed, watch=lambda info: steps.append(builder.frame(info))
    )
    record = puzzle_record(FOUR, puzzle, result, 0, 0.0, None)
    start = frames.start(
        FOUR, model, puzzle, method=method, seed=seed, settings=run, model_name="toy"
    )
    return {"start": start, "steps": steps, "result": frames.result(record)}


EXACT = {"step", "steps", "particles", "evaluations", "ancestors", "leading", "stage", "fresh"}


def compare(run: dict[str, Any], wanted: dict[str, Any], found: dict[str, Any]) -> None:
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


def test_a_smaller_cloud_has_the_first_views(toy: TRM) -> None:
    """The description holds 32 views a stage; the library draws as many as there are particles."""
    from tiltrm.solving import default_plan, plan_views

    plan = default_plan(FOUR)
    few = plan_views(plan, FOUR, toy, torch.device("cpu"))
    wide = replace(plan, stages=tuple(replace(stage, particles=32) for stage in plan.stages))
    many = plan_views(wide, FOUR, toy, torch.device("cpu"))
    for stage, one, other in zip(plan.stages, few, many, strict=True):
        assert torch.equal(one.source, other.source[: stage.particles])
        assert torch.equal(one.names, other.names[: stage.particles])

"""Draws, resampling and searches of the page's engine, in Node, beside the library's."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.tasks.pencil.pencil_samples import PUZZLES

from tiltrm.explore import keys
from tiltrm.explore.choices import RESAMPLERS
from tiltrm.explore.guesses import add_votes, fill_in
from tiltrm.export.description import describe
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.solving.confidence import StopFeatures, calibration_of, stated_confidence
from tiltrm.solving.methods import adaptive_plan
from tiltrm.tasks import SUDOKU, Maze, by_name
from tiltrm.tasks.grid import BLANK, CellClues
from tiltrm.tasks.pencil import HEYAWAKE, PENCIL, TASKS
from tiltrm.tasks.pencil.clues import PencilClues
from tiltrm.tasks.pencil.tokens import LIGHT, SHADED, UNSHADED

from .engine import compare, needs_node, node, of_library, weights_of

pytestmark = needs_node
FOUR = by_name("sudoku4")


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


@pytest.mark.parametrize(("cells", "vocabulary"), [(16, 6), (81, 11)])
def test_guesses_are_the_librarys(cells: int, vocabulary: int) -> None:
    """Cells that agree, and puzzles with fewer cells to guess than guesses."""
    draw = torch.Generator().manual_seed(cells)
    puzzles, own = 12, torch.arange(12) * 7919 - 40_000
    tokens = torch.randint(BLANK, vocabulary, (puzzles, cells), generator=draw).to(torch.uint8)
    tokens[torch.rand(puzzles, cells, generator=draw) < 0.6] = BLANK
    tokens[0] = 2
    tokens[1, 2:] = 2
    most = 10 ** torch.randint(5, (puzzles, 1, 1), generator=draw)
    votes = (torch.rand(puzzles, cells, vocabulary, generator=draw) ** 3 * most).long()
    votes[:, ::3] = 0
    votes[:, ::3, 2] = 9
    votes[..., : BLANK + 1] = 0
    votes[tokens != BLANK] = 0
    votes[2] = votes[2, 0]  # no cell on which they differ
    jobs, wanted = [], []
    for particles in (1, 2, 7, 32):
        for count in (1, 2, 3):
            wanted += fill_in(tokens, votes, own, particles, count, CellClues()).tolist()
            jobs += [
                {"tokens": t, "votes": v, "key": str(k), "particles": particles, "count": count}
                for t, v, k in zip(tokens.tolist(), votes.tolist(), own.tolist(), strict=True)
            ]
    found = node({"guesses": jobs, "guessed_task": {"task": "sudoku", "side": 4, "symbols": []}})
    found = found["guesses"]
    assert found == wanted
    changed = [
        sum(new != old for new, old in zip(row, job["tokens"], strict=True))
        for job, rows in zip(jobs, found, strict=True)
        for row in rows
    ]
    assert set(changed) == {0, 1, 2, 3}


def test_guesses_on_pencil_puzzles_are_the_librarys() -> None:
    """Values of cells, and numbers of rooms, which all cells of a room show."""
    draw = torch.Generator().manual_seed(6)
    texts = ("a1 a b b/a c c b/d c e e/d c e e", "a a a a a/a a a a b/c c c b b/c2 d d d b")
    tokens = torch.stack(
        [HEYAWAKE.encode(text) for text in texts]
        + [
            TASKS[0].encode(".##./#.../...2/.0#."),
            TASKS[1].encode("2 . . ./. . . 3/. . . ./1 . . ."),
        ]
    )
    answers = torch.randint(UNSHADED, LIGHT + 1, (4, 9, 100), generator=draw).to(torch.uint8)
    answers[0, 0] = SHADED
    clues, own = PencilClues(), torch.arange(4) * 7919 - 9_000
    said = clues.in_answers(tokens, answers)
    votes = add_votes(None, said, torch.ones(4, 9, dtype=torch.bool), PENCIL.vocabulary)
    filled = fill_in(tokens, votes, own, 12, 2, clues)
    found = node({
        "said": [{"tokens": t, "answers": a}
                 for t, a in zip(tokens.tolist(), answers.tolist(), strict=True)],
        "guessed_task": {"task": "pencil"},
        "guesses": [{"tokens": t, "votes": v, "key": str(k), "particles": 12, "count": 2}
                    for t, v, k in zip(tokens.tolist(), votes.tolist(), own.tolist(), strict=True)],
    })  # fmt: skip
    assert found["said"] == said.tolist()
    assert found["guesses"] == filled.tolist()
    changed = (filled != tokens[:, None]).sum(-1)
    assert (changed[2:] == 2).all()
    assert changed[:2].max() > 2  # the cells of a room


def test_votes_are_the_librarys() -> None:
    """Those of a second cloud are added, and dead particles have none."""
    draw = torch.Generator().manual_seed(3)
    clouds, wanted = list[dict[str, Any]](), list[Any]()
    votes = None
    for particles in (1, 5, 8):
        said = torch.randint(6, (1, particles, 16), generator=draw).to(torch.uint8)
        alive = torch.rand(1, particles, generator=draw) < 0.7
        votes = add_votes(votes, said, alive, 6)
        clouds.append({"said": said[0].tolist(), "alive": alive[0].tolist()})
        wanted.append(votes[0].tolist())
    assert len({dead for cloud in clouds for dead in cloud["alive"]}) == 2
    assert node({"votes": {"clouds": clouds, "vocabulary": 6}})["votes"] == wanted


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


def random_model(task: str, **sizes: int) -> TRM:
    """A random TRM with small weights, which does not magnify the last bits of float32."""
    torch.manual_seed(0)
    config = TRMConfig(layers=1, heads=2, prefix=1, inner_steps=2, **sizes)
    tiny = TRM(config, scale=0.5).eval().requires_grad_(False)
    torch.nn.init.normal_(tiny.halt_head.weight, std=0.2)
    torch.nn.init.zeros_(tiny.halt_head.bias)
    tiny.task, tiny.decide_above = task, 100.0
    return tiny


@pytest.fixture
def calm() -> TRM:
    return random_model("sudoku4", cells=16, vocabulary=6, width=32)


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
        wanted = of_library(calm, FOUR, dict(run))
        compare(run, wanted, events)
        moved += sum(
            step["ancestors"] != sorted(set(step["ancestors"])) for step in wanted["steps"]
        )
    assert moved > 0  # some cloud was resampled
    if block is None:
        assert {run["result"]["decided_by"] for run in found["runs"]} == {"budget", "halting"}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", [*PUZZLES, "sudoku"])
def test_pencil_puzzles_take_the_librarys_decisions(name: str) -> None:
    """Events list the cells of the board; the rules are the only stopping rule by default."""
    model = random_model("pencil", cells=100, vocabulary=PENCIL.vocabulary, width=16)
    puzzle = PUZZLES[name][0] if name in PUZZLES else SUDOKU.decode(SUDOKU.generate(0)[0])
    runs: list[dict[str, Any]] = [
        {"puzzle": puzzle, "method": "adaptive", "seed": 0, "outer_steps": 22},
        {"puzzle": puzzle, "method": "adaptive", "seed": 0, "outer_steps": 3, "halt_above": -8.5},
        {"puzzle": puzzle, "method": "guided", "seed": 1, "outer_steps": 2, "particles": 2,
         "guide": "halting+rules"},
    ]  # fmt: skip
    known = describe(model, "toy", PENCIL)
    found = node({"known": known, "weights": weights_of(model), "runs": runs})["runs"]
    for run, events in zip(runs, found, strict=True):
        compare(run, of_library(model, PENCIL, dict(run)), events)
    assert [events["result"]["decided_by"] for events in found] == ["budget", "halting", "budget"]
    assert found[0]["start"]["type"] == name


@pytest.mark.usefixtures("one_thread")
def test_mazes_take_the_librarys_decisions() -> None:
    """A model that copies its puzzle finds the path between ends that are side by side."""
    maze = Maze(4)
    model = random_model("maze4", cells=16, vocabulary=maze.vocabulary, width=32)
    for weight in model.network.parameters():
        weight.mul_(0.01)
    model.token_head.weight.copy_(model.embedding[: maze.vocabulary])
    runs: list[dict[str, Any]] = [
        {"puzzle": puzzle, "method": "adaptive", "seed": 0, **settings}
        for puzzle, settings in (
            ("SG   ## # # # # ", {}), ("S  G ## # # # # ", {"outer_steps": 20}),
            ("S  G ## # # # # ", {"outer_steps": 4, "halt_above": -8.5}),
        )
    ]  # fmt: skip
    known = describe(model, "toy", maze)
    found = node({"known": known, "weights": weights_of(model), "runs": runs})["runs"]
    for run, events in zip(runs, found, strict=True):
        compare(run, of_library(model, maze, dict(run)), events)
    reasons = [events["result"]["decided_by"] for events in found]
    assert reasons == ["agreement", "budget", "halting"]
    own = adaptive_plan(model, maze)
    assert known["planned"]["shortest_visited"] is own.stopping.shortest_visited is True


def calibrated_by(model: TRM) -> dict[str, Any]:
    """A calibration for the model's own plan; it has never seen a puzzle without a decision."""
    curve = {"weights": [0.5, 0.25, 0.3], "above": [-1.0, 0.5, 2.0],
             "share": [0.11, 0.42, 0.73, 0.94], "puzzles": 50}  # fmt: skip
    return {
        "task": "sudoku4", "data": "", "puzzles": 50, "wrong": 1, "judge": "labels",
        "settings": adaptive_plan(model, FOUR).settings(), "curves": {"halting": curve},
        "ladder": [],
    }  # fmt: skip


TUNED: dict[str, Any] = {
    "task": "sudoku4", "stages": "1x2 2x3*2 3x2@0.7", "noise": 0.4, "beta": 1.5,
    "symmetric_views": True, "halt_above": 0.6, "rules": False,
}  # fmt: skip


@pytest.mark.usefixtures("one_thread")
def test_a_tuned_plan_and_a_calibration_are_the_models(calm: TRM) -> None:
    """The settings of the calibration, others, and a stopping rule that it never saw."""
    calm.tuned = TUNED
    calm.calibration = calibrated_by(calm)
    runs = [
        {"puzzle": FOUR.decode(FOUR.generate(seed)[0]), "method": "adaptive", "seed": seed, **own}
        for seed in range(4)
        for own in ({}, {"particles": 2}, {"halt_above": 0.3}, {"noise": 0.4}, {"rules": True})
    ]
    known = describe(calm, "toy", FOUR)
    found = node({"known": known, "weights": weights_of(calm), "runs": runs})["runs"]
    for run, events in zip(runs, found, strict=True):
        compare(run, of_library(calm, FOUR, dict(run)), events)
    assert {events["result"]["decided_by"] for events in found} >= {"halting", "budget"}


GUESSING: dict[str, Any] = {
    **TUNED, "stages": "1x2 4x3 4x2?1*2 5x2@0.7?2 3x1", "halt_above": 9.0, "noise": 0.3,
}  # fmt: skip


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("dying", [False, True])
def test_guesses_of_a_search_are_the_librarys(calm: TRM, dying: bool) -> None:
    """Where halt logits overflow, particles that have an answer die and have no vote."""
    tuned = GUESSING
    if dying:
        calm.halt_head.weight.zero_()[:, 1] = 3e38
        tuned = {**GUESSING, "beta": 0.0, "halt_above": None, "rules": True}
    runs = [
        {"puzzle": FOUR.decode(FOUR.generate(seed)[0]), "method": "adaptive", "seed": seed, **own}
        for seed in range(3)
        for own in ({}, {"particles": 4, "outer_steps": 11})
    ]
    calm.tuned = {**tuned, "stages": tuned["stages"].replace("?1", "").replace("?2", "")}
    plain = [of_library(calm, FOUR, dict(run))["steps"] for run in runs]
    calm.tuned = tuned
    known = describe(calm, "toy", FOUR)
    found = node({"known": known, "weights": weights_of(calm), "runs": runs})["runs"]
    for run, without, events in zip(runs, plain, found, strict=True):
        wanted = of_library(calm, FOUR, dict(run))
        if dying:  # halt logits are scores, and these are too large for the comparison
            for step in (*wanted["steps"], *events["steps"]):
                del step["scores"]
        compare(run, wanted, events)
        assert (0.0 in wanted["steps"][4]["weights"]) == dying
        assert wanted["steps"][4]["leading"] == without[4]["leading"]
        assert wanted["steps"][5]["leading"] != without[5]["leading"]  # the first after guesses


def test_the_settings_of_a_plan_are_the_librarys(calm: TRM) -> None:
    calm.tuned = {**GUESSING, "stages": "1x2 4x3@0.25?1*2 4x3@0.25 4x3?1 8x3?2*3"}
    settings: list[dict[str, Any]] = [
        {}, {"particles": 4}, {"particles": 6}, {"outer_steps": 10}, {"noise": 0.2}
    ]  # fmt: skip
    found = node({"settings": settings, "settings_of": describe(calm, "toy", FOUR)})["settings"]
    assert found == [adaptive_plan(calm, FOUR, **own).settings() for own in settings]
    assert found[0]["stages"] == calm.tuned["stages"]


@pytest.mark.parametrize(
    ("confidence", "halt", "steps"), [(0.2, 0.9, 1), (1.0, 1.0, 5), (0.0, 0.0, 90), (0.7, 0.4, 7)]
)
@pytest.mark.parametrize("decided_by", ["halting", "agreement", "budget", "rules"])
def test_the_stated_confidence_is_the_librarys(
    decided_by: str, confidence: float, halt: float, steps: int
) -> None:
    model = random_model("sudoku4", cells=16, vocabulary=6, width=32)
    model.calibration = calibrated_by(model)
    calibration = calibration_of(model)
    assert calibration is not None
    features = StopFeatures(
        [decided_by], torch.tensor([confidence]), torch.tensor([halt]), torch.tensor([steps]),
        torch.tensor([True]),
    )  # fmt: skip
    stop = {"decidedBy": decided_by, "confidence": confidence, "halt": halt, "outerSteps": steps,
            "valid": True}  # fmt: skip
    known = describe(model, "toy", FOUR)
    jobs = [{"known": known, "settings": own, "stop": stop} for own in ({}, {"noise": 0.7})]
    model.calibration = None
    jobs.append({"known": describe(model, "toy", FOUR), "settings": {}, "stop": stop})
    cases = ((calibration, True), (calibration, False), (None, True))
    for own, (known_curves, same) in zip(node({"stated": jobs})["stated"], cases, strict=True):
        wanted = float(stated_confidence(known_curves, features, same=same))
        assert own == pytest.approx(wanted, abs=1e-7)


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

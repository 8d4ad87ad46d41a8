"""Trajectories that see a puzzle under symmetries: turned back exactly, and alone in any batch."""

from dataclasses import dataclass, replace

import pytest
import torch
import torch.nn.functional as F
from tests.evaluate.toys import Copying
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore.choices import make_noise
from tiltrm.explore.cloud import Clock, StepInfo, make_problem
from tiltrm.explore.noise import INNER, Where
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.running import solve_adaptively as solve
from tiltrm.explore.stopping import by_agreement, by_halting
from tiltrm.model.trm import TRM
from tiltrm.solving import plan_views
from tiltrm.tasks import Sudoku
from tiltrm.tasks.base import Symmetry, views

from .test_adaptive import same

TASK = Sudoku(2)
PLAN = Adaptive(stages=(Stage(1, 2), Stage(4, 2), Stage(6, 2)), noise=0.0, symmetric_views=True)


@dataclass
class Echo(Copying):
    """Answers with its question; the halting head passes only views that begin with `token`."""

    token: int = -1
    vocabulary = 7  # one id more than the task has

    def embed(self, tokens: Tensor) -> Tensor:
        return F.one_hot(tokens.long(), self.vocabulary).float()

    def decode(self, answer: Tensor) -> Tensor:
        return answer * torch.linspace(2.0, 3.0, 16)[:, None]  # surer of the later cells

    def halt_logit(self, answer: Tensor) -> Tensor:
        return 2.0 * (answer[..., 0, :].argmax(-1) == self.token).float()


VIEWS = plan_views(PLAN, TASK, Echo(), torch.device("cpu"))


def puzzles(count: int) -> Tensor:
    return torch.stack([TASK.generate(seed)[0] for seed in range(count)])


def test_answers_are_turned_back_before_anybody_looks() -> None:
    tokens, seen = puzzles(5), list[StepInfo]()
    solve(Echo(), tokens, {}, PLAN, views=VIEWS, watch=seen.append)
    particles = [info.context.answers.shape[1] for info in seen]
    assert particles == [1, 1, 4, 4, 6, 6]
    for info in seen:
        assert torch.equal(info.context.answers, tokens[:, None].expand_as(info.context.answers))
    inputs = seen[-1].context.problem.inputs
    assert len({tuple(row) for row in inputs[0].argmax(-1).tolist()}) == 6
    agreed = solve(Echo(), tokens, {"all": by_agreement(1.0, 4)}, PLAN, views=VIEWS)
    assert agreed.outer_steps.tolist() == [3] * 5


def test_what_is_said_of_a_cell_is_turned_back_too() -> None:
    """A view decides; how sure it is of its cells is said of the cells they are in the puzzle."""
    tokens = puzzles(12)
    first = [set(view[:, 0].tolist()) for view in _seen(tokens)]
    token = next(t for t in range(1, 6) if t not in first[0] and t in first[1])
    model, turned = Echo(token), VIEWS[1]
    found = solve(model, tokens, {"halting": by_halting(model, 1.0)}, PLAN, views=VIEWS)
    assert torch.equal(found.answers, tokens)
    moved = turned.apply(tokens.expand(4, -1, -1))  # (particle, puzzle, cell)
    places = set()
    for row in (found.outer_steps == 3).nonzero()[:, 0].tolist():
        view = int((moved[:, row, 0] == token).int().argmax())
        own = model.decode(model.embed(moved[view, row])).softmax(-1).amax(-1)
        expected = torch.empty(16)
        expected[turned.source[view]] = own
        sure = found.confidence[row]
        assert torch.allclose(found.cell_confidence[row], sure + (1 - sure) * expected)
        places.add(tuple(turned.source[view].tolist()))
    assert places - {tuple(range(16))}  # some cells did move


def _seen(tokens: Tensor) -> list[Tensor]:
    """How the particles of every stage see the puzzles: (puzzle x particle, cell)."""
    return [v.apply(tokens.expand(len(v.names), -1, -1)).flatten(0, 1) for v in VIEWS]


def test_shares_are_undone_as_tokens_are() -> None:
    tokens = puzzles(3)
    turned = TASK.symmetry(3, torch.Generator().manual_seed(1))
    shares = F.one_hot(turned.apply(tokens).long(), TASK.vocabulary).float()
    assert torch.equal(turned.undo_shares(shares).argmax(-1), tokens.long())


def test_stages_look_in_different_ways_and_always_the_same() -> None:
    turned = VIEWS
    assert [len(view.source) for view in turned] == [1, 4, 6]
    as_it_is = torch.cat((torch.arange(16), torch.arange(7)))
    for number, view in enumerate(turned):
        same = (torch.cat((view.source, view.names), 1) == as_it_is).all(1)
        assert same.tolist() == [number == 0] * len(same)  # only the very first trajectory
        assert torch.equal(view.names[:, 6], torch.full((len(view.names),), 6))
    assert not torch.equal(turned[1].source, turned[2].source[:4])
    again = plan_views(PLAN, TASK, Echo(), torch.device("cpu"))
    assert all(torch.equal(a.names, b.names) for a, b in zip(turned, again, strict=True))
    assert plan_views(replace(PLAN, symmetric_views=False), TASK, Echo(), torch.device("cpu")) == ()


def test_every_stage_after_the_first_starts_afresh(model: TRM, tokens: Tensor) -> None:
    """Nothing of the stage before is left, and no trajectory after the first is without noise."""
    plan = Adaptive((Stage(1, 2), Stage(1, 2), Stage(3, 1)), noise=0.3, symmetric_views=True)
    seen, steps = plan_views(plan, TASK, model, torch.device("cpu")), list[StepInfo]()
    solve(model, tokens, {}, plan, views=seen, watch=steps.append)
    noise = make_noise(plan.exploration(), model)
    for number, first in ((1, 2), (2, 4)):
        context = steps[first].context
        start = model.start(context.problem.inputs)
        assert torch.equal(context.previous.latent, start.latent)
        assert torch.equal(context.previous.answer, start.answer)
        where = Where(context.clock, INNER, context.problem.particles)
        assert noise.placement(where) == plan.noise, number
    first = Where(Clock(2, plan.outer_steps), INNER, torch.arange(1))
    assert float(torch.as_tensor(noise.placement(first)).sum()) == 0.0


def test_company_changes_nothing(model: TRM, tokens: Tensor) -> None:
    plan = replace(PLAN, noise=0.3)
    seen = plan_views(plan, TASK, model, torch.device("cpu"))
    judge = {"halting": by_halting(model, 0.0)}
    whole = solve(model, tokens, judge, plan, views=seen, keys=torch.arange(len(tokens)))
    for row in range(len(tokens)):
        keys = torch.tensor([row])
        alone = solve(model, tokens[row : row + 1], judge, plan, views=seen, keys=keys)
        assert same(alone, whole, keys)


def test_a_view_is_the_model_on_the_turned_puzzle(model: TRM, tokens: Tensor) -> None:
    turned = views(TASK, 3, seed=4)
    question = make_problem(model, tokens, 3).with_views(model, turned)
    for particle in range(3):
        one = Symmetry(turned.source[particle][None], turned.names[particle][None])
        moved = one.apply(tokens[None])[0]
        assert torch.equal(question.inputs[:, particle], model.embed(moved))
    part = question.part(slice(1, 2), slice(2, 3))
    assert torch.equal(part.inputs[0, 0], question.inputs[1, 2])
    assert part.views is not None
    assert torch.equal(part.views.source[0], turned.source[2])


def test_what_cannot_be_turned_is_refused() -> None:
    with pytest.raises(SettingsError, match="symmetric_views"):
        Adaptive(symmetric_views=True, resample_below=0.3)
    with pytest.raises(SettingsError, match="symmetric_views"):
        Adaptive(stages=(Stage(1, 2), Stage(4, 2, continues=True)), symmetric_views=True)
    for plan, seen in (
        (PLAN, ()),
        (PLAN, VIEWS[:2]),
        (replace(PLAN, symmetric_views=False), VIEWS),
    ):
        with pytest.raises(SettingsError, match="views for every stage"):
            solve(Echo(), puzzles(1), {}, plan, views=seen)

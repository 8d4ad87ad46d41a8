"""explore as a whole: its limits, its bookkeeping, and how it fails."""

from dataclasses import fields, replace
from importlib import import_module

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.errors import DegenerateError, PuzzleError, SettingsError
from tiltrm.explore import (
    Clock,
    Exploration,
    NoiseFreeFirst,
    StepInfo,
    everywhere,
    explore,
    initial_cloud,
    make_problem,
    step,
)
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.resample import systematic
from tiltrm.explore.result import beliefs, token_entropy
from tiltrm.explore.running import solve_adaptively as solve
from tiltrm.explore.search import step_functions
from tiltrm.explore.stopping import by_halting
from tiltrm.model.base import State
from tiltrm.model.base import step as model_step
from tiltrm.model.trm import TRM, TRMConfig

SMALL = Exploration(particles=8, outer_steps=4)


class Broken:
    """A model whose state turns into NaN for some particles, or whose halting head does."""

    def __init__(self, model: TRM, dead: Tensor, where: str) -> None:
        self.model, self.dead, self.where = model, dead, where

    def __getattr__(self, name: str) -> object:
        return getattr(self.model, name)

    def answer(self, state: State) -> Tensor:
        out = self.model.answer(state)
        if self.where == "state":
            out[..., -1, -1].masked_fill_(self.dead, torch.nan)
        return out

    def halt_logit(self, answer: Tensor) -> Tensor:
        logit = self.model.halt_logit(answer)
        return logit * torch.nan if self.where == "score" else logit


def test_public_names() -> None:
    package = import_module("tiltrm.explore")  # tiltrm.explore itself is the function
    assert all(hasattr(package, name) for name in package.__all__)
    assert {"Exploration", "Result", "Trace", "explore", "guides"} <= set(package.__all__)


@pytest.mark.usefixtures("one_thread")
def test_one_quiet_particle_is_the_model(model: TRM, tokens: Tensor) -> None:
    """S = 1 and sigma = 0 is the deterministic model, bit for bit (remark 4.1)."""
    settings = Exploration(particles=1, noise=0.0, outer_steps=5)
    with torch.inference_mode():
        inputs = model.embed(tokens)
        state = model.start(inputs)
        for _ in range(5):
            state = model_step(model, inputs, state)
        problem = make_problem(model, tokens, 1)
        cloud, functions = initial_cloud(model, problem), step_functions(model, settings)
        for n in range(1, 6):
            cloud, _ = step(cloud, problem, Clock(n, 5), model, **functions._asdict())
        assert torch.equal(cloud.state.answer[:, 0], state.answer)
        assert torch.equal(cloud.state.latent[:, 0], state.latent)
        result = explore(model, tokens, settings)
        assert torch.equal(result.answers.long(), model.decode(state.answer).argmax(-1))
    assert (result.confidence == 1).all()
    assert (result.log_weights == 0).all()
    assert (result.terminal_entropy == 0).all()


def test_noise_free_first_particle_is_the_model(model: TRM, tokens: Tensor) -> None:
    settings = replace(SMALL, placement=NoiseFreeFirst(everywhere), trigger="never")
    cloud = explore(model, tokens, settings, trace=True)
    quiet = explore(model, tokens, replace(SMALL, particles=1, noise=0.0), trace=True)
    assert cloud.trace is not None
    assert quiet.trace is not None
    assert torch.equal(cloud.trace.scores[..., 0], quiet.trace.scores[..., 0])
    assert torch.equal(cloud.trace.answers[:, :, 0], quiet.trace.answers[:, :, 0])
    assert (cloud.trace.scores[..., 1:] != cloud.trace.scores[..., :1]).all()


def test_what_a_result_says_agrees_with_itself(model: TRM, tokens: Tensor) -> None:
    result = explore(model, tokens, replace(SMALL, trigger="always"), trace=True)
    weights = result.log_weights.exp()
    same = (result.particle_answers == result.answers[:, None]).all(-1)
    assert torch.allclose(weights.sum(-1), torch.ones(6))
    assert torch.allclose(result.confidence, (weights * same).sum(-1))
    agree = (result.particle_answers == result.answers[:, None]).float()
    assert torch.allclose(result.cell_confidence, (weights[..., None] * agree).sum(1))
    assert ((result.terminal_entropy >= 0) & (result.terminal_entropy <= 1)).all()
    assert (result.evaluations == 8 * 4 * (model.inner_steps + 1)).all()
    trace = result.trace
    assert trace is not None
    assert trace.scores.shape == (6, 4, 8)
    assert trace.answers.shape == (6, 4, 8, 16)
    assert trace.answers.dtype == torch.uint8
    assert torch.allclose(result.ess, 1 / trace.log_weights[:, -1].exp().square().sum(-1))
    assert torch.equal(result.ess, trace.ess[:, -1])
    last = torch.gather(trace.scores[:, -1], 1, trace.ancestors[:, -1])
    assert torch.equal(last, result.scores)
    kept = trace.ancestors[:, -1, :, None].expand(-1, -1, 16)
    assert torch.equal(torch.gather(trace.answers[:, -1], 1, kept), result.particle_answers)
    chosen = torch.where(same, result.scores, -torch.inf).amax(-1)
    assert torch.equal(chosen, result.score)
    assert torch.allclose(result.halt_probability, result.score.exp())
    assert result.contraction is not None
    assert torch.allclose(result.contraction, result.path_entropy - result.terminal_entropy)
    result.answers[0] = 0  # an ordinary tensor, which the caller may change


def test_terminal_entropy_of_a_known_cloud() -> None:
    answers = torch.tensor([[[1, 1], [1, 2]]], dtype=torch.uint8)
    even = torch.log(torch.tensor([[0.5, 0.5]]))
    expected = torch.tensor([[0.0, 0.5]])  # log 2 / log 4
    assert torch.allclose(token_entropy(answers, even, 4), expected)
    dead = torch.full((1, 2), -torch.inf)
    assert torch.equal(token_entropy(answers, dead, 4), torch.ones(1, 2))


@pytest.mark.parametrize("particles", [1, 8])
def test_beliefs_are_those_of_the_puzzle_asked_for(
    model: TRM, tokens: Tensor, particles: int
) -> None:
    """Votes by weight, or the one particle's own probabilities; another row is another puzzle."""
    settings, seen = replace(SMALL, particles=particles, beta=2.0), list[StepInfo]()
    result = explore(model, tokens, settings, watch=seen.append, trace=True, chunk=6)
    assert result.trace is not None
    info = seen[-1]
    for row in range(6):
        weights, answers = info.log_weights[row].exp(), result.trace.answers[row, -1].long()
        wanted = (weights[:, None, None] * F.one_hot(answers, model.vocabulary)).sum(0)
        if particles == 1:
            wanted = model.decode(info.context.state.answer[row, 0]).softmax(-1)
        got = beliefs(info, model.vocabulary, row)
        assert torch.allclose(got.float(), wanted, atol=1e-5)
        assert not torch.allclose(got, beliefs(info, model.vocabulary, (row + 1) % 6), atol=1e-2)


@pytest.mark.parametrize("every", [1, 2])
def test_path_entropy_is_the_mean_along_the_trace(model: TRM, tokens: Tensor, every: int) -> None:
    settings = replace(SMALL, trigger="never", entropy_every=every, noise=1.0)
    result = explore(model, tokens, settings, trace=True)
    assert result.trace is not None
    assert result.path_entropy is not None
    terms = [
        token_entropy(result.trace.answers[:, n], result.trace.log_weights[:, n], model.vocabulary)
        for n in range(every - 1, 4, every)
    ]
    assert torch.allclose(result.path_entropy, torch.stack(terms).mean(0), atol=1e-6)
    assert torch.equal(result.terminal_entropy, terms[-1])
    assert result.path_entropy.mean() > 0.01


def test_the_path_ends_in_the_terminal_entropy(model: TRM, tokens: Tensor) -> None:
    """Both are of the cloud that goes on; of one term, the last, nothing contracts."""
    settings = replace(SMALL, trigger="always", entropy_every=4, noise=1.0, beta=2.0)
    result = explore(model, tokens, settings)
    assert result.path_entropy is not None
    assert torch.equal(result.path_entropy, result.terminal_entropy)
    assert result.terminal_entropy.mean() > 0.01


def test_every_step_and_puzzle_resamples_with_its_own_key(model: TRM, tokens: Tensor) -> None:
    seen: list[Tensor] = []

    def spy(log_weights: Tensor, keys: Tensor) -> Tensor:
        seen.append(keys)
        return systematic(log_weights, keys)

    explore(model, tokens, replace(SMALL, resampler=spy, trigger="always"), chunk=6)
    assert len(torch.cat(seen).unique()) == 6 * 4


def test_recording_changes_nothing(model: TRM, tokens: Tensor) -> None:
    plain = explore(model, tokens, replace(SMALL, entropy_every=0))
    full = explore(model, tokens, SMALL, trace=True)
    assert plain.path_entropy is None
    assert plain.contraction is None
    assert plain.trace is None
    for field in fields(plain):
        value = getattr(plain, field.name)
        if value is not None:
            assert torch.equal(value, getattr(full, field.name)), field.name


def test_seed_and_keys_are_the_randomness(model: TRM, tokens: Tensor) -> None:
    first, again = (explore(model, tokens, SMALL, seed=3) for _ in range(2))
    other = explore(model, tokens, SMALL, seed=4)
    assert torch.equal(first.scores, again.scores)
    assert not torch.isclose(first.scores, other.scores, atol=1e-6).any()
    twice = tokens[:1].repeat(2, 1)
    same = explore(model, twice, SMALL)
    assert torch.equal(same.scores[0], same.scores[1])
    apart = explore(model, twice, SMALL, keys=torch.tensor([1, 2]))
    assert not torch.isclose(apart.scores[0], apart.scores[1], atol=1e-6).any()


def test_labels_give_the_oracle(model: TRM, tokens: Tensor) -> None:
    found = explore(model, tokens, SMALL).particle_answers
    labels = found[:, 5].clone()
    labels[0] = 0
    result = explore(model, tokens, replace(SMALL, select="oracle"), labels=labels)
    assert result.oracle is not None
    assert result.oracle.tolist() == [False] + [True] * 5
    assert torch.equal(result.answers[1:], labels[1:])
    assert explore(model, tokens, SMALL).oracle is None


def test_progress_reaches_its_total(model: TRM, tokens: Tensor) -> None:
    seen: list[tuple[int, int]] = []
    steps: list[int] = []
    explore(
        model, tokens, SMALL, chunk=4, progress=lambda *at: seen.append(at),
        watch=lambda info: steps.append(info.context.clock.step),
    )  # fmt: skip
    assert steps == [1, 2, 3, 4] * 2
    assert seen[-1] == (24, 24)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


@pytest.mark.parametrize("where", ["state", "score"])
def test_a_model_of_nan_ends_in_an_error_or_an_abstention(
    model: TRM, tokens: Tensor, where: str
) -> None:
    broken = Broken(model, torch.tensor(True), where)
    with pytest.raises(DegenerateError, match="6"):
        explore(broken, tokens, SMALL)
    result = explore(broken, tokens, replace(SMALL, on_degenerate="abstain"), trace=True)
    assert result.degenerate.all()
    assert (result.answers == 0).all()
    assert (result.confidence == 0).all()
    assert (result.halt_probability == 0).all()
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, Tensor) and value.is_floating_point():
            assert not value.isnan().any(), field.name


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("trigger", ["ess", "never", "always"])
def test_dead_particles_have_no_weight_and_no_say(model: TRM, tokens: Tensor, trigger: str) -> None:
    """Half the slots die at every step; the others go on, and the dead never have offspring."""
    broken = Broken(model, torch.arange(8) % 2 == 0, "state")
    result = explore(broken, tokens, replace(SMALL, trigger=trigger), trace=True)
    assert result.trace is not None
    assert (result.trace.log_weights[..., ::2] == -torch.inf).all()
    assert torch.allclose(result.trace.log_weights.exp().sum(-1), torch.ones(6, 4))
    assert not result.degenerate.any()
    alive = result.log_weights > -torch.inf
    same = (result.particle_answers == result.answers[:, None]).all(-1) & alive
    assert torch.allclose(result.agreement, same.sum(-1) / alive.sum(-1))
    if trigger == "never":
        assert (alive.sum(-1) == 4).all()
    if trigger == "always":
        assert (result.trace.ancestors % 2 == 1).all()


@pytest.mark.usefixtures("one_thread")
def test_only_the_dead_puzzles_abstain(model: TRM, tokens: Tensor) -> None:
    dead = torch.tensor([False, True, False, False, False, True])[:, None]
    settings = replace(SMALL, on_degenerate="abstain")
    result = explore(Broken(model, dead, "state"), tokens, settings, chunk=6)
    alive = ~dead[:, 0]
    assert torch.equal(result.degenerate, dead[:, 0])
    assert torch.equal(result.answers[alive], explore(model, tokens[alive], settings).answers)
    with pytest.raises(DegenerateError, match="1, 5"):
        explore(Broken(model, dead, "state"), tokens, SMALL, chunk=6)


@pytest.mark.parametrize(
    "bad",
    [
        torch.ones(2, 15, dtype=torch.long),
        torch.ones(16, dtype=torch.long),
        torch.ones(0, 16, dtype=torch.long),
        torch.ones(2, 16),
        torch.full((2, 16), 6),
        torch.full((2, 16), -1),
    ],
)
def test_tokens_that_do_not_fit_are_refused(model: TRM, bad: Tensor) -> None:
    with pytest.raises(PuzzleError, match="tokens must"):
        explore(model, bad, SMALL)


@pytest.mark.parametrize("shape", [(), (6,), (6, 1), (8,), (6, 8, 1)])
def test_scores_of_another_shape_are_refused(
    model: TRM, tokens: Tensor, shape: tuple[int, ...]
) -> None:
    """Most of these would broadcast, and weigh the wrong particles."""
    with pytest.raises(SettingsError, match=r"\(6, 8\) scores, got"):
        explore(model, tokens, SMALL, guide=lambda state, context: torch.zeros(shape), chunk=6)


def test_ids_that_an_answer_cannot_hold_are_refused(tokens: Tensor) -> None:
    """uint8 would wrap 256 to 0 without a word."""
    for vocabulary in (256, 257):
        config = TRMConfig(cells=16, vocabulary=vocabulary, width=8, layers=1, heads=1, prefix=1)
        large = TRM(config).eval().requires_grad_(False)
        if vocabulary == 256:
            explore(large, tokens, replace(SMALL, outer_steps=1))
            continue
        with pytest.raises(SettingsError, match=r"at most 256 token ids .* got 257"):
            explore(large, tokens, SMALL)


def test_an_evaluation_is_one_call_for_one_trajectory(model: TRM, tokens: Tensor) -> None:
    """What is counted is what was computed: every row that the network was given."""
    rows: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(model, name)

        def refine(self, inputs: Tensor, state: State) -> Tensor:
            rows.append(state.latent.shape[:2].numel())
            return model.refine(inputs, state)

        def answer(self, state: State) -> Tensor:
            rows.append(state.answer.shape[:2].numel())
            return model.answer(state)

    found = explore(Counting(), tokens, SMALL)
    assert int(found.evaluations.sum()) == sum(rows)
    rows.clear()
    plan = Adaptive((Stage(1, 2), Stage(3, 2)))
    solved = solve(Counting(), tokens, {"halting": by_halting(model, 0.0)}, plan)
    assert len(set(solved.evaluations.tolist())) > 1  # some left early
    assert int(solved.evaluations.sum()) == sum(rows)


def test_arguments_that_do_not_fit_are_refused(model: TRM, tokens: Tensor) -> None:
    with pytest.raises(PuzzleError, match="keys must"):
        explore(model, tokens, SMALL, keys=torch.arange(5))
    with pytest.raises(PuzzleError, match="labels must"):
        explore(model, tokens, SMALL, labels=tokens[:5])
    with pytest.raises(SettingsError, match="chunk must"):
        explore(model, tokens, SMALL, chunk=0)
    with pytest.raises(SettingsError, match="needs labels"):
        explore(model, tokens, replace(SMALL, select="oracle"))

"""Adaptive solving: exact in any batch, exact in what it counts, and never silent."""

import math
from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from tiltrm.errors import DeviceError, SettingsError
from tiltrm.explore import running, search
from tiltrm.explore.batches import Batch, StepResult
from tiltrm.explore.cloud import Cloud, Context, StepInfo
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.result import SearchResult, token_entropy
from tiltrm.explore.running import solve_adaptively as solve
from tiltrm.explore.search import UNDECIDED, StagedSearch
from tiltrm.explore.stopping import by_agreement, by_halting, by_rules
from tiltrm.model.base import State, evaluations_per_step
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.solving import plan_views, stopping_rules
from tiltrm.tasks import Sudoku

PLAN = Adaptive(stages=(Stage(1, 3), Stage(3, 2), Stage(5, 2)))
NEVER = math.inf


def same(one: SearchResult, other: SearchResult, rows: Tensor) -> bool:
    """Whether `one` is what `other` says of these rows, to the last bit."""
    for field in fields(SearchResult):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, Tensor):
            if not torch.equal(a, b[rows]):
                return False
        elif a != tuple(b[row] for row in rows.tolist()):
            return False
    return True


def middling(model: TRM, tokens: Tensor) -> float:
    """A threshold that some puzzles pass early, some late and some never."""
    best: list[Tensor] = []
    solve(model, tokens, {}, PLAN, watch=lambda info: best.append(info.score.amax(-1)))
    q = float(torch.stack(best).amax(0).median())
    return math.log(math.expm1(-math.log(1 - math.exp(q)))) if q < -1e-6 else 0.0


def test_a_threshold_below_all_decides_at_the_first_step(model: TRM, tokens: Tensor) -> None:
    solution = solve(model, tokens, {"halting": by_halting(model, -NEVER)}, PLAN)
    inputs = model.embed(tokens)
    state = model.step(inputs, model.start(inputs))
    assert torch.equal(solution.answers, model.decode(state.answer).argmax(-1).to(torch.uint8))
    assert solution.evaluations.tolist() == [evaluations_per_step(model)] * len(tokens)
    assert solution.decided_by == ("halting",) * len(tokens)
    assert torch.allclose(solution.confidence, torch.sigmoid(model.halt_logit(state.answer)))


def test_a_threshold_above_all_spends_the_whole_plan(model: TRM, tokens: Tensor) -> None:
    solution = solve(model, tokens, {"halting": by_halting(model, NEVER)}, PLAN)
    whole = (1 * 3 + 3 * 2 + 5 * 2) * evaluations_per_step(model)
    assert solution.evaluations.tolist() == [whole] * len(tokens)
    assert solution.outer_steps.tolist() == [PLAN.outer_steps] * len(tokens)
    assert solution.particles.tolist() == [5] * len(tokens)
    assert set(solution.decided_by) == {UNDECIDED}


class Wavering(TRM):
    """Its answer to every puzzle is 2, then 3, then 3 for good; its state counts the steps."""

    def start(self, inputs: Tensor) -> State:
        return State(torch.zeros_like(inputs), torch.zeros_like(inputs))

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        return state.latent

    def answer(self, state: State) -> Tensor:
        return state.answer + 1

    def decode(self, answer: Tensor) -> Tensor:
        token = (answer[..., 1:, 0].round().long() + 1).clamp(max=3)
        return torch.nn.functional.one_hot(token, self.vocabulary).float()


@pytest.mark.parametrize(("settled", "steps", "token"), [(False, 1, 2), (True, 3, 3)])
@pytest.mark.parametrize("turned", [False, True])
def test_what_still_changes_is_not_settled(
    model: TRM, tokens: Tensor, settled: bool, steps: int, token: int, turned: bool
) -> None:
    plan = Adaptive((Stage(1, 6), Stage(2, 3)), symmetric_views=turned)
    seen = plan_views(plan, Sudoku(2), model, torch.device("cpu"))
    rules = {"halting": by_halting(model, -NEVER, settled=settled)}
    found = solve(Wavering(model.config), tokens, rules, plan, views=seen)
    assert found.outer_steps.tolist() == [steps] * len(tokens)
    assert (found.answers == token).all()
    assert found.decided_by == ("halting",) * len(tokens)


def test_company_order_and_chunks_change_nothing(
    model: TRM, tokens: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {"halting": by_halting(model, middling(model, tokens))}
    whole = solve(model, tokens, rules, PLAN, seed=3)
    assert len(set(whole.decided_by)) == 2, "the threshold should divide the puzzles"
    order = torch.tensor([4, 0, 3])
    assert same(solve(model, tokens[order], rules, PLAN, seed=3), whole, order)
    everyone = torch.arange(len(tokens))
    for rows in (1, 7):
        monkeypatch.setattr(running, "chunk_size", lambda *_, rows=rows: rows)
        assert same(solve(model, tokens, rules, PLAN, seed=3), whole, everyone)
    keys = 7 * everyone
    keyed = solve(model, tokens, rules, PLAN, keys=keys)
    monkeypatch.setattr(running, "EMBEDDED", 2)
    assert same(solve(model, tokens, rules, PLAN, seed=3), whole, everyone)
    assert same(solve(model, tokens, rules, PLAN, keys=keys), keyed, everyone)
    assert not torch.equal(solve(model, tokens, rules, PLAN, seed=4).confidence, whole.confidence)


@pytest.mark.parametrize("particles", [1, 3])
def test_a_step_may_be_taken_in_parts(
    model: TRM, tokens: Tensor, monkeypatch: pytest.MonkeyPatch, particles: int
) -> None:
    """A server divides the steps of large clouds; the results stay the same, bit for bit."""
    viewed_plan = replace(PLAN, symmetric_views=True)
    views = plan_views(viewed_plan, Sudoku(2), model, torch.device("cpu"))
    rules = {"halting": by_halting(model, middling(model, tokens))}
    plain = solve(model, tokens, rules, PLAN, seed=3)
    viewed = solve(model, tokens, rules, viewed_plan, views=views, seed=3)

    def in_parts(self: StagedSearch, batch: Batch) -> StepResult:
        opened = self.open(batch)
        while opened.left:
            before = opened.done
            opened = self.propose(opened, particles)
            assert 0 < opened.done - before <= particles
        return self.finish(opened)

    monkeypatch.setattr(StagedSearch, "advance", in_parts)
    everyone = torch.arange(len(tokens))
    assert same(solve(model, tokens, rules, PLAN, seed=3), plain, everyone)
    assert same(solve(model, tokens, rules, viewed_plan, views=views, seed=3), viewed, everyone)


def test_what_the_halting_head_says_is_the_same_alone(model: TRM) -> None:
    """torch.sigmoid is not: its last bit depends on an element's place in the tensor."""
    many = torch.randint(1, 6, (37, 16), generator=torch.Generator().manual_seed(2))
    rules = {"halting": by_halting(model, -NEVER)}
    whole = solve(model, many, rules, PLAN)
    for place in range(len(many)):
        alone = solve(model, many[place : place + 1], rules, PLAN)
        assert same(alone, whole, torch.tensor([place]))


def test_running_out_of_memory_halves_and_counts_once(
    model: TRM, tokens: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {"halting": by_halting(model, middling(model, tokens))}
    whole = solve(model, tokens, rules, PLAN)
    real = StagedSearch.advance
    room = 5

    def small(search: StagedSearch, batch: Batch) -> StepResult:
        if len(batch.ids) * search.stage(batch).particles > room:
            raise torch.OutOfMemoryError("no room")
        return real(search, batch)

    monkeypatch.setattr(StagedSearch, "advance", small)
    assert same(solve(model, tokens, rules, PLAN), whole, torch.arange(len(tokens)))
    room = 2
    with pytest.raises(DeviceError, match="one puzzle must fit"):
        solve(model, tokens, {}, PLAN)


def test_particle_zero_is_the_model_itself_in_every_stage(model: TRM, tokens: Tensor) -> None:
    seen: list[StepInfo] = []
    solve(model, tokens, {}, PLAN, watch=seen.append)
    inputs = model.embed(tokens)
    state = model.start(inputs)
    for info in seen:
        state = model.step(inputs, state)
        assert torch.equal(info.context.state.answer[:, 0], state.answer)
    assert not torch.equal(seen[-1].context.state.answer[:, 1], state.answer)


@pytest.mark.parametrize("goes_on", [False, True])
def test_noisy_trajectories_start_afresh_unless_they_go_on(
    model: TRM, tokens: Tensor, goes_on: bool
) -> None:
    seen: list[StepInfo] = []
    solve(model, tokens, {}, Adaptive((Stage(3, 2), Stage(4, 1, goes_on))), watch=seen.append)
    before, after = seen[1].context.state, seen[2].context.previous
    first = model.start(model.embed(tokens))
    kept = 3 if goes_on else 1
    assert torch.equal(after.latent[:, :kept], before.latent[:, :kept])
    for particle in range(kept, 4):
        assert torch.equal(after.latent[:, particle], first.latent)


def test_the_first_rule_that_decides_is_the_reason(model: TRM, tokens: Tensor) -> None:
    always = by_halting(model, -NEVER)
    solution = solve(model, tokens, {"never": by_halting(model, NEVER), "b": always, "c": always})
    assert solution.decided_by == ("b",) * len(tokens)


def test_confidence_is_at_least_the_rules_in_every_cell(model: TRM, tokens: Tensor) -> None:
    for above in (-NEVER, NEVER):
        solution = solve(model, tokens, {"halting": by_halting(model, above)}, PLAN)
        assert (solution.cell_confidence >= solution.confidence[:, None] - 1e-6).all()
        assert (solution.cell_confidence <= 1 + 1e-6).all()
        assert ((solution.terminal_entropy >= 0) & (solution.terminal_entropy <= 1)).all()


def test_what_nobody_decides_is_as_sure_as_the_weight_behind_it(model: TRM, tokens: Tensor) -> None:
    """The weighted MAP of the last cloud; every cell has the weight of those that agree on it."""
    plan = Adaptive((Stage(1, 1), Stage(6, 2)), noise=1.0, beta=2.0)
    seen: list[StepInfo] = []
    found = solve(model, tokens, {}, plan, watch=seen.append)
    info = seen[-1]
    weights, answers = info.log_weights.exp(), info.context.answers
    agree = answers == found.answers[:, None]
    assert torch.allclose(found.confidence, (weights * agree.all(-1)).sum(-1), atol=1e-6)
    assert torch.allclose(found.cell_confidence, (weights[..., None] * agree).sum(1), atol=1e-6)
    assert not torch.allclose(found.confidence, agree.all(-1).float().mean(-1), atol=1e-2)
    wanted = token_entropy(answers, info.log_weights, model.vocabulary)
    assert torch.allclose(found.terminal_entropy, wanted, atol=1e-6)


def test_a_model_that_gives_nan_ends_in_an_abstention(model: TRM, tokens: Tensor) -> None:
    class Broken(TRM):
        def refine(self, inputs: Tensor, state: State) -> Tensor:
            return torch.full_like(state.latent, torch.nan)

    solution = solve(Broken(model.config), tokens, {"halting": by_halting(model, -NEVER)}, PLAN)
    assert solution.degenerate.all()
    assert (solution.answers == 0).all()
    assert (solution.confidence == 0).all()
    walked = 1 * 3 + 3 * 2 + 5 * 1  # the last stage ends with its first step: nobody comes after
    assert (solution.evaluations == walked * evaluations_per_step(model)).all()
    assert set(solution.decided_by) == {UNDECIDED}


class Brittle(TRM):
    """Cannot do one puzzle without noise."""

    mine: Tensor  # the puzzle, embedded

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        first = super().refine(inputs, self.start(inputs))
        quiet = (state.latent - first).abs().amax((-2, -1)) < 1e-3  # after one inner step
        bad = quiet & (inputs == self.mine).all((-2, -1))
        return super().refine(inputs, state).masked_fill(bad[..., None, None], torch.nan)


def test_a_dead_particle_does_not_end_the_search(model: TRM, tokens: Tensor) -> None:
    """Fresh ones come with the next stage; what was spent is counted, and nobody else notices."""
    rules, each = {"halting": by_halting(model, -NEVER)}, evaluations_per_step(model)
    brittle = Brittle(model.config)
    brittle.load_state_dict(model.state_dict())
    brittle.mine = model.embed(tokens[2:3])[0]
    others = torch.tensor([0, 1, 3, 4, 5])
    for stages, spent in (
        (PLAN.stages, 1 * 3 + 3 * 1),
        ((Stage(1, 2), Stage(1, 2), Stage(3, 2, continues=True)), 1 * 2 + 1 * 2 + 3 * 1),
        ((Stage(1, 2), Stage(1, 2)), 1),
        ((Stage(1, 2), Stage(1, 2, continues=True)), 1),
    ):
        found = solve(brittle, tokens, rules, Adaptive(stages))
        assert found.evaluations[2] == spent * each
        assert found.degenerate.tolist() == [row == 2 and spent == 1 for row in range(6)]
        assert found.decided_by[2] == (UNDECIDED if spent == 1 else "halting")
        assert same(solve(model, tokens[others], rules, Adaptive(stages)), found, others)


def test_who_brings_fresh_particles() -> None:
    stages = (Stage(1, 2), Stage(3, 2), Stage(3, 2, continues=True), Stage(1, 2))
    assert [Adaptive(stages).fresh_after(number) for number in range(4)] == [True] + [False] * 3
    afresh = Adaptive((Stage(3, 2), Stage(3, 2), Stage(1, 2)))
    assert [afresh.fresh_after(number) for number in range(3)] == [True, False, False]
    turned = Adaptive((Stage(1, 2), Stage(1, 2), Stage(1, 2)), symmetric_views=True)
    assert [turned.fresh_after(number) for number in range(3)] == [True, True, False]


def context(answers: list[list[int]]) -> object:
    """As much of a Context as these stopping rules look at: one puzzle."""

    class Fake:
        pass

    fake = Fake()
    fake.answers = torch.tensor([answers], dtype=torch.uint8)  # type: ignore[attr-defined]
    fake.problem = Fake()  # type: ignore[attr-defined]
    fake.problem.tokens = torch.zeros(1, len(answers[0]))  # type: ignore[attr-defined]
    return fake


def cloud(weights: list[float], score: list[float]) -> Cloud:
    return Cloud(None, torch.tensor([weights]).log(), torch.tensor([score]))  # type: ignore[arg-type]


def test_agreement_counts_heads_and_needs_company() -> None:
    answers = context([[1, 2], [1, 2], [1, 2], [3, 3]])
    light = cloud([0.01, 0.01, 0.01, 0.97], [0.0, 1.0, 0.0, 2.0])
    decision = by_agreement(0.7, 4)(light, answers)  # type: ignore[arg-type]
    assert decision.decided.item(), "three of four, whatever they weigh"
    assert decision.particle.item() == 1  # of those that say [1, 2], the best scored
    assert decision.probability.item() == pytest.approx(0.75)
    for share, particles in ((0.8, 4), (0.7, 5)):
        assert not by_agreement(share, particles)(light, answers).decided.item()  # type: ignore[arg-type]
    dead = cloud([0.0, 0.0, 0.5, 0.5], [0.0] * 4)
    assert by_agreement(0.7, 4)(dead, answers).probability.item() == 0.5  # type: ignore[arg-type]


def test_rules_choose_a_living_answer_without_fault() -> None:
    def is_solved(puzzle: Tensor, answer: Tensor) -> Tensor:
        return (answer == 7).all(-1)

    answers = context([[7, 7], [7, 1], [7, 7]])
    decision = by_rules(is_solved)(cloud([0.0, 0.5, 0.5], [9.0, 9.0, 0.0]), answers)  # type: ignore[arg-type]
    assert decision.decided.item()
    assert decision.particle.item() == 2, "the first is right too, but dead"
    nobody = by_rules(is_solved)(cloud([0.5, 0.5], [0.0, 0.0]), context([[1, 7], [2, 7]]))  # type: ignore[arg-type]
    assert not nobody.decided.item()


def test_a_stage_may_have_a_noise_of_its_own(model: TRM, tokens: Tensor) -> None:
    """The plan's until then; a stage that names the same is the same, bit for bit."""

    def walked(*stages: Stage) -> list[Tensor]:
        seen = list[StepInfo]()
        solve(model, tokens, {}, Adaptive(stages, noise=0.3), watch=seen.append)
        return [info.context.state.latent for info in seen]

    plain = walked(Stage(3, 2), Stage(3, 2, continues=True))
    same = walked(Stage(3, 2), Stage(3, 2, continues=True, noise=0.3))
    quiet = walked(Stage(3, 2), Stage(3, 2, continues=True, noise=0.0))
    assert all(torch.equal(one, other) for one, other in zip(plain, same, strict=True))
    assert torch.equal(plain[1], quiet[1])
    assert not torch.equal(plain[2], quiet[2])
    alone = [latent[:, 1:] - latent[:, :1] for latent in walked(Stage(3, 2, noise=0.0))]
    assert all(not gap.any() for gap in alone), "without noise all are as the first"
    loud = walked(Stage(3, 1), Stage(3, 1, noise=30.0))[1]
    assert torch.equal(loud[:, 0], plain[1][:, 0]), "the first stays free of noise"
    assert (loud[:, 1:] - loud[:, :1]).abs().mean() > 10.0


def test_one_noise_for_all_stages() -> None:
    plan = Adaptive((Stage(1, 2), Stage(3, 2, noise=0.7)), noise=0.3)
    assert plan.with_noise(0.2) == Adaptive((Stage(1, 2), Stage(3, 2)), noise=0.2)


def test_plans_that_cannot_be_are_refused() -> None:
    odd = (Stage(1, 2, noise=-0.1), Stage(1, 2, noise=math.nan), Stage(1, 2, noise=math.inf))
    for stages in ((), (Stage(0, 3),), (Stage(1, 0),), *((stage,) for stage in odd)):
        with pytest.raises(SettingsError):
            Adaptive(stages=stages)


def test_the_halting_head_is_asked_once_a_step(model: TRM, tokens: Tensor) -> None:
    """The guide, the stopping rule and the result share its logits."""

    class Counting(TRM):
        calls = 0

        def halt_logit(self, answer: Tensor) -> Tensor:
            Counting.calls += 1
            return super().halt_logit(answer)

    own = Counting(model.config)
    own.load_state_dict(model.state_dict())
    plan = Adaptive((Stage(1, 4),))
    solve(own, tokens[:1], {"halting": by_halting(own, NEVER)}, plan)
    assert Counting.calls == 4


@pytest.mark.parametrize("continues", [False, True])
def test_a_dead_particle_stays_dead_in_the_next_stage(
    model: TRM, tokens: Tensor, continues: bool
) -> None:
    """A stage gives equal weights to its living particles; it revives none.

    The state stays finite: a guide without a score kills particle 0 in the first stage.
    """

    def guide(state: State, context: Context) -> Tensor:
        score = torch.zeros(state.answer.shape[:2])
        if context.clock.step == 1:
            score[:, 0] = torch.nan
        return score

    seen: list[StepInfo] = []
    plan = Adaptive((Stage(2, 2), Stage(3, 2, continues)), noise=0.5)
    solve(model, tokens, {}, plan, guide=guide, watch=seen.append)
    for info, weights in zip(seen, ([0.0, 1.0], [0.0, 1.0], [0.0, 0.5, 0.5]), strict=False):
        assert torch.allclose(info.log_weights.exp(), torch.tensor(weights))


def test_agreement_of_less_than_nine_tenths_does_not_stop_a_search() -> None:
    """14 of 16 particles (.875) are not enough, 15 (.94) are; in 15 particles nothing is."""
    rule = stopping_rules(Wavering(TRMConfig()))["agreement"]
    for agreeing, size, decided in ((14, 16, False), (15, 16, True), (15, 15, False)):
        answers = [[1, 2]] * agreeing + [[3, 3]] * (size - agreeing)
        even = cloud([1 / size] * size, [0.0] * size)
        assert bool(rule(even, context(answers)).decided) is decided  # type: ignore[arg-type]


def test_a_time_limit_gives_the_answers_so_far_as_undecided(
    model: TRM, tokens: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six puzzles share every step of 6 s, so each has spent 3 s after three of them."""
    now = iter(range(0, 10_000, 2))  # between two looks; a step has three parts
    monkeypatch.setattr(search, "perf_counter", lambda: next(now))
    rules = {"halting": by_halting(model, NEVER)}
    found = solve(model, tokens, rules, PLAN, seconds=3.0)
    assert found.decided_by == ("time",) * len(tokens)
    assert found.outer_steps.tolist() == [3] * len(tokens)
    monkeypatch.undo()
    shorter = solve(model, tokens, rules, Adaptive(stages=(Stage(1, 3),)))
    assert torch.equal(found.answers, shorter.answers)
    assert torch.equal(found.confidence, shorter.confidence)


def test_a_decided_puzzle_is_no_late_one(
    model: TRM, tokens: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(0, 10**9, 10**6))
    monkeypatch.setattr(search, "perf_counter", lambda: next(now))
    found = solve(model, tokens, {"halting": by_halting(model, -NEVER)}, PLAN, seconds=0.0)
    assert set(found.decided_by) == {"halting"}


class NoDecoder(TRM):
    """The decoder gives NaN for some trajectories, and the halting head is sure of all."""

    broken: float = math.inf  # above this mean of its first answer cell, a trajectory has NaN

    def decode(self, answer: Tensor) -> Tensor:
        bad = answer[..., 1, :].mean(-1) < self.broken
        return super().decode(answer).masked_fill(bad[..., None, None], math.nan)

    def halt_logit(self, answer: Tensor) -> Tensor:
        return torch.full(answer.shape[:-2], 9.0)


@pytest.fixture
def no_decoder(model: TRM) -> NoDecoder:
    broken = NoDecoder(model.config).eval().requires_grad_(False)
    broken.load_state_dict(model.state_dict())
    return broken


@pytest.mark.parametrize("rule", [by_halting, by_agreement, None])
def test_a_particle_without_finite_logits_is_dead(
    no_decoder: NoDecoder, tokens: Tensor, rule: object
) -> None:
    rules = {"rule": by_halting(no_decoder, 1.0)} if rule is by_halting else {}
    if rule is by_agreement:
        rules = {"rule": by_agreement(0.5, 1)}
    found = solve(no_decoder, tokens, rules, PLAN)
    assert bool(found.degenerate.all())
    assert set(found.decided_by) == {UNDECIDED}
    assert not found.confidence.any()


def test_the_living_particles_answer_for_those_without_logits(
    no_decoder: NoDecoder, tokens: Tensor
) -> None:
    """Half of the trajectories are dead: no rule chooses one of them."""
    plan, means = Adaptive(stages=(Stage(8, 4),), noise=0.5), []
    no_decoder.broken = -math.inf
    solve(no_decoder, tokens, {}, plan, watch=lambda i: means.append(
        i.context.state.answer[..., 1, :].mean(-1)))  # fmt: skip
    no_decoder.broken = float(means[-1].median())
    found = solve(no_decoder, tokens, {}, plan)
    assert not found.degenerate.any()
    assert bool((found.confidence > 0).all())

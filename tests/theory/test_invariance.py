"""A puzzle's result does not depend on what it shares a batch, a chunk or a processor with."""

import time
from collections.abc import Iterator
from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from tiltrm.explore import (
    Clock,
    Exploration,
    NoiseFreeFirst,
    Result,
    everywhere,
    explore,
    initial_cloud,
    make_problem,
)
from tiltrm.explore.batching import blocks, computing, in_groups, one_thread_each
from tiltrm.explore.guides import confidence, halting, residual, rules
from tiltrm.explore.search import step_functions
from tiltrm.model.trm import TRM, TRMConfig

SMALL = Exploration(particles=5, outer_steps=4, beta=1.0, resample_below=0.8)


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """torch's number of threads, set once the server of an earlier test has ended."""
    ends = time.monotonic() + 300
    while computing() and time.monotonic() < ends:
        time.sleep(0.1)
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=["tokens", "attention"])
def model(request: pytest.FixtureRequest) -> TRM:
    torch.manual_seed(0)
    mixing = request.param == "tokens"
    config = TRMConfig(
        cells=16, vocabulary=6, width=32, layers=1, heads=2, prefix=1, inner_steps=2,
        token_mixing=mixing, rotary=not mixing,
    )  # fmt: skip
    tiny = TRM(config).eval().requires_grad_(False)
    torch.nn.init.normal_(tiny.halt_head.weight, std=0.5)
    return tiny


@pytest.fixture(scope="module")
def tokens() -> Tensor:
    return torch.randint(1, 6, (9, 16), generator=torch.Generator().manual_seed(1))


def tensors(result: Result) -> dict[str, Tensor]:
    """Every tensor of a result, those of its trace too."""
    assert result.trace is not None
    records = (result, result.trace)
    found = {f.name: getattr(record, f.name) for record in records for f in fields(record)}
    return {name: value for name, value in found.items() if isinstance(value, Tensor)}


def assert_same(whole: Result, part: Result, rows: Tensor | slice) -> None:
    for name, value in tensors(part).items():
        assert torch.equal(tensors(whole)[name][rows], value), name


def test_order_batch_and_chunk_change_nothing(model: TRM, tokens: Tensor, threads: int) -> None:
    whole = explore(model, tokens, SMALL, trace=True)
    assert whole.trace is not None
    assert (whole.trace.ancestors != torch.arange(5)).any()  # somebody was resampled
    order = torch.randperm(9, generator=torch.Generator().manual_seed(2))
    assert_same(whole, explore(model, tokens[order], SMALL, trace=True), order)
    assert_same(whole, explore(model, tokens[4:5], SMALL, trace=True), slice(4, 5))
    assert_same(whole, explore(model, tokens[2:9], SMALL, trace=True), slice(2, 9))
    for chunk in (1, 2, 4, 100):
        assert_same(whole, explore(model, tokens, SMALL, trace=True, chunk=chunk), slice(None))


@pytest.mark.parametrize("resampler", ["stratified", "multinomial", "residual"])
def test_every_guide_and_resampler_is_blind_to_the_batch(
    model: TRM, tokens: Tensor, threads: int, resampler: str
) -> None:
    guide = halting(model) + confidence(model) + 3.0 * residual() + 0.1 * rules(
        lambda puzzle, answer: (puzzle != answer).sum(-1)
    )  # fmt: skip
    settings = replace(
        SMALL, resampler=resampler, placement=NoiseFreeFirst(everywhere), potential="difference"
    )
    whole = explore(model, tokens, settings, guide=guide, trace=True)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(3))
    part = explore(model, tokens[order], settings, guide=guide, trace=True, chunk=2)
    assert_same(whole, part, order)


def test_many_puzzles_are_each_alone(model: TRM) -> None:
    """Enough of them that vector instructions reach some numbers and miss others."""
    many = torch.randint(1, 6, (45, 16), generator=torch.Generator().manual_seed(4))
    settings = replace(SMALL, particles=3, outer_steps=2)
    whole = explore(model, many, settings, trace=True, chunk=45)
    assert_same(whole, explore(model, many, settings, trace=True, chunk=7), slice(None))


def test_given_keys_travel_with_their_puzzles(model: TRM, tokens: Tensor) -> None:
    keys = torch.arange(9) * 7
    order = torch.tensor([3, 8, 1])
    whole = explore(model, tokens, SMALL, keys=keys, trace=True)
    assert_same(whole, explore(model, tokens[order], SMALL, keys=keys[order], trace=True), order)
    pieces = explore(model, tokens, SMALL, keys=keys, trace=True, chunk=2)
    assert_same(whole, pieces, slice(None))


def test_particles_are_prefixes_until_they_meet(model: TRM, tokens: Tensor) -> None:
    """Without resampling, the first particles of a larger cloud are the smaller cloud."""
    alone = replace(SMALL, trigger="never")
    few = explore(model, tokens, alone, trace=True)
    many = explore(model, tokens, replace(alone, particles=11), trace=True)
    assert few.trace is not None
    assert many.trace is not None
    assert torch.equal(few.trace.scores, many.trace.scores[..., :5])


def test_the_full_size_network_is_blind_to_the_batch(threads: int) -> None:
    """At 88 x 512 a step of one trajectory is, bit for bit, that step among five, on any thread."""
    torch.manual_seed(0)
    model = TRM(TRMConfig(layers=1, inner_steps=1)).eval().requires_grad_(False)
    tokens = torch.randint(1, 11, (5, 81))
    settings = Exploration(particles=1)
    with torch.inference_mode(), one_thread_each() as available:
        assert available == threads
        propose = step_functions(model, settings).propose
        problem = make_problem(model, tokens, 1)
        together = propose(initial_cloud(model, problem).state, problem, Clock(1, 1))
        for row in (0, 3):
            alone = problem.part(slice(row, row + 1))
            state = propose(initial_cloud(model, alone).state, alone, Clock(1, 1))
            assert torch.equal(state.answer, together.answer[row : row + 1])
            assert torch.equal(state.latent, together.latent[row : row + 1])
    assert torch.get_num_threads() == threads


def test_heads_are_blind_to_the_batch() -> None:
    """A Linear with one output is not, when it is called on as many rows as there are."""
    torch.manual_seed(0)
    head = torch.nn.Linear(512, 1).requires_grad_(False)
    answer = torch.randn(1, 45, 2, 512)
    with torch.inference_mode():
        whole = in_groups(lambda rows: head(rows[:, 0])[:, 0], answer)
        for first, last in ((0, 1), (3, 8), (17, 45), (44, 45)):
            part = in_groups(lambda rows: head(rows[:, 0])[:, 0], answer[:, first:last])
            assert torch.equal(part, whole[:, first:last])


@pytest.mark.parametrize("shape", [(1, 1), (1, 16), (2, 16), (3, 5), (40, 1), (1, 64), (7, 3)])
@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_blocks_cover_every_trajectory_once(shape: tuple[int, int], workers: int) -> None:
    seen = torch.zeros(shape, dtype=torch.int64)
    cut = blocks(*shape, 45056, workers)
    for block in cut:
        seen[block] += 1
        assert seen[block].numel() <= 17
    assert (seen == 1).all()
    assert len(cut) >= min(workers, shape[0] * shape[1]) / 2

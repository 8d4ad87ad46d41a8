"""Keyed noise: normal, independent, and placed where it should be."""

import math

import pytest
import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore import (
    Clock,
    Noise,
    NoiseFreeFirst,
    OncePerSupervision,
    Problem,
    Scheduled,
    annealed,
    answer_only,
    everywhere,
    latent_only,
)
from tiltrm.explore.keys import derive, mix, normals, puzzle_keys, uniforms
from tiltrm.explore.noise import ANSWER, INNER, START_ANSWER, START_LATENT, Placement, Where

SITES = [ANSWER, START_LATENT, START_ANSWER, INNER, INNER + 1, INNER + 5]


def question(puzzles: int = 2, particles: int = 3, seed: int = 0) -> Problem:
    tokens = torch.arange(puzzles)[:, None]
    keys = derive(puzzle_keys(tokens), seed)
    return Problem(tokens, torch.zeros(puzzles, 1, 1, 1), keys, torch.arange(particles))


def perturbed(noise: Noise, value: Tensor, asked: Problem, step: int, site: int) -> Tensor:
    """The noise that `trajectory_sampler` adds at a site."""
    keys = derive(asked.keys[:, None], asked.particles, step)
    return noise(value, keys, Where(Clock(step, 9), site, asked.particles))


def draw(asked: Problem, step: int = 1, site: int = INNER, size: int = 1000) -> Tensor:
    """Unit noise at one site: (puzzle, particle, size)."""
    value = torch.zeros(len(asked.keys), len(asked.particles), size, 1)
    return perturbed(Noise(1.0, lambda where: 1.0), value, asked, step, site)[..., 0]


def test_moments() -> None:
    """Mean, variance, skewness and kurtosis within four standard errors."""
    sample = normals(derive(torch.arange(100), 7), 20_001).flatten().double()
    count = len(sample)
    assert torch.isfinite(sample).all()
    for power, truth, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        error = math.sqrt(variance / count)
        assert abs(sample.pow(power).mean().item() - truth) < 4 * error, power


def test_kolmogorov_smirnov_against_the_normal() -> None:
    """sqrt(n) D stays below 1.95, its 99.9 % point, in the bulk and beyond three sigma."""
    sample = normals(derive(torch.arange(100), 8), 10_000).flatten().double().sort().values
    count = len(sample)
    cdf = 0.5 * torch.erfc(-sample / math.sqrt(2))
    ranks = torch.arange(1, count + 1) / count
    distance = torch.maximum((ranks - cdf).abs().max(), (cdf - ranks + 1 / count).abs().max())
    assert distance * math.sqrt(count) < 1.95
    beyond = math.erfc(3 / math.sqrt(2))
    tail = (sample.abs() > 3).double().mean().item()
    assert abs(tail - beyond) < 4 * math.sqrt(beyond / count)


def test_uniforms_are_uniform_and_open() -> None:
    sample = uniforms(derive(torch.arange(100), 9), 1000).flatten()
    assert ((sample > 0) & (sample < 1)).all()
    assert abs(sample.mean() - 0.5) < 4 * math.sqrt(1 / 12 / len(sample))
    assert abs((sample - 0.5).square().mean() - 1 / 12) < 4 * math.sqrt(1 / 180 / len(sample))


def test_everything_in_the_key_makes_independent_noise() -> None:
    """All pairs of (puzzle, particle, step, site, seed) correlate within their standard error."""
    size = 4000
    rows = [
        draw(question(seed=seed), step, site, size).flatten(0, 1)
        for seed in (0, 1)
        for step in (1, 2)
        for site in SITES
    ]
    sample = torch.cat(rows).double()  # (2 x 2 x 6 x 2 x 3 rows, size)
    correlation = torch.corrcoef(sample)
    off = correlation[~torch.eye(len(sample), dtype=torch.bool)] * math.sqrt(size)
    assert len(sample) == 144
    assert off.abs().max() < 5.2  # 10,296 pairs
    assert abs(off.std() - 1) < 0.05
    lagged = (sample[:, 1:] * sample[:, :-1]).mean() * math.sqrt(sample.numel())
    assert abs(lagged) < 4


def test_the_two_halves_of_box_muller_are_independent() -> None:
    sample = normals(derive(torch.arange(50), 3), 10_000).double()
    left, right = sample.chunk(2, dim=1)
    for transform in (lambda x: x, lambda x: x.square() - 1, lambda x: x.abs() - x.abs().mean()):
        product = transform(left) * transform(right)
        assert abs(product.mean()) < 4 * product.std() / math.sqrt(product.numel())


def test_noise_depends_on_its_key_alone() -> None:
    """Slots and puzzles cut out of a batch have the noise that they have inside it."""
    whole = question(5, 4)
    noise = draw(whole)
    picked = whole.part(torch.tensor([3, 1]), slice(2, 4))
    assert torch.equal(draw(picked), noise[[3, 1], 2:4])
    for size in (1, 2, 7, 999):
        assert torch.equal(normals(whole.keys, size)[2:3], normals(whole.keys[2:3], size))


def plain_mix(x: int) -> int:
    """The splitmix64 finaliser on Python's own integers."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def plain_derive(key: int, index: int) -> int:
    return plain_mix((key + (index + 1) * 0x9E3779B97F4A7C15) % 2**64)


def test_keys_and_draws_are_what_they_were() -> None:
    """Stored results can be computed again only as long as a key gives the same numbers."""
    zero = torch.zeros((), dtype=torch.int64)
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]  # splitmix64, seed 0
    for keys in ([derive(zero, n) for n in range(3)], derive(zero, torch.arange(3))):
        assert [int(key) % 2**64 for key in keys] == published
    cells = [plain_derive(plain_mix(cell + 1), token) for cell, token in enumerate((3, 1, 4))]
    key = plain_mix(sum(cells) % 2**64)
    assert int(puzzle_keys(torch.tensor([[3, 1, 4]]))) % 2**64 == key
    bits = [plain_mix(key ^ plain_derive(0, n)) for n in range(4)]
    radius = [math.sqrt(-2 * math.log(((b >> 33) + 1) / 2**31)) for b in bits]
    angle = [b % 2**32 / 2**32 * math.tau for b in bits]
    wanted = [r * math.cos(a) for r, a in zip(radius, angle, strict=True)]
    wanted += [r * math.sin(a) for r, a in zip(radius, angle, strict=True)]
    drawn = puzzle_keys(torch.tensor([[3, 1, 4]]))
    assert normals(drawn, 7)[0].tolist() == pytest.approx(wanted[:7], abs=1e-5)
    assert uniforms(drawn, 4)[0].tolist() == [((b >> 32) + 0.5) / 2**32 for b in bits]


def test_keys_are_spread() -> None:
    """mix is one to one on a sample, flips half the bits, and tells near puzzles apart."""
    sample = torch.arange(100_000)
    assert len(mix(sample).unique()) == len(sample)
    flipped = mix(sample) ^ mix(sample ^ 1)
    bits = torch.stack([(flipped >> bit) & 1 for bit in range(64)]).double().mean(1)
    assert ((bits - 0.5).abs() < 5 * 0.5 / math.sqrt(len(sample))).all()
    tokens = torch.ones(16, 16, dtype=torch.long)
    one_more = tokens + torch.eye(16, dtype=torch.long)
    swapped = torch.stack([torch.roll(torch.arange(16), n) for n in range(16)])
    assert len(torch.cat([puzzle_keys(t) for t in (tokens[:1], one_more, swapped)]).unique()) == 33


@pytest.mark.parametrize(
    ("placement", "touched"),
    [
        (everywhere, {ANSWER, INNER, INNER + 1, INNER + 5}),
        (latent_only, {INNER, INNER + 1, INNER + 5}),
        (answer_only, {ANSWER}),
        (OncePerSupervision(3), {START_LATENT}),
        (OncePerSupervision(3, answer=True), {START_LATENT, START_ANSWER}),
    ],
)
def test_placements(placement: Placement, touched: set[int]) -> None:
    asked, value = question(), torch.zeros(2, 3, 4, 5)
    for site in SITES:
        noisy = perturbed(Noise(0.3, placement), value, asked, 4, site)
        assert (noisy is not value) is (site in touched)


def test_once_per_supervision_step() -> None:
    placement = OncePerSupervision(3)
    slots = torch.arange(2)
    hit = [n for n in range(1, 10) if placement(Where(Clock(n, 9), START_LATENT, slots))]
    assert hit == [1, 4, 7]


def test_no_noise_is_no_arithmetic() -> None:
    value = torch.zeros(2, 3, 4, 5)
    assert perturbed(Noise(0.0), value, question(), 1, INNER) is value


def test_annealing_falls_linearly_to_nothing() -> None:
    slots = torch.arange(2)
    scale = [annealed(everywhere, 5)(Where(Clock(n, 9), ANSWER, slots)) for n in range(1, 10)]
    assert scale == [1.0, 0.75, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert annealed(latent_only, 5)(Where(Clock(1, 9), ANSWER, slots)) == 0.0
    with pytest.raises(SettingsError, match="until"):
        annealed(everywhere, 1)


def test_a_schedule_has_a_factor_for_every_step() -> None:
    slots = torch.arange(2)
    loud = Scheduled(everywhere, (0.0, 0.5, 2.0))
    assert [loud(Where(Clock(n, 9), INNER, slots)) for n in (1, 2, 3, 4, 9)] == [0, 0.5, 2, 2, 2]
    assert Scheduled(latent_only, (2.0,))(Where(Clock(1, 9), ANSWER, slots)) == 0.0
    with pytest.raises(SettingsError, match="factors"):
        Scheduled(everywhere, ())


def test_the_first_particle_may_go_without() -> None:
    asked, value = question(2, 4), torch.ones(2, 4, 3, 5)
    free = perturbed(Noise(0.3, NoiseFreeFirst(everywhere)), value, asked, 1, INNER)
    usual = perturbed(Noise(0.3), value, asked, 1, INNER)
    assert torch.equal(free[:, 0], value[:, 0])
    assert torch.equal(free[:, 1:], usual[:, 1:])
    last = asked.part(slice(None), slice(2, 4))
    later = perturbed(Noise(0.3, NoiseFreeFirst(everywhere)), value[:, 2:], last, 1, INNER)
    assert torch.equal(later, usual[:, 2:])  # a block that starts at slot 2 has no first particle
    both = perturbed(Noise(0.4, NoiseFreeFirst(annealed(everywhere, 3))), value, asked, 2, INNER)
    halved = perturbed(Noise(0.2), value, asked, 2, INNER)
    assert torch.allclose(both[:, 1:], halved[:, 1:])
    assert NoiseFreeFirst(latent_only)(Where(Clock(1, 9), ANSWER, asked.particles)) == 0.0


def test_noise_keeps_the_type_of_the_state() -> None:
    value = torch.zeros(2, 3, 4, 5, dtype=torch.bfloat16)
    noisy = perturbed(Noise(0.3), value, question(), 1, INNER)
    full = perturbed(Noise(0.3), value.float(), question(), 1, INNER)
    assert torch.equal(noisy, full.to(torch.bfloat16))

"""The checkpoint scan of Appendix E inside a run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from tiltrm.train import scan
from tiltrm.train.settings import Scan
from tiltrm.train.validation import validate

from . import toys

SMALL = {"puzzles": 5, "particles": 3, "outer_steps": 4}
WAYS = ("deterministic", "unguided", "guided")


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "scan.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_run_is_scanned_at_its_listed_steps(tmp_path: Path) -> None:
    toys.trainer(tmp_path, steps=14, scan=SMALL | {"steps": [3, 14, 99]}).run()
    found = lines(tmp_path)
    assert [line["step"] for line in found] == [3, 14]
    for line in found:
        assert line["seconds"] > 0
        assert [line[way]["evaluations"] for way in WAYS] == [4 * 2, 3 * 4 * 2, 3 * 4 * 2]
        assert all(0 <= line[way]["exact"] <= 1 for way in WAYS)


def test_a_run_is_scanned_by_the_clock_and_not_at_all_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys.trainer(tmp_path / "often", steps=30, scan=SMALL | {"every": 1e-9}).run()
    assert [line["step"] for line in lines(tmp_path / "often")] == [10, 20, 30]
    toys.trainer(tmp_path / "never", steps=10).run()
    assert lines(tmp_path / "never") == []


def test_a_scan_changes_nothing(tmp_path: Path) -> None:
    plain = toys.trainer(tmp_path / "plain", steps=12)
    plain.run()
    scanned = toys.trainer(tmp_path / "scanned", steps=12, scan=SMALL | {"steps": [4, 7]})
    scanned.run()
    ours, theirs = toys.numbers(plain.learner), toys.numbers(scanned.learner)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_deterministic_is_what_the_evaluation_measures(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path)
    model, val = run.learner.model, run.val
    inputs = model.embed(val.questions)
    state = model.start(inputs)
    for _ in range(4):
        state = model.step(inputs, state)
    said = model.decode(state.answer).argmax(-1).to(torch.uint8)
    half = replace(val, answers=torch.where(torch.arange(8)[:, None] % 2 == 0, said, val.labels()))
    report = validate(model, half, outer_steps=4, batch=8, dtype=torch.float32)
    points = scan.scan(model, half, Scan(puzzles=8, outer_steps=4), torch.float32, seed=0)
    assert points["deterministic"].exact == report.final == 0.5


def test_the_three_ways_differ_as_the_paper_says() -> None:
    ways = scan.inference_methods(Scan())
    assert tuple(ways) == WAYS
    assert (ways["deterministic"].particles, ways["deterministic"].noise) == (1, 0.0)
    assert (ways["unguided"].beta, ways["guided"].beta) == (0.0, 0.25)
    for name in ("unguided", "guided"):
        assert (ways[name].particles, ways[name].noise) == (16, 0.3)
        assert (ways[name].outer_steps, ways[name].resample_below) == (48, 0.3)


class Call(NamedTuple):
    """One exploration of a scan."""

    questions: Tensor
    seed: int
    answers: Tensor


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Every exploration that a scan has made, and what came of it."""
    made: list[Call] = []

    def explore(model: Any, questions: Tensor, *words: Any, seed: int) -> Any:
        result = real(model, questions, *words, seed=seed)
        made.append(Call(questions, seed, result.answers))
        return result

    real = scan.explore
    monkeypatch.setattr(scan, "explore", explore)
    return made


def test_every_scan_of_a_run_has_its_seed_and_the_same_puzzles(
    tmp_path: Path, calls: list[Call]
) -> None:
    """The first ones of val: else a step of the curve could be luck. So after a resume, too."""
    marks = SMALL | {"steps": [3, 14, 17]}
    toys.trainer(tmp_path, steps=14, seed=7, scan=marks).run()
    resumed = toys.trainer(tmp_path, steps=17, seed=7, scan=marks)
    assert resumed.resume()
    resumed.run()
    assert [call.seed for call in calls] == [7] * 3 * len(WAYS)
    for call in calls:
        assert torch.equal(call.questions, toys.puzzles().questions[: SMALL["puzzles"]])


def test_the_subset_is_fixed_and_the_seed_settles_the_rest(
    tmp_path: Path, calls: list[Call]
) -> None:
    """Another seed gives other clouds, and the deterministic model has no luck to share."""
    model, val = toys.trainer(tmp_path).learner.model, toys.puzzles()
    settings = Scan(puzzles=6, particles=3, outer_steps=3, noise=3.0)
    scans = [
        scan.scan(model, table, settings, torch.float32, seed=seed)
        for seed, table in ((1, val), (1, val.take(slice(0, 6))), (2, val))
    ]
    assert scans[0] == scans[1]
    one, again, other = (calls[n : n + len(WAYS)] for n in range(0, len(calls), len(WAYS)))
    for name, *each in zip(WAYS, one, again, other, strict=True):
        first, second, third = (call.answers for call in each)
        assert torch.equal(first, second)
        assert torch.equal(first, third) == (name == "deterministic")


def test_a_scan_measures_the_average_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = toys.trainer(tmp_path, scan=SMALL)
    toys.advance(run, 3)
    seen = []
    monkeypatch.setattr(
        "tiltrm.train.trainer.scan", lambda model, *_: seen.append(model.embedding.clone()) or {}
    )
    run.scan()
    index = next(
        i for i, w in enumerate(run.learner.ema.weights) if w is run.learner.model.embedding
    )
    assert torch.equal(seen[0], run.learner.ema.average[index])

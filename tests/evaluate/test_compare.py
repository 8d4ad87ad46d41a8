"""Paired tests against enumeration; the best settings of a sweep, and the record of the choice."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from tiltrm.errors import DataError
from tiltrm.evaluate import Job, Store, paired
from tiltrm.evaluate.compare import choose_settings, interval, sign_test

from .toys import a_job, a_shard

ONE = [
    a_shard(a_job(seed=0, fold=0, folds=2), [0, 2], [1, 1]),
    a_shard(a_job(seed=0, fold=1, folds=2), [1, 3], [0, 1]),
    a_shard(a_job(seed=1, fold=0, folds=2), [0, 2], [1, 0]),
    a_shard(a_job(seed=1, fold=1, folds=2), [3, 1], [1, 0]),
]
OTHER = [a_shard(a_job("deterministic"), [3, 2, 1, 0], [0, 1, 0, 1])]


def test_by_hand() -> None:
    """Puzzle 0: 1 and 1; 1: 0 and 0; 2: 1/2 and 1; 3: 1 and 0."""
    found = paired(ONE, OTHER)
    assert (found.puzzles, found.wins, found.losses) == (4, 1, 1)
    assert found.difference == pytest.approx((0 + 0 - 0.5 + 1) / 4)
    assert found.p_value == 1.0
    turned = paired(OTHER, ONE)
    assert (turned.difference, turned.low) == pytest.approx((-found.difference, -found.high))


def test_among_some_puzzles() -> None:
    found = paired(ONE, OTHER, among=np.array([1, 3, 99]))
    assert (found.puzzles, found.difference, found.wins, found.losses) == (2, 0.5, 1, 0)
    with pytest.raises(DataError, match="at least one"):
        paired(ONE, OTHER, among=np.array([99]))


def test_other_puzzles_are_not_compared() -> None:
    with pytest.raises(DataError, match="same puzzles"):
        paired(ONE[:1], OTHER)


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (3, 1), (5, 5), (0, 9), (7, 4)])
def test_the_sign_test_enumerates_coins(wins: int, losses: int) -> None:
    tosses = wins + losses
    heads = [sum(coins) for coins in itertools.product((0, 1), repeat=tosses)]
    least = min(wins, losses)
    wanted = min(1.0, 2 * sum(head <= least for head in heads) / len(heads))
    assert sign_test(wins, losses) == pytest.approx(wanted, rel=1e-12)


def test_large_counts_neither_overflow_nor_take_long() -> None:
    assert sign_test(5000, 5000) == 1.0
    assert 0.0 <= sign_test(10_000, 100) < 1e-300
    assert sign_test(530, 470) == pytest.approx(
        math.erfc((60 - 1) / math.sqrt(1000) / math.sqrt(2)), rel=1e-2
    )


def test_the_interval_adds_half_to_every_cell() -> None:
    """3 won, 1 lost, 6 ties of either kind: Agresti and Min's table has 3.5, 1.5 and 7 of 12."""
    mean = (3.5 - 1.5) / 12
    reach = 1.959964 * math.sqrt(((3.5 + 1.5) / 12 - mean**2) / 12)
    found = interval(np.array([1.0] * 3 + [-1.0] + [0.0] * 6))
    assert found == pytest.approx((mean - reach, mean + reach), rel=1e-6)


def test_the_interval_covers() -> None:
    """Exact coverage, by enumerating every table of 40 puzzles with 10 % won and 5 % lost."""
    count, won, lost = 40, 0.10, 0.05
    covered = 0.0
    for wins in range(count + 1):
        for losses in range(count + 1 - wins):
            ties = count - wins - losses
            weight = math.factorial(count) / math.factorial(wins) / math.factorial(losses)
            chance = weight / math.factorial(ties) * won**wins * lost**losses * 0.85**ties
            low, high = interval(np.array([1.0] * wins + [-1.0] * losses + [0.0] * ties))
            covered += chance * (low <= won - lost <= high)
    assert 0.94 < covered < 0.99


def test_no_difference_is_not_certainty() -> None:
    low, high = interval(np.zeros(100))
    assert low < 0 < high
    assert high < 0.03


def test_the_interval_ends_where_a_difference_must() -> None:
    assert interval(np.array([1.0]))[1] == 1.0
    assert interval(np.array([-1.0]))[0] == -1.0


RIGHT = {  # (noise, beta) -> exact answers, evaluations of each puzzle
    (0.1, 0.25): ([1, 0, 0, 0], 7),
    (0.3, 0.25): ([1, 1, 1, 0], 9),
    (0.3, 0.5): ([1, 1, 0, 1], 8),
    (0.5, 0.5): ([0, 1, 1, 1], 8),
}


def fill(folder: Path) -> tuple[Store, list[Job]]:
    store, jobs = Store(folder), []
    for (noise, beta), (right, cost) in RIGHT.items():
        for fold in range(2):
            job = a_job(settings={"noise": noise, "beta": beta}, fold=fold, folds=2, split="val")
            puzzles, part = [fold, fold + 2], [right[fold], right[fold + 2]]
            shard = a_shard(job, puzzles, part)
            columns = {**shard.columns, "evaluations": shard["evaluations"] * 0 + cost}
            store.write(job, columns, {})
            jobs.append(job)
    return store, jobs


def test_the_settings_with_most_right_then_cheapest_then_first_are_chosen(tmp_path: Path) -> None:
    store, jobs = fill(tmp_path / "store")
    assert choose_settings(store, jobs) == {"noise": 0.3, "beta": 0.5}
    written = json.loads((tmp_path / "store" / "chosen-sudoku4.json").read_text())
    assert written["chosen"] == {"noise": 0.3, "beta": 0.5}
    assert (written["exact"], written["puzzles"], written["split"]) == (0.75, 4, "val")
    assert [row["exact"]["mean"] for row in written["table"]] == [0.25, 0.75, 0.75, 0.75]
    assert [row["settings"]["noise"] for row in written["table"]] == [0.1, 0.3, 0.3, 0.5]


def test_the_choice_is_written_where_asked(tmp_path: Path) -> None:
    store, jobs = fill(tmp_path / "store")
    choose_settings(store, jobs[:2], tmp_path / "mine.json")
    assert json.loads((tmp_path / "mine.json").read_text())["chosen"] == {}
    with pytest.raises(DataError, match="expected to write"):
        choose_settings(store, jobs, tmp_path / "no" / "such" / "folder.json")


def test_settings_are_chosen_among_jobs_of_one_method_and_split(tmp_path: Path) -> None:
    store, jobs = fill(tmp_path / "store")
    with pytest.raises(DataError, match="one method on one split"):
        choose_settings(store, [*jobs, a_job("deterministic")])
    with pytest.raises(DataError, match="expected the shard"):
        choose_settings(store, [*jobs, a_job(settings={"noise": 0.7})])

"""Plans are lists of jobs that can be done, each once, and what is full is the paper's."""

from collections import Counter

import pytest

from tiltrm.errors import SettingsError
from tiltrm.evaluate import plans
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.options import NAMES

from .toys import a_target

SUBJECTS = {
    "sudoku": a_target(10_000, task="sudoku"),
    "maze": a_target(1_000, task="maze"),
    "sudoku4": a_target(12),
}
PLANS = (plans.table1, plans.frontier, plans.sweep, plans.grid, plans.diagnostics)


@pytest.mark.parametrize("size", plans.SIZES)
@pytest.mark.parametrize("task", SUBJECTS)
@pytest.mark.parametrize("plan", PLANS)
def test_every_job_once_and_its_fold_has_puzzles(plan: object, task: str, size: str) -> None:
    if task == "sudoku4" and size == "full":
        size = "tiny"
    subject = SUBJECTS[task]
    jobs: list[Job] = plan(subject, size)  # type: ignore[operator]
    assert jobs
    assert len({job.key for job in jobs}) == len(jobs)
    for job in jobs:
        assert len(job.rows(subject.puzzles)) > 0
        if size == "tiny":
            options = job.options
            assert options.get("particles", 0) <= 4
            assert options.get("outer_steps", 0) <= 6
            assert sum(stage[1] for stage in options.get("stages", ())) <= 6


def test_table1_is_the_papers_protocol() -> None:
    jobs = plans.table1(SUBJECTS["sudoku"])
    runs = Counter(job.method for job in jobs)
    assert runs == {"deterministic": 5, "unguided": 25, "guided": 25}
    assert all(job.limit is None and job.folds == 5 for job in jobs)
    guided = [job.options for job in jobs if job.method == "guided"]
    assert {(o["particles"], o["noise"], o["beta"], o["outer_steps"], o["resample_below"])
            for o in guided} == {(16, 0.3, 0.25, 48, 0.3)}  # fmt: skip
    assert sum(o["cells"] for o in guided) == 5
    assert all(o["by_step"] for o in guided)
    mazes = [job.options for job in plans.table1(SUBJECTS["maze"]) if job.method == "guided"]
    assert {(o["noise"], o["beta"]) for o in mazes} == {(0.5, 1.0)}


def test_what_was_chosen_is_run() -> None:
    jobs = plans.table1(SUBJECTS["sudoku"], "quick", {"noise": 0.4, "beta": 0.5, "particles": 8})
    by_method = {job.method: job.options for job in jobs}
    assert (by_method["guided"]["noise"], by_method["guided"]["beta"]) == (0.4, 0.5)
    assert (by_method["unguided"]["noise"], by_method["unguided"]["particles"]) == (0.4, 8)
    deep = plans.table1(SUBJECTS["sudoku"], "quick", {"outer_steps": 24})
    assert {job.options["outer_steps"] for job in deep} == {24}


def test_the_frontier_has_every_method() -> None:
    jobs = plans.frontier(SUBJECTS["sudoku"])
    assert {job.method for job in jobs} == set(NAMES) - {"c_voting"}  # no shards of it yet
    assert {job.limit for job in jobs} == {2000}
    assert {job.limit for job in plans.frontier(SUBJECTS["sudoku"], limit=10_000)} == {None}
    depths = {job.options["outer_steps"] for job in jobs if job.method == "deterministic"}
    assert {48, 96} <= depths


@pytest.mark.parametrize(
    ("puzzles", "limit", "parts"),
    [(10_000, None, 5), (10_000, 5, 5), (10_000, 3, 3), (10_000, 1, 1), (2, None, 2), (2, 9, 2)],
)
def test_a_frontier_of_few_puzzles_has_fewer_parts(
    puzzles: int, limit: int | None, parts: int
) -> None:
    for task in ("sudoku", "sudoku4", "maze"):
        jobs = plans.frontier(a_target(puzzles, task=task), limit=limit)
        assert {(job.fold, job.folds) for job in jobs} == {(n, parts) for n in range(parts)}


def test_the_axes_vary_what_they_say() -> None:
    for name, jobs in plans.axes(SUBJECTS["sudoku"]).items():
        setting = name.partition(",")[0]
        values = {job.options[setting] for job in jobs}
        assert len(values) > 2
        if name == "particles":
            assert values == {1, 2, 4, 8, 16, 32, 64}
        if name == "beta, never resampled":
            assert {job.options["trigger"] for job in jobs} == {"never"}


def test_a_limit_beyond_the_puzzles_is_no_limit() -> None:
    subject = SUBJECTS["sudoku4"]
    keys = {plans.jobs(subject, "guided", limit=limit)[0].key for limit in (None, 12, 500)}
    assert len(keys) == 1
    assert plans.jobs(subject, "guided", limit=11)[0].key not in keys


def test_seeds_are_for_what_is_random() -> None:
    subject = SUBJECTS["sudoku4"]
    assert len(plans.jobs(subject, "deterministic", seeds=5, folds=2)) == 2
    for method in ("guided", "unguided", "ptrm", "halt_first", "symmetry", "adaptive"):
        assert len(plans.jobs(subject, method, seeds=5, folds=2)) == 10


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"folds": 13}, "folds must lie in 1..12, the number of puzzles, got 13"),
        ({"folds": 0}, "folds must lie in 1..12, the number of puzzles, got 0"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        ({"limit": 0}, "limit must be at least 1 puzzle, got 0"),
        ({"folds": 3, "limit": 2}, "folds must lie in 1..2, the number of puzzles, got 3"),
    ],
)
def test_the_number_that_is_impossible_is_named_alone(wrong: dict[str, int], said: str) -> None:
    with pytest.raises(SettingsError, match=f"^{said}$"):
        plans.jobs(SUBJECTS["sudoku4"], "guided", **wrong)  # type: ignore[arg-type]


def test_a_size_that_there_is_not() -> None:
    with pytest.raises(SettingsError, match="size must be"):
        plans.table1(SUBJECTS["sudoku4"], "huge")


def test_what_is_done_of_a_plan_is_the_same_for_all_methods() -> None:
    """Folds that are whole for the first seed, then seeds that are whole on all of those."""
    jobs = plans.table1(SUBJECTS["sudoku"], "quick")
    assert plans.done(jobs, lambda job: True) == jobs
    assert plans.done(jobs, lambda job: False) == []
    first = [job for job in jobs if job.seed == 0]
    found = plans.done(jobs, lambda job: job.seed == 0 or job.method == "guided")
    assert found == first
    lost = next(job for job in jobs if job.method == "unguided" and job.fold == 3)
    assert lost.seed == 0
    found = plans.done(jobs, lambda job: job != lost)
    assert found == [job for job in jobs if job.fold != 3]
    late = next(job for job in jobs if job.seed == 1 and job.fold == 3)
    assert plans.done(jobs, lambda job: job not in (lost, late)) == found


def test_what_is_whole_of_a_plan_are_settings_with_every_fold() -> None:
    jobs = plans.frontier(SUBJECTS["sudoku"])
    lost = next(job for job in jobs if job.method == "ptrm" and job.fold == 3)
    found = plans.whole(jobs, lambda job: job != lost)
    assert found == [job for job in jobs if job.settings != lost.settings]
    assert len(jobs) - len(found) == lost.folds
    assert plans.whole(jobs, lambda job: False) == []


def test_long_plans_can_be_cut_off_anywhere() -> None:
    """The frontier goes through its parts one by one, Table 1 through its seeds."""
    folds = [job.fold for job in plans.frontier(SUBJECTS["sudoku"])]
    assert folds == sorted(folds)
    assert set(folds) == set(range(5))
    seeds = [job.seed for job in plans.table1(SUBJECTS["sudoku"])]
    assert seeds == sorted(seeds)

"""A shard that keeps more than was asked for is not computed again."""

from pathlib import Path
from typing import Any

from tiltrm.data import Puzzles
from tiltrm.evaluate import Job, Store
from tiltrm.evaluate.records import serving
from tiltrm.evaluate.run import do
from tiltrm.evaluate.summary import by_step, summarise

from .toys import Wells, a_job


def asked(**records: bool) -> Job:
    settings: dict[str, Any] = {"particles": 3, "outer_steps": 4, **records}
    return a_job(settings=settings)


def test_who_keeps_more_serves_and_nobody_who_keeps_less() -> None:
    least, steps, cells, all_ = (
        asked(by_step=s, cells=c) for c in (False, True) for s in (False, True)
    )
    assert serving(least)[0] == least
    assert set(serving(least)) == {least, steps, cells, all_}
    assert set(serving(steps)) == {steps, all_}
    assert serving(all_) == [all_]


def test_a_method_that_records_nothing_has_only_itself() -> None:
    job = a_job("adaptive")
    assert serving(job) == [job]


def test_the_store_gives_the_fuller_shard_under_the_job_that_asked(
    tmp_path: Path, puzzles: Puzzles, model: Wells
) -> None:
    full, lean = asked(by_step=True), asked()
    full_store, lean_store = Store(tmp_path / "full"), Store(tmp_path / "lean")
    full_store.write(full, do(full, model, puzzles), {})
    lean_store.write(lean, do(lean, model, puzzles), {})
    assert full_store.missing([lean, full]) == []
    assert lean_store.missing([lean, full]) == [full]
    mine, theirs = full_store.read([lean]), lean_store.read([lean])
    assert mine[0].job == lean
    assert summarise(mine) == summarise(theirs)
    assert by_step(mine) == by_step(theirs) == []  # nobody asked for it
    assert len(by_step(full_store.read([full]))) == 1


def test_of_two_that_are_missing_only_the_fuller_is_done(tmp_path: Path) -> None:
    full, lean = asked(by_step=True), asked()
    assert Store(tmp_path).missing([lean, full]) == [full]
    assert Store(tmp_path).missing([lean]) == [lean]

"""A run that recorded more serves whoever asked for less."""

from dataclasses import replace
from itertools import product

from tiltrm.evaluate.job import Job
from tiltrm.evaluate.options import RECORDS


def serving(job: Job) -> list[Job]:
    """The job, then the same run with more of it kept: a shard of any of them will do.

    Proved by tests/evaluate/test_records.py.
    """
    own = job.options
    left = [name for name in RECORDS if own.get(name) is False]
    kept = (dict(zip(left, some, strict=True)) for some in product((False, True), repeat=len(left)))
    return [replace(job, settings=tuple((own | more).items())) for more in kept]

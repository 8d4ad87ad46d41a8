"""A key says what a shard holds: nothing that decides its content may be missing from it."""

import json

import pytest
import torch

from tiltrm.errors import DataError, SettingsError
from tiltrm.evaluate import Job

from .toys import a_job

OTHER = {
    "kind": "diagnose", "weights": "x" * 16, "task": "maze", "checksum": "e", "limit": 3,
    "method": "unguided", "settings": {"noise": 0.5}, "seed": 1, "fold": 1, "folds": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER)
def test_whatever_decides_the_content_changes_the_key(name: str) -> None:
    changed = {**a_job().as_dict(), name: OTHER[name]}
    assert Job.from_dict(changed).key != a_job().key


@pytest.mark.parametrize("name", ["model", "data", "split"])
def test_names_for_people_do_not(name: str) -> None:
    assert a_job(**{name: "another"}).key == a_job().key


def test_all_fields_are_one_or_the_other() -> None:
    assert {*OTHER, "model", "data", "split"} == set(a_job().as_dict())


def test_a_job_survives_json_and_order() -> None:
    job = a_job("adaptive")
    again = Job.from_dict(json.loads(json.dumps(job.as_dict())))
    turned = Job.from_dict({**job.as_dict(), "settings": dict(reversed(job.settings))})
    assert again == turned == job
    assert again.key == turned.key == job.key
    assert len({job, again, turned}) == 1


def test_folds_part_the_limited_set() -> None:
    parts = [a_job(limit=11, fold=fold, folds=3).rows(20) for fold in range(3)]
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(11))
    assert a_job(limit=30).rows(20).tolist() == list(range(20))
    with pytest.raises(SettingsError):
        a_job(limit=2, folds=3).rows(20)


def test_a_record_that_is_no_job() -> None:
    with pytest.raises(DataError, match="a job's settings must be a mapping, got None"):
        Job.from_dict({"kind": "solve"})
    with pytest.raises(DataError, match=r"the setting job\.model is missing"):
        Job.from_dict({"kind": "solve", "settings": {}})
    whole = a_job().as_dict()
    with pytest.raises(DataError, match=r"unknown setting job\.colour"):
        Job.from_dict({**whole, "colour": "red"})
    with pytest.raises(DataError, match=r"job\.seed must be a whole number, got 'x'"):
        Job.from_dict({**whole, "seed": "x"})

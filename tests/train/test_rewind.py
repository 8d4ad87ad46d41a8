"""After a kill: the log has no line newer than the state from which the run goes on."""

import json
from pathlib import Path
from typing import Any

import pytest

from tiltrm.errors import DataError
from tiltrm.train.log import METRICS, SCANS, current_lines
from tiltrm.train.trainer import Trainer

from . import toys

KINDS = ("train", "evaluation", "scan")
SCAN = {"puzzles": 2, "particles": 2, "outer_steps": 2}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def steps(folder: Path, kind: str) -> list[int]:
    path = folder / (SCANS if kind == "scan" else METRICS)
    return [line["step"] for line in lines(path) if line["kind"] == kind]


def killed(folder: Path) -> Trainer:
    """A run that saved at step 6 and was lost at step 14."""
    run = toys.trainer(folder, scan=SCAN)
    run.log.begin(0, {})
    for mark in (3, 6):
        toys.advance(run, mark - run.clock.step)
        observe(run)
    run.save()
    for mark in (9, 13):
        toys.advance(run, mark - run.clock.step)
        observe(run)
    return run


def observe(run: Trainer) -> None:
    run.log.write("train", run.clock.step)
    run.evaluate()
    run.scan()


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_has_forgotten_what_was_lost(tmp_path: Path, kind: str) -> None:
    """Also where the first new record comes later than lost ones."""
    killed(tmp_path)
    assert steps(tmp_path, kind) == [3, 6, 9, 13]
    resumed = toys.trainer(tmp_path, scan=SCAN)
    assert resumed.resume()
    assert steps(tmp_path, kind) == [3, 6]
    toys.advance(resumed, 5)
    observe(resumed)
    assert steps(tmp_path, kind) == [3, 6, 11]
    if kind == "evaluation":
        assert [each.step for each in resumed.log.evaluations()] == [3, 6, 11]


def test_the_card_of_a_resumed_run_has_its_own_curve_alone(tmp_path: Path) -> None:
    killed(tmp_path)
    resumed = toys.trainer(tmp_path)
    resumed.resume()
    toys.advance(resumed, 5)
    resumed.best = -1.0
    resumed.evaluate()
    card = (tmp_path / "best" / "CARD.md").read_text()
    rows = [line.split(" | ")[0] for line in card.splitlines() if line.startswith("| ")]
    assert rows == ["| step", "| 3", "| 6", "| 11"]


def test_better_weights_of_the_lost_part_are_not_replaced_by_worse(tmp_path: Path) -> None:
    """However often the run is killed before its next save."""
    run = killed(tmp_path)
    value = 0.875
    found = run.log.evaluations()[-1]
    run.log.evaluation(found._replace(val=found.val._replace(exact={2: value})))
    for _ in range(3):
        resumed = toys.trainer(tmp_path)
        resumed.resume()
        assert resumed.best == value
        assert all(each.val.final < value for each in resumed.log.evaluations())


@pytest.mark.parametrize("moment", ["write_text", "flush", "replace"])
def test_a_kill_while_forgetting_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The record is as it was with one line more; the next resume puts it right."""
    killed(tmp_path)
    before = lines(tmp_path / METRICS)

    class Killed(BaseException):
        pass

    def stop(*_: object) -> None:
        raise Killed

    def half(path: Path, text: str, _: str) -> None:
        path.write_bytes(text[: len(text) // 2].encode())
        raise Killed

    with monkeypatch.context() as patch:
        if moment == "flush":
            patch.setattr("tiltrm.folders.flush", stop)
        else:
            patch.setattr(Path, moment, half if moment == "write_text" else stop)
        with pytest.raises(Killed):
            toys.trainer(tmp_path).resume()
    assert lines(tmp_path / METRICS)[:-1] == before
    resumed = toys.trainer(tmp_path)
    assert resumed.resume()
    assert steps(tmp_path, "evaluation") == steps(tmp_path, "scan") == [3, 6]
    assert resumed.best == max(line["val"]["exact"]["2"] for line in before if "val" in line)


def test_a_full_disk_while_forgetting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(DataError, match=r"metrics.jsonl could not be written: .*No space"):
        toys.trainer(tmp_path).resume()


def test_a_run_that_was_never_saved_leaves_no_scans(tmp_path: Path) -> None:
    """Begun anew at step 0, its forerunner's scans and evaluations count no more."""
    for mark in (5, 8):
        run = toys.trainer(tmp_path, scan=SCAN)
        assert not run.resume()
        run.log.begin(0, {})
        toys.advance(run, mark)
        observe(run)
    for name, kind in ((METRICS, "evaluation"), (SCANS, "scan")):
        assert [each.step for each in current_lines(tmp_path / name, kind)] == [8]

"""tiltrm evaluate: tables, JSON, a store that is gone on with, and bad input in one sentence."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.evaluate.toys import a_job, a_shard

from tiltrm.cli.evaluate_command import comparisons, figures
from tiltrm.evaluate import Store, scale
from tiltrm.evaluate import run as compute
from tiltrm.evaluate.options import NAMES
from tiltrm.evaluate.shards import decode
from tiltrm.tasks import Sudoku

SMALL = ("--set", "outer_steps=3", "particles=3", "--folds", "2", "--seeds", "2")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Five puzzles with answers and without."""
    task = Sudoku(2)
    rows = [tuple(map(task.decode, task.generate(seed))) for seed in range(5)]
    where = tmp_path_factory.mktemp("data")
    (where / "test.csv").write_text("question,answer\n" + "".join(f"{q},{a}\n" for q, a in rows))
    (where / "plain.txt").write_text("".join(f"{q}\n" for q, _ in rows))
    (where / "empty.csv").write_text("question,answer\n")
    return {path.stem: path for path in where.iterdir()}


def test_the_table(tiltrm: Any, folder: str, data: dict[str, Path]) -> None:
    code, out, err = tiltrm("evaluate", "--model", folder, "--data", data["test"], *SMALL)
    assert (code, err) == (0, "")
    rows, tests, reliability = out.split("\n\n")
    assert "adaptive, 3 steps: confidence not calibrated" in reliability
    assert "Brier score" in reliability
    methods = ["deterministic", "unguided", "guided", "adaptive"]
    named = [line.split()[:2] for line in rows.splitlines()[1:5]]
    assert named == [["test", f"{method},"] for method in methods]
    assert rows.splitlines()[1].split()[-1] == "9.0"  # one trajectory, 3 steps of 3 evaluations
    assert rows.splitlines()[3].split()[-1] == "27.0"
    said, heads, *lines = tests.splitlines()
    assert said.startswith("paired differences in percentage points, on the same puzzles")
    assert re.split("  +", heads) == [
        "split", "method", "baseline", "difference", "95 % interval", "wins", "losses", "p-value",
    ]  # fmt: skip
    assert [re.split("  +", line)[2] for line in lines] == ["deterministic, outer_steps 3"] * 3


def test_json_steps_and_settings_of_ones_own(
    tiltrm: Any, folder: str, data: dict[str, Path]
) -> None:
    methods = ("deterministic", "ptrm:particles=5,select=majority", "ptrm", "symmetry:copies=2")
    code, out, _ = tiltrm(
        "evaluate", "--model", folder, "--data", data["test"], *SMALL, "--method", *methods,
        "--json", "--by-step", "--limit", "4", "--split", "Test",
    )  # fmt: skip
    found = json.loads(out)
    assert code == 0
    main = [row for row in found["rows"] if row["split"] == "Test"]
    assert [row["method"] for row in main] == ["deterministic", "ptrm", "ptrm", "symmetry"]
    assert [row["evaluations"]["mean"] for row in main] == [9, 45, 27, 18]
    assert [row["runs"] for row in main] == [2, 4, 4, 4]
    assert {row["puzzles"] for row in main} == {4}
    assert main[1]["settings"]["select"] == "majority"
    assert [test["second"] for test in found["paired"]] == ["deterministic, outer_steps 3"] * 3
    assert {len(curve["exact"]) for curve in found["by_step"]} == {3}


def test_two_plans_side_by_side(tiltrm: Any, folder: str, data: dict[str, Path]) -> None:
    """The commas of a list end no setting."""
    methods = (
        "adaptive:stages=[[1,2]]",
        "adaptive:stages=[[1,2],[2,1,false,0.6]],turned=true",
    )
    code, out, _ = tiltrm(
        "evaluate", "--model", folder, "--data", data["test"], "--folds", "1", "--seeds", "1",
        "--limit", "2", "--method", *methods, "--json",
    )  # fmt: skip
    titles = [row["title"] for row in json.loads(out)["rows"]]
    assert (code, titles) == (0, ["adaptive, not turned, 2 steps", "adaptive, 1x2 2x1@0.6"])


def test_stages_may_be_given_as_the_tables_print_them(
    tiltrm: Any, folder: str, data: dict[str, Path]
) -> None:
    words = ("evaluate", "--model", folder, "--data", data["test"], "--folds", "1", "--seeds", "1",
             "--limit", "2", "--json", "--method")  # fmt: skip
    lists, text = (
        json.loads(tiltrm(*words, f"adaptive:stages={stages},turned=true")[1])["rows"]
        for stages in ("[[1,2],[2,1,false,0.6],[2,1,false,0.6]]", '"1x2 2x1@0.6*2"')
    )
    assert text == lists
    assert text[0]["title"] == "adaptive, 1x2 2x1@0.6*2"


def test_precisions_are_compared_and_stored_apart(
    tiltrm: Any, folder: str, data: dict[str, Path], tmp_path: Path
) -> None:
    words = ("evaluate", "--model", folder, "--data", data["test"], "--store", tmp_path,
             "--set", "outer_steps=3", "--method", "deterministic")  # fmt: skip
    code, out, _ = tiltrm(*words, "deterministic:precision=int8")
    assert code == 0
    assert "deterministic, outer_steps 3, precision int8" in out
    shards = len(list(tmp_path.rglob("*.parquet")))
    assert tiltrm(*words)[0] == 0
    assert len(list(tmp_path.rglob("*.parquet"))) == shards  # the exact ones are there
    assert "precision int8" in tiltrm(*words, "--precision", "int8")[1]
    assert len(list(tmp_path.rglob("*.parquet"))) == shards
    code, _, err = tiltrm(*words, "--precision", "fp8")
    assert (code, "fp8 needs a GPU" in err) == (2, True)


def test_a_store_is_gone_on_with(
    tiltrm: Any, folder: str, data: dict[str, Path], tmp_path: Path
) -> None:
    command = ("evaluate", "--model", folder, "--data", data["test"], *SMALL, "--store",
               tmp_path / "s")  # fmt: skip
    _, whole, _ = tiltrm(*command)
    store = Store(tmp_path / "s")
    jobs = store.jobs()
    assert len(jobs) == 2 + 4 + 4 + 4
    before = {job.key: (tmp_path / "s" / f"{job.key}.parquet").stat().st_mtime_ns for job in jobs}
    for job in jobs[:3]:
        (tmp_path / "s" / f"{job.key}.parquet").unlink()
    _, again, _ = tiltrm(*command)
    assert again == whole
    after = {job.key: (tmp_path / "s" / f"{job.key}.parquet").stat().st_mtime_ns for job in jobs}
    assert sorted(key for key in before if before[key] != after[key]) == [j.key for j in jobs[:3]]


def test_a_damaged_shard_is_named_and_computed_again(
    tiltrm: Any, folder: str, data: dict[str, Path], tmp_path: Path
) -> None:
    command = ("evaluate", "--model", folder, "--data", data["test"], *SMALL, "--store", tmp_path)
    _, whole, _ = tiltrm(*command)
    path = sorted(tmp_path.glob("*.parquet"))[0]
    path.write_bytes(path.read_bytes()[:100])
    code, again, err = tiltrm(*command)
    assert (code, again) == (0, whole)
    assert len(err.splitlines()) == 1
    assert path.name in err


def bad_inputs(data: dict[str, Path], tmp_path: Path) -> dict[str, tuple[object, ...]]:
    (tmp_path / "file").write_text("")
    known = ("--data", data["test"])
    return {
        "no data": (),
        "missing file": ("--data", tmp_path / "absent.csv"),
        "no puzzles": ("--data", data["empty"]),
        "unknown method": (*known, "--method", "magic"),
        "unknown setting": (*known, "--set", "magic=1"),
        "unknown setting of a method": (*known, "--method", "guided:magic=1"),
        "a setting that none has": (*known, "--method", "guided", "--set", "copies=2"),
        "no value": (*known, "--set", "noise"),
        "out of range": (*known, "--set", "noise=-1"),
        "not a number": (*known, "--set", "noise=loud"),
        "NaN": (*known, "--set", "noise=NaN"),
        "nan": (*known, "--set", "noise=nan"),
        "a noise of a stage that is no number": (
            *known,
            "--method",
            "adaptive:stages=[[1,2,false,nan]]",
        ),
        "an infinite noise of a stage": (*known, "--method", "adaptive:stages=[[1,2,false,inf]]"),
        "a stage without steps": (*known, "--method", 'adaptive:stages="1x20 8"'),
        "a stage without particles": (*known, "--method", 'adaptive:stages="0x20"'),
        "more stages than memory": (*known, "--method", 'adaptive:stages="1x1*99999999999"'),
        "a text of no stages": (*known, "--method", 'adaptive:stages=""'),
        "a date": (*known, "--set", "guide=2020-01-01"),
        "neither a value nor a word": (*known, "--set", "guide=a b"),
        "a setting twice": (*known, "--set", "noise=0.1", "noise=0.2"),
        "a setting of a method twice": (*known, "--method", "guided:noise=0.1,noise=0.2"),
        "rules that ask the halting head": (*known, "--method", "adaptive_rules:halt_above=5"),
        "rules alone that do": (*known, "--method", "adaptive_rules", "--set", "halt_above=5"),
        "a device of this machine for others": (*known, "--ray", "--device", "cuda:3"),
        "half a particle": (*known, "--set", "particles=1.5"),
        "unknown guide": (*known, "--method", "guided", "--set", "guide=magic"),
        "too many copies": (*known, "--method", "symmetry", "--set", "copies=5000"),
        "no step to watch": (*known, "--method", "symmetry", "--by-step"),
        "folds beyond puzzles": (*known, "--folds", "6"),
        "folds beyond the limit": (*known, "--folds", "3", "--limit", "2"),
        "no folds": (*known, "--folds", "0"),
        "no seeds": (*known, "--seeds", "0"),
        "no puzzles asked": (*known, "--limit", "0"),
        "not a whole number": (*known, "--seeds", "few"),
        "a store that is a file": (*known, "--store", tmp_path / "file"),
        "a store below a file": (*known, "--store", tmp_path / "file" / "s"),
        "missing model": (*known, "--model", tmp_path / "absent"),
        "another task": (*known, "--task", "maze"),
        "no such task": (*known, "--task", "chess"),
        "no such device": (*known, "--device", "abacus"),
    }


def test_bad_input(tiltrm: Any, folder: str, data: dict[str, Path], tmp_path: Path) -> None:
    for name, arguments in bad_inputs(data, tmp_path).items():
        code, out, err = tiltrm("evaluate", "--model", folder, *arguments)
        assert (code, out, len(err.splitlines())) == (2, "", 1), (name, err)
        assert err.startswith("tiltrm"), name


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--folds", "6"), "--folds must lie in 1..5, got 6"),
        (("--folds", "3", "--limit", "2"), "--folds must lie in 1..2, got 3"),
        (("--folds", "0"), "--folds must lie in 1..5, got 0"),
        (("--seeds", "0"), "--seeds must lie in 1..1000, got 0"),
        (("--seeds", "99999999999"), "--seeds must lie in 1..1000, got 99999999999"),
        (
            ("--split", "DF"),
            "--split DF is reserved for the puzzles that the deterministic model fails; "
            "choose another name",
        ),
        (("--limit", "0"), "--limit must be at least 1 puzzle, got 0"),
    ],
)
def test_the_number_that_is_wrong_is_named(
    tiltrm: Any, folder: str, data: dict[str, Path], arguments: tuple[str, ...], said: str
) -> None:
    found = tiltrm("evaluate", "--model", folder, "--data", data["test"], *arguments)
    assert found == (2, "", f"tiltrm evaluate: {said}\n")


def test_fewer_puzzles_than_folds_are_no_error_where_none_were_asked_for(
    tiltrm: Any, folder: str, data: dict[str, Path]
) -> None:
    code, out, _ = tiltrm(
        "evaluate", "--model", folder, "--data", data["test"], "--limit", "2", "--seeds", "1",
        "--method", "guided:outer_steps=2, particles=2", "--json",
    )  # fmt: skip
    (row,) = json.loads(out)["rows"]
    assert (code, row["puzzles"], row["runs"]) == (0, 2, 2)


def test_a_shared_setting_goes_only_where_it_does_something(
    tiltrm: Any, folder: str, data: dict[str, Path]
) -> None:
    """Where the rules decide, nobody asks the halting head."""
    code, out, _ = tiltrm(
        "evaluate", "--model", folder, "--data", data["test"], "--folds", "1", "--seeds", "1",
        "--method", "adaptive", "adaptive_rules", "--set", "outer_steps=2", "halt_above=5",
        "--json",
    )  # fmt: skip
    above = [row["settings"].get("halt_above") for row in json.loads(out)["rows"]]
    assert (code, above) == (0, [5.0, None])


def test_nothing_is_kept_unless_asked(
    tiltrm: Any, folder: str, data: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    tiltrm("evaluate", "--model", folder, "--data", data["test"], *SMALL, "--method", "guided")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [(("--ray",), (None, None)), (("--ray", "auto", "--device", "cpu"), ("auto", 0))],
)
def test_a_cluster_is_asked(
    tiltrm: Any, folder: str, data: dict[str, Path], monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...], wanted: tuple[object, ...],
) -> None:  # fmt: skip
    """Here it is this process that answers."""
    asked: list[tuple[object, ...]] = []

    def cluster(
        jobs: Any, store: Store, address: str | None, *, gpus: int | None, **_: Any
    ) -> None:
        asked.append((address, gpus))
        compute(jobs, store, torch.device("cpu"))

    monkeypatch.setattr(scale, "run", cluster)
    command = ("evaluate", "--model", folder, "--data", data["test"], *SMALL, "--method", "guided")
    assert tiltrm(*command, *flags) == tiltrm(*command)
    assert asked == [wanted]


def test_the_first_method_is_the_baseline_of_the_others() -> None:
    """A method that is better than the first one has a positive difference, and its wins."""
    base = a_shard(a_job("deterministic"), [0, 1], [1, 0])
    (found,) = comparisons([base, a_shard(a_job(), [0, 1], [1, 1])])
    assert (found.first, found.second) == ("guided", "deterministic")
    assert (found.found.difference, found.found.wins, found.found.losses) == (0.5, 1, 0)


def test_curves_of_the_oracle_are_its_own() -> None:
    steps = {"exact_by_step": np.array([[0, 1], [0, 0]], bool),
             "oracle_by_step": np.array([[1, 1], [0, 1]], bool)}  # fmt: skip
    shard = a_shard(a_job(settings={"by_step": True}), [0, 1], [1, 0], **steps)
    (curve,) = figures([shard])["by_step"]
    assert (curve["exact"], curve["oracle"]) == ([0.0, 0.5], [0.5, 1.0])


@pytest.mark.parametrize("method", NAMES)
def test_every_method_is_stopped_in_time_or_refused(
    tiltrm: Any, folder: str, data: dict[str, Path], tmp_path: Path, method: str
) -> None:
    code, _, err = tiltrm(
        "evaluate", "--model", folder, "--data", data["test"], "--method", method, "--folds", "1",
        "--seeds", "1", "--seconds", "0", "--store", tmp_path / "store",
    )  # fmt: skip
    if method in ("symmetry", "c_voting"):
        assert code == 2
        assert f"--seconds must go with methods that can be stopped, got {method}" in err
        return
    assert code == 0, err
    (path,) = (tmp_path / "store").glob("*.*")
    assert set(decode(path)["decided_by"]) == {"time"}


def test_a_method_that_cannot_be_stopped_is_not_run_without_a_limit(
    tiltrm: Any, folder: str, data: dict[str, Path]
) -> None:
    code, _, err = tiltrm(
        "evaluate", "--model", folder, "--data", data["test"], *SMALL, "--seconds", "1",
        "--method", "guided", "symmetry", "c_voting",
    )  # fmt: skip
    assert code == 2
    assert "got symmetry, c_voting, which cannot; leave one out" in err

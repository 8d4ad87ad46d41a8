"""A shard is there whole or not there; what is not whole is named, moved aside, and missing."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tiltrm.data import Puzzles
from tiltrm.errors import DataError, SettingsError
from tiltrm.evaluate import Job, Store, shards, store
from tiltrm.evaluate.run import do
from tiltrm.evaluate.store import covering
from tiltrm.evaluate.summary import by_step, summarise
from tiltrm.provenance import UNINSTALLED, release

from .toys import Wells, a_job

COLUMNS: dict[str, Any] = {
    "puzzle": torch.tensor([0, 1, 2]),
    "exact": torch.tensor([True, False, True]),
    "oracle": None,
    "confidence": torch.tensor([0.25, 1.0, 0.0]),
    "decided_by": ["budget", "halting", "budget"],
    "exact_by_step": torch.tensor([[True, False], [False, False], [True, True]]),
    "oracle_by_step": torch.zeros(3, 0, dtype=torch.bool),
    "terminal_entropy": torch.tensor([[0.5], [0.125], [1.0]], dtype=torch.float16),
    "path_entropy": torch.zeros(3, 0, dtype=torch.float16),
    "off": torch.tensor([[0, 3], [-4, 5], [0, 0]], dtype=torch.int16),
}
ABOUT = {"seconds": 1.5, "device": "CPU"}


@pytest.fixture
def without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for module in (shards, store):
        monkeypatch.setattr(module, "have_pyarrow", lambda: False)
    return monkeypatch


def same(columns: shards.Columns) -> bool:
    """Whether these are COLUMNS, types and shapes too."""
    wanted = shards.as_columns(COLUMNS)
    for name, column in wanted.items():
        got = columns[name]
        if column is None or got is None:
            assert column is got, name
            continue
        assert (got.dtype, got.shape) == (column.dtype, column.shape), name
        assert (got == column).all(), name
    return set(columns) == set(wanted)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    job = a_job()
    here = Store(tmp_path / "new" / "folder")
    assert here.missing([job, job]) == [job]
    here.write(job, COLUMNS, ABOUT)
    assert [path.name for path in here.folder.iterdir()] == [f"{job.key}.parquet"]
    (shard,) = Store(here.folder).read([job])
    assert same(shard.columns)
    assert (shard.job, shard.about, here.jobs()) == (job, ABOUT, [job])


def test_a_shard_takes_the_names_of_the_job_that_asks(tmp_path: Path) -> None:
    here = Store(tmp_path)
    here.write(a_job(split="val", data="x"), COLUMNS, ABOUT)
    asked = a_job(split="Test", data="y")
    assert here.read([asked])[0].job == asked


def test_safetensors_where_pyarrow_is_missing_and_parquet_later(
    tmp_path: Path, without_pyarrow: pytest.MonkeyPatch
) -> None:
    job = a_job()
    Store(tmp_path).write(job, COLUMNS, ABOUT)
    assert [path.name for path in tmp_path.iterdir()] == [f"{job.key}.safetensors"]
    assert Store(tmp_path).has(job)
    assert same(Store(tmp_path).read([job])[0].columns)
    without_pyarrow.undo()
    packed = Store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{job.key}.parquet"]
    (shard,) = packed.read([job])
    assert same(shard.columns)
    assert (shard.job, shard.about) == (job, ABOUT)


def test_parquet_counts_as_done_where_it_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(tmp_path).write(a_job(), COLUMNS, ABOUT)
    for module in (shards, store):
        monkeypatch.setattr(module, "have_pyarrow", lambda: False)
    assert Store(tmp_path).has(a_job())
    with pytest.raises(SettingsError, match="pip install"):
        Store(tmp_path).read([a_job()])


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_half_a_file_is_no_shard(
    tmp_path: Path, share: float, packed: bool, without_pyarrow: pytest.MonkeyPatch
) -> None:
    if packed:
        without_pyarrow.undo()
    job, told = a_job(), list[str]()
    Store(tmp_path).write(job, COLUMNS, ABOUT)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    here = Store(tmp_path, told.append)
    assert here.missing([job]) == [job]
    assert len(told) == 1
    assert path.name in told[0]
    assert here.jobs() == []
    (aside,) = tmp_path.iterdir()
    assert aside.name.endswith(".damaged")
    assert aside.read_bytes() == whole[: int(share * len(whole))]
    here.write(job, COLUMNS, ABOUT)
    assert same(here.read([job])[0].columns)


def test_a_flipped_bit_is_noticed_or_does_no_harm(tmp_path: Path) -> None:
    Store(tmp_path).write(a_job(), COLUMNS, ABOUT)
    (path,) = tmp_path.iterdir()
    whole, noticed = path.read_bytes(), 0
    for place in range(4, len(whole), 41):
        data = bytearray(whole)
        data[place] ^= 1
        path.write_bytes(bytes(data))
        here = Store(tmp_path, lambda sentence: None)
        if here.has(a_job()):
            assert same(here.read([a_job()])[0].columns), place
        else:
            noticed += 1
    assert noticed > len(whole) / 41 / 4


def test_a_file_that_is_another_jobs(tmp_path: Path) -> None:
    here, told = Store(tmp_path), list[str]()
    here.write(a_job(seed=1), COLUMNS, ABOUT)
    (tmp_path / f"{a_job(seed=1).key}.parquet").rename(tmp_path / f"{a_job().key}.parquet")
    here.tell = told.append
    assert not here.has(a_job())
    assert a_job(seed=1).key in told[0]


def test_files_that_are_no_shards_are_left_alone(tmp_path: Path) -> None:
    for name in ("notes.txt", "mine.parquet", "chosen-sudoku.json"):
        (tmp_path / name).write_text("x")
    here = Store(tmp_path)
    assert (here.jobs(), len(list(tmp_path.iterdir()))) == ([], 3)


class Killed(BaseException):
    """As a signal would."""


@pytest.mark.parametrize("where", ["encode", "flush", "replace"])
def test_killed_while_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def die(*_: object) -> None:
        raise Killed

    def unlink(self: Path, missing_ok: bool = False) -> None:
        """Nobody tidies up after a kill."""

    here, job = Store(tmp_path), a_job()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        patch.setattr(*((os, where) if where == "replace" else (store, where)), die)
        with pytest.raises(Killed):
            here.write(job, COLUMNS, ABOUT)
    left = list(tmp_path.iterdir())
    assert all(path.suffix == ".part" for path in left)
    assert Store(tmp_path).missing([job]) == [job]
    assert Store(tmp_path).jobs() == []
    for path in left:
        os.utime(path, (0, 0))
    Store(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_writer_of_this_moment_is_not_disturbed(tmp_path: Path) -> None:
    (tmp_path / f"{a_job().key}.00000000.part").write_bytes(b"PAR1")
    assert Store(tmp_path).missing([a_job()]) == [a_job()]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("jump", [1e9, -1e9])
def test_a_clock_that_jumps_costs_no_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """Another process opens the store while a shard is written, with a clock years ahead."""
    here, now, real = Store(tmp_path), store.time.time, store.flush
    seen: list[Path] = []

    def flush(path: Path) -> None:
        if not seen:
            seen.append(path)
            monkeypatch.setattr(store.time, "time", lambda: now() + jump)
            Store(tmp_path)
            assert path.exists() == (jump < 0)
        real(path)

    monkeypatch.setattr(store, "flush", flush)
    here.write(a_job(), COLUMNS, ABOUT)
    assert here.has(a_job())
    assert list(tmp_path.glob("*.part")) == []


def test_missing_shards_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"expected the shard {a_job().key}"):
        Store(tmp_path).read([a_job()])


def test_a_store_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DataError, match="must be a folder"):
            Store(bad)


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    here = Store(tmp_path)
    monkeypatch.setattr(store, "flush", full)
    with pytest.raises(DataError, match="No space left on device; make room"):
        here.write(a_job(), COLUMNS, ABOUT)
    assert list(tmp_path.iterdir()) == []


def test_jobs_are_missing_once_and_in_order(tmp_path: Path) -> None:
    here = Store(tmp_path)
    jobs: list[Job] = [a_job(seed=seed) for seed in (2, 0, 1, 0, 2)]
    here.write(jobs[2], COLUMNS, ABOUT)
    assert here.missing(jobs) == jobs[:2]


def test_a_machine_at_its_limit_costs_no_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be opened now is not damaged, and stays."""
    job, here = a_job(), Store(tmp_path)
    here.write(job, COLUMNS, ABOUT)

    def full(path: Path) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(shards, "_from_parquet", full)
        patch.setattr(shards, "_from_safetensors", full)
        with pytest.raises(DataError, match="Too many open files"):
            here.has(job)
    assert here.has(job)


def test_packed_while_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever packs puts Parquet there first, so a reader who misses the one finds the other."""
    pytest.importorskip("pyarrow")
    job = a_job()
    with monkeypatch.context() as patch:
        patch.setattr(store, "have_pyarrow", lambda: False)
        Store(tmp_path).write(job, COLUMNS, ABOUT)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "pack", lambda self: None)
        reader = Store(tmp_path)
    intact = reader._intact

    def late(path: Path) -> shards.Shard | None:
        Store(tmp_path)  # packs
        return intact(path)

    monkeypatch.setattr(reader, "_intact", late)
    assert reader.has(job)
    assert reader.jobs() == [job]


def test_a_pyarrow_that_is_broken_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(SettingsError, match="pyarrow"):
        shards.have_pyarrow()


def asked(**records: bool) -> Job:
    settings: dict[str, Any] = {"particles": 3, "outer_steps": 4, **records}
    return a_job(settings=settings)


def test_a_job_is_covered_by_runs_that_record_more() -> None:
    least, steps, cells, all_ = (
        asked(by_step=s, cells=c) for c in (False, True) for s in (False, True)
    )
    assert covering(least)[0] == least
    assert set(covering(least)) == {least, steps, cells, all_}
    assert set(covering(steps)) == {steps, all_}
    assert covering(all_) == [all_]


def test_a_method_without_records_covers_only_itself() -> None:
    job = a_job("adaptive")
    assert covering(job) == [job]


def test_a_shard_that_records_more_is_read_and_not_computed_again(
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


def test_of_two_missing_runs_only_the_one_that_records_more_is_computed(tmp_path: Path) -> None:
    full, lean = asked(by_step=True), asked()
    assert Store(tmp_path).missing([lean, full]) == [full]
    assert Store(tmp_path).missing([lean]) == [lean]


@pytest.mark.parametrize(
    "changes",
    [
        {"exact": torch.tensor([1, 0, 1])},
        {"confidence": ["a", "b", "c"]},
        {"decided_by": torch.tensor([1, 2, 3])},
        {"exact": None},
        {"puzzle": torch.tensor([0, 2, 3])},
        {"confidence": torch.tensor([0.5, 0.5])},
    ],
)
def test_columns_of_another_type_or_length_are_damage(
    tmp_path: Path, changes: dict[str, Any], without_pyarrow: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    here = Store(tmp_path, said.append)
    here.write(a_job(), {**COLUMNS, **changes}, ABOUT)
    assert here.missing([a_job()]) == [a_job()]
    assert "expected" in said[0]


def test_shards_that_lack_rows_are_named(tmp_path: Path) -> None:
    """Three puzzles of fold 0 of 2, two of fold 1: five puzzles. Then fold 1 loses one."""
    here = Store(tmp_path)
    jobs = [a_job(fold=fold, folds=2) for fold in range(2)]
    for rows in ([1, 3], [1]):
        here.write(jobs[0], {**COLUMNS, "puzzle": torch.tensor([0, 2, 4])}, ABOUT)
        own = {"puzzle": torch.tensor(rows), "exact": torch.ones(len(rows), dtype=torch.bool)}
        here.write(jobs[1], own, ABOUT)
        if len(rows) == 2:
            assert len(here.read(jobs, 5)) == 2
            with pytest.raises(DataError, match="with 3 rows, which does not fit"):
                here.read(jobs[:1], 7)
        else:
            with pytest.raises(DataError, match="fold 1\\) with 1 rows, which does not fit"):
                here.read(jobs)


def test_another_version_is_named(tmp_path: Path) -> None:
    said: list[str] = []
    here = Store(tmp_path, said.append)
    here.write(a_job(), COLUMNS, {**ABOUT, "tiltrm": "tiltrm 0.0.1"})
    for _ in range(2):
        here.read([a_job()])
    assert len(said) == 1, "once a store"
    assert "1 of 1 shards were computed by tiltrm 0.0.1 with algorithm 1, not tiltrm" in said[0]


@pytest.mark.parametrize(("algorithm", "sentences"), [(store.ALGORITHM, 0), (99, 1)])
def test_a_source_tree_is_another_version_by_its_algorithm_only(
    tmp_path: Path, algorithm: int, sentences: int
) -> None:
    said: list[str] = []
    here = Store(tmp_path, said.append)
    here.write(a_job(), COLUMNS, {**ABOUT, "tiltrm": UNINSTALLED, "algorithm": algorithm})
    here.read([a_job()])
    assert len(said) == sentences


def test_another_algorithm_of_the_same_version_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    here = Store(tmp_path, said.append)
    for seed, about in enumerate((ABOUT, ABOUT | {"algorithm": 2}, ABOUT | {"algorithm": [3]})):
        here.write(a_job(seed=seed), COLUMNS, about)
    monkeypatch.setattr(store, "ALGORITHM", 2)
    here.read([a_job(seed=seed) for seed in range(3)])
    assert [sentence.partition(";")[0].rpartition("computed by ")[2] for sentence in said] == [
        f"{release()} with algorithm {number}, not {release()} with 2" for number in ("1", "[3]")
    ]


def test_sizes_by_checksum_are_compared_where_they_are_known(tmp_path: Path) -> None:
    here = Store(tmp_path)
    here.write(a_job(), COLUMNS, ABOUT)
    assert len(here.read([a_job()], {a_job().checksum: 3, "other": 9})) == 1
    assert len(here.read([a_job()], {"other": 9})) == 1
    with pytest.raises(DataError, match="with 3 rows, which does not fit"):
        here.read([a_job()], {a_job().checksum: 4})


def test_a_small_file_with_billions_of_numbers_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Store(tmp_path, print)
    here.write(a_job(), COLUMNS, ABOUT)
    monkeypatch.setattr(shards, "MAX_SIZE", 10)
    with pytest.raises(DataError, match="at most 10 bytes of numbers, got"):
        shards.decode(tmp_path / f"{a_job().key}.parquet")


@pytest.mark.parametrize(
    ("suffix", "dictionary"),
    [(shards.PARQUET, True), (shards.PARQUET, False), (shards.SAFETENSORS, True)],
)
def test_one_long_word_in_every_row_is_not_unpacked(
    suffix: str,
    dictionary: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    memory_needed: Callable[..., float],
) -> None:
    """3,000 rows with one word of 100 kB: a file of some KB that unpacked to 1.5 GB."""
    import pyarrow.parquet as pq

    write = pq.write_table
    monkeypatch.setattr(
        pq, "write_table",
        lambda *given: write(*given, use_dictionary=dictionary, compression="zstd"),
    )  # fmt: skip
    monkeypatch.setattr(shards, "digest", lambda _: "0" * 64)
    rows = 3000
    word = "x" * 100_000
    columns: shards.Columns = {
        "puzzle": np.arange(rows), "exact": np.ones(rows, bool),
        "decided_by": np.array([word] * rows, dtype=object),
    }  # fmt: skip
    if suffix == shards.SAFETENSORS:  # numpy would copy the word into every row
        monkeypatch.setattr(np, "unique", lambda *_, **__: (np.array([word]), np.zeros(rows)))
        columns["decided_by"] = np.array([""] * rows, dtype=object)
    path = tmp_path / f"a{suffix}"
    path.write_bytes(shards.encode(shards.Shard(a_job(), columns, ABOUT), suffix))
    assert path.stat().st_size < 200_000
    imports = """
        import sys
        from pathlib import Path
        import pyarrow.parquet
        from tiltrm.errors import DataError
        from tiltrm.evaluate.shards import decode
    """
    code = """
        try:
            decode(Path(sys.argv[1]))
        except DataError as error:
            assert "texts of at most 64 characters" in str(error), error
        else:
            raise SystemExit("expected a DataError")
    """
    assert memory_needed(imports, code, path) < 100


def test_a_diagnosis_may_have_one_long_text(tmp_path: Path) -> None:
    job, figures = a_job(kind="diagnose"), "y" * 100_000
    for suffix in (shards.PARQUET, shards.SAFETENSORS):
        columns: shards.Columns = {"figures": np.array([figures], dtype=object)}
        path = tmp_path / f"a{suffix}"
        path.write_bytes(shards.encode(shards.Shard(job, columns, ABOUT), suffix))
        assert shards.decode(path)["figures"][0] == figures

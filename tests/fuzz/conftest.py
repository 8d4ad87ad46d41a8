"""Small files of every kind, as the seeds of mutations."""

import gzip
import io
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.arc.arc_samples import MINI, mini_model, write_tasks

from tiltrm.evaluate import Job
from tiltrm.evaluate.options import complete
from tiltrm.evaluate.shards import Shard, encode
from tiltrm.explore.learned import GuideHead, HeadSizes
from tiltrm.model import save
from tiltrm.model.checkpoint import BUNDLED
from tiltrm.model.native import CALIBRATION, TUNED, write_beside
from tiltrm.model.trm import TRM
from tiltrm.solving.guide_folder import FittedOn, save_guide
from tiltrm.solving.plans import TunedPlan, default_plan
from tiltrm.tasks import Sudoku

TOY_JOB = Job(
    "solve", "m", "w" * 16, "sudoku4", "d", "Test", "c", None, "guided",
    tuple(complete("guided", {}, "sudoku4").items()), 0, 0, 1,
)  # fmt: skip

TOY = Sudoku(2)
LIMIT = 10  # seconds of computing beyond which an input counts as a hang
ASLEEP = 120  # seconds of waiting beyond which it does, too


class HangError(Exception):
    """An input that takes longer than LIMIT."""


@pytest.fixture
def bounded() -> Callable[[], Any]:
    """A context in which an input that takes longer than LIMIT is an error."""

    @contextmanager
    def limited() -> Iterator[None]:
        def ring(*_: object) -> None:
            raise HangError(f"more than {LIMIT} s")

        timers = ((signal.SIGPROF, signal.ITIMER_PROF, LIMIT),
                  (signal.SIGALRM, signal.ITIMER_REAL, ASLEEP))  # fmt: skip
        before = [signal.signal(number, ring) for number, _, _ in timers]
        for _, timer, seconds in timers:
            signal.setitimer(timer, seconds)
        try:
            yield
        finally:
            for (number, timer, _), handler in zip(timers, before, strict=True):
                signal.setitimer(timer, 0)
                signal.signal(number, handler)

    return limited


@pytest.fixture(scope="session")
def seeds() -> dict[str, bytes]:
    """Files of puzzles by the ending of their name."""
    rows = [tuple(map(TOY.decode, TOY.generate(seed))) for seed in range(4)]
    csv = "question,answer,rating,source\n" + "".join(f"{q},{a},1.5,x\n" for q, a in rows)
    text = "\n".join(q for q, _ in rows) + "\n"
    grid = "\n\n".join("\n".join(q[i : i + 4] for i in range(0, 16, 4)) for q, _ in rows)
    array = io.BytesIO()
    np.save(array, np.array([TOY.encode(q).tolist() for q, _ in rows], dtype=np.int32))
    return {
        "csv": csv.encode(), "txt": text.encode(), "grid": grid.encode(),
        "csv.gz": gzip.compress(csv.encode()), "npy": array.getvalue(),
        "json": json.dumps({"seq_len": 16, "vocab_size": 6, "sets": ["all"]}).encode(),
    }  # fmt: skip


@pytest.fixture(scope="session")
def shards() -> dict[str, bytes]:
    """One shard in both formats."""
    columns = {
        "puzzle": np.arange(3), "exact": np.array([True, False, True]), "oracle": None,
        "evaluations": np.full(3, 7), "outer_steps": np.full(3, 4),
        "confidence": np.array([0.5, 1, 0], dtype=np.float32),
        "decided_by": np.array(["budget", "halting", "time"], dtype=object),
        "exact_by_step": np.zeros((3, 2), dtype=bool),
    }  # fmt: skip
    shard = Shard(TOY_JOB, columns, {"seconds": 1.0})
    return {suffix: encode(shard, suffix) for suffix in (".parquet", ".safetensors")}


@pytest.fixture(scope="session")
def guide(toy: TRM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a learned guide."""
    head = GuideHead(HeadSizes(32, 16, 8, outer_steps=10)).eval().requires_grad_(False)
    return save_guide(head, toy, tmp_path_factory.mktemp("guides") / "guide", FittedOn(), "")


def write_tuned(model: Path) -> None:
    """A calibration and a tuned plan beside a toy's weights."""
    calibration = json.loads((BUNDLED / "sudoku-extreme" / CALIBRATION).read_text())
    del calibration["weights"]  # the checksum of other weights
    write_beside(model, CALIBRATION, calibration | {"task": TOY.name})
    write_beside(model, TUNED, TunedPlan(default_plan(TOY)).as_mapping() | {"task": TOY.name})


@pytest.fixture(scope="session")
def files(
    toy: TRM, seeds: dict[str, bytes], guide: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """Paths that a command line may name: good ones, and ones of the wrong kind."""
    folder = tmp_path_factory.mktemp("fuzz")
    model = save(toy, folder / "model", dtype=None)
    torch.save(toy.state_dict(), folder / "step_1")
    tuned = save(toy, folder / "tuned", dtype=None)
    write_tuned(tuned)
    found = {"MODEL": str(model), "CKPT": str(folder / "step_1"), "FOLDER": str(folder),
             "TUNED": str(tuned), "GUIDE": f"learned:{guide}"}  # fmt: skip
    for kind, content in seeds.items():
        path = folder / f"puzzles.{kind}"
        path.write_bytes(content)
        found[kind.upper()] = str(path)
    (folder / "zeros").write_bytes(bytes(10_000))
    write_tasks(folder / "arc.json", MINI)
    arc_model = save(mini_model(), folder / "mini-arc", dtype=None)
    latin = Path(__file__).parents[2] / "examples/latin.py"
    more = {"ZEROS": folder / "zeros", "NONE": folder / "none", "NEW": folder / "new.csv",
            "NULL": "/dev/null", "LATIN": f"{latin}:LATIN", "EMPTY": "", "PUZZLE": "." * 16,
            "FULL": "/dev/full", "NEWDIR": folder / "newdir", "ARC": folder / "arc.json",
            "ARCMODEL": arc_model}  # fmt: skip
    return found | {name: str(value) for name, value in more.items()}

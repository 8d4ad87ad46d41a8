"""Limits on threads and time for all tests; two small models: one thinks, one never changes."""

import importlib.util
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from types import FrameType

import pytest
import torch
from torch import Tensor

from tiltrm import cpu_precision
from tiltrm.model.base import State
from tiltrm.model.trm import TRM, TRMConfig

if not torch.cuda.is_available() and importlib.util.find_spec("triton") is not None:
    # Before anybody imports Triton, which looks at it once: its interpreter runs the kernels.
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Processes of pytest-xdist share the cores, and child processes inherit the variable. With all
# cores each, threads wait for one another: a small model is up to a hundred times slower.
PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // PROCESSES)))
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

# A child process inherits the folder that this one was given.
os.environ.setdefault(
    "TILTRM_USER_CACHE", os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
)
# Commands compute in float32 here, whatever was measured on this machine.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="tiltrm-tests-")
cpu_precision.remember(cpu_precision.Measurement())

TEST_SECONDS = 900  # of one test: the slowest takes a minute on two busy cores


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"this test took longer than {TEST_SECONDS} seconds")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """End a test that would go on for hours, so that the others are still run and reported."""
    if not hasattr(signal, "SIGALRM"):
        return (yield)
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(TEST_SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """torch on one thread: small batches are one block, and threads on busy cores only wait."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lines of progress on stderr, however slow the machine is."""
    monkeypatch.setattr("tiltrm.cli.progress.LINE_AFTER", math.inf)


PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
"""


@pytest.fixture(scope="session")
def memory_needed() -> Callable[..., float]:
    """MB by which the peak memory of a new process grows while it runs `code` after `imports`."""
    if not os.path.exists("/proc/self/status"):
        pytest.skip("the peak memory of a process is read from /proc")

    def measure(imports: str, code: str, *arguments: object) -> float:
        program = (
            f"{dedent(imports)}\n{PEAK}\nbefore = peak()\n{dedent(code)}\nprint(peak() - before)"
        )
        command = [sys.executable, "-c", program, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return float(done.stdout.split()[-1])

    return measure


@pytest.fixture(scope="session")
def toy() -> TRM:
    """A random TRM for 4x4 Sudokus whose halting head has opinions, but never decides."""
    torch.manual_seed(0)
    config = TRMConfig(cells=16, vocabulary=6, width=32, layers=1, heads=2, prefix=1, inner_steps=2)
    tiny = TRM(config).eval().requires_grad_(False)
    torch.nn.init.normal_(tiny.halt_head.weight, std=0.2)
    torch.nn.init.zeros_(tiny.halt_head.bias)
    tiny.task, tiny.decide_above = "sudoku4", 100.0
    return tiny


@dataclass
class Stubborn:
    """Gives one answer to every puzzle, as sure of it as it is told to be."""

    tokens: Tensor  # (cell,)
    halt: float = 5.0
    task: str = "sudoku4"
    decide_above: float | None = None
    vocabulary: int = 6
    inner_steps: int = 2
    cycles: int = 3

    @property
    def cells(self) -> int:
        return len(self.tokens)

    def embed(self, tokens: Tensor) -> Tensor:
        return tokens[..., None].float()

    def start(self, inputs: Tensor) -> State:
        return State(torch.zeros_like(inputs), torch.zeros_like(inputs))

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        return state.latent

    def answer(self, state: State) -> Tensor:
        return state.answer

    def decode(self, answer: Tensor) -> Tensor:
        logits = 10.0 * torch.nn.functional.one_hot(self.tokens.long(), self.vocabulary).float()
        return logits.expand(*answer.shape[:-2], -1, -1)

    def halt_logit(self, answer: Tensor) -> Tensor:
        return torch.full(answer.shape[:-2], self.halt)


@pytest.fixture(scope="session")
def stubborn() -> type[Stubborn]:
    return Stubborn

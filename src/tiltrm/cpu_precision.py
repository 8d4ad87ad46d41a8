"""Whether a CPU computes in bfloat16: a child process tries it once, and the result is kept.

Products in bfloat16 are faster than in float32 where the CPU has instructions for them. Some
virtual machines report instructions that end a program which uses them, hence the child process.
`python -m tiltrm.cpu_precision` prints what it measures. Proved by tests/test_cpu_precision.py.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from tiltrm.errors import DataError, DeviceError
from tiltrm.folders import write_whole

AUTO, FLOAT32, BFLOAT16, FP8 = "auto", "float32", "bfloat16", "fp8"
CHOICES = (AUTO, FLOAT32, BFLOAT16, FP8)
INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"}  # flags of x86 and ARM
CPU_INFO = Path("/proc/cpuinfo")
LONGEST = 60  # seconds for the child process
FASTER = 1.2  # times as fast as float32, so that it is worth another rounding
LARGEST_ERROR = 0.05  # of an outer step, relative to float32
BATCHES, TRIALS = (1, 8), 5


@dataclass(frozen=True)
class Measurement:
    """bfloat16 against float32 on this machine; `speedup` 0: it does not run."""

    speedup: float = 0.0  # the smallest over the batches
    error: float = 0.0  # of the answer after an outer step, relative

    @property
    def is_better(self) -> bool:
        """Whether to compute in bfloat16."""
        return self.speedup >= FASTER and self.error <= LARGEST_ERROR


def choose(name: str, device: torch.device, *, measure_now: bool = False) -> torch.dtype | None:
    """The dtype for `tiltrm.load`; None: the device's usual one.

    On a CPU, "auto" is bfloat16 where it was measured as better, and float32 on any doubt.
    With `measure_now` it is measured where nothing is known yet. "fp8" keeps the usual dtype of a
    GPU: `tiltrm.load` takes it as an argument of its own.
    """
    if name == FP8 and device.type != "cuda":
        raise DeviceError(f"fp8 needs a GPU of Hopper's kind or newer, got {device}; use auto")
    if device.type != "cpu" or name == FLOAT32:
        return torch.float32 if name == FLOAT32 else None
    if name == AUTO:
        known = remembered() or (measure() if measure_now and may_measure() else None)
        if known is None or not known.is_better:
            return None
    avoid_illegal_instructions()
    return torch.bfloat16


def avoid_illegal_instructions() -> None:
    """Keep oneDNN from its AMX path, which some virtual CPUs report and do not have.

    oneDNN reads this at its first product, so it is set before any.
    """
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")


def may_measure() -> bool:
    """Whether this CPU reports bfloat16, nothing is known of it yet, and the result can be kept."""
    if not INSTRUCTIONS & set(_cpu_line("flags", "Features").split()) or remembered() is not None:
        return False
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(_file().parent, os.W_OK)


def remembered() -> Measurement | None:
    """What was measured with this CPU and this torch; None if nothing was."""
    try:
        return Measurement(**json.loads(_file().read_text("utf-8"))[_machine()])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def measure() -> Measurement:
    """Measure in a child process, and keep the result; a child that dies means float32."""
    command = [sys.executable, "-m", "tiltrm.cpu_precision"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=True)
        found = Measurement(**json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        found = Measurement()
    remember(found)
    return found


def remember(found: Measurement) -> None:
    """Keep a measurement for this CPU and this torch, in place of others."""
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        write_whole(_file(), json.dumps({_machine(): asdict(found)}))
    except (OSError, DataError):
        return  # it is measured again another time


def compare() -> Measurement:
    """Measure in this process: an outer step of a Sudoku model, one thread."""
    from tiltrm.model.trm import TRM, TRMConfig  # here: callers that only choose need no model

    avoid_illegal_instructions()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    models = {}
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(0)
        models[dtype] = TRM(TRMConfig(inner_steps=2)).eval().requires_grad_(False).to(dtype)
    speedups, error = [], 0.0
    with torch.inference_mode():
        for batch in BATCHES:
            tokens = torch.randint(1, 11, (batch, 81))
            best: dict[torch.dtype, float] = {}
            answers: dict[torch.dtype, torch.Tensor] = {}
            for trial in range(TRIALS + 1):  # the first warms up
                for dtype, model in models.items():
                    inputs = model.embed(tokens)
                    begun = time.perf_counter()
                    answers[dtype] = model.step(inputs, model.start(inputs)).answer.float()
                    took = time.perf_counter() - begun
                    best[dtype] = min(best.get(dtype, took), took) if trial else took
            exact, rounded = answers[torch.float32], answers[torch.bfloat16]
            speedups.append(best[torch.float32] / best[torch.bfloat16])
            error = max(error, float((rounded - exact).norm() / exact.norm()))
    return Measurement(min(speedups), error)


def _file() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "tiltrm" / "cpu.json"


def _machine() -> str:
    """The CPU and the versions that a measurement is for, as 16 hex digits."""
    lines = (_cpu_line("model name", "CPU part"), _cpu_line("flags", "Features"))
    content = "\n".join((*lines, torch.__version__))
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _cpu_line(*names: str) -> str:
    """The first line of /proc/cpuinfo with one of these names; '' where there is none."""
    try:
        lines = CPU_INFO.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    found = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in found if name.strip() in names), "")


if __name__ == "__main__":
    print(json.dumps(asdict(compare())))

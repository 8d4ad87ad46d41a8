"""Whether a CPU computes in bfloat16 or int8: child processes try each once; the result is kept.

Products in bfloat16 and int8 are faster than in float32 where the CPU has instructions for them.
Some virtual machines report instructions that end a program which uses them, hence a child process
for each. `python -m tiltrm.cpu_precision` prints the measurement. Proved by
tests/test_cpu_precision.py.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tiltrm.errors import DataError, DeviceError
from tiltrm.folders import write_whole

AUTO, FLOAT32, BFLOAT16, INT8, FP8 = "auto", "float32", "bfloat16", "int8", "fp8"
PRECISIONS = (FLOAT32, BFLOAT16, INT8, FP8)
INSTRUCTIONS = {  # flags of x86 and ARM
    BFLOAT16: {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"},
    INT8: {"avx512_vnni", "i8mm"},
}
CPU_INFO = Path("/proc/cpuinfo")
LONGEST = 60  # seconds for a child process
FASTER = 1.2  # times as fast as the next finer precision, so that it is worth its rounding
LARGEST_ERROR = 0.05  # of an outer step, relative to float32
BATCHES, TRIALS = (1, 8), 5
COMPACT = 1.5  # expansion of a model with 512 hidden units: the bundled ones have about as many


class Precision(NamedTuple):
    """The arguments of `tiltrm.load` that a choice of precision stands for."""

    dtype: torch.dtype | None = None  # None: the device's usual one
    compact: bool = True
    int8: bool = False
    fp8: bool = False


@dataclass(frozen=True)
class Comparison:
    """One precision against float32 on this machine; `speedup` 0: it does not run."""

    speedup: float = 0.0  # the smallest over the batches
    error: float = 0.0  # of the answer after an outer step, relative

    @property
    def is_better(self) -> bool:
        """Whether to prefer it to float32."""
        return self.speedup >= FASTER and self.error <= LARGEST_ERROR


@dataclass(frozen=True)
class Measurement:
    """Every precision of this machine against float32."""

    bfloat16: Comparison = Comparison()
    int8: Comparison = Comparison()  # channel mixing; the rest is in `dtype`

    @property
    def dtype(self) -> torch.dtype:
        """The faster of bfloat16 and float32."""
        return torch.bfloat16 if self.bfloat16.is_better else torch.float32

    @property
    def best(self) -> str:
        """The precision to compute in; float32 on any doubt."""
        finer = self.bfloat16.speedup if self.bfloat16.is_better else 1.0
        if self.int8.is_better and self.int8.speedup >= FASTER * finer:
            return INT8
        return BFLOAT16 if self.bfloat16.is_better else FLOAT32


def choose(name: str, device: torch.device, *, measure_now: bool = False) -> Precision:
    """The arguments for `tiltrm.load`.

    On a CPU, "auto" is the precision that was measured as best, and float32 on any doubt; "int8"
    takes bfloat16 for the rest of the network where that was measured as better. With
    `measure_now` it is measured where nothing is known yet. float32 by name has every hidden unit.
    """
    if name == FP8 and device.type != "cuda":
        raise DeviceError(f"fp8 needs a GPU of Hopper's kind or newer, got {device}; use auto")
    if name == INT8 and device.type != "cpu":
        raise DeviceError(f"int8 computes on a CPU, got {device}; use auto, or fp8 on a GPU")
    if name == FLOAT32:
        return Precision(torch.float32, compact=False)
    if device.type != "cpu":
        return Precision(fp8=name == FP8)
    known = Measurement()
    if name != BFLOAT16:
        known = remembered() or (measure() if measure_now and may_measure() else known)
    chosen = known.best if name == AUTO else name
    if chosen == FLOAT32:
        return Precision()
    avoid_illegal_instructions()
    if chosen == BFLOAT16:
        return Precision(torch.bfloat16)
    return Precision(known.dtype, int8=True)


def load_options(name: str | None, device: torch.device) -> dict[str, Any]:
    """The arguments for `tiltrm.load` as a mapping; none for None, the device's usual precision."""
    return {} if name is None else choose(name, device)._asdict()


def choose_for(method: str, name: str, device: torch.device) -> Precision:
    """As `choose`; deterministic solving gives the model's own answer, with every hidden unit."""
    found = choose(name, device)
    return found._replace(compact=False) if method == "deterministic" else found


def avoid_illegal_instructions() -> None:
    """Keep oneDNN from its AMX path, which some virtual CPUs report and do not have.

    oneDNN reads this at its first product, so it is set before any.
    """
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")


def may_measure() -> bool:
    """Whether this CPU reports bfloat16 or int8, is not known yet, and the result can be kept."""
    if not any(map(_is_reported, INSTRUCTIONS)) or remembered() is not None:
        return False
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(_file().parent, os.W_OK)


def remembered() -> Measurement | None:
    """The measurement with this CPU and this torch; None if there is none."""
    try:
        kept = json.loads(_file().read_text("utf-8"))[_machine()]
        return Measurement(**{name: _comparison(kept[name]) for name in INSTRUCTIONS})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def measure() -> Measurement:
    """Measure in child processes, and keep the result; one that dies loses its own part only."""
    found = Measurement(bfloat16=_in_child(BFLOAT16, torch.bfloat16))
    found = replace(found, int8=_in_child(INT8, found.dtype))
    remember(found)
    return found


def remember(found: Measurement) -> None:
    """Keep a measurement for this CPU and this torch, in place of others."""
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        write_whole(_file(), json.dumps({_machine(): asdict(found)}))
    except (OSError, DataError):
        return  # it is measured again another time


def compare(*, dtype: torch.dtype, int8: bool) -> Comparison:
    """Measure in this process: an outer step of a Sudoku model, one thread."""
    from tiltrm.model.int8 import with_int8  # here: callers that only choose need no model
    from tiltrm.model.trm import TRM, TRMConfig

    avoid_illegal_instructions()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    exact = TRM(TRMConfig(expansion=COMPACT, inner_steps=2)).eval().requires_grad_(False)
    rounded = deepcopy(exact).to(dtype)
    models = {"exact": exact, "rounded": with_int8(rounded) if int8 else rounded}
    speedups, errors = [], []
    with torch.inference_mode():
        for batch in BATCHES:
            tokens = torch.randint(1, 11, (batch, 81))
            best: dict[str, float] = {}
            answers: dict[str, torch.Tensor] = {}
            for trial in range(TRIALS + 1):  # the first warms up
                for name, model in models.items():
                    inputs = model.embed(tokens)
                    begun = time.perf_counter()
                    answers[name] = model.step(inputs, model.start(inputs)).answer.float()
                    took = time.perf_counter() - begun
                    best[name] = min(best.get(name, took), took) if trial else took
            truth = answers["exact"]
            speedups.append(best["exact"] / best["rounded"])
            errors.append((answers["rounded"] - truth).norm() / truth.norm())
    return Comparison(min(speedups), float(torch.stack(errors).amax()))  # NaN if one is


def _in_child(name: str, dtype: torch.dtype) -> Comparison:
    """`compare` in a child process; one that dies, or prints anything else, means float32."""
    if not _is_reported(name):
        return Comparison()
    command = [sys.executable, "-m", "tiltrm.cpu_precision", name, str(dtype).split(".")[-1]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=True)
        return _comparison(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        return Comparison()


def _comparison(values: dict[str, object]) -> Comparison:
    """The record of a JSON object; ValueError or TypeError if it is none."""
    found = Comparison(**values)  # type: ignore[arg-type]
    if not all(isinstance(value, float) for value in asdict(found).values()):
        raise ValueError(f"expected numbers, got {values}")
    return found


def _is_reported(name: str) -> bool:
    """Whether the CPU reports an instruction for products in this precision."""
    return not INSTRUCTIONS[name].isdisjoint(_cpu_line("flags", "Features").split())


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


def _main(arguments: list[str]) -> None:
    """Print one comparison, made in this process; without arguments all, measured and kept."""
    if arguments:
        name, dtype = arguments
        found = asdict(compare(dtype=getattr(torch, dtype), int8=name == INT8))
    else:
        measured = measure()
        found = {**asdict(measured), "best": measured.best}
    print(json.dumps(found))


if __name__ == "__main__":
    _main(sys.argv[1:])

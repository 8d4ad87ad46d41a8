"""bfloat16 on a CPU: only where a child process showed that it runs, is right and is faster."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from tiltrm import cpu_precision
from tiltrm.cpu_precision import (
    AUTO,
    BFLOAT16,
    FLOAT32,
    FP8,
    Measurement,
    choose,
    measure,
    remembered,
)
from tiltrm.errors import DeviceError

CPU = torch.device("cpu")
BETTER, SLOWER, WRONG = Measurement(2.0, 0.02), Measurement(1.1, 0.02), Measurement(3.0, 0.5)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CPU that reports bfloat16 and of which nothing is known; the file of its measurements."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", os.environ.get("ONEDNN_MAX_CPU_ISA", "DEFAULT"))
    info = tmp_path / "cpuinfo"
    info.write_text("model name\t: A CPU\nflags\t\t: fpu avx512f avx512_bf16\n")
    monkeypatch.setattr(cpu_precision, "CPU_INFO", info)
    return tmp_path / "cache" / "tiltrm" / "cpu.json"


def child(monkeypatch: pytest.MonkeyPatch, code: str) -> list[str]:
    """Let `measure` run this code instead; the list grows with every child."""
    run, begun = subprocess.run, []

    def other(command: list[str], **more: object) -> object:
        begun.append(command[-1])
        return run([sys.executable, "-c", code], **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", other)
    return begun


@pytest.mark.parametrize(
    ("found", "dtype"),
    [(BETTER, torch.bfloat16), (SLOWER, None), (WRONG, None), (Measurement(), None)],
)
def test_auto_is_what_was_measured(found: Measurement, dtype: torch.dtype | None) -> None:
    assert choose(AUTO, CPU) is None  # nothing is known: float32
    cpu_precision.remember(found)
    assert choose(AUTO, CPU) is dtype
    assert choose(FLOAT32, CPU) is torch.float32
    assert choose(BFLOAT16, CPU) is torch.bfloat16


def test_a_gpu_keeps_its_own() -> None:
    cpu_precision.remember(BETTER)
    gpu = torch.device("cuda")
    assert [choose(name, gpu) for name in (AUTO, FLOAT32)] == [None, torch.float32]


def test_it_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = child(monkeypatch, f"print({json.dumps(asdict(BETTER))!r})")
    for _ in range(3):
        assert choose(AUTO, CPU, measure_now=True) is torch.bfloat16
    assert begun == ["tiltrm.cpu_precision"]


@pytest.mark.parametrize(
    "code",
    ["import os, signal; os.kill(os.getpid(), signal.SIGILL)", "print('x')", "print('[1]')",
     "print('{\"a\": 1}')"],
)  # fmt: skip
def test_a_child_that_dies_or_says_nothing_means_float32(
    monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    child(monkeypatch, code)
    assert measure() == Measurement()
    assert remembered() == Measurement()
    assert choose(AUTO, CPU, measure_now=True) is None


def test_another_cpu_is_measured_anew(machine: Path) -> None:
    cpu_precision.remember(BETTER)
    assert not cpu_precision.may_measure()
    cpu_precision.CPU_INFO.write_text("model name\t: Another\nflags\t\t: avx512_bf16\n")
    assert remembered() is None
    assert cpu_precision.may_measure()


def test_a_cpu_without_the_instructions_is_not_measured() -> None:
    cpu_precision.CPU_INFO.write_text("model name\t: Old\nflags\t\t: fpu sse2\n")
    assert not cpu_precision.may_measure()
    cpu_precision.CPU_INFO.unlink()  # not Linux
    assert not cpu_precision.may_measure()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "null"])
def test_a_damaged_file_is_nothing(machine: Path, content: str) -> None:
    cpu_precision.remember(BETTER)
    machine.write_text(content)
    assert remembered() is None


def test_a_home_that_cannot_be_written_is_never_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert not cpu_precision.may_measure()
    cpu_precision.remember(BETTER)  # and no error
    assert remembered() is None


def test_what_the_child_measures() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tiltrm.cpu_precision"], capture_output=True, text=True, check=False
    )
    if done.returncode < 0:
        pytest.skip(f"this CPU ends programs that multiply in bfloat16 ({done.returncode})")
    found = Measurement(**json.loads(done.stdout))
    assert found.speedup > 0.0
    assert 0.0 < found.error < cpu_precision.LARGEST_ERROR


def test_fp8_is_for_a_gpu_and_keeps_its_dtype() -> None:
    assert choose(FP8, torch.device("cuda")) is None
    with pytest.raises(DeviceError, match=r"fp8 needs a GPU .* got cpu; use auto"):
        choose(FP8, CPU)

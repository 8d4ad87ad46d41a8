"""bfloat16 and int8 on a CPU: only where a child process showed that they run, right and faster."""

import json
import math
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
    INT8,
    Comparison,
    Measurement,
    Precision,
    choose,
    measure,
    remembered,
)
from tiltrm.errors import DeviceError

RUN = subprocess.run
CPU, GPU = torch.device("cpu"), torch.device("cuda")
BETTER, SLOWER, WRONG = Comparison(2.0, 0.02), Comparison(1.1, 0.02), Comparison(3.0, 0.5)
BEST, BROKEN = Comparison(2.5, 0.04), Comparison(3.0, math.nan)
IN_BFLOAT16, IN_FLOAT32 = Precision(torch.bfloat16), Precision()


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CPU that reports both and of which nothing is known; the file of its measurements."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", os.environ.get("ONEDNN_MAX_CPU_ISA", "DEFAULT"))
    info = tmp_path / "cpuinfo"
    info.write_text("model name\t: A CPU\nflags\t\t: fpu avx512_bf16 avx512_vnni\n")
    monkeypatch.setattr(cpu_precision, "CPU_INFO", info)
    return tmp_path / "cache" / "tiltrm" / "cpu.json"


def child(monkeypatch: pytest.MonkeyPatch, **codes: str) -> list[list[str]]:
    """Let `measure` run this code for each precision instead; the list grows with every child."""
    begun: list[list[str]] = []

    def other(command: list[str], **more: object) -> object:
        begun.append(command[-2:])
        return RUN([sys.executable, "-c", codes[command[-2]]], **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", other)
    return begun


def printing(found: Comparison) -> str:
    return f"print({json.dumps(asdict(found))!r})"


@pytest.mark.parametrize(
    ("found", "chosen"),
    [
        (Measurement(), IN_FLOAT32),
        (Measurement(BETTER), IN_BFLOAT16),
        (Measurement(SLOWER), IN_FLOAT32),
        (Measurement(WRONG, WRONG), IN_FLOAT32),
        (Measurement(BROKEN, BROKEN), IN_FLOAT32),
        (Measurement(SLOWER, SLOWER), IN_FLOAT32),
        (Measurement(BETTER, BEST), Precision(torch.bfloat16, int8=True)),
        (Measurement(SLOWER, BEST), Precision(torch.float32, int8=True)),
        (Measurement(WRONG, BEST), Precision(torch.float32, int8=True)),
        (Measurement(BETTER, WRONG), IN_BFLOAT16),
        (Measurement(BETTER, Comparison(2.3, 0.04)), IN_BFLOAT16),  # 15 %: not worth the rounding
    ],
)
def test_auto_is_what_was_measured(found: Measurement, chosen: Precision) -> None:
    assert choose(AUTO, CPU) == IN_FLOAT32  # nothing is known
    cpu_precision.remember(found)
    assert choose(AUTO, CPU) == chosen
    assert choose(FLOAT32, CPU) == Precision(torch.float32, compact=False)
    assert choose(BFLOAT16, CPU) == IN_BFLOAT16


def test_int8_by_name_needs_no_measurement_and_has_the_better_rest() -> None:
    assert choose(INT8, CPU) == Precision(torch.float32, int8=True)
    cpu_precision.remember(Measurement(BETTER, SLOWER))
    assert choose(INT8, CPU) == Precision(torch.bfloat16, int8=True)


def test_a_gpu_keeps_its_own() -> None:
    cpu_precision.remember(Measurement(BETTER, BEST))
    assert choose(AUTO, GPU) == choose(BFLOAT16, GPU) == Precision()
    assert choose(FLOAT32, GPU) == Precision(torch.float32, compact=False)


def test_eight_bits_are_for_one_device() -> None:
    assert choose(FP8, GPU) == Precision(fp8=True)
    with pytest.raises(DeviceError, match=r"fp8 needs a GPU .* got cpu; use auto"):
        choose(FP8, CPU)
    with pytest.raises(DeviceError, match=r"int8 computes on a CPU, got cuda; use auto, or fp8"):
        choose(INT8, GPU)


def test_each_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = child(monkeypatch, bfloat16=printing(BETTER), int8=printing(BEST))
    for _ in range(3):
        assert choose(AUTO, CPU, measure_now=True) == Precision(torch.bfloat16, int8=True)
    assert begun == [["bfloat16", "bfloat16"], ["int8", "bfloat16"]]
    assert remembered() == Measurement(BETTER, BEST)


@pytest.mark.parametrize(
    "code",
    ["import os, signal; os.kill(os.getpid(), signal.SIGILL)",
     "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "print('x')", "print('[1]')",
     "print('{\"a\": 1}')", "print('{\"speedup\": \"2\"}')", "print('2.0')"],
)  # fmt: skip
def test_a_child_that_dies_or_says_nothing_loses_its_own_part_only(
    monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    child(monkeypatch, bfloat16=printing(BETTER), int8=code)
    assert measure() == remembered() == Measurement(BETTER)
    assert choose(AUTO, CPU, measure_now=True) == IN_BFLOAT16
    begun = child(monkeypatch, bfloat16=code, int8=printing(BEST))
    assert measure() == remembered() == Measurement(int8=BEST)
    assert begun[-1] == ["int8", "float32"]  # the rest is not in what just died
    child(monkeypatch, bfloat16=code, int8=code)
    assert measure() == remembered() == Measurement()
    assert choose(AUTO, CPU, measure_now=True) == IN_FLOAT32


@pytest.mark.parametrize(("flag", "tried"), [("avx512_bf16", "bfloat16"), ("avx512_vnni", "int8")])
def test_a_precision_that_the_cpu_does_not_report_is_not_tried(
    monkeypatch: pytest.MonkeyPatch, flag: str, tried: str
) -> None:
    cpu_precision.CPU_INFO.write_text(f"model name\t: A CPU\nflags\t\t: fpu {flag}\n")
    begun = child(monkeypatch, bfloat16=printing(BETTER), int8=printing(BETTER))
    assert cpu_precision.may_measure()
    assert measure() == Measurement(**{tried: BETTER})
    assert [name for name, _ in begun] == [tried]


def test_another_cpu_is_measured_anew(machine: Path) -> None:
    cpu_precision.remember(Measurement(BETTER, BEST))
    assert not cpu_precision.may_measure()
    cpu_precision.CPU_INFO.write_text("model name\t: Another\nflags\t\t: avx512_bf16\n")
    assert remembered() is None
    assert cpu_precision.may_measure()


def test_a_cpu_without_the_instructions_is_not_measured() -> None:
    cpu_precision.CPU_INFO.write_text("model name\t: Old\nflags\t\t: fpu sse2\n")
    assert not cpu_precision.may_measure()
    cpu_precision.CPU_INFO.unlink()  # not Linux
    assert not cpu_precision.may_measure()


def test_a_file_of_an_older_version_is_nothing(machine: Path) -> None:
    cpu_precision.remember(Measurement(BETTER, BEST))
    kept = json.loads(machine.read_text())
    machine.write_text(json.dumps({name: asdict(BETTER) for name in kept}))
    assert remembered() is None


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "null"])
def test_a_damaged_file_is_nothing(machine: Path, content: str) -> None:
    cpu_precision.remember(Measurement(BETTER, BEST))
    machine.write_text(content)
    assert remembered() is None


def test_a_home_that_cannot_be_written_is_never_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert not cpu_precision.may_measure()
    cpu_precision.remember(Measurement(BETTER, BEST))  # and no error
    assert remembered() is None


@pytest.mark.parametrize(
    ("name", "dtype"), [("bfloat16", "bfloat16"), ("int8", "float32"), ("int8", "bfloat16")]
)
def test_what_the_child_measures(name: str, dtype: str) -> None:
    command = [sys.executable, "-m", "tiltrm.cpu_precision", name, dtype]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        pytest.skip(f"this CPU ends programs that multiply in {name} ({done.returncode})")
    found = Comparison(**json.loads(done.stdout))
    assert found.speedup > 0.0
    assert 0.0 < found.error < cpu_precision.LARGEST_ERROR

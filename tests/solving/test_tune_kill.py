"""kill -9 at any moment of tune: what is stored is whole, and the result is the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOOP = Path(__file__).with_name("kill_loop.py")
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def played(folder: Path, seconds: float) -> tuple[int, str]:
    """How often it was killed, and the result."""
    done = subprocess.run(
        [sys.executable, LOOP, folder, str(seconds)],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kills, result = done.stdout.splitlines()
    return int(kills), result


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_tuning_that_is_killed_again_and_again_chooses_the_same(tmp_path: Path) -> None:
    whole, right = played(tmp_path / "whole", 1e6)
    assert whole == 0
    kills, result = played(tmp_path / "killed", 0.6)
    assert kills >= 3
    assert result == right
    assert [path for path in (tmp_path / "killed").rglob("*") if ".part" in path.name] == []

"""tiltrm serve: a flag that is wrong is named alone; the rest is in tests/serve."""

from typing import Any

import pytest

pytest.importorskip("fastapi")


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--task", "maze", "maze needs --model with models for it, got none"),
        ("--queue", "0", "must be at least 1 puzzle, got 0"),
        ("--timeout", "0", "must be above 0 and below 1,000,000 seconds, got 0"),
        ("--timeout", "nan", "must be above 0 and below 1,000,000 seconds, got nan"),
        ("--timeout", "1e9", "must be above 0 and below 1,000,000 seconds, got 1e+09"),
    ],
)
def test_the_flag_that_is_wrong_is_named(tiltrm: Any, flag: str, value: str, said: str) -> None:
    assert tiltrm("serve", flag, value) == (2, "", f"tiltrm serve: {flag} {said}\n")

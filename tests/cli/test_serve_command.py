"""tiltrm serve: a flag that is wrong is named alone; the rest is in tests/serve."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from tiltrm.cli import serve_command, site_command

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


def test_without_models_each_bundled_one_is_served_once() -> None:
    """Several tasks may have the same model."""
    arguments = argparse.Namespace(task=None, model=None)
    assert list(serve_command.model_sources(arguments)) == ["sudoku-extreme", "maze-hard", "pencil"]


def test_a_site_has_the_bundled_models_whose_rules_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnx", reason="needs the extra export")
    from tiltrm.export import networks, site

    written: list[str] = []
    monkeypatch.setattr(networks, "exportable", lambda model: model)
    monkeypatch.setattr(site, "write", lambda models, *_, **__: written.extend(models) or {})
    arguments = argparse.Namespace(
        task=None, model=None, out=tmp_path / "site", precision="float16", runtime=None, json=True
    )
    assert site_command.run(arguments) == 0
    assert written == ["sudoku-extreme", "maze-hard", "pencil"]

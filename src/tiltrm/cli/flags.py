"""Flags that several commands share; those of the settings come from the table."""

import argparse
from typing import Any

from tiltrm.settings import TABLE, Setting

RAY = (
    "spread the work over a Ray cluster: HOST:PORT, auto for the one here, local for a new one "
    "(RAY_ADDRESS, else local)"
)
TASKS = "sudoku, maze, sudoku4, or one's own as FILE.py:NAME"


def add_setting_flags(parser: argparse.ArgumentParser, methods: tuple[str, ...]) -> None:
    """A flag for every setting that one of the methods has; None where it is not given."""
    group = parser.add_argument_group("settings of the methods")
    for name, row in TABLE.items():
        having = [method for method in row.methods if method in methods]
        if having:
            flag = f"--{name.replace('_', '-')}"
            if row.kind is bool:
                group.add_argument(flag, action="store_true", default=None, help=_help(row, having))
            else:
                group.add_argument(
                    flag, type=row.kind, metavar=row.symbol or None,
                    choices=row.choices or None, help=_help(row, having),
                )  # fmt: skip


def _help(row: Setting, methods: list[str]) -> str:
    default = "" if row.default in (None, False) else f"; {row.default}"
    return f"{row.help} ({', '.join(methods)}{default})"


def given_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that were given as flags."""
    found = {name: getattr(arguments, name, None) for name in TABLE}
    return {name: value for name, value in found.items() if value is not None}

"""Stored results of `benchmarks.pencil`, and their tables in Markdown."""

import json
from dataclasses import asdict, dataclass
from typing import NamedTuple

from benchmarks.verdict import GuidanceEffect


class MethodResult(NamedTuple):
    """One method on the puzzles of one type, or on all of them."""

    method: str  # with its settings, as it was typed
    type: str  # or 'all'
    puzzles: int
    solved: float  # share, by the rules
    evaluations: float  # mean of a puzzle
    oracle: float | None  # share with a right particle at the end; None without a cloud


class TypeColumns(NamedTuple):
    """Table 1's columns for one type, and the verdict that was said before on other puzzles."""

    type: str
    puzzles: int
    said: str
    certainty: float
    asked: int  # puzzles that the verdict was computed on
    effect: GuidanceEffect

    @property
    def came_true(self) -> bool:
        """Whether the verdict is the one that the effect gives."""
        return self.said == self.effect.verdict


@dataclass(frozen=True)
class PencilResults:
    """Everything that one run of the command found."""

    model: str
    data: tuple[str, ...]
    types: dict[str, int]  # puzzles of each type
    rows: tuple[MethodResult, ...] = ()
    columns: tuple[TypeColumns, ...] = ()

    def header(self) -> str:
        """The head of the table of methods."""
        names = ["all", *self.types]
        counts = [sum(self.types.values()), *self.types.values()]
        named = (f"{name} ({count:,})" for name, count in zip(names, counts, strict=True))
        return (
            "solved in % (evaluations a puzzle), oracle in brackets\n\n"
            f"| method | {' | '.join(named)} |\n|---|{'---|' * len(names)}"
        )

    def line(self, method: str) -> str:
        """The row of one method."""
        rows = {row.type: row for row in self.rows if row.method == method}
        cells = [
            f"{100 * row.solved:.1f} ({row.evaluations:,.0f})"
            + ("" if row.oracle is None else f" [{100 * row.oracle:.1f}]")
            for row in (rows[name] for name in ("all", *self.types))
        ]
        return f"| {method} | {' | '.join(cells)} |"

    def table(self) -> str:
        """All methods."""
        methods = dict.fromkeys(row.method for row in self.rows)
        return "\n".join([self.header(), *map(self.line, methods)])

    def columns_table(self) -> str:
        """Table 1 by type, and how many verdicts came true; '' where it was not asked for."""
        if not self.columns:
            return ""
        lines = [
            "| type (puzzles) | verdict said before (certainty, puzzles) | deterministic "
            "| unguided | oracle | guided | mass gained | came true |\n" + "|---" * 8 + "|"
        ]
        for row in self.columns:
            effect = row.effect
            shares = (effect.deterministic, effect.unguided, effect.oracle, effect.guided)
            lines.append(
                f"| {row.type} ({row.puzzles:,}) | {row.said} ({row.certainty:.2f}, {row.asked}) | "
                f"{' | '.join(f'{100 * share:.1f}' for share in shares)} | "
                f"{100 * effect.gained:+.1f} +- {100 * effect.error:.1f} | "
                f"{'yes' if row.came_true else f'no: {effect.verdict}'} |"
            )
        right = sum(row.came_true for row in self.columns)
        return "\n".join([*lines, f"\n{right} of {len(self.columns)} verdicts came true"])

    def as_json(self) -> str:
        """All fields, for `from_json`."""
        found = asdict(self)
        found["rows"] = [row._asdict() for row in self.rows]
        found["columns"] = [
            row._asdict() | {"effect": row.effect._asdict()} for row in self.columns
        ]
        return json.dumps(found, indent=1)

    @staticmethod
    def from_json(text: str) -> "PencilResults":
        """Undoes `as_json`."""
        found = json.loads(text)
        columns = (
            TypeColumns(**(row | {"effect": GuidanceEffect(**row["effect"])}))
            for row in found["columns"]
        )
        rows = tuple(MethodResult(**row) for row in found["rows"])
        return PencilResults(
            found["model"], tuple(found["data"]), found["types"], rows, tuple(columns)
        )

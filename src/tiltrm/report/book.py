"""The page of a reproduction: every item with the paper's figures, ours, and the command."""

import html
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tiltrm.report.sheet import Compared, Sheet, inlined
from tiltrm.report.shell import bullets, document, table, words

TITLE = "The paper's evidence, on our weights"
LEAD = (
    "Every table and figure of Boosting Inference with Guided Reasoning: Stochastic Exploration "
    "for Recursive Models (Corbett et al., 2026), computed again, with the methods of others run "
    "on the same weights and puzzles. An evaluation is one call of the network for one puzzle and "
    "one particle."
)


class Cover(NamedTuple):
    """What stands above the items."""

    subjects: Sequence[str]  # a sentence each: weights and data
    shortened: Sequence[str]  # what a short run left out
    commands: Mapping[str, str]  # by item


def book(sheets: Sequence[Sheet], cover: Cover) -> str:
    """One page that needs no other file."""
    links = "".join(f'<a href="#{s.name}">{html.escape(_short(s))}</a>' for s in sheets)
    shortened = ""
    if cover.shortened:
        shortened = (
            f'<div class="note"><p>This run is shortened.</p>{bullets(cover.shortened)}</div>'
        )
    body = (
        f"<h1>{TITLE}</h1><p>{html.escape(LEAD)}</p>{bullets(cover.subjects)}{shortened}"
        f'<nav aria-label="Items">{links}</nav>'
        + "".join(_section(sheet, cover.commands[sheet.name]) for sheet in sheets)
    )
    return document(f"tiltrm reproduce: {TITLE}", body)


def _short(sheet: Sheet) -> str:
    return sheet.title.partition(" · ")[0]


def _section(sheet: Sheet, command: str) -> str:
    notes = bullets(sheet.notes, "note") if sheet.notes else ""
    numbers = f"{_short(sheet)} in numbers"
    shown = ""
    if sheet.shown:
        inner = table(numbers, *sheet.shown)
        shown = f"<details open><summary>{html.escape(numbers)}</summary>{inner}</details>"
    files = ", ".join(
        f'<a href="{sheet.name}.{kind}">{sheet.name}.{kind}</a>'
        for kind in (("png", "svg", "csv") if sheet.panels else ("csv",))
    )
    return (
        f'<section id="{sheet.name}" aria-labelledby="{sheet.name}-title">'
        f'<h2 id="{sheet.name}-title">{html.escape(sheet.title)}</h2>'
        f"<p>{words(sheet.reading)}</p>{_panels(sheet)}{_compared(sheet)}{shown}{notes}"
        f'<pre tabindex="0"><code>{html.escape(command)}</code></pre>'
        f'<p class="soft">Beside this page: {files}</p></section>'
    )


def _panels(sheet: Sheet) -> str:
    figures = "".join(
        f'<figure class="{kind}"><figcaption>{html.escape(title)}</figcaption>{svg}</figure>'
        for title, kind, svg in inlined(sheet)
    )
    return f'<div class="panels">{figures}</div>' if figures else ""


def _compared(sheet: Sheet) -> str:
    if not sheet.compared:
        return ""
    rows = [(line.what, *compared(line)) for line in sheet.compared]
    return table(f"{_short(sheet)}: the paper and ours", ("", "paper", "ours", "difference"), rows)


def compared(line: Compared) -> tuple[str, str, str]:
    """The paper's number, ours, and the difference, each with its unit; a zero has no minus."""

    def number(value: float | None, spread: float | None) -> str:
        if value is None:
            return "–"
        said = f"{value:z.{line.digits}f}"
        said += "" if spread is None else f" ± {spread:.{line.digits}f}"
        return said + {"%": " %", "×": " ×"}.get(line.unit, "")

    gap = line.difference
    points = " points" if line.unit in ("%", "points") else ""
    return (
        number(line.paper, line.paper_spread),
        number(line.ours, line.our_spread),
        "–" if gap is None else f"{gap:+z.{line.digits}f}{points}",
    )

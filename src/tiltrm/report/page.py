"""One self-contained HTML page of a diagnosis: figures where they can be drawn, tables always."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from tiltrm.errors import SettingsError
from tiltrm.report.figures import draw

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.15rem .8rem;text-align:right;
border-bottom:1px solid #ddd}figure{display:inline-block;margin:.5rem}
svg{max-width:100%;height:auto}h1{font-size:1.6rem}"""


def page(found: Mapping[str, Any]) -> str:
    """The page for `Report.as_dict()`. Without matplotlib it says so and has the tables alone."""
    try:
        drawn = draw(found)
        note = ""
    except SettingsError as error:
        drawn, note = {}, f"<p>{html.escape(str(error))}</p>"
    figures = "".join(
        f"<figure>{svg}<figcaption>{html.escape(title)}</figcaption></figure>"
        for title, svg in drawn.items()
    )
    reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in found["reasons"])
    tried = ", ".join(f"{name} {value}" for name, value in found["suggested"].items())
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>tiltrm diagnose</title>"
        f"<style>{STYLE}</style><h1>{html.escape(found['verdict'])}</h1>"
        f"<p>Certainty {found['certainty']:.2f}; {found['puzzles']} puzzles; "
        f"{found['evaluations']:,} evaluations. Suggested: {html.escape(tried)}.</p>"
        f"<ul>{reasons}</ul>{note}{figures}{_tables(found)}"
        f"<p>{html.escape(found['shortened'])}</p></html>\n"
    )


def _tables(found: Mapping[str, Any]) -> str:
    tubes = found["stability"]["tubes"]
    parts = [
        _table("Estimates of rho", ("", "mean", "largest", "below 1"),
               [(n, r["mean"], r["largest"], r["below_one"])
                for n, r in found["stability"]["rho"].items()]),
        _table("Tubes", ("noise", "alpha", "survival", "exit bound", "hypothesis"),
               [(t["noise"], t["alpha"], t["survival"], t["exit_bound"], t["hypothesis"])
                for t in tubes]),
    ]  # fmt: skip
    for name, study in found["alignment"].items():
        keys = [k for k in ("spread", "widest_spread", "bound", "moved", "ess", "gap", "auroc",
                            "shift") if k in study]  # fmt: skip
        rows = list(zip(*(study[key] for key in keys), strict=True))
        numbered = [(n, *row) for n, row in enumerate(rows, 1)]
        parts.append(_table(f"Guide: {name}", ("outer step", *keys), numbered))
    if "accuracy" in found:
        rows = [(name, share) for name, share in found["accuracy"].items()]
        parts.append(_table("Puzzles solved", ("", "share"), rows))
        curve = found["entropy"]["puzzles_by_entropy"]["terminal"]["curve"]
        parts.append(_table("Selective", ("coverage", "puzzles right"), curve))
    return "".join(parts)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    def row(tag: str, values: Sequence[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{_cell(value)}</{tag}>" for value in values) + "</tr>"

    body = "".join(row("td", values) for values in rows)
    return f"<h2>{html.escape(title)}</h2><table>{row('th', head)}{body}</table>"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))

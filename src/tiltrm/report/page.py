"""One self-contained HTML page of a diagnosis: figures where they can be drawn, tables always."""

import html
from collections.abc import Mapping
from typing import Any

from tiltrm.errors import SettingsError
from tiltrm.report.figures import draw
from tiltrm.report.shell import bullets, document, table


def page(found: Mapping[str, Any]) -> str:
    """The page for `Report.as_dict()`. Without matplotlib it says so and has the tables alone."""
    try:
        drawn = draw(found)
        note = ""
    except SettingsError as error:
        drawn, note = {}, f"<p>{html.escape(str(error))}</p>"
    figures = "".join(
        f"<figure><figcaption>{html.escape(title)}</figcaption>{svg}</figure>"
        for title, svg in drawn.items()
    )
    tried = ", ".join(f"{name} {value}" for name, value in found["suggested"].items())
    return document(
        "tiltrm diagnose",
        f"<h1>{html.escape(found['verdict'])}</h1>"
        f"<p>Certainty {found['certainty']:.2f}; {found['puzzles']} puzzles; "
        f"{found['evaluations']:,} evaluations. Suggested: {html.escape(tried)}.</p>"
        f'{bullets(found["reasons"])}{note}<div class="panels">{figures}</div>{_tables(found)}'
        f"<p>{html.escape(found['shortened'])}</p>",
    )


def _tables(found: Mapping[str, Any]) -> str:
    tubes = found["stability"]["tubes"]
    parts = [
        _titled("Estimates of rho", ("", "mean", "largest", "below 1"),
                [(n, r["mean"], r["largest"], r["below_one"])
                 for n, r in found["stability"]["rho"].items()]),
        _titled("Tubes", ("noise", "alpha", "survival", "exit bound", "hypothesis"),
                [(t["noise"], t["alpha"], t["survival"], t["exit_bound"], t["hypothesis"])
                 for t in tubes]),
    ]  # fmt: skip
    for name, study in found["alignment"].items():
        keys = [k for k in ("spread", "widest_spread", "bound", "moved", "ess", "gap", "auroc",
                            "shift") if k in study]  # fmt: skip
        rows = list(zip(*(study[key] for key in keys), strict=True))
        numbered = [(n, *row) for n, row in enumerate(rows, 1)]
        parts.append(_titled(f"Guide: {name}", ("outer step", *keys), numbered))
    runs = {name: study["whole_run"] for name, study in found["alignment"].items()}
    parts.append(_titled("All tilts of a whole run", ("guide", *next(iter(runs.values()))),
                         [(name, *run.values()) for name, run in runs.items()]))  # fmt: skip
    if "accuracy" in found:
        shares = [(name, share) for name, share in found["accuracy"].items()]
        parts.append(_titled("Puzzles solved", ("", "share"), shares))
        curve = found["entropy"]["puzzles_by_entropy"]["terminal"]["curve"]
        parts.append(_titled("Selective", ("coverage", "puzzles right"), curve))
    return "".join(parts)


def _titled(title: str, head: tuple[str, ...], rows: list[Any]) -> str:
    return f"<h2>{html.escape(title)}</h2>{table(title, head, rows)}"

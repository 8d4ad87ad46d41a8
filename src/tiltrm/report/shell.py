"""What every page shares: one self-contained document, its style, and tables."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

from tiltrm.report.style import variables

STYLE = (
    ":root{color-scheme:light dark;"
    + variables()
    + """--page:light-dark(#f4f3ef,#0f1218);--raised:light-dark(#f3f1ec,#1f2530);
--link:light-dark(#2b50b8,#8fb0ff)}
*{box-sizing:border-box}
body{margin:0 auto;padding:0 clamp(12px,3vw,32px) 40px;max-width:1080px;background:var(--page);
color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
-webkit-text-size-adjust:100%}
h1{font-size:clamp(1.5rem,4vw,2rem);line-height:1.2;letter-spacing:-.02em;margin:2rem 0 .5rem}
h2{font-size:1.2rem;line-height:1.3;letter-spacing:-.01em;margin:0 0 .4rem}
h3{font-size:.95rem;margin:1.2rem 0 .3rem}
p,ul{margin:.4rem 0;max-width:72ch}ul{padding-left:1.2rem}
a{color:var(--link)}a:focus-visible,div:focus-visible{outline:2.5px solid var(--link);
outline-offset:2px}
nav{display:flex;flex-wrap:wrap;gap:8px;margin:1rem 0}
nav a{padding:4px 12px;border-radius:99px;background:var(--sheet);border:1px solid var(--hair);
text-decoration:none;min-height:32px;display:inline-flex;align-items:center}
section{background:var(--sheet);border:1px solid var(--hair);border-radius:14px;
padding:clamp(14px,2.5vw,24px);margin:18px 0}
.panels{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:18px 24px;margin:14px 0}
figure{margin:0;min-width:0}figure.wide,figure.narrow{grid-column:1/-1}figure.narrow{display:none}
figcaption{font-weight:650;font-size:.92rem;margin-bottom:4px}
svg{width:100%;height:auto;display:block}svg *{stroke-linejoin:round;stroke-linecap:butt}
@media(max-width:760px){.panels{grid-template-columns:minmax(0,1fr)}
figure.wide{display:none}figure.narrow{display:block}}
.scroll{overflow-x:auto;margin:.6rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.92rem}
th,td{padding:.3rem .9rem .3rem 0;text-align:right;border-bottom:1px solid var(--hair);
white-space:nowrap;font-weight:400}
thead th{color:var(--soft);font-size:.85rem;border-bottom:1px solid var(--soft)}
th:first-child,td:first-child{text-align:left}
tbody th{white-space:normal;min-width:9.5rem}
.soft{color:var(--soft)}
.note{border-left:3px solid var(--doubt);padding:.1rem 0 .1rem .9rem}
ul.note{padding-left:1.9rem}summary{cursor:pointer;font-weight:650;font-size:.92rem}
pre{background:var(--raised);padding:.7rem .9rem;border-radius:8px;overflow-x:auto;font-size:.85rem;
white-space:pre-wrap;overflow-wrap:anywhere;margin:.8rem 0 .2rem}
"""
)


def document(title: str, body: str) -> str:
    """A whole page, readable on a phone, in the dark, and without a network."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table that scrolls by itself where the screen is narrow; the caption is for ears."""
    top = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    body = "".join(_row(values) for values in rows)
    return (
        f'<div class="scroll" role="region" aria-label="{html.escape(caption)}" tabindex="0">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(values: Sequence[Any]) -> str:
    first, *rest = values
    cells = "".join(f"<td>{cell(value)}</td>" for value in rest)
    return f'<tr><th scope="row">{cell(first)}</th>{cells}</tr>'


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else words(str(value))


def words(text: str) -> str:
    """Text for HTML, in which a number stays with its sign and its unit."""
    return html.escape(text).replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%")


def bullets(lines: Iterable[str], kind: str = "") -> str:
    """Sentences as a list; nothing where there are none."""
    items = "".join(f"<li>{words(line)}</li>" for line in lines)
    return f'<ul class="{kind}">{items}</ul>' if items else ""

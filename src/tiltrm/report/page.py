"""HTML: the parts that every page shares, and the page and files of a reproduction."""

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tiltrm.errors import DataError, SettingsError
from tiltrm.report.drawing import css_variables, image_files, inline_panels
from tiltrm.report.section import Section

PAGE = "index.html"
LEAD = (
    "Every table and figure of Boosting Inference with Guided Reasoning: Stochastic Exploration "
    "for Recursive Models (Corbett et al., 2026), computed again, with the methods of others run "
    "on the same weights and puzzles. An evaluation is one call of the network for one puzzle and "
    "one particle."
)
STYLE = (
    ":root{color-scheme:light dark;"
    + css_variables()
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


class PageHeader(NamedTuple):
    """What stands above the sections, and the command of each."""

    targets: Sequence[str]  # sentences about weights and data
    reductions: Sequence[str]  # sentences about what a short run leaves out
    commands: Mapping[str, str]  # by item
    random: bool = False  # the weights are not trained

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"The paper's evidence, on {'random' if self.random else 'our'} weights"


def write(
    sections: Sequence[Section], header: PageHeader, folder: Path,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Path]:  # fmt: skip
    """Write PNG, SVG and CSV of every section, then the page; the paths in that order.

    `progress` is called with the number of sections that are drawn.
    """
    make_folder(folder)
    files: dict[str, bytes] = {}
    parts = []
    for done, section in enumerate(sections, 1):
        files |= image_files(section) | {f"{section.name}.csv": section.data.as_csv().encode()}
        parts.append(_section(section, header))
        progress(done)
    files[PAGE] = _page(sections, parts, header).encode()
    for name, content in files.items():
        try:
            (folder / name).write_bytes(content)
        except OSError as error:
            raise DataError(
                f"{folder / name}: expected to write there, got: {error.strerror}"
            ) from error
    return [folder / name for name in files]


def make_folder(folder: Path) -> None:
    """Make the folder of --out; SettingsError if it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"--out must be a folder that can be written, got {str(folder)!r} ({error.strerror}); "
            "name another"
        ) from error


def _page(sections: Sequence[Section], parts: Sequence[str], header: PageHeader) -> str:
    links = "".join(f'<a href="#{s.name}">{html.escape(s.short_title)}</a>' for s in sections)
    note = ""
    if header.reductions:
        note = f'<div class="note"><p>This run is shortened.</p>{bullets(header.reductions)}</div>'
    body = (
        f"<h1>{header.title}</h1><p>{html.escape(LEAD)}</p>{bullets(header.targets)}{note}"
        f'<nav aria-label="Items">{links}</nav>{"".join(parts)}'
    )
    return document(f"tiltrm reproduce: {header.title}", body)


def _section(section: Section, header: PageHeader) -> str:
    name, short = section.name, section.short_title
    shown = ""
    if section.shown:
        inner = table(f"{short} in numbers", *section.shown)
        shown = f"<details open><summary>{html.escape(short)} in numbers</summary>{inner}</details>"
    panels = "".join(
        f'<figure class="{kind}"><figcaption>{html.escape(title)}</figcaption>{svg}</figure>'
        for title, kind, svg in inline_panels(section)
    )
    panels = f'<div class="panels">{panels}</div>' if panels else ""
    files = ", ".join(
        f'<a href="{name}.{kind}">{name}.{kind}</a>'
        for kind in (("png", "svg", "csv") if section.panels else ("csv",))
    )
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">'
        f'<h2 id="{name}-title">{html.escape(section.title)}</h2>'
        f"<p>{escape(section.reading)}</p>{panels}{_comparisons(section, header)}{shown}"
        f"{bullets(section.notes, 'note')}"
        f'<pre tabindex="0"><code>{html.escape(header.commands[name])}</code></pre>'
        f'<p class="soft">Beside this page: {files}</p></section>'
    )


def _comparisons(section: Section, header: PageHeader) -> str:
    if not section.comparisons:
        return ""
    ours = "random weights" if header.random else "ours"
    rows = [(line.what, *line.texts()) for line in section.comparisons]
    caption = f"{section.short_title}: the paper and {ours}"
    return table(caption, ("", "paper", ours, "difference"), rows)


def document(title: str, body: str) -> str:
    """A whole page that needs no other file, for phones and for dark themes too."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table that scrolls by itself on narrow screens; screen readers read the caption."""
    top = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{_cell(first)}</th>'
        + "".join(f"<td>{_cell(value)}</td>" for value in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll" role="region" aria-label="{html.escape(caption)}" tabindex="0">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def escape(text: str) -> str:
    """Text for HTML, with no line break between a number and its sign or unit."""
    return html.escape(text).replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%")


def bullets(lines: Iterable[str], kind: str = "") -> str:
    """Sentences as a list; empty if there are none."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul class="{kind}">{items}</ul>' if items else ""

"""What the site needs beyond mkdocs: equations as MathML, notebooks as pages, pages of the root.

Equations are written in TeX and become MathML, so no script and no font is fetched to show them.
"""

import html
import json
import logging
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
from notebook import markdown  # noqa: E402

log = logging.getLogger("mkdocs.plugins.tiltrm")
SOURCE = "https://github.com/tiltrm/tiltrm/blob/main/"
ELSEWHERE = {  # page of the site -> file of the repository
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "evidence.md": "evidence/README.md",
    "weights/maze-hard.md": "src/tiltrm/weights/maze-hard/CARD.md",
    "weights/pencil.md": "src/tiltrm/weights/pencil/CARD.md",
    "weights/sudoku-extreme.md": "src/tiltrm/weights/sudoku-extreme/CARD.md",
}
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
EQUATION = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|audio|video)\b[^>]*\ssrc=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b(?=[^>]*rel=["']?(?:stylesheet|preconnect|preload|icon))[^>]*"""
    r"""href=["']?(?:https?:)?//[^"'\s>]+""",
    re.IGNORECASE,
)


def on_files(files: Files, config: Any) -> Files:
    """Add the notebooks and the pages that live elsewhere in the repository."""
    for path in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        stored = json.loads(path.read_text("utf-8"))
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=markdown(stored)))
    for page, source in ELSEWHERE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """In pages that live elsewhere, links are relative to where they live: point them anew."""
    source = ELSEWHERE.get(page.file.src_uri)
    if source is None:
        return markdown
    folder = (ROOT / source).parent

    def moved(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve().relative_to(ROOT).as_posix()
        return f"]({_address(target, page.file.src_uri)}{found[2] or ''})"

    return LINK.sub(moved, markdown)


def _address(target: str, page: str) -> str:
    """The address of a file of the repository as seen from a page of the site."""
    pages = {source: name for name, source in ELSEWHERE.items()}
    if target in pages or target.startswith("docs/"):
        inside = pages.get(target, target.removeprefix("docs/"))
        return posixpath.relpath(inside, posixpath.dirname(page) or ".")
    return SOURCE + target


def on_page_content(content: str, **_: Any) -> str:
    """Replace every equation by its MathML."""
    return EQUATION.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    block = found[2] == "["
    said = convert(html.unescape(found[3]).strip(), display="block" if block else "inline")
    return f'<div class="equation">{said}</div>' if block else said


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Warn, and so fail the strict build, where a page would fetch something from elsewhere."""
    for tag in FETCHED.findall(output):
        log.warning("%s fetches from another server: %s", page.file.src_uri, tag[-200:])
    return output

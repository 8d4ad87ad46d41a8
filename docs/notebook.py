"""Run the notebooks of docs/notebooks without Jupyter, and turn them into pages of the site.

`python docs/notebook.py --store` runs all of them and keeps their outputs (`make notebooks`).
"""

import argparse
import ast
import contextlib
import html
import io
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
LIGHT = 200_000  # characters of one output at most, so that notebooks stay readable as text


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Execute the code cells in order, in an empty folder, and return the notebook with outputs."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    with _empty_folder():
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                outputs = _execute("".join(cell["source"]), namespace, f"<cell {number + 1}>")
                cell = {**cell, "outputs": outputs, "execution_count": None}
            cells.append(cell)
    return {**notebook, "cells": cells}


def _execute(source: str, namespace: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Like Jupyter: run everything, then show the value of the last line if it is an expression."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed)})
    if value is not None:
        shown = {kind: text.splitlines(keepends=True) for kind, text in _shown(value).items()}
        outputs.append({
            "output_type": "execute_result", "execution_count": None, "metadata": {}, "data": shown,
        })  # fmt: skip
    return outputs


def _shown(value: Any) -> dict[str, str]:
    """The forms in which a value shows itself, by their media types."""
    found = {"text/plain": repr(value)}
    for kind, method in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
        text = getattr(value, method)() if hasattr(value, method) else None
        if text:
            found[kind] = text
    figure = value if hasattr(value, "savefig") else getattr(value, "figure", None)
    if hasattr(figure, "savefig"):
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", bbox_inches="tight", metadata={"Date": None})
        found["image/svg+xml"] = drawn.getvalue()
    return {kind: text for kind, text in found.items() if len(text) <= LIGHT}


def _lines(text: io.StringIO) -> list[str]:
    return text.getvalue().splitlines(keepends=True)


@contextlib.contextmanager
def _empty_folder() -> Iterator[None]:
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


def markdown(notebook: dict[str, Any]) -> str:
    """A notebook as a page: its text, its code, and what the code showed."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(f"```python\n{source}\n```")
            parts += [_drawn(output) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _drawn(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        text = html.escape("".join(output["text"]))
        return f'<div class="notebook-output"><pre>{text}</pre></div>'
    data = {kind: "".join(lines) for kind, lines in output["data"].items()}
    shown = data.get("image/svg+xml") or data.get("text/html")
    shown = shown or f"<pre>{html.escape(data['text/plain'])}</pre>"
    if shown.startswith("<?xml"):  # a whole file, of which a page takes the picture alone
        shown = shown[shown.index("<svg") :]
    flat = "\n".join(line for line in shown.splitlines() if line.strip())
    return f'<div class="notebook-output">{flat}</div>'


def main(words: Sequence[str] | None = None) -> None:
    """Run the named notebooks, or all, and print what they print."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", help="notebooks without .ipynb (all)")
    parser.add_argument("--store", action="store_true", help="keep the outputs in the notebooks")
    asked = parser.parse_args(words)
    for name in asked.names or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        path = FOLDER / f"{name}.ipynb"
        done = run(json.loads(path.read_text("utf-8")))
        if asked.store:
            path.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(f"# {name}")
        for cell in done["cells"]:
            for output in cell.get("outputs", ()):
                print("".join(output.get("text") or output["data"]["text/plain"]).rstrip("\n"))


if __name__ == "__main__":
    main()

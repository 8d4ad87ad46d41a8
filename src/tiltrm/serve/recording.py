"""`solve --html`: a run of one puzzle as one HTML file, which needs no server and no network."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tiltrm.errors import DataError
from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.running import run_search
from tiltrm.folders import write_whole
from tiltrm.model.base import RecursiveModel
from tiltrm.serve import frames
from tiltrm.settings import TABLE
from tiltrm.solving import PuzzleRecord, build_search
from tiltrm.solving.tidy import with_tidy_answers
from tiltrm.tasks import Task

STATIC = Path(__file__).parent / "static"
ENTRY = "main.js"
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:const|let|class|function\*?) (\w+))", re.MULTILINE)


class Recording:
    """Called with every StepInfo of a run; `write` adds the deterministic run and the result."""

    def __init__(
        self, model: RecursiveModel, task: Task, settings: Mapping[str, Any],
        model_name: str | None,
    ) -> None:  # fmt: skip
        """`settings`: the arguments of `solve_texts`, with `method` and `seed`."""
        self.model, self.task, self.model_name = model, task, model_name
        self.method, self.seed = settings["method"], settings["seed"]
        self.settings = {name: value for name, value in settings.items() if name in TABLE}
        self.tuned = settings.get("tuned", True)
        self.frames = frames.FrameBuilder(
            build_search(model, task, method=self.method, tuned=self.tuned, **self.settings), task
        )
        self.steps: list[dict[str, Any]] = []

    def __call__(self, info: StepInfo) -> None:
        self.steps.append(self.frames.frame(info))

    def replay(self, record: PuzzleRecord) -> dict[str, Any]:
        """All data of the page."""
        puzzle = self.task.encode(record.puzzle)
        model = with_tidy_answers(self.model, self.task)
        baseline = run_search(frames.baseline_search(model), puzzle[None])
        start = frames.start(
            self.task, self.model, puzzle, method=self.method, seed=self.seed,
            settings=self.settings, model_name=self.model_name, tuned=self.tuned,
        )  # fmt: skip
        return {
            "start": start,
            "steps": self.steps,
            "baseline": frames.baseline(self.task, puzzle, baseline),
            "result": frames.result(record),
        }

    def write(self, record: PuzzleRecord, path: Path) -> None:
        """Write the page with this run in it; raises DataError."""
        try:
            write_whole(path, page(self.replay(record)))
        except OSError as error:
            raise DataError(
                f"{path}: expected a file that can be written, got: {error.strerror}"
            ) from error


def page(replay: Mapping[str, Any]) -> str:
    """The page that shows this replay ({start, steps, baseline, result}), as one HTML text.

    Its policy allows the script and the style that are in it, by their hashes, and nothing else.
    Proved by tests/serve/test_page_file.py.
    """
    html = (STATIC / "index.html").read_text("utf-8")
    style = (STATIC / "style.css").read_text("utf-8")
    script = bundle()
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        '<link rel="icon" href="static/icon.svg" type="image/svg+xml">': (
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        ),
        '<link rel="stylesheet" href="static/style.css">': f"<style>{style}</style>",
        '<script type="module" src="static/main.js"></script>': "",
        "</body>": (
            f'<script type="application/json" id="replay">{_safe(replay)}</script>\n'
            f'<script type="module">{script}</script>\n</body>'
        ),
    }
    for link, embedded in parts.items():
        assert html.count(link) == 1, link
        html = html.replace(link, embedded)
    return html


def bundle(entry: str = ENTRY) -> str:
    """All modules as one script: each a function that returns its exports, imports first."""
    return "\n".join(_wrapped(name, text) for name, text in _in_order(entry, {}))


def _in_order(name: str, seen: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Modules and their texts, each once and after those that it imports."""
    if name in seen:
        return
    seen[name] = (STATIC / name).read_text("utf-8")
    for _, needed in IMPORT.findall(seen[name]):
        yield from _in_order(needed, seen)
    yield name, seen[name]


def _wrapped(name: str, text: str) -> str:
    exported = ", ".join(EXPORT.findall(text))
    body = EXPORT.sub("", IMPORT.sub(_as_constant, text))
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _as_constant(found: re.Match[str]) -> str:
    """`import { a, b } from "./c.js"` -> `const { a, b } = c_js`."""
    return f"const {{{found[1]}}} = {_variable(found[2])};\n"


def _variable(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _safe(replay: Mapping[str, Any]) -> str:
    """JSON that cannot end the script element that holds it: `<` only as an escape."""
    return json.dumps(replay, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _hash(text: str) -> str:
    """The source expression of a policy that allows exactly this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

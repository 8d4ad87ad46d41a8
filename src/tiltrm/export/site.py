"""The page as static files that solve in the browser: page, engine, runtime, models.

The page is that of `tiltrm serve`; its module api.js, which talks to the server, is replaced by
engine/page.js, which talks to a worker. All paths are relative, so that the folder works under any
address. Large files are gzipped here and unpacked by the page, because a plain host may not do it.
"""

import gzip
import hashlib
import json
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import tiltrm
from tiltrm.errors import SettingsError
from tiltrm.export import runtime
from tiltrm.export.description import VIEWS, describe
from tiltrm.export.networks import ModelGraphs
from tiltrm.folders import replacing
from tiltrm.model.build import Model
from tiltrm.serve import recording
from tiltrm.settings import METHODS, TABLE
from tiltrm.solving import task_of
from tiltrm.tasks import Task
from tiltrm.tasks.pencil import PENCIL
from tiltrm.tasks.pencil import TASKS as PENCIL_TASKS

PAGE = Path(tiltrm.__file__).parent / "serve" / "static"
MARK = "site.json"
RULES_KNOWN = ("sudoku", "sudoku4", "maze", "pencil")  # tasks whose rules engine/tasks.js has
GENERATED = {"maze": 12, "lightup": 12, "nurikabe": 12, "heyawake": 12, "tapa": 12}
MANY = 60  # puzzles that "Generate" chooses from, of a task that GENERATED does not name
MOST = {"particles": VIEWS, "outer_steps": 1024}  # in a browser
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' "
    "data:; connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'"
)
SERVED = "All computation runs on the machine that serves this page."
LOCAL = "All computation runs in your browser; no puzzle leaves it."


def write(
    models: Mapping[str, Model], folder: Path, *, task: str | None = None,
    precision: str = "float16", given_runtime: Path | None = None, bundled: Collection[str] = (),
) -> dict[str, int]:  # fmt: skip
    """Write the site, replacing one that is there; returns the bytes of every file.

    `bundled` are the names of models that `tiltrm solve` knows by them.
    Proved by tests/export/test_site.py.
    """
    found = runtime.find(given_runtime)
    with replacing(folder) as fresh:
        _copy_page(fresh)
        place = _runtime_place(found)
        sizes = _copy_runtime(found, fresh, place)
        listed = []
        for name, model in models.items():
            own = _known_task(model, task)
            about = describe(model, name, own, bundled=name in bundled)
            if precision == "int8" and about["calibration"]:
                about["calibration"]["settings"] = {}  # fitted for other weights: an upper bound
            listed.append(_write_model(model, about, own, precision, fresh, sizes))
        _write_puzzles(fresh, {about["task"] for about in listed})
        content = {
            "models": listed, "files": sizes, "runtime": _runtime_files(place),
            "form": {"methods": METHODS, "settings": form_rows()},
        }  # fmt: skip
        (fresh / MARK).write_text(json.dumps(content), "utf-8")
        _name_version(fresh)
        return {
            str(path.relative_to(fresh)): path.stat().st_size
            for path in sorted(fresh.rglob("*"))
            if path.is_file()
        }


def _known_task(model: Model, task: str | None) -> Task:
    own = task_of(model, task)
    if own.name not in RULES_KNOWN:
        raise SettingsError(
            f"expected models for {', '.join(RULES_KNOWN)}, whose rules the page knows, got one "
            f"for {own.name}; serve it with tiltrm serve"
        )
    return own


def _copy_page(folder: Path) -> None:
    """The page with its solver in place of the server's address."""
    shutil.copytree(PAGE, folder / "static")
    engine = folder / "static" / "engine"
    (engine / "page.js").replace(folder / "static" / "api.js")
    (engine / "service.js").replace(folder / "service.js")
    (folder / "static" / "index.html").unlink()
    html = (PAGE / "index.html").read_text("utf-8")
    if SERVED not in html or "<head>" not in html:
        raise AssertionError("index.html has changed; adapt tiltrm.export.site")
    meta = f'<head>\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    html = html.replace("<head>", meta).replace(SERVED, LOCAL)
    (folder / "index.html").write_text(html, "utf-8")
    (folder / "static" / "replay.html").write_text(recording.page({}), "utf-8")


def _runtime_place(found: Path) -> str:
    """The folder of the runtime in the site, named by its content: the browser keeps its files."""
    digest = hashlib.sha256()
    for name in runtime.FILES:
        digest.update((found / name).read_bytes())
    return f"runtime/{digest.hexdigest()[:8]}"


def _runtime_files(place: str) -> dict[str, dict[str, str]]:
    kinds = ("script", "loader", "binary")
    return {
        build: {
            kind: f"{place}/{name.replace('.wasm', '.bin') if kind == 'binary' else name}"
            for kind, name in zip(kinds, files, strict=True)
        }
        for build, files in runtime.BUILDS.items()
    }


def _copy_runtime(found: Path, folder: Path, place: str) -> dict[str, int]:
    """Scripts as they are, WebAssembly gzipped; returns the sizes of what the page fetches."""
    (folder / place).mkdir(parents=True)
    sizes = {}
    for build, files in _runtime_files(place).items():
        script, loader, binary = runtime.BUILDS[build]
        shutil.copyfile(found / script, folder / files["script"])
        shutil.copyfile(found / loader, folder / files["loader"])
        sizes[files["binary"]] = _store(folder / files["binary"], (found / binary).read_bytes())
    return sizes


def _store(path: Path, content: bytes) -> int:
    """Write gzipped, the same bytes at every time; returns their number."""
    packed = gzip.compress(content, 9, mtime=0)
    path.write_bytes(packed)
    return len(packed)


def _write_model(
    model: Model, about: dict[str, Any], task: Task, precision: str, folder: Path,
    sizes: dict[str, int],
) -> dict[str, Any]:  # fmt: skip
    """The files of a model, named by their content; returns what the page's list says of it."""
    (folder / "models").mkdir(exist_ok=True)
    name, graphs = about["name"], ModelGraphs(model, precision)
    contents = {"about": json.dumps(about).encode()}
    for part in ("embed", "step"):
        graph = graphs.build(part).SerializeToString()
        contents[part] = graph[::2] + graph[1::2]  # halves of float16 numbers compress better apart
    files = {}
    for part, content in contents.items():
        digest = hashlib.sha256(content).hexdigest()[:8]
        files[part] = f"models/{_safe(name)}-{part}-{digest}.bin"
        sizes[files[part]] = _store(folder / files[part], content)
    return {
        "name": name, "bundled": about["bundled"], "task": task.name, "cells": task.cells,
        "side": task.side, "symbols": "".join(about["symbols"][1 : task.vocabulary]),
        "precision": precision, "files": files,
    }  # fmt: skip


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]", "-", name)


def _write_puzzles(folder: Path, tasks: set[str]) -> None:
    """Puzzles for "Generate", by type; those of pencil puzzles need OR-Tools."""
    puzzles = {}
    mixed = ("sudoku", *(task.name for task in PENCIL_TASKS)) if PENCIL.name in tasks else ()
    for name in sorted({*tasks, *mixed} - {PENCIL.name}):
        task = tiltrm.tasks.by_name(name)
        try:
            made = [task.generate(seed)[0] for seed in range(GENERATED.get(name, MANY))]
        except SettingsError:  # without OR-Tools; the page says that it has none
            continue
        puzzles[name] = [task.decode(tokens) for tokens in made]
    (folder / "static" / "generated.json").write_text(json.dumps(puzzles), "utf-8")


def form_rows() -> list[dict[str, Any]]:
    """The settings with a label, for the page's form, with the limits of a browser."""
    rows = []
    for name, row in TABLE.items():
        methods = [method for method in row.methods if method in METHODS]
        if row.label and methods:
            most = min(row.most, MOST.get(name, 1e6))
            rows.append({
                "name": name, "kind": row.kind.__name__, "label": row.label, "help": row.help,
                "least": None if row.least == float("-inf") else row.least, "most": most,
                "choices": row.unlabelled_choices, "methods": methods,
            })  # fmt: skip
    return rows


def _name_version(folder: Path) -> None:
    """Give the service worker's cache the checksum of all files, so that a new site replaces it."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    worker = folder / "service.js"
    text = worker.read_text("utf-8").replace("tiltrm-VERSION", f"tiltrm-{digest.hexdigest()[:12]}")
    worker.write_text(text, "utf-8")


def loaded_bytes(sizes: Mapping[str, int]) -> dict[str, int]:
    """Bytes that a first visit loads: the page, one build of the runtime, one model."""
    later = ("runtime/", "models/", "static/replay.html", "static/generated.json")
    page = sum(size for name, size in sizes.items() if not name.startswith(later))
    place = next(name for name in sizes if name.startswith("runtime/")).rpartition("/")[0]
    builds = {
        build: sum(sizes[name] for name in files.values())
        for build, files in _runtime_files(place).items()
    }
    models: dict[str, int] = {}
    for name, size in sizes.items():
        if name.startswith("models/"):
            model = name.removeprefix("models/").rsplit("-", 2)[0]
            models[model] = models.get(model, 0) + size
    words = {"wasm": "WebAssembly", "jspi": "WebGPU"}
    return {
        f"{model} on {words[build]}": page + own + runtime_size
        for model, own in models.items()
        for build, runtime_size in builds.items()
    }

"""A stand-in for the server: the page's files, and runs that were made up after the real format."""

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from tiltrm.serve import recording
from tiltrm.settings import METHODS
from tiltrm.tasks import MAZE, SUDOKU, Task
from tiltrm.tasks.sudoku_generate import solutions

STATIC = recording.STATIC
POLICY = "default-src 'self'"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript",
         ".json": "application/json", ".svg": "image/svg+xml"}  # fmt: skip
STAGES = ((1, 4), (4, 6), (16, 12))  # particles, outer steps
SMOOTH = 0.03  # entropy of a cell that is as sure as a model with smoothed labels can be
SYMBOLS = {"sudoku": ["", ".", *"123456789"], "maze": ["", *"# SGo"]}


def replay(task: Task, puzzle: list[int], answer: list[int], seed: int = 0) -> dict[str, Any]:
    """A run that ends at `answer`: particles err less and less, and twice the heavy are chosen."""
    chance = random.Random(seed)
    given = [token in (1, 3, 4) if task is MAZE else token > 1 for token in puzzle]
    text = "".join(SYMBOLS[task.name][token] for token in puzzle)
    total = sum(steps for _, steps in STAGES)
    frames: list[dict[str, Any]] = []
    for stage, (particles, steps) in enumerate(STAGES):
        weights = [1 / particles] * particles
        for _ in range(steps):
            done = len(frames) / total
            weights = _drift(weights, chance)
            frames.append(_frame(task, stage, weights, answer, given, done, chance))
            weights = _resample(frames[-1], weights)
            frames[-1] |= {"step": len(frames), "steps": 144, "evaluations": 7 * len(frames)}
            frames[-1]["fresh"] = [slot > 0 or stage == 0 for slot in range(particles)]
    doubt = next(cell for cell, is_given in enumerate(given) if not is_given)
    line = "".join(SYMBOLS[task.name][token] for token in answer)
    wrong = [token if is_given else 2 for token, is_given in zip(answer, given, strict=True)]
    return {
        "start": {
            "puzzle": text, "task": task.name, "side": task.side, "cells": task.cells,
            "given": given, "symbols": SYMBOLS[task.name], "method": "adaptive", "seed": seed,
            "settings": {}, "command": f"tiltrm solve '{text}' --seed {seed}",
        },
        "steps": frames,
        "baseline": {"solved": False, "outer_steps": 48, "evaluations": 336, "tokens": wrong,
                     "decided": False},
        "result": {
            "puzzle": text, "answer": line, "solved_by_rules": True, "confidence": 0.987,
            "entropy": [0.4 if cell == doubt else SMOOTH for cell in range(task.cells)],
            "halt_probability": 0.987, "evaluations": 1540, "seconds": 0.42, "abstained": False,
            "error": None, "decided_by": "halting", "outer_steps": len(frames), "particles": 16,
        },
    }  # fmt: skip


def _drift(weights: list[float], chance: random.Random) -> list[float]:
    moved = [weight * chance.uniform(0.3, 1.7) for weight in weights]
    return [weight / sum(moved) for weight in moved]


def _resample(frame: dict[str, Any], weights: list[float]) -> list[float]:
    """Fill in the frame's ancestors: systematic below half the ESS, else everybody goes on."""
    size = len(weights)
    frame["ancestors"] = list(range(size))
    if frame["ess"] > 0.5 * size or size == 1:
        return weights
    slot, reached = 0, weights[0]
    for place in range(size):
        while reached < (place + 0.5) / size and slot < size - 1:
            slot += 1
            reached += weights[slot]
        frame["ancestors"][place] = slot
    return [1 / size] * size


def _frame(
    task: Task, stage: int, weights: list[float], answer: list[int], given: list[bool],
    done: float, chance: random.Random,
) -> dict[str, Any]:  # fmt: skip
    low, high = (2, 5) if task is MAZE else (2, 10)
    rate = 0.5 * (1 - done) ** 2
    grids = []
    for slot, weight in enumerate(weights):
        err = [not is_given and chance.random() < rate for is_given in given]
        tokens = [chance.choice((low, high)) if e else t for e, t in zip(err, answer, strict=True)]
        grids.append({"particle": slot, "weight": round(weight, 4), "halting": round(done, 4),
                      "tokens": tokens})  # fmt: skip
    grids.sort(key=lambda grid: -grid["weight"])
    entropy = [0.0 if is_given else round(chance.random() * 2 * rate, 4) for is_given in given]
    return {
        "particles": len(weights), "ess": round(1 / sum(w * w for w in weights), 4),
        "weights": [round(weight, 4) for weight in weights], "stage": stage,
        "scores": [round(-4 * (1 - done) - chance.random(), 4) for _ in weights],
        "halting": [round(done, 4)] * len(weights), "leading": grids[0]["tokens"],
        "confidence": [1 - value for value in entropy], "entropy": entropy, "grids": grids[:6],
    }  # fmt: skip


def run_of(body: dict[str, Any]) -> dict[str, Any]:
    """The made-up run for a request; mazes must be bundled samples, whose answers are known."""
    text = body["puzzles"][0]
    if body["task"] == "sudoku":
        puzzle = SUDOKU.encode(text).tolist()
        return replay(SUDOKU, puzzle, next(solutions(puzzle, 3)), body.get("seed", 0))
    samples = json.loads((STATIC / "samples.json").read_text("utf-8"))["maze"]
    seed = next(sample["seed"] for sample in samples if sample["puzzle"] == text)
    return replay(MAZE, *(tokens.tolist() for tokens in MAZE.generate(seed)))


class Handler(BaseHTTPRequestHandler):
    """Files, models, generated puzzles, and the stream."""

    bodies: ClassVar[list[dict[str, Any]]] = []  # of the requests to solve
    left: ClassVar[list[str]] = []  # events at which clients had gone
    refuse: ClassVar[list[tuple[int, str]]] = []  # answers to give instead, the next first
    pause: ClassVar[float] = 0.005  # seconds between two events
    most: ClassVar[int | None] = None  # events after which the line breaks
    particles: ClassVar[int] = 16  # of the result
    late: ClassVar[float] = 0.0  # seconds from the result to the baseline; 0: it comes before

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        if path.path == "/v1/models":
            self._json({"models": [{"name": f"made-up-{task}", "task": task} for task in SYMBOLS]})
        elif path.path == "/v1/settings":
            from tiltrm.serve.limits import Limits
            from tiltrm.serve.requests import form_rows  # needs the extra [serve]

            self._json({"methods": METHODS, "settings": form_rows(Limits())})
        elif path.path == "/v1/replay":
            from tiltrm.serve.recording import page

            self._reply(200, "text/html", page({}).encode())
        elif path.path == "/v1/generate":
            seed = int(parse_qs(path.query)["seed"][0]) % 5
            self._json({"puzzle": SUDOKU.decode(SUDOKU.generate(seed)[0])})
        else:
            name = "index.html" if path.path == "/" else path.path.removeprefix("/static/")
            file = STATIC / name
            if "/" in name or not file.is_file():
                self._json({"error": "no such page"}, 404)
            else:
                self._reply(200, TYPES[file.suffix], file.read_bytes())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bodies.append(body)
        if self.refuse:
            status, sentence = self.refuse.pop(0)
            return self._json({"error": sentence}, status)
        run = run_of(body)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        known = ("puzzles", "task", "method", "seed", "baseline")
        asked = {"settings": {name: body[name] for name in body if name not in known}}
        events = [("start", {**run["start"], "method": body["method"], **asked}),
                  *(("step", frame) for frame in run["steps"]),
                  ("baseline", run["baseline"]),
                  ("result", {**run["result"], "particles": self.particles})]  # fmt: skip
        if self.late:
            events.append(events.pop(-2))
        for name, data in events[: self.most]:
            if name == "baseline":
                time.sleep(self.late)
            try:
                self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
            except OSError:
                self.left.append(name)
                break
            time.sleep(self.pause)
        return None

    def _json(self, value: object, status: int = 200) -> None:
        self._reply(status, "application/json", json.dumps(value).encode())

    def _reply(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def serving() -> Iterator[str]:
    """The stub on a free port of this machine; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def save(folder: Path) -> Path:
    """A replay as one file."""
    puzzle, answer = SUDOKU.generate(3)
    file = folder / "replay.html"
    made = replay(SUDOKU, puzzle.tolist(), answer.tolist())
    file.write_text(recording.page(made), "utf-8")
    return file

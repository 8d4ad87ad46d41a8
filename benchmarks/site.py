"""The site of `tiltrm site` in a real Chromium: the library's answers, evaluations a second, bytes.

python -m benchmarks.site --out /tmp/site --data val.csv.gz --puzzles 20 --samples 3

Every puzzle is solved by the page's worker and by the library on this machine; both print their
evaluations a second. Needs Chromium and Playwright.
"""

import argparse
import functools
import http.server
import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Page, sync_playwright

import tiltrm
from tiltrm.data import read
from tiltrm.tasks import SUDOKU

SOLVE = """async ([puzzle, settings]) => {
  const { solve } = await import(new URL("static/api.js", document.baseURI));
  const body = { puzzles: [puzzle], task: "sudoku", method: "adaptive", seed: 0, ...settings };
  let result = null;
  for await (const [name, data] of solve(body, new AbortController().signal)) {
    if (name === "result") result = data;
  }
  return result;
}"""
READY = "() => document.getElementById('engine')?.textContent.startsWith('Runs')"
FLAGS = ["--no-sandbox", "--no-first-run", "--disable-background-networking"]
EMULATED = [
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan",
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A plain static host that prints nothing."""

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="a folder of `tiltrm site`")
    parser.add_argument("--data", help="puzzles with answers")
    parser.add_argument("--puzzles", type=int, default=20)
    parser.add_argument("--samples", type=int, default=0, help="of the page's samples")
    parser.add_argument("--query", default="?threads=1&backend=wasm", help="of the page's address")
    parser.add_argument("--outer-steps", type=int, help="of every run")
    parser.add_argument("--emulated-gpu", action="store_true", help="WebGPU by SwiftShader")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    samples = json.loads((arguments.out / "static" / "samples.json").read_text("utf-8"))["sudoku"]
    texts = [sample["puzzle"] for sample in samples[: arguments.samples]]
    if arguments.data:
        found = read(arguments.data, SUDOKU, limit=arguments.puzzles)
        texts += [SUDOKU.decode(row) for row in found.questions]
    settings = {"outer_steps": arguments.outer_steps} if arguments.outer_steps else {}
    handler = functools.partial(Quiet, directory=str(arguments.out.parent))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/{arguments.out.name}/"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=FLAGS + (EMULATED if arguments.emulated_gpu else []),
        )
        context = browser.new_context()
        context.set_default_timeout(3_600_000)
        page, asked = context.new_page(), list[str]()
        loaded = count_bytes(page)
        context.on("request", lambda request: asked.append(request.url))
        begun = time.perf_counter()
        page.goto(address + arguments.query)
        page.wait_for_function(READY)
        print(
            f"ready after {time.perf_counter() - begun:.1f} s: {page.text_content('#engine')}; "
            f"{sum(loaded.values()) / 1e6:.2f} MB loaded",
            flush=True,
        )
        compare(page, texts, settings)
        foreign = [url for url in asked if not url.startswith(address)]
        print(f"{len(asked)} requests, {len(foreign)} to another address")
        print(f"memory: {memory():.0f} MB (all processes of the browser, resident)")
        browser.close()


def count_bytes(page: Page) -> dict[str, int]:
    """Bytes of every answer, as the server sent them; a page that loads twice counts once."""
    sizes: dict[str, int] = {}

    def note(response: Any) -> None:
        if not response.from_service_worker:
            sizes[response.url] = int(response.headers.get("content-length", 0))

    page.context.on("response", note)
    return sizes


def compare(page: Page, texts: list[str], settings: dict[str, Any]) -> None:
    """Solve each text here and there."""
    model = tiltrm.load("sudoku-extreme")
    same = spent = 0
    there = here = 0.0
    for number, text in enumerate(texts, 1):
        result = page.evaluate(SOLVE, [text, settings])
        begun = time.perf_counter()
        found = tiltrm.solve(model, text, **settings)
        here += time.perf_counter() - begun
        there += result["seconds"]
        spent += result["evaluations"]
        one = (result["answer"], result["evaluations"], result["decided_by"])
        other = (SUDOKU.decode(found.answers[0]), int(found.evaluations[0]), found.decided_by[0])
        same += one == other
        print(
            f"{number:3}: {'the same' if one == other else f'page {one}, library {other}'}; "
            f"{result['evaluations']} evaluations, {result['decided_by']}, "
            f"valid {result['solved_by_rules']}; page {result['seconds']:.1f} s",
            flush=True,
        )
    print(
        f"{same} of {len(texts)} the same answer, evaluations and reason; page "
        f"{spent / there:.1f} evaluations a second, torch {spent / here:.1f}"
    )


def memory() -> float:
    """Resident memory of this program's descendants, which are the browser, in MB, from /proc."""
    parents, resident = dict[int, int](), dict[int, int]()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text("utf-8").splitlines())
        except OSError:
            continue
        number = int(lines["Pid"])
        parents[number] = int(lines["PPid"])
        resident[number] = int(lines.get("VmRSS", "0").split()[0])
    own = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(resident[number] for number in own - {os.getpid()}) / 1e3


if __name__ == "__main__":
    main()

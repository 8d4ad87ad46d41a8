"""The site of `tiltrm site` in a real Chromium: the library's answers, evaluations a second, bytes.

python -m benchmarks.site --out /tmp/site --data val.csv.gz --samples 99 --records r.jsonl

Every puzzle is solved by the page's worker and by the library on this machine, in turn; both print
their evaluations a second. A run that was stopped, by `--minutes` too, goes on where its records
end; other `--query`, `--threads` or `--outer-steps` add rows of their own. Needs Chromium and
Playwright.
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
import tiltrm.solving
from tiltrm.data import read
from tiltrm.tasks import by_name
from tiltrm.tasks.registry import defaults_of

SOLVE = """async ([puzzle, settings]) => {
  const { solve } = await import(new URL("static/api.js", document.baseURI));
  const body = { puzzles: [puzzle], method: "adaptive", seed: 0, ...settings };
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
    parser.add_argument("--type", default="sudoku", help="of puzzles: sudoku, maze, lightup, ...")
    parser.add_argument("--data", help="puzzles with answers")
    parser.add_argument("--puzzles", type=int, default=20, help="of --data")
    parser.add_argument("--samples", type=int, default=0, help="of the page's samples")
    parser.add_argument("--query", default="?threads=1&backend=wasm", help="of the page's address")
    parser.add_argument("--outer-steps", type=int, help="of every run")
    parser.add_argument("--emulated-gpu", action="store_true", help="WebGPU by SwiftShader")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--records", type=Path, help="a file with a line for every puzzle")
    parser.add_argument("--minutes", type=float, default=600.0, help="no new puzzle after these")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    texts, settings = chosen(arguments)
    same = {"query": arguments.query, "threads": arguments.threads, "settings": settings}
    records = Records(arguments.records, same)
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
            f"ready after {time.perf_counter() - begun:.1f} s: {page.text_content('#engine span')} "
            f"{page.text_content('#engine-notes')} {sum(loaded.values()) / 1e6:.2f} MB loaded",
            flush=True,
        )
        most = compare(page, texts, records, 60 * arguments.minutes)
        records.report(texts)
        foreign = [url for url in asked if not url.startswith(address)]
        print(f"{len(asked)} requests, {len(foreign)} to another address")
        print(f"memory: at most {most:.0f} MB after a puzzle (all processes of the browser, PSS)")
        browser.close()


def chosen(arguments: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """The puzzles as texts, and the settings of every run, the task among them."""
    samples = json.loads((arguments.out / "static" / "samples.json").read_text("utf-8"))
    texts = [sample["puzzle"] for sample in samples[arguments.type][: arguments.samples]]
    task = by_name(arguments.type)
    if arguments.data:
        found = read(arguments.data, task, limit=arguments.puzzles)
        texts += [task.decode(row) for row in found.questions]
    settings: dict[str, Any] = {"task": defaults_of(task).part_of or task.name}
    if arguments.outer_steps:
        settings["outer_steps"] = arguments.outer_steps
    return texts, settings


class Records:
    """The results of puzzles in a file, a line each; those of other settings are left alone."""

    def __init__(self, path: Path | None, same: dict[str, Any]) -> None:
        self.path, self.same = path, same
        lines = path.read_text("utf-8").splitlines() if path is not None and path.exists() else []
        found = [json.loads(line) for line in lines]
        self.by_text = {each["puzzle"]: each for each in found if each["run"] == same}

    def add(self, record: dict[str, Any]) -> None:
        self.by_text[record["puzzle"]] = record | {"run": self.same}
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self.by_text[record["puzzle"]]) + "\n")

    def report(self, texts: list[str]) -> None:
        """The totals of these puzzles."""
        own = [self.by_text[text] for text in texts if text in self.by_text]
        if not own:
            return
        same = sum(each["page"] == each["library"] for each in own)
        valid = sum(each["valid"] for each in own)
        spent = sum(each["page"]["evaluations"] for each in own)
        there, here = (sum(each[who] for each in own) for who in ("page_seconds", "torch_seconds"))
        print(
            f"{len(own)} of {len(texts)} puzzles done; {same} the same answer, evaluations and "
            f"reason, {valid} valid; page {spent / there:.1f} evaluations a second, torch "
            f"{sum(each['library']['evaluations'] for each in own) / here:.1f}"
        )


def count_bytes(page: Page) -> dict[str, int]:
    """Bytes of every answer, as the server sent them; a page that loads twice counts once."""
    sizes: dict[str, int] = {}

    def note(response: Any) -> None:
        if not response.from_service_worker:
            sizes[response.url] = int(response.headers.get("content-length", 0))

    page.context.on("response", note)
    return sizes


def compare(page: Page, texts: list[str], records: Records, seconds: float) -> float:
    """Solve each text here and there unless that was done; the most memory in MB."""
    settings = dict(records.same["settings"])
    task = by_name(settings.pop("task"))
    model = tiltrm.load(defaults_of(task).model)
    begun, most = time.perf_counter(), memory()
    for number, text in enumerate(texts, 1):
        if text in records.by_text:
            continue
        if time.perf_counter() - begun > seconds:
            break
        result = page.evaluate(SOLVE, [text, records.same["settings"]])
        most = max(most, memory())
        before = time.perf_counter()
        (found,) = tiltrm.solving.solve_texts(model, [text], task=task, **settings)
        here = time.perf_counter() - before
        keys = ("answer", "evaluations", "decided_by")
        record = {
            "puzzle": text, "page": {key: result[key] for key in keys},
            "library": {key: getattr(found, key) for key in keys},
            "valid": result["solved_by_rules"], "page_seconds": result["seconds"],
            "torch_seconds": here,
        }  # fmt: skip
        records.add(record)
        one, other = record["page"], record["library"]
        print(
            f"{number:3}: {'the same' if one == other else f'page {one}, library {other}'}; "
            f"{result['evaluations']} evaluations, {result['decided_by']}, "
            f"valid {result['solved_by_rules']}; page {result['seconds']:.1f} s, torch {here:.1f}",
            flush=True,
        )
    return most


def memory() -> float:
    """Memory of this program's descendants, which are the browser, in MB, from /proc.

    Pages that several processes share count in parts (PSS).
    """
    parents = dict[int, int]()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text("utf-8").splitlines())
        except OSError:
            continue
        parents[int(lines["Pid"])] = int(lines["PPid"])
    own = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(map(_own_kilobytes, own - {os.getpid()})) / 1e3


def _own_kilobytes(process: int) -> int:
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text("utf-8")
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


if __name__ == "__main__":
    main()

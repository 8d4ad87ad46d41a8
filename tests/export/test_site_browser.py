"""The site in a real Chromium, from a plain static host under a sub-path. Needs the npm package."""

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.serve.browser import Tab, chromium, text

import tiltrm
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.tasks import by_name

pytest.importorskip("onnx", reason="onnx is not installed (pip install 'tiltrm[export]')")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from tiltrm.export import runtime, site

GIVEN = os.environ.get("TILTRM_RUNTIME")  # a folder `dist` of onnxruntime-web
FOUR = by_name("sudoku4")
MODELS: dict[str, TRM] = {}  # of the site under test
READY = "() => document.getElementById('engine')?.textContent.startsWith('Runs')"
SAYS = "words => document.getElementById('engine')?.textContent.includes(words)"
RUN = """async ([puzzle, settings]) => {
  const { solve } = await import(new URL("static/api.js", document.baseURI));
  const body = { puzzles: [puzzle], task: "sudoku4", ...settings };
  let result = null;
  for await (const [name, data] of solve(body, new AbortController().signal)) {
    if (name === "result") result = data;
  }
  return result;
}"""


class Host(http.server.SimpleHTTPRequestHandler):
    """A plain static host; `broken` ends of addresses get no answer."""

    broken: tuple[str, ...] = ()

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith(Host.broken or ("no such end",)):
            self.close_connection = True
            return
        super().do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def hosting(folder: Path) -> Iterator[str]:
    handler = functools.partial(Host, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = Path(GIVEN) if GIVEN else runtime.cached_folder()
    if not (folder / runtime.FILES[0]).is_file():
        pytest.skip("onnxruntime-web is not here; run `make site` once, or set TILTRM_RUNTIME")
    torch.manual_seed(0)
    config = TRMConfig(cells=16, vocabulary=6, width=32, layers=1, heads=2, prefix=1, inner_steps=2)
    model = TRM(config, scale=0.5).eval().requires_grad_(False)
    torch.nn.init.normal_(model.halt_head.weight, std=0.2)
    model.task, model.decide_above = "sudoku4", 100.0
    root = tmp_path_factory.mktemp("host")
    site.write({"toy": model}, root / "deep" / "er", given_runtime=folder, precision="float32")
    MODELS["toy"] = model
    with hosting(root) as found:
        yield f"{found}deep/er/"


@pytest.fixture
def tab() -> Iterator[Tab]:
    with chromium() as browser:
        made = Tab(browser)
        made.context.set_default_timeout(60_000)
        yield made
        made.context.close()


def test_the_browser_gives_the_librarys_answers(tab: Tab, address: str) -> None:
    """Isolated by its service worker, so with threads; nothing asked of anybody else."""
    page = tab.page
    page.goto(f"{address}?backend=wasm&threads=2")
    page.wait_for_function(READY)
    assert "WebAssembly, 2 threads" in text(page, "#engine")
    model = MODELS["toy"]
    for seed, settings in enumerate((
        {"method": "guided", "particles": 4, "outer_steps": 5, "beta": 3.5, "resample_below": 0.9},
        {"method": "adaptive", "outer_steps": 23},
    )):  # fmt: skip
        puzzle = FOUR.decode(FOUR.generate(seed)[0])
        found = page.evaluate(RUN, [puzzle, {**settings, "seed": seed}])
        wanted = tiltrm.solve(model, puzzle, seed=seed, **settings)  # type: ignore[arg-type]
        assert found["answer"] == FOUR.decode(wanted.answers[0])
        assert found["evaluations"] == int(wanted.evaluations[0])
        assert found["confidence"] == pytest.approx(float(wanted.confidence[0]), abs=1e-3)
    assert [url for url in tab.requests if not url.startswith(address)] == []
    assert tab.complaints == []


def test_the_page_solves_and_says_on_what(tab: Tab, address: str) -> None:
    page = tab.page
    page.goto(f"{address}?plain&backend=wasm#task=sudoku4&puzzle=3..4.4........31&method=guided"
              "&particles=3&outer_steps=2")  # fmt: skip
    page.wait_for_function(READY)
    page.click("#solve")
    page.wait_for_selector("#verdict.good, #verdict.bad")
    assert "On WebAssembly, 1 thread" in text(page, "#engine")
    assert "evaluations a second" in text(page, "#engine")
    assert "tiltrm solve 3..4.4........31 --model toy --method guided" in text(page, "#command")
    assert tab.violations() == []
    assert tab.complaints == []


def test_a_download_that_breaks_off_says_so_and_works_again(tab: Tab, address: str) -> None:
    page = tab.page
    Host.broken = (".bin",)
    try:
        page.goto(f"{address}?plain&backend=wasm")
        page.wait_for_function(SAYS, arg="broke off")
    finally:
        Host.broken = ()
    page.click("#solve")
    page.wait_for_selector("#verdict.good, #verdict.bad")


def test_without_simd_the_page_says_what_is_missing(tab: Tab, address: str) -> None:
    """A worker gets a WebAssembly that does not know SIMD."""
    page = tab.page
    page.route("**/engine/runtime.js", lambda route: route.fulfill(
        content_type="text/javascript",
        body="WebAssembly.validate = () => false;\n"
             + (site.PAGE / "engine" / "runtime.js").read_text("utf-8"),
    ))  # fmt: skip
    page.goto(f"{address}?plain")
    page.wait_for_function(SAYS, arg="has no WebAssembly with SIMD")
    page.click("#solve")
    page.wait_for_function("() => document.getElementById('trouble').textContent.includes('SIMD')")

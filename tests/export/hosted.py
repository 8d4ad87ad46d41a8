"""The site of a small model on a plain static host under a sub-path, for tests in a browser."""

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from tests.serve.browser import Tab, chromium

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
    """A plain static host; of addresses that hold `cut`, half of the answer arrives."""

    cut = ""
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        Host.asked.append(self.path)
        if not Host.cut or Host.cut not in self.path:
            return super().do_GET()
        content = Path(self.translate_path(self.path)).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        self.close_connection = True
        return None

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
    kept = Path(os.environ["TILTRM_USER_CACHE"]) / "tiltrm" / runtime.cached_folder().name
    folder = Path(GIVEN) if GIVEN else kept
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

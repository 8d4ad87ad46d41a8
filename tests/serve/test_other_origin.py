"""A page on another origin, and a rebound host name, in a real browser: both are refused."""

import http.server
import shutil
import threading
from typing import Any

import pytest

from tiltrm.model.trm import TRM

from .browser import FLAGS
from .service import serving

PAGE = """<!doctype html><title>evil</title><script>
const target = "http://127.0.0.1:PORT";
const body = JSON.stringify({puzzles: ["1...3..2.1....2."], method: "deterministic"});
const tries = [
  fetch(target + "/v1/generate", {mode: "no-cors"}),
  fetch(target + "/v1/solve", {method: "POST", mode: "no-cors", body}),
  fetch(target + "/v1/solve", {method: "POST", body,
                               headers: {"Content-Type": "application/json"}}),
  fetch(target + "/v1/models"),
];
Promise.allSettled(tries).then(all => {
  document.title = all.map(one => one.status === "fulfilled" ? one.value.type : "failed").join();
});
</script>"""


@pytest.fixture
def evil() -> Any:
    """Another site on this machine: another port is another origin."""

    class Handler(http.server.BaseHTTPRequestHandler):
        page = ""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(self.page.encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server, Handler
    server.shutdown()
    server.server_close()


def test_other_sites_and_rebound_names_are_refused(toy: TRM, evil: Any) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    site, handler = evil
    with serving(toy) as service, playwright.sync_playwright() as driver:
        handler.page = PAGE.replace("PORT", str(service.port))
        rebound = "--host-resolver-rules=MAP rebound.example 127.0.0.1"
        browser = driver.chromium.launch(executable_path=program, args=[*FLAGS, rebound])
        page = browser.new_page()
        page.goto(f"http://localhost:{site.server_address[1]}/")
        page.wait_for_function("() => document.title !== 'evil'")
        assert page.title() == "failed,failed,failed,failed"  # nothing can be read
        metrics = service.ask("/metrics")[2]
        assert 'route="/v1/generate",status="403"' in metrics or '"403"' in metrics
        assert service.engine.counts.solved == 0
        answer = page.goto(f"http://rebound.example:{service.port}/")
        assert answer.status == 421
        assert page.goto(f"http://127.0.0.1:{service.port}/").status == 200
        browser.close()

"""The site in Chromium where something fails: connection, SIMD, WebGPU, memory, the worker."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.serve.browser import Tab, text

import tiltrm
from tiltrm.export import site

from .hosted import FOUR, MODELS, READY, RUN, SAYS, Host, address, tab

__all__ = ["address", "tab"]  # fixtures


@pytest.fixture
def line_cut() -> Iterator[None]:
    """The connection is lost in the middle of the graph of the step."""
    Host.cut = "-step-"
    Host.asked.clear()
    yield
    Host.cut = ""


@pytest.mark.usefixtures("line_cut")
@pytest.mark.parametrize("how", ["button", "online", "solve"])
def test_a_download_that_breaks_off_goes_on(tab: Tab, address: str, how: str) -> None:
    """With the button, by itself once the browser is online, and with a run; only what is lost."""
    page = tab.page
    page.goto(f"{address}?plain&backend=wasm")
    page.wait_for_function(SAYS, arg="broke off; check the connection, then go on")
    assert tab.violations() == []
    Host.cut = ""
    if how == "online":
        page.evaluate("dispatchEvent(new Event('online'))")
    else:
        page.click("#go-on" if how == "button" else "#solve")
    page.wait_for_function(
        READY if how != "solve" else "() => !document.getElementById('watch').hidden"
    )
    assert page.is_hidden("#go-on")
    loaded = [path for path in Host.asked if path.endswith(".bin")]
    assert len(loaded) == 5  # four files, and one of them twice
    page.wait_for_function("() => !document.getElementById('solve').classList.contains('stop')")
    assert tab.complaints == []


PATCH = "const here = globalThis.name;\n"  # of a worker: "solver", or "frugal" after a failure


def patched(page: Any, name: str, script: str) -> None:
    """A module of the engine with a script before it."""
    page.route(f"**/engine/{name}", lambda route: route.fulfill(
        content_type="text/javascript",
        body=PATCH + script + "\n" + (site.PAGE / "engine" / name).read_text("utf-8"),
    ))  # fmt: skip


def solved(page: Any) -> str:
    """Solve the puzzle of the address; what the notes say afterwards."""
    page.click("#solve")
    page.wait_for_selector("#verdict.good, #verdict.bad", timeout=60_000)
    return text(page, "#engine-notes")


GUIDED = "#task=sudoku4&puzzle=3..4.4........31&method=guided&particles=3&outer_steps=2"


def test_without_simd_the_page_says_what_is_missing(tab: Tab, address: str) -> None:
    """The page stays, and names the command that does the same."""
    page = tab.page
    patched(page, "runtime.js", "WebAssembly.validate = () => false;")
    page.goto(f"{address}?plain{GUIDED}")
    page.wait_for_function(SAYS, arg="has no WebAssembly with SIMD")
    page.click("#solve")
    page.wait_for_function("() => document.getElementById('trouble').textContent.includes('SIMD')")
    command = "tiltrm solve 3..4.4........31 --model toy --method guided --particles 3"
    assert f"In a terminal: {command}" in text(page, "#trouble")
    assert tab.violations() == []
    page.click("#generate")
    page.wait_for_function("() => !location.hash.includes('3..4.4........31')")


def test_without_webgpu_it_says_so_and_takes_webassembly(tab: Tab, address: str) -> None:
    page = tab.page
    page.goto(f"{address}?plain{GUIDED}")
    page.wait_for_function(READY)
    assert "on WebAssembly, 1 thread" in text(page, "#engine")
    assert "no WebGPU in this browser" in text(page, "#engine-notes")
    assert "Threads are not allowed in this window" in text(page, "#engine-notes")
    assert "no WebGPU" in solved(page)
    page.goto("about:blank")
    page.goto(f"{address}?plain&backend=webgpu{GUIDED}")
    page.wait_for_function(SAYS, arg="has no WebGPU, which the address of this page asks for")


def test_a_webgpu_that_fails_is_named_and_webassembly_goes_on(tab: Tab, address: str) -> None:
    page = tab.page
    patched(
        page,
        "runtime.js",
        """Object.defineProperty(navigator, "gpu", { value: {
      requestAdapter: async () => ({ info: {}, limits: {}, features: new Set(),
        requestDevice: async () => { throw new Error("this GPU is broken"); } }) } });""",
    )
    page.goto(f"{address}?plain{GUIDED}")
    page.wait_for_function(READY)
    assert "on WebAssembly, 1 thread" in text(page, "#engine")
    assert "WebGPU could not be used" in text(page, "#engine-notes")
    assert "WebGPU could not be used" in solved(page)


FAILURES = {  # a module, a script before it, and the note that the reader gets
    "smaller calls": (
        "model.js",
        """queueMicrotask(() => {
          const step = Model.prototype.step;
          Model.prototype.step = async function (call) {
            if (call.count > 1) throw new Error("std::bad_alloc");
            return step.call(this, call);
          };
        });""",
        "Memory is short, so one particle is computed at a time.",
    ),
    "out of memory in a run": (
        "model.js",
        """if (here === "solver") queueMicrotask(() => {
          Model.prototype.step = async () => { throw new Error("failed to allocate memory"); };
        });""",
        "After a failure (memory ran out), one thread computes one particle at a time.",
    ),
    "crash": (
        "worker.js",
        """if (here === "solver") addEventListener("message", ({ data }) => {
          if (data.type === "solve") setTimeout(() => { throw new Error("killed"); });
        });""",
        "After a failure (the solver stopped), one thread",
    ),
    "out of memory when it opens": (
        "model.js",
        """if (here === "solver") queueMicrotask(() => {
          Model.open = async () => { throw new RangeError("could not allocate memory"); };
        });""",
        "After a failure (memory ran out), one thread",
    ),
}


@pytest.mark.parametrize(("module", "script", "said"), FAILURES.values(), ids=FAILURES)
def test_out_of_memory_is_said_and_the_run_goes_on(
    tab: Tab, address: str, module: str, script: str, said: str
) -> None:
    """Smaller calls of the network first; else a new worker, which needs less, runs it again."""
    page = tab.page
    patched(page, module, script)
    page.goto(f"{address}?plain&backend=wasm{GUIDED}")
    page.wait_for_function(READY)
    assert said in solved(page)
    puzzle, settings = "3..4.4........31", {"method": "guided", "particles": 3, "outer_steps": 2}
    found = page.evaluate(RUN, [puzzle, settings])
    wanted = tiltrm.solve(MODELS["toy"], puzzle, seed=0, **settings)  # type: ignore[arg-type]
    assert found["answer"] == FOUR.decode(wanted.answers[0])


def test_memory_that_never_suffices_is_said(tab: Tab, address: str) -> None:
    page = tab.page
    patched(page, "model.js", "queueMicrotask(() => { Model.prototype.step = async () => "
            "{ throw new Error('failed to allocate memory'); }; });")  # fmt: skip
    page.goto(f"{address}?plain&backend=wasm{GUIDED}")
    page.wait_for_function(READY)
    for _ in range(2):  # the second time in a new worker again
        page.click("#solve")
        page.wait_for_selector("#trouble:has-text('memory of this browser did not suffice')")
        page.wait_for_selector("#solve:not(.stop)")


def test_a_worker_that_never_starts_is_given_up(tab: Tab, address: str) -> None:
    page = tab.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.route("**/engine/worker.js", lambda route: route.abort())
    page.goto(f"{address}?plain&backend=wasm{GUIDED}")
    page.wait_for_function(SAYS, arg="The solver of this page does not start")
    page.wait_for_timeout(500)
    assert sum(url.endswith("worker.js") for url in asked) <= 4
    page.click("#solve")
    page.wait_for_selector("#trouble:has-text('does not start')")
    page.unroute("**/engine/worker.js")
    assert "After a failure" not in solved(page)

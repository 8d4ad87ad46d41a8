"""The application: its routes, and every error as {"error": one sentence}."""

import html
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

import tiltrm
from tiltrm.errors import SettingsError
from tiltrm.serve import recording
from tiltrm.serve.frames import symbols
from tiltrm.serve.guard import CLIENT, NUMBER, Guard
from tiltrm.serve.handler import RequestHandler, closing
from tiltrm.serve.long_calls import LongCalls
from tiltrm.serve.metrics import Metrics
from tiltrm.serve.quotas import Quotas
from tiltrm.serve.recording import STATIC
from tiltrm.serve.requests import (
    DiagnoseRequest,
    Refusal,
    SolveRequest,
    StreamRequest,
    form_rows,
    read,
)
from tiltrm.serve.scheduler import LoadedModel
from tiltrm.serve.stream import EventStream, stream
from tiltrm.settings import METHODS
from tiltrm.tasks import by_name
from tiltrm.tasks.published import token_colours

LARGEST_SEED = 2**31
ROUTING = {  # sentences for refusals of the router
    404: "expected a path of this server, got another; /docs lists them",
    405: "expected the method {Allow}, got another; /docs lists the routes",
}
PROMETHEUS = "text/plain; version=1.0.0; charset=utf-8"


def create(
    handler: RequestHandler, hosts: Collection[str] | None, token: str | None,
    client_header: str | None = None,
) -> ASGIApp:  # fmt: skip
    """The application; `hosts` are the host names it answers to, None for any.

    `client_header` is the header in which a proxy names the client.
    """
    about = tiltrm.__doc__ or ""
    app = FastAPI(
        title="tiltrm", docs_url=None, redoc_url=None, description=about, redirect_slashes=False
    )
    metrics = Metrics(handler.engine)
    calls = LongCalls(handler)
    _add_work(app, handler, calls)
    _add_facts(app, handler, calls, metrics)
    _add_refusals(app)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    routes = {getattr(route, "path", "") for route in app.routes}
    quotas = Quotas(handler.limits)
    return Guard(app, metrics, routes, hosts, token, quotas, client_header)


def _body(kind: Any) -> dict[str, Any]:
    """The schema of a body that the route reads itself, to bound its size."""
    content = {"application/json": {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def _add_work(app: FastAPI, handler: RequestHandler, calls: LongCalls) -> None:
    @app.post("/v1/solve", openapi_extra=_body(SolveRequest))
    async def solve(request: Request) -> Response:
        """Solve puzzles. The results are objects as of `tiltrm solve --json`, in the same order."""
        records = await handler.solve(request, await _read(request, SolveRequest))
        content = ", ".join(solved.as_json() for solved in records)
        return Response(f'{{"results": [{content}]}}', media_type="application/json")

    @app.post("/v1/solve/stream", openapi_extra=_body(StreamRequest))
    async def watch(request: Request) -> EventStream:
        """Solve one puzzle and stream events: start, a step per outer step, baseline, result."""
        scope = request.scope
        return stream(handler, scope[CLIENT], await _read(request, StreamRequest), scope[NUMBER])

    @app.post("/v1/diagnose", openapi_extra=_body(DiagnoseRequest))
    async def diagnose(request: Request) -> Response:
        """Report whether exploration will help on these puzzles, with or without their answers."""
        return JSONResponse(await calls.diagnose(request, await _read(request, DiagnoseRequest)))

    async def _read(request: Request, kind: Any) -> Any:
        if handler.engine.closing:
            raise closing()
        return await read(request, kind, handler.limits)


def _about(loaded: LoadedModel) -> dict[str, Any]:
    """What the page needs to know of a model; `symbols` are the characters that it lets one type.

    A task whose cells are colours has none; `colours` are those of its tokens.
    """
    task, colours = loaded.task, token_colours(loaded.task)
    typed = "".join(symbols(task)) if colours is None else ""
    found = {"name": loaded.name, "task": task.name, "cells": task.cells, "side": task.side}
    return found | {"symbols": typed} | ({"colours": list(colours)} if colours else {})


def _add_facts(app: FastAPI, handler: RequestHandler, calls: LongCalls, metrics: Metrics) -> None:
    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """The loaded models; requests can name these only."""
        return {"models": [_about(loaded) for loaded in handler.models.values()]}

    @app.get("/v1/settings")
    async def settings() -> dict[str, Any]:
        """The methods, and the settings that the page's form shows, with their limits."""
        return {"methods": METHODS, "settings": form_rows(handler.limits)}

    @app.get("/v1/limits")
    async def limits() -> dict[str, Any]:
        """The limits of this server; `tiltrm serve --limit NAME=VALUE` changes them."""
        return asdict(handler.limits)

    @app.get("/v1/replay")
    async def replay() -> HTMLResponse:
        """The page of `solve --html` without a run; the page puts one in and saves it."""
        return HTMLResponse(recording.page({}))

    @app.get("/v1/generate")
    async def generate(request: Request, task: str = "sudoku", seed: int = 0) -> dict[str, Any]:
        """A generated puzzle with its answer; the same for the same seed."""
        if not 0 <= seed < LARGEST_SEED:
            raise Refusal(422, f"seed: expected 0 to {LARGEST_SEED - 1}")
        try:
            return await calls.generate(request, by_name(task[:100]), seed)
        except SettingsError as error:
            raise Refusal(422, str(error)) from None

    @app.get("/healthz")
    async def health() -> JSONResponse:
        """200 while the server accepts puzzles."""
        engine = handler.engine
        status = "closing" if engine.closing else "ok" if engine.alive else "the engine has ended"
        return JSONResponse({"status": status}, 200 if status == "ok" else 503)

    @app.get("/metrics")
    async def measured() -> Response:
        """Metrics in the text format of Prometheus."""
        return Response(metrics.text(), media_type=PROMETHEUS)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(_docs(app))

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")


def _add_refusals(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> JSONResponse:
        return JSONResponse({"error": refusal.sentence}, refusal.status, refusal.headers)

    @app.exception_handler(HTTPException)
    async def unknown(_: Request, error: HTTPException) -> JSONResponse:
        sentence = ROUTING.get(error.status_code, str(error.detail))
        sentence = sentence.format(**(error.headers or {}))
        return JSONResponse({"error": sentence}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return JSONResponse({"error": f"{first['loc'][-1]}: {first['msg']}"}, 422)

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": "internal error"}, 500)  # uvicorn logs the traceback


def _docs(app: FastAPI) -> str:
    """A page that lists the routes; it loads nothing else."""
    rows = [
        f"<dt><code>{method.upper()} {html.escape(path)}</code></dt>"
        f"<dd>{html.escape(what.get('description', ''))}</dd>"
        for path, methods in app.openapi()["paths"].items()
        for method, what in methods.items()
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>tiltrm: routes</title>'
        f"<h1>Routes</h1><dl>{''.join(rows)}</dl>"
        '<p>Schemas: <a href="openapi.json">openapi.json</a></p></html>'
    )

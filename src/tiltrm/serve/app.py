"""The application: its routes, and every refusal as {"error": one sentence}."""

import asyncio
import html
from collections.abc import Collection
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

import tiltrm
from tiltrm.errors import SettingsError
from tiltrm.serve.desk import Desk, closing
from tiltrm.serve.diagnosis import Diagnoses
from tiltrm.serve.frames import symbols
from tiltrm.serve.guard import Guard
from tiltrm.serve.limits import DiagnoseRequest, Refusal, SolveRequest, StreamRequest, read
from tiltrm.serve.metrics import Metrics
from tiltrm.serve.stream import Events, stream
from tiltrm.tasks import by_name

STATIC = Path(__file__).parent / "static"
LARGEST_SEED = 2**31
ROUTING = {  # what the router refuses by itself
    404: "expected a path of this server, got another; /docs lists them",
    405: "expected the method {Allow}, got another; /docs lists the routes",
}
PROMETHEUS = "text/plain; version=1.0.0; charset=utf-8"


def create(desk: Desk, hosts: Collection[str] | None, token: str | None) -> ASGIApp:
    """The application around a desk; `hosts` are the names it answers to, None for any."""
    app = FastAPI(title="tiltrm", docs_url=None, redoc_url=None, description=tiltrm.__doc__ or "")
    metrics = Metrics(desk.engine)
    _add_work(app, desk)
    _add_facts(app, desk, metrics)
    _add_refusals(app)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    routes = {getattr(route, "path", "") for route in app.routes}
    return Guard(app, metrics, routes, hosts, token)


def _body(kind: Any) -> dict[str, Any]:
    """The schema of a body that the route reads by itself, so that its size is bounded."""
    content = {"application/json": {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def _add_work(app: FastAPI, desk: Desk) -> None:
    diagnoses = Diagnoses(desk)

    @app.post("/v1/solve", openapi_extra=_body(SolveRequest))
    async def solve(request: Request) -> Response:
        """Solve puzzles; results as `tiltrm solve --json` gives them, in their order."""
        records = await desk.solve(request, await _read(request, SolveRequest))
        content = ", ".join(solved.as_json() for solved in records)
        return Response(f'{{"results": [{content}]}}', media_type="application/json")

    @app.post("/v1/solve/stream", openapi_extra=_body(StreamRequest))
    async def watch(request: Request) -> Events:
        """Solve one puzzle and show every step: start, step, ..., baseline, result."""
        return stream(desk, await _read(request, StreamRequest))

    @app.post("/v1/diagnose", openapi_extra=_body(DiagnoseRequest))
    async def diagnose(request: Request) -> Response:
        """Say, with or without labels, whether exploration will help."""
        return JSONResponse(await diagnoses.run(request, await _read(request, DiagnoseRequest)))

    async def _read(request: Request, kind: Any) -> Any:
        if desk.engine.closing:
            raise closing()
        return await read(request, kind, desk.limits)


def _add_facts(app: FastAPI, desk: Desk, metrics: Metrics) -> None:
    one_at_a_time = asyncio.Semaphore(1)

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """The loaded models; no others can be named."""
        found = [
            {
                "name": host.name,
                "task": host.task.name,
                "cells": host.task.cells,
                "side": host.task.side,
                "symbols": "".join(symbols(host.task)),
            }
            for host in desk.hosts.values()
        ]
        return {"models": found}

    @app.get("/v1/generate")
    async def generate(task: str = "sudoku", seed: int = 0) -> dict[str, Any]:
        """One puzzle of our own; the same for the same seed."""
        if not 0 <= seed < LARGEST_SEED:
            raise Refusal(422, f"seed: expected 0 to {LARGEST_SEED - 1}")
        try:
            kind = by_name(task[:100])
            async with one_at_a_time:
                puzzle, answer = await asyncio.to_thread(kind.generate, seed)
        except SettingsError as error:
            raise Refusal(422, str(error)) from None
        return {
            "task": kind.name, "seed": seed, "puzzle": kind.decode(puzzle),
            "answer": kind.decode(answer),
        }  # fmt: skip

    @app.get("/healthz")
    async def health() -> JSONResponse:
        """200 while it accepts work."""
        fine = desk.engine.alive and not desk.engine.closing
        return JSONResponse({"status": "ok" if fine else "closing"}, 200 if fine else 503)

    @app.get("/metrics")
    async def measured() -> Response:
        """For Prometheus."""
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
        said = ROUTING.get(error.status_code, str(error.detail)).format(**(error.headers or {}))
        return JSONResponse({"error": said}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return JSONResponse({"error": f"{first['loc'][-1]}: {first['msg']}"}, 422)

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": "internal error"}, 500)  # uvicorn logs the traceback


def _docs(app: FastAPI) -> str:
    """The routes in words, on a page that fetches nothing."""
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

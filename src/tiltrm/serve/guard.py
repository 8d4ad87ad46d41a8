"""What stands before every route: whose host it is, who may ask, and what every answer carries."""

import hmac
import json
import time
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tiltrm.serve.metrics import Metrics

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
GUARDED = ("/v1/", "/metrics", "/openapi.json", "/docs")  # ask for the token where there is one


class Guard:
    """Wraps the application.

    A server on a loopback address answers to its own names only, so that a page of another site
    cannot reach it through a name that points here. `routes` are the paths that metrics tell apart.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, routes: Collection[str], host: str,
        token: str | None,
    ) -> None:  # fmt: skip
        self.app, self.metrics, self.routes = app, metrics, routes
        self.hosts = LOOPBACK if host in LOOPBACK else None
        self.token = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500
        path = scope["path"]

        async def dressed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            refused = self._refused(path, Headers(scope=scope))
            if refused is None:
                await self.app(scope, receive, dressed)
            else:
                await _refuse(dressed, *refused)
        finally:
            route = path if path in self.routes else "other"
            self.metrics.note(route, status, time.perf_counter() - begun)

    def _refused(self, path: str, headers: Headers) -> tuple[int, str] | None:
        if self.hosts is not None and _name(headers.get("host", "")) not in self.hosts:
            return 421, f"expected a request for {', '.join(self.hosts)}"
        if self.token is not None and path.startswith(GUARDED):
            shown = headers.get("authorization", "").encode("latin-1")
            if not hmac.compare_digest(shown, self.token):
                return 401, "expected Authorization: Bearer and the token of this server"
        return None


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

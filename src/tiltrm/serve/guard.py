"""Checks before every route: the host name and the token; and the headers of every answer."""

import hmac
import ipaddress
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
REVALIDATE = "no-cache"  # after an update no browser combines an old script with a new page
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PROTECTED = ("/v1/", "/metrics", "/openapi.json", "/docs")  # need the token, if there is one
OPEN = "/v1/settings"  # the form, in which the token is typed, is made from it


class Guard:
    """Middleware around the application.

    It answers to the host names in `hosts` only, or to any if None. `routes` are the paths with
    metrics of their own. A HEAD request is handled as GET; uvicorn drops the body.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, routes: Collection[str],
        hosts: Collection[str] | None, token: str | None,
    ) -> None:  # fmt: skip
        self.app, self.metrics, self.routes, self.hosts = app, metrics, routes, hosts
        self.token = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500
        path = scope["path"]

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", REVALIDATE)
            await send(message)

        try:
            refused = self._refused(path, Headers(scope=scope))
            if refused is None:
                method = "GET" if scope["method"] == "HEAD" else scope["method"]
                await self.app({**scope, "method": method}, receive, send_with_headers)
            else:
                await _refuse(send_with_headers, *refused)
        finally:
            route = path if path in self.routes else "other"
            self.metrics.note(route, status, time.perf_counter() - begun)

    def _refused(self, path: str, headers: Headers) -> tuple[int, str] | None:
        if self.hosts is not None and _name(headers.get("host", "")) not in self.hosts:
            return 421, f"expected a request for {', '.join(self.hosts)}"
        if self.token is not None and path.startswith(PROTECTED) and path != OPEN:
            sent = headers.get("authorization", "").encode("latin-1")
            if not hmac.compare_digest(sent, self.token):
                return 401, "expected Authorization: Bearer and the token of this server"
        return None


def own_names(host: str, address: str) -> tuple[str, ...] | None:
    """The host names of a server that listens on `host`, whose address is `address`.

    A server on a loopback address has few, so that a page of another site cannot reach it by a
    DNS name that points here. None for other servers, whose names are not known.
    """
    if not ipaddress.ip_address(address).is_loopback:
        return None
    return tuple(dict.fromkeys((*LOOPBACK, address, host.lower())))


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

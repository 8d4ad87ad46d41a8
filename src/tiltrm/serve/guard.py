"""Checks before every route: host name, origin, token, quotas; and the headers of all answers."""

import hmac
import ipaddress
import json
import logging
import secrets
import socket
import time
from collections.abc import Collection, Iterable, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tiltrm.serve.logs import ACCESS, REQUEST
from tiltrm.serve.metrics import Metrics
from tiltrm.serve.quotas import Quotas, client_name

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
LIMITED = ("/v1/solve", "/v1/solve/stream", "/v1/diagnose", "/v1/generate")  # count in quotas
CLIENT, NUMBER = "tiltrm.client", "tiltrm.request"  # keys of a scope: who asks, and its number
OPEN = "/v1/settings"  # the form, in which the token is typed, is made from it


class Guard:
    """Middleware around the application.

    It answers to the host names in `hosts` only, or to any if None. `routes` are the paths with
    metrics of their own. A HEAD request is handled as GET; uvicorn drops the body.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, routes: Collection[str],
        hosts: Collection[str] | None, token: str | None, quotas: Quotas,
        client_header: str | None = None,
    ) -> None:  # fmt: skip
        self.app, self.metrics, self.routes, self.hosts = app, metrics, routes, hosts
        self.quotas, self.client_header = quotas, client_header
        self.token = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500
        path = scope["path"]
        number = secrets.token_hex(8)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers["X-Request-Id"] = number
                headers.setdefault("Cache-Control", REVALIDATE)
            await send(message)

        client = client_name(scope, self.client_header)
        entered = False
        try:
            refused = self._refused(path, Headers(scope=scope))
            if refused is None and path in LIMITED:
                over = self.quotas.enter(client)
                entered = over is None
                if over is not None:
                    refused = 429, over.sentence, {"retry-after": str(over.seconds)}
            if refused is None:
                method = "GET" if scope["method"] == "HEAD" else scope["method"]
                passed = {**scope, "method": method, CLIENT: client, NUMBER: number}
                await self.app(passed, receive, send_with_headers)
            else:
                await _refuse(send_with_headers, *refused)
        finally:
            if entered:
                self.quotas.leave(client)
            route = path if path in self.routes else "other"
            seconds = time.perf_counter() - begun
            self.metrics.note(route, status, seconds)
            if ACCESS.isEnabledFor(logging.INFO):
                said = {REQUEST: number, "client": client, "method": scope["method"],
                        "route": route, "status": status, "seconds": round(seconds, 4)}  # fmt: skip
                ACCESS.info("%(method)s %(route)s %(status)s", said)

    def _refused(self, path: str, headers: Headers) -> tuple[int, str, dict[str, str]] | None:
        host = headers.get("host", "")
        if self.hosts is not None and not self._answers_to(_name(host)):
            return 421, f"expected a request for {', '.join(self.hosts)}", {}
        # A page of another site may not even let this server work, though it could not read the
        # answer: browsers say where a request comes from. A link to the page itself is fine.
        origin = headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2].lower() != host.lower()
        if path.startswith(PROTECTED) and (
            foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site")
        ):
            sentence = "expected a request of this server's own page, got one of another site"
            return 403, sentence, {}
        if self.token is not None and path.startswith(PROTECTED) and path != OPEN:
            sent = headers.get("authorization", "").encode("latin-1")
            if not hmac.compare_digest(sent, self.token):
                sentence = "expected Authorization: Bearer and the token of this server"
                return 401, sentence, {"www-authenticate": "Bearer"}
        return None

    def _answers_to(self, name: str) -> bool:
        """A name of this server; "*" among them: any address, which no DNS name can stand for."""
        assert self.hosts is not None
        return name in self.hosts or ("*" in self.hosts and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def own_names(host: str, address: str, more: Iterable[str] = ()) -> tuple[str, ...]:
    """The host names of a server that listens on `host`, whose address is `address`.

    `more` are names that a proxy or a DNS server gives it.

    A server on a loopback address has few, so that a page of another site cannot reach it by a
    DNS name that points here. Others answer to their machine's name and to any address too.
    """
    own: tuple[str, ...] = (*LOOPBACK, address, host.lower())
    if not ipaddress.ip_address(address).is_loopback:
        own = (*own, socket.gethostname().lower(), socket.getfqdn().lower(), "*")
    return tuple(dict.fromkeys((*own, *(name.lower() for name in more))))


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


async def _refuse(send: Send, status: int, sentence: str, more: Mapping[str, str]) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *((name.encode(), value.encode()) for name, value in more.items()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""Quotas of clients: requests at once, requests a second, and the computing time of late.

A refused client is told when to come back. Proved by tests/serve/test_quotas.py.
"""

import ipaddress
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tiltrm.serve.limits import Limits

REMEMBERED = 10_000  # clients that do nothing now
FADING, LEVEL = 10.0, 1.0  # seconds: of recent computing time, and of one level of it
BUSY_RETRY = 1  # seconds, the Retry-After of a client with too many open requests


@dataclass
class Client:
    """The open requests of a client, and how many more it may begin now (a token bucket)."""

    allowance: float
    since: float  # when the allowance was computed
    requests: int = 0


@dataclass(frozen=True)
class Refused:
    """A request over a quota: the reason, and the seconds after which to come back."""

    sentence: str
    seconds: int


class Quotas:
    """The open requests of every client; `enter` and `leave` surround each request."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self.clock = limits, clock
        self._clients: dict[str, Client] = {}

    def enter(self, name: str) -> Refused | None:
        """Count a request that begins; if it is refused, `leave` must not be called."""
        limits, now = self.limits, self.clock()
        client = self._clients.setdefault(name, Client(float(limits.client_burst), now))
        earned = limits.client_rate * max(0.0, now - client.since)
        client.allowance = min(float(limits.client_burst), client.allowance + earned)
        client.since = now
        if client.requests >= limits.client_requests:
            return Refused(
                f"expected at most {limits.client_requests} requests of a client at once; wait for "
                "an answer first", BUSY_RETRY,
            )  # fmt: skip
        if client.allowance < 1.0:
            wait = math.ceil((1.0 - client.allowance) / limits.client_rate)
            return Refused(
                f"expected at most {limits.client_rate:g} requests a second; come back after "
                f"{max(1, wait)} s", max(1, wait),
            )  # fmt: skip
        client.allowance -= 1.0
        client.requests += 1
        return None

    def leave(self, name: str) -> None:
        """Count a request that ended."""
        self._clients[name].requests -= 1
        if len(self._clients) > REMEMBERED:
            self._clients = {n: c for n, c in self._clients.items() if c.requests}


class RecentService:
    """The computing time that clients were given of late; it fades with time constant FADING."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._given: dict[str, tuple[float, float]] = {}  # seconds, as of a time

    def _now(self, client: str, now: float) -> float:
        seconds, then = self._given.get(client, (0.0, now))
        return seconds * math.exp(min(0.0, then - now) / FADING)

    def level(self, client: str) -> int:
        """The recent time in coarse steps, so that clients with like use share batches."""
        return int(self._now(client, self._clock()) / LEVEL)

    def add(self, client: str, seconds: float) -> None:
        """Count computing time."""
        now = self._clock()
        self._given[client] = self._now(client, now) + seconds, now
        if len(self._given) > REMEMBERED:
            names = [name for name in self._given if self._now(name, now) >= LEVEL]
            self._given = {name: self._given[name] for name in names}


def client_name(scope: Mapping[str, Any], header: str | None = None) -> str:
    """The client of a request: the value of `header`, which a proxy sets, or else its address.

    Of several values, as in X-Forwarded-For, the last one counts: the proxy appended it. One host
    has many IPv6 addresses, so those of one network of 64 bits count as one client.
    """
    name = str((scope.get("client") or ("",))[0])
    if header is not None:
        wanted = header.lower().encode()
        found = [value for key, value in scope["headers"] if key == wanted]
        name = found[-1].decode("latin-1").rpartition(",")[2].strip()[:100] if found else name
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    if address.version == 6:
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)

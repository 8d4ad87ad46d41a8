"""The worst wait of a small request beside a large one, with the bundled Sudoku model.

`python -m benchmarks.fairness` starts `tiltrm serve`, sends easy puzzles one after another, alone
and beside each of three large requests, and prints the median and the longest time of an answer.
"""

import argparse
import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.serve import server
from tiltrm.tasks import SUDOKU

EASY, ANSWERS = 45, 10  # clues of an easy puzzle, and how many are asked for
LARGE: dict[str, dict[str, Any]] = {
    "one guided puzzle, 256 particles x 1,024 steps": {
        "count": 1, "method": "guided", "particles": 256, "outer_steps": 1024,
    },
    "250 puzzles": {"count": 250},
    "1,000 puzzles": {"count": 1000},
}  # fmt: skip


def request(path: str, body: dict[str, Any]) -> bytes:
    """A POST request as it goes over the line."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + content


def hard(count: int) -> list[str]:
    """Generated puzzles, hard ones; only the first 40 differ."""
    few = [SUDOKU.decode(SUDOKU.generate(seed)[0]) for seed in range(min(count, 40))]
    return [few[place % len(few)] for place in range(count)]


def easy(seed: int) -> str:
    """A puzzle with many clues: a generated one, some of its answer filled in."""
    puzzle, answer = (SUDOKU.decode(part) for part in SUDOKU.generate(seed))
    cells = list(puzzle)
    for place in range(81):
        if sum(cell != "." for cell in cells) >= EASY:
            break
        cells[(place * 7) % 81] = answer[(place * 7) % 81]
    return "".join(cells)


@contextmanager
def beside(port: int, body: dict[str, Any] | None) -> Iterator[None]:
    """Inside, the server works on this request."""
    if body is None:
        yield
        return
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(request("/v1/solve", body))
        time.sleep(3.0)
        yield


def waits(port: int) -> list[float]:
    """Seconds until each easy puzzle was answered, one after another."""
    found = []
    for seed in range(ANSWERS):
        begun = time.perf_counter()
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(request("/v1/solve", {"puzzles": [easy(seed)]}))
            answer = b"".join(iter(lambda: line.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 "), answer[:100]
        found.append(time.perf_counter() - begun)
    return sorted(found)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    arguments = parser.parse_args()
    with server(arguments.model) as (port, _):
        waits(port)  # to warm up
        for name, settings in {"nothing": {"count": 0}, **LARGE}.items():
            body = {key: value for key, value in settings.items() if key != "count"}
            count = settings["count"]
            large = {"puzzles": hard(count), **body} if count else None
            with beside(port, large):
                found = waits(port)
            print(
                f"beside {name:48} median {found[len(found) // 2]:6.2f} s, longest "
                f"{found[-1]:6.2f} s", flush=True,
            )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())

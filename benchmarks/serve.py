"""The server under load, beside the library: 200 clients at once, 2,000 puzzles, a small model.

`python -m benchmarks.serve` starts `tiltrm serve` on this machine, sends it all puzzles, one to a
request, and checks every answer against the library's own. Refused requests are sent again. It
prints throughput, latency percentiles and memory, and fails unless every request is answered once
and right, memory is flat, and throughput is at least 80 % of one big batch solved by the library.
Every client has an address of its own (127.0.x.y), so that the limits of a client hold.
`--clients 500 --minutes 5 --hostile 0.1` sends puzzles again and again for five minutes, first
without and then with clients that are slow, huge, malformed, leaving or silent; throughput is then
only printed.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import torch

from tiltrm.model import load, save
from tiltrm.model.build import Model
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.solving import solve_texts
from tiltrm.tasks import SUDOKU

SETTINGS: dict[str, Any] = {"particles": 4, "outer_steps": 28, "seed": 0}
DECIDED = 0.8  # share of the puzzles that the first trajectory decides, at some step
RATIO, GROWTH = 0.8, 1.1
PAUSE = 0.05  # seconds between two requests of a client that misbehaves
ABUSERS = 128  # third number of the first address of a client that misbehaves


def small_model() -> TRM:
    """Random weights; its halting head decides puzzles early, late or never."""
    torch.manual_seed(0)
    config = TRMConfig(width=64, layers=1, heads=2, prefix=1, inner_steps=2)
    model = TRM(config).eval().requires_grad_(False)
    torch.nn.init.normal_(model.halt_head.weight, std=0.5)
    model.task = SUDOKU.name
    with torch.inference_mode():
        inputs = model.embed(SUDOKU.encode_all(puzzles(64)))
        state, best = model.start(inputs), torch.full((64,), -torch.inf)
        for _ in range(24):
            state = model.step(inputs, state)
            best = torch.maximum(best, model.halt_logit(state.answer))
    model.decide_above = float(best.quantile(1.0 - DECIDED))
    return model


def puzzles(count: int) -> list[str]:
    """Distinct views of one puzzle."""
    one, answer = SUDOKU.generate(0)
    generator = torch.Generator().manual_seed(0)
    views, _ = SUDOKU.symmetries(one.repeat(count, 1), answer.repeat(count, 1), generator)
    return [SUDOKU.decode(view) for view in views]


def comparable(record: dict[str, Any]) -> dict[str, Any]:
    """Everything but the time it took."""
    return {key: value for key, value in record.items() if key != "seconds"}


def library(model: Model, texts: list[str]) -> tuple[list[dict[str, Any]], float]:
    """The records of one big batch, and its seconds.

    A server counts the solutions of small requests, and so does this.
    """
    begun = time.perf_counter()
    found = solve_texts(model, texts, **SETTINGS)
    counts = [SUDOKU.count_solutions(SUDOKU.encode(text)) for text in texts]
    seconds = time.perf_counter() - begun
    records = [
        replace(solved, solutions=known) for solved, known in zip(found, counts, strict=True)
    ]
    return [comparable(json.loads(solved.as_json())) for solved in records], seconds


@dataclass
class Tally:
    """What the clients saw."""

    expected: list[dict[str, Any]]
    answers: list[tuple[int, int, bytes]] = field(default_factory=list)  # (request, status, body)
    sent: int = 0
    refused: int = 0
    abuses: int = 0  # connections of clients that misbehave
    uncounted: int = 0  # answers without the number of solutions
    latencies: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)  # KiB, along the way

    @property
    def answered(self) -> Counter[int]:
        """How often each request was answered."""
        return Counter(place for place, _, _ in self.answers)

    @property
    def wrong(self) -> int:
        """Answers that are not the library's own. Looked at after the run: it costs time too."""
        return sum(
            status != 200 or not self._agrees(place, json.loads(content)["results"])
            for place, status, content in self.answers
        )

    def _agrees(self, place: int, results: list[dict[str, Any]]) -> bool:
        """A server that is busy does not count solutions."""
        (found,) = map(comparable, results)
        self.uncounted += found["solutions"] is None
        uncounted = {"solutions": None} if found["solutions"] is None else {}
        return found == {**self.expected[place % len(self.expected)], **uncounted}


@contextmanager
def server(model: Path | str, *flags: str) -> Iterator[tuple[int, int]]:
    """`tiltrm serve` in a process of its own: its port and process id."""
    command = [sys.executable, "-m", "tiltrm.cli", "serve", "--model", str(model), "--port", "0",
               "--device", "cpu", "--precision", "float32", *flags]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = re.search(r":(\d+)/", process.stdout.readline())
        assert said is not None, "the server did not start"
        yield int(said[1]), process.pid
    finally:
        process.terminate()
        process.wait(30)


def resident(process: int) -> int:
    """KiB that a process holds."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0])


def requests(texts: list[str], minutes: float) -> Iterator[tuple[int, str]]:
    """Every puzzle once, or again and again for so many minutes: number of the request, puzzle."""
    end = time.monotonic() + 60.0 * minutes
    for number in count():
        if time.monotonic() > end if minutes else number == len(texts):
            return
        yield number, texts[number % len(texts)]


def address(number: int) -> tuple[str, int]:
    """The local address of a client."""
    return f"127.0.{number // 250}.{2 + number % 250}", 0


async def ask(
    port: int, body: bytes, line: list[Any], number: int
) -> tuple[int, dict[str, str], bytes]:
    """One request on a connection that stays open: status, headers, body."""
    if not line:
        line.extend(await asyncio.open_connection("127.0.0.1", port, local_addr=address(number)))
    reader, writer = line
    head = (
        "POST /v1/solve HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    status, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
    headers = {k.lower(): v.strip() for k, _, v in (text.partition(":") for text in rest if text)}
    content = await reader.readexactly(int(headers["content-length"]))
    return int(status.split()[1]), headers, content


async def client(port: int, work: Iterator[tuple[int, str]], tally: Tally, number: int) -> None:
    """Take puzzles until none is left; a refused one is sent again when the server says."""
    line: list[Any] = []
    for place, text in work:
        tally.sent += 1
        body = json.dumps({"puzzles": [text], **SETTINGS}).encode()
        while True:
            begun = time.perf_counter()
            status, headers, content = await ask(port, body, line, number)
            if status != 429:
                break
            tally.refused += 1
            await asyncio.sleep(float(headers["retry-after"]))
        tally.latencies.append(time.perf_counter() - begun)
        tally.answers.append((place, status, content))
    if line:
        line[1].close()


async def hostile(port: int, number: int, tally: Tally) -> None:
    """Misbehave in one of five ways, again and again, until cancelled."""
    head = b"POST /v1/solve HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    sent = [
        [b"POST ", *([b"/"] * 20)],  # slow: a byte a second
        [head + b"Content-Length: 100000000\r\n\r\n" + b"[" * 100_000],  # huge
        [head + b'Content-Length: 12\r\n\r\n{"puzzles": '],  # malformed
        [head + b'Content-Length: 999\r\n\r\n{"puzzles"'],  # hangs up inside its body
        [],  # silent
    ][number % 5]
    while True:
        with suppress(OSError):
            local = address(250 * ABUSERS + number)
            _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=local)
            tally.abuses += 1
            for part in sent:
                writer.write(part)
                await asyncio.sleep(1.0 if len(sent) > 1 else 0.05)
            await asyncio.sleep(0.0 if sent else 5.0)
            writer.close()
        await asyncio.sleep(PAUSE)


async def load_test(
    port: int, process: int, work: Iterator[tuple[int, str]], clients: int, tally: Tally,
    abusers: int = 0,
) -> float:  # fmt: skip
    """All clients at once; the seconds until the last answer. `abusers` misbehave meanwhile."""

    async def look() -> None:
        while True:
            tally.memory.append(resident(process))
            await asyncio.sleep(0.5)

    watcher = asyncio.ensure_future(look())
    abuse = [asyncio.ensure_future(hostile(port, number, tally)) for number in range(abusers)]
    begun = time.perf_counter()
    await asyncio.gather(*(client(port, work, tally, number) for number in range(clients)))
    seconds = time.perf_counter() - begun
    for task in (watcher, *abuse):
        task.cancel()
    return seconds


def report(tally: Tally, library: float, served: float) -> bool:
    """Print what was measured; whether all but the throughput is as it must be.

    `library` is in puzzles a second, `served` in seconds.
    """
    answered, wrong, total = tally.answered, tally.wrong, len(tally.answers)
    once = total == tally.sent == len(answered)
    early, late = tally.memory[len(tally.memory) // 3], max(tally.memory[-3:])
    marks = sorted(tally.latencies)
    at = {p: marks[min(total - 1, int(p / 100 * total))] for p in (50, 90, 99, 100)}
    print(f"answered               {total:,} of {tally.sent:,} requests, once each: {once}")
    print(f"wrong                  {wrong} (solutions not counted: {tally.uncounted})")
    print(f"refused, then retried  {tally.refused}")
    print(f"hostile connections    {tally.abuses:,}")
    print(f"server                 {total / served:8.1f} puzzles/s for {served:.0f} s, "
          f"{total / served / library:.0%} of the library")  # fmt: skip
    print("latency, seconds       " + ", ".join(f"p{p} {v:.2f}" for p, v in at.items()))
    print(
        f"memory, MiB            {early / 1024:.0f} a third through, {late / 1024:.0f} at the end"
    )
    return once and not wrong and late <= GROWTH * early


def main() -> int:
    """Run it all; 0 where everything holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--puzzles", type=int, default=2000)
    parser.add_argument("--queue", type=int, default=160)
    parser.add_argument("--minutes", type=float, default=0.0, help="default: every puzzle once")
    help_ = "a second run with so many clients besides that misbehave, as a share of the others"
    parser.add_argument("--hostile", type=float, default=0.0, metavar="SHARE", help=help_)
    arguments = parser.parse_args()
    texts = puzzles(arguments.puzzles)
    shares = [0.0, arguments.hostile] if arguments.hostile else [0.0]
    flags = ["--queue", str(arguments.queue)]
    with tempfile.TemporaryDirectory() as name:
        folder = save(small_model(), Path(name) / "small", dtype=None)
        model = load(folder)
        library(model, texts[:64])
        expected, before = library(model, texts)
        tallies, served = [Tally(expected) for _ in shares], []
        for share, tally in zip(shares, tallies, strict=True):
            work = requests(texts, arguments.minutes)
            abusers = round(share * arguments.clients)
            with server(folder, *flags) as (port, process):
                run = load_test(port, process, work, arguments.clients, tally, abusers)
                served.append(asyncio.run(run))
        after = library(model, texts)[1]
    rate = 2.0 * len(texts) / (before + after)
    costs = sorted(record["evaluations"] for record in expected)
    print(f"evaluations a puzzle   {costs[0]} to {costs[-1]}, median {costs[len(costs) // 2]}")
    print(f"library, one batch     {rate:8.1f} puzzles/s")
    fine = []
    for share, tally, seconds in zip(shares, tallies, served, strict=True):
        print(f"\n{arguments.clients} clients, {round(share * arguments.clients)} hostile besides")
        fine.append(report(tally, rate, seconds))
    if not arguments.minutes and not arguments.hostile:
        fine.append(len(texts) / served[0] >= RATIO * rate)
    print("all holds" if all(fine) else "something does not hold")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())

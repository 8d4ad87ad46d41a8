"""kill -9 again and again: what tune and the server leave behind is whole.

`python -m benchmarks.kill --trials 50` kills a tuning run at random moments until so many kills are
reached, run after run, and compares every result with that of a run that nobody killed; then it
kills `tiltrm serve` under load so many times and starts it again, and compares every answer and
every file of the model.
"""

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from benchmarks.serve import SETTINGS, comparable, library, puzzles, server, small_model
from tiltrm.model import load, save

LOOP = Path(__file__).parents[1] / "tests/solving/kill_loop.py"
ASKED = 24  # puzzles of one trial of the server


def tuned(folder: Path, longest: float) -> tuple[int, str]:
    """Kills, and the result, of one tuning whose processes live so many seconds at most."""
    command = [sys.executable, str(LOOP), str(folder), str(longest)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kills, result = done.stdout.splitlines()
    return int(kills), result


def kill_tune(trials: int, folder: Path) -> bool:
    """Whether every result is the same; prints the counts."""
    right = tuned(folder / "whole", 1e9)[1]
    kills = runs = wrong = 0
    while kills < trials:
        killed, result = tuned(folder / f"run-{runs}", 0.6)
        kills, runs, wrong = kills + killed, runs + 1, wrong + (result != right)
    print(f"tune                   {kills} kills in {runs} runs, {wrong} results differ")
    return wrong == 0


def digest(folder: Path) -> str:
    """A checksum of all files of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    content = b"".join(str(path).encode() + path.read_bytes() for path in files)
    return hashlib.sha256(content).hexdigest()


def answer(port: int, text: str) -> dict[str, object] | None:
    """The record of a puzzle; None where the server went away."""
    line = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        body = json.dumps({"puzzles": [text], **SETTINGS})
        line.request("POST", "/v1/solve", body, {"Content-Type": "application/json"})
        found = line.getresponse()
        content = found.read()
        return comparable(json.loads(content)["results"][0]) if found.status == 200 else None
    except (OSError, HTTPException):
        return None
    finally:
        line.close()


def kill_serve(trials: int, folder: Path) -> bool:
    """Whether all answers are right and the model's files stay as they were."""
    model = save(small_model(), folder / "small", dtype=None)
    texts = puzzles(ASKED)
    right, before = library(load(model), texts)[0], digest(model)
    chance = random.Random(0)
    got = wrong = damaged = 0
    for _ in range(trials):
        with server(model) as (port, process), ThreadPoolExecutor(ASKED) as pool:
            asked = [pool.submit(answer, port, text) for text in texts]
            time.sleep(chance.uniform(0.0, 0.4))
            subprocess.run(["kill", "-9", str(process)], check=True)
            found = [future.result() for future in asked]
        answers = [(a, b) for a, b in zip(found, right, strict=True) if a is not None]
        got, wrong = got + len(answers), wrong + sum(a != b for a, b in answers)
        damaged += digest(model) != before
    print(f"serve                  {trials} kills, {got} answers before them, {wrong} wrong, "
          f"{damaged} times a file changed")  # fmt: skip
    return wrong == 0 and damaged == 0


def main() -> int:
    """Run both; 0 where everything holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50, metavar="N", help="kills of each")
    trials = parser.parse_args().trials
    with tempfile.TemporaryDirectory() as name:
        fine = [kill_tune(trials, Path(name)), kill_serve(trials, Path(name))]
    print("all holds" if all(fine) else "something does not hold")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())

"""kill -9 again and again: train, evaluate, tune, replays and the server leave whole files behind.

`python -m benchmarks.kill --trials 50` kills training runs at random moments and starts each again
with the same command until it is done, run after run, until so many kills are reached, and compares
the weights with those of a run that nobody killed. The same for evaluations and their tables, and
for tuning runs and their results. It kills `tiltrm solve --html FILE` over a page that exists: the
page must be the old one or the new one afterwards, whole. Then it kills `tiltrm serve` under load
so many times and starts it again, and compares every answer and every file of the model.
"""

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from benchmarks.serve import SETTINGS, comparable, library, puzzles, server, small_model
from tiltrm.model import load, save
from tiltrm.tasks import SUDOKU, Sudoku

LOOP = Path(__file__).parents[1] / "tests/solving/kill_loop.py"
TOY = Sudoku(2)
LONGEST, WHOLE = 8.0, 1e5  # seconds that a process lives: until it is killed, and to its end
ASKED = 24  # puzzles of one trial of the server


def killed(command: list[str], longest: float, chance: random.Random) -> tuple[int, str]:
    """Kills until the command is done, and what it printed then.

    A process lives `longest` seconds at most, and a little more after every kill.
    """
    for kills in range(500):
        process = subprocess.Popen(
            [sys.executable, "-m", "tiltrm", *command], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            printed, _ = process.communicate(timeout=chance.uniform(0.0, longest * 1.05**kills))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            continue
        if process.returncode:
            raise SystemExit(f"tiltrm {' '.join(command)}: exit code {process.returncode}")
        return kills, printed
    raise SystemExit(f"tiltrm {' '.join(command)}: not done after 500 kills")


def compare(kind: str, trials: int, run: Callable[[str, bool], tuple[int, str]]) -> bool:
    """Whether killed runs end as a whole one does; prints the counts.

    run: called with the name of a run, and whether to kill it; gives its kills and its result.
    """
    right = run("whole", False)[1]
    kills = runs = wrong = 0
    while kills < trials:
        count, found = run(f"run-{runs}", True)
        kills, runs, wrong = kills + count, runs + 1, wrong + (found != right)
    print(f"{kind:22} {kills} kills in {runs} runs, {wrong} results differ", flush=True)
    return wrong == 0


def write_csv(path: Path, task: Sudoku, count: int) -> Path:
    """A file of generated puzzles with their answers."""
    rows = [map(task.decode, task.generate(seed)) for seed in range(count)]
    path.write_text("\n".join(["question,answer", *(",".join(row) for row in rows)]) + "\n")
    return path


def kill_train(trials: int, folder: Path) -> bool:
    """Whether all runs end with the same weights; prints the counts."""
    data = write_csv(folder / "train.csv", TOY, 200)
    words = ["train", "--task", TOY.name, "--preset", "toy", "--data", str(data), "--device", "cpu",
             "--set", "save_every=0", "--set", "evaluate_every=1", "--set", "restart_every=10",
             "--set", "model.width=16", "--set", "batch=16", "--steps", "200", "--resume",
             "--out"]  # fmt: skip
    chance = random.Random(1)

    def run(name: str, kill: bool) -> tuple[int, str]:
        out = folder / f"train-{name}"
        kills, _ = killed([*words, str(out)], LONGEST if kill else WHOLE, chance)
        saved = max((out / "state").iterdir())
        files = sorted(saved.glob("*.safetensors"))
        tensors = b"".join(to_bytes(load_file(path)) for path in files)  # without times
        return kills, hashlib.sha256(tensors).hexdigest()

    return compare("train", trials, run)


def kill_evaluate(trials: int, folder: Path) -> bool:
    """Whether all tables are the same; prints the counts."""
    model = save(small_model(), folder / "evaluated", dtype=None)
    data = write_csv(folder / "evaluate.csv", SUDOKU, 48)
    words = ["evaluate", "--model", str(model), "--data", str(data), "--device", "cpu", "--folds",
             "6", "--seeds", "4", "--method", "deterministic", "guided", "--set", "outer_steps=12",
             "particles=4", "--json", "--store"]  # fmt: skip
    chance = random.Random(2)

    def run(name: str, kill: bool) -> tuple[int, str]:
        command = [*words, str(folder / f"store-{name}")]
        return killed(command, LONGEST if kill else WHOLE, chance)

    return compare("evaluate", trials, run)


def kill_tune(trials: int, folder: Path) -> bool:
    """Whether every result is the same; prints the counts."""

    def run(name: str, kill: bool) -> tuple[int, str]:
        life = 0.6 if kill else WHOLE
        command = [sys.executable, str(LOOP), str(folder / f"tune-{name}"), str(life)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        kills, result = done.stdout.splitlines()
        return int(kills), result

    return compare("tune", trials, run)


def kill_html(trials: int, folder: Path) -> bool:
    """Whether a page is always the old one or the new one, whole; prints the counts."""
    model = save(small_model(), folder / "drawn", dtype=None)
    text = SUDOKU.decode(SUDOKU.generate(0)[0])
    page, chance = folder / "page.html", random.Random(3)
    words = [sys.executable, "-m", "tiltrm", "solve", text, "--model", str(model), "--device",
             "cpu", "--outer-steps", "8", "--html", str(page)]  # fmt: skip

    def drawn(seed: int) -> tuple[float, bytes]:
        """The seconds that a run takes, and its page."""
        begun = time.perf_counter()
        subprocess.run([*words, "--seed", str(seed)], capture_output=True, check=False)
        return time.perf_counter() - begun, page.read_bytes()

    def without_times(content: bytes) -> bytes:
        return re.sub(rb'"seconds": ?[0-9.e+-]+', b'"seconds":0', content)

    (_, old), (took, new) = drawn(0), drawn(1)
    whole = {without_times(old): "old", without_times(new): "new"}
    found = dict.fromkeys(("old", "new", "damaged"), 0)
    for _ in range(trials):
        page.write_bytes(old)
        process = subprocess.Popen(
            [*words, "--seed", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )  # fmt: skip
        time.sleep(took * chance.uniform(0.5, 1.1))  # the first half imports torch
        process.kill()
        process.wait()
        found[whole.get(without_times(page.read_bytes()), "damaged")] += 1
    print(f"solve --html           {trials} kills, the page is the old one {found['old']} times, "
          f"the new one {found['new']} times, damaged {found['damaged']} times")  # fmt: skip
    return found["damaged"] == 0


def digest(folder: Path) -> str:
    """A checksum of all files of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    content = b"".join(path.name.encode() + path.read_bytes() for path in files)
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
    """Run all five; 0 where everything holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50, metavar="N", help="kills of each")
    trials = parser.parse_args().trials
    with tempfile.TemporaryDirectory() as name:
        kinds = (kill_train, kill_evaluate, kill_tune, kill_html, kill_serve)
        fine = [kill(trials, Path(name)) for kill in kinds]
    print("all holds" if all(fine) else "something does not hold")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())

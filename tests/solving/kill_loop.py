"""Tunes in a child process and kills that, again and again, until the result is stored.

Run by test_tune_kill.py in an interpreter of its own: `python kill_loop.py FOLDER SECONDS`, where
SECONDS is the longest life of a child. Prints how often it killed, and the result. This process
never computes itself: threads do not survive a fork.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.solving.test_tune import BUDGET, puzzles, tuner

from tiltrm.folders import write_whole

RESULT = "result.json"


def start_child(folder: Path) -> int:
    """A child that tunes, from where the last one was killed, and stores the result."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        torch.set_num_threads(1)
        found = tuner(folder, puzzles(80), evaluations=BUDGET // 3).run()
        write_whole(folder / RESULT, json.dumps(found.as_mapping(), sort_keys=True))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def is_whole(folder: Path) -> None:
    """All that is stored can be read: no half file has a real name."""
    for path in folder.rglob("*.json"):
        json.loads(path.read_text())


def main(folder: Path, longest: float) -> None:
    chance, kills, life = random.Random(0), 0, longest
    folder.mkdir(parents=True)
    while True:
        child = start_child(folder)
        end = time.monotonic() + chance.uniform(0.05, life)
        status = 0
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.01)
        else:
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL), f"the child ended with {status}"
        is_whole(folder)
        if status == 0:
            break
        kills += 1
        life *= 1.05  # on a slow machine, no child may live long enough for one part
        assert kills < 500, "it never comes to an end"
    print(kills)
    print((folder / RESULT).read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))

"""The demonstrations that training held out, as tests of a file of their own.

    tiltrm train --task mini-arc --preset fast --data mini-arc.json.gz --out RUN
    python -m benchmarks.arc_held_out mini-arc.json.gz --share 0.3 --seed 0 --out held.json
    tiltrm evaluate --model RUN/best --data held.json --method deterministic adaptive

Settings are chosen on this file, so that the outputs of the tests stay unseen until the end. The
held-out demonstrations are a function of the names of the tasks, of the run's `hold_out` (--share)
and of its seed.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from tiltrm.data.arc_files import arc_json, read_arc_tasks
from tiltrm.train.demonstrations import hold_out


def main() -> None:
    """Write the file and say how many tests it has."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tasks", type=Path, help="the file that the model was trained on")
    parser.add_argument("--share", type=float, default=0.3, help="hold_out of the run (0.3)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the run (0)")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    kept, held = hold_out(read_arc_tasks(arguments.tasks), arguments.share, arguments.seed)
    shown = {task.name: task.demonstrations for task in kept}
    tests = []
    for task in held:
        ((grid, output),) = task.demonstrations
        own = replace(task, demonstrations=shown[task.name], tests=(grid,), outputs=(output,))
        tests.append(own)
    arguments.out.write_text(json.dumps(arc_json(tests)) + "\n", encoding="utf-8")
    print(f"wrote {arguments.out}: {len(tests)} held-out demonstrations as tests")


if __name__ == "__main__":
    main()

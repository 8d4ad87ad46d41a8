"""Exported weights in float32, float16 and int8: exact answers and evaluations on the same puzzles.

python -m benchmarks.export_precision --data val.csv.gz --puzzles 500 --threads 2 --records r.jsonl

Every precision solves the puzzles adaptively through onnxruntime, with the same seed. A run that
was stopped, by `--minutes` too, goes on where its records end. The precisions take turns, so that
a run that was cut compares them on the same puzzles.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import tiltrm
from tiltrm.data import read
from tiltrm.data.puzzles import Puzzles
from tiltrm.export.folder import OnnxModel, export
from tiltrm.export.graph import PRECISIONS
from tiltrm.export.networks import exportable
from tiltrm.solving import task_of

Chunks = dict[tuple[str, int, int], dict[str, Any]]

CHUNK = 25  # puzzles between two lines of progress, and of a record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--data", required=True)
    parser.add_argument("--puzzles", type=int, default=500)
    parser.add_argument("--precision", nargs="+", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--records", type=Path, help="a file with a line for every chunk")
    parser.add_argument("--minutes", type=float, default=600.0, help="no new chunk after these")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = exportable(tiltrm.load(arguments.model))
    task = task_of(model)
    puzzles = read(arguments.data, task, limit=arguments.puzzles)
    done = known_chunks(arguments.records, arguments.model, len(puzzles.questions))
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        export(model, arguments.model, task, Path(folder) / "onnx", arguments.precision)
        models = {name: OnnxModel(Path(folder) / "onnx", name) for name in arguments.precision}
        for first in range(0, len(puzzles.questions), CHUNK):
            for name, exported in models.items():
                part = slice(first, min(first + CHUNK, len(puzzles.questions)))
                if (name, first, part.stop) in done:
                    continue
                if time.perf_counter() - begun > 60 * arguments.minutes:
                    return report(done)
                own = measure(exported, puzzles, part)
                done[name, first, part.stop] = own
                if arguments.records is not None:
                    line = {"model": arguments.model, "precision": name, "first": first, **own}
                    with arguments.records.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line) + "\n")
            report(done)
    return None


def known_chunks(path: Path | None, model: str, count: int) -> Chunks:
    """The chunks of `count` puzzles that were measured before: by precision, first and end."""
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {
        (line["precision"], line["first"], line["first"] + line["puzzles"]): line
        for line in lines
        if line["model"] == model
        and line["first"] + line["puzzles"] == min(line["first"] + CHUNK, count)
    }


def measure(model: OnnxModel, puzzles: Puzzles, part: slice) -> dict[str, float]:
    """Solve a chunk: exact answers, evaluations and seconds."""
    assert puzzles.answers is not None
    begun = time.perf_counter()
    found = tiltrm.solve(model, puzzles.questions[part])
    return {
        "puzzles": part.stop - part.start,
        "exact": int((found.answers == puzzles.answers[part]).all(-1).sum()),
        "evaluations": int(found.evaluations.sum()),
        "seconds": round(time.perf_counter() - begun, 3),
    }


def report(done: Chunks) -> None:
    """The totals so far of each precision."""
    for name in dict.fromkeys(name for name, _, _ in done):
        own = [line for (other, _, _), line in done.items() if other == name]
        puzzles, exact, evaluations, seconds = (
            sum(line[key] for line in own) for key in ("puzzles", "exact", "evaluations", "seconds")
        )
        print(
            f"{name:8} {puzzles:5.0f} puzzles: {exact:.0f} exact ({100 * exact / puzzles:.1f} %), "
            f"{evaluations / puzzles:.1f} evaluations a puzzle, {evaluations / seconds:.0f} a "
            "second",
            flush=True,
        )


if __name__ == "__main__":
    main()

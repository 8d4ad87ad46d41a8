"""Exported weights in float32, float16 and int8: exact answers and evaluations on the same puzzles.

python -m benchmarks.export_precision --data val.csv.gz --puzzles 500 --precision float16 int8

Every precision solves the puzzles adaptively through onnxruntime, with the same seed.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch

import tiltrm
from tiltrm.data import read
from tiltrm.export.folder import OnnxModel, export
from tiltrm.export.graph import PRECISIONS
from tiltrm.export.networks import exportable
from tiltrm.solving import task_of

CHUNK = 25  # puzzles between two lines of progress


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--data", required=True)
    parser.add_argument("--puzzles", type=int, default=500)
    parser.add_argument("--precision", nargs="+", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = exportable(tiltrm.load(arguments.model))
    task = task_of(model)
    puzzles = read(arguments.data, task, limit=arguments.puzzles)
    tokens, labels = puzzles.questions, puzzles.answers
    assert labels is not None
    with tempfile.TemporaryDirectory() as folder:
        export(model, arguments.model, task, Path(folder) / "onnx", arguments.precision)
        for precision in arguments.precision:
            measure(OnnxModel(Path(folder) / "onnx", precision), precision, tokens, labels)


def measure(model: OnnxModel, name: str, tokens: torch.Tensor, labels: torch.Tensor) -> None:
    """Solve in chunks and print the totals after each."""
    exact = evaluations = 0
    begun = time.perf_counter()
    for first in range(0, len(tokens), CHUNK):
        part = slice(first, min(first + CHUNK, len(tokens)))
        found = tiltrm.solve(model, tokens[part])
        exact += int((found.answers == labels[part]).all(-1).sum())
        evaluations += int(found.evaluations.sum())
        seconds = time.perf_counter() - begun
        print(
            f"{name:8} {part.stop:5} puzzles: {exact} exact ({100 * exact / part.stop:.1f} %), "
            f"{evaluations / part.stop:.1f} evaluations a puzzle, {evaluations / seconds:.0f} a "
            "second",
            flush=True,
        )


if __name__ == "__main__":
    main()

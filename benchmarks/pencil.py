"""Pencil puzzles by type: how many each method solves, and at how many evaluations.

`python -m benchmarks.pencil --model M --data golden.csv --method deterministic guided adaptive`
prints a row for every method and a column for every type. Files are CSV with a column `question`
(addresses) or folders of NPY arrays; answers are not needed: each puzzle has one solution, so an
answer that keeps all rules is it. Boards beyond 10 x 10 are left out, and counted.
"""

import argparse
import csv
import time
from pathlib import Path

import torch
from torch import Tensor

import tiltrm
from tiltrm.cli.methods import parse_method
from tiltrm.data import npy
from tiltrm.device import choose
from tiltrm.errors import PuzzleError
from tiltrm.evaluate.options import complete
from tiltrm.evaluate.peers import Case, evaluate_method
from tiltrm.tasks.pencil import PENCIL
from tiltrm.tasks.pencil.puzzle import KINDS


def read(path: Path) -> tuple[Tensor, Tensor | None]:
    """Questions and answers (puzzle, cell) of a file or folder; None where it has no answers."""
    if path.is_dir():
        puzzles = npy.read(path, PENCIL)
        return puzzles.questions, puzzles.labels()
    found, answers, left_out = [], [], 0
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            try:
                found.append(PENCIL.encode(row["question"]))
            except PuzzleError:
                left_out += 1
                continue
            if row.get("answer"):
                answers.append(PENCIL.encode(row["answer"], answer=True))
    print(f"{path.name}: {len(found)} puzzles, {left_out} left out", flush=True)
    return torch.stack(found), torch.stack(answers) if len(answers) == len(found) else None


def main() -> None:
    """The command of the docstring."""
    parser = argparse.ArgumentParser(description="Pencil puzzles solved by type.")
    parser.add_argument("--model", default="pencil")
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--method", nargs="+", default=["deterministic", "guided", "adaptive"])
    parser.add_argument("--limit", type=int, help="puzzles of each type")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    model = tiltrm.load(given.model, device=choose(given.device))
    for path in given.data:
        tokens, labels = read(path)
        types = PENCIL.types(tokens)
        places = [(types == kind.number).nonzero().flatten()[: given.limit] for kind in KINDS]
        rows = torch.cat(places)
        tokens, types = tokens[rows], types[rows]
        labels = None if labels is None else labels[rows]
        known = [kind for kind in KINDS if bool((types == kind.number).any())]
        counts = " ".join(f"{kind.name} {int((types == kind.number).sum())}" for kind in known)
        print(f"\n{path.name}: {counts}; solved in % (evaluations a puzzle)")
        for text in given.method:
            begun = time.perf_counter()
            method, own = parse_method(text)
            settings = complete(method, own, PENCIL.name)
            case = Case(model, PENCIL, tokens, labels, settings, 0, torch.arange(len(tokens)))
            found = evaluate_method(method, case)
            solved = torch.as_tensor(found["valid"]).bool()
            spent = torch.as_tensor(found["evaluations"]).double()
            oracle = found["oracle"]
            in_cloud = ""
            if oracle is not None:
                in_cloud = f", oracle {100 * torch.as_tensor(oracle).double().mean():.2f}"
            cells = [
                f"{kind.name} {100 * solved[types == kind.number].double().mean():.1f} "
                f"({spent[types == kind.number].mean():,.0f})"
                for kind in known
            ]
            seconds = time.perf_counter() - begun
            print(
                f"{text}: all {100 * solved.double().mean():.2f} ({spent.mean():,.1f}){in_cloud}; "
                f"{'; '.join(cells)}; {seconds:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()

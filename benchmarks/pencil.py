"""Pencil puzzles by type: how many each method solves, at how many evaluations, and the verdict.

`python -m benchmarks.pencil --data golden.csv --method deterministic guided adaptive_rules --json
golden.json --picture golden.svg` prints a row for every method and a column for every type, stores
the rows after every method, and draws them. `--columns` asks `tiltrm diagnose` about every type on
other puzzles first (`--asked`), then prints Table 1's columns and whether the verdicts came true.
`--draw generated.json golden.json --picture F.svg` prints stored results again, one file after the
other, and draws the last.

Files are CSV with a column `question` (addresses of any types), all of them taken together, or
folders of NPY arrays. Answers are not needed: each puzzle has one solution, so an answer that keeps
all rules is it. Boards beyond 10 x 10 are left out, and counted.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

import tiltrm
from benchmarks.pencil_columns import guided_settings, measure_columns, say_verdicts
from benchmarks.pencil_frontier import draw
from benchmarks.pencil_results import MethodResult, PencilResults
from tiltrm.cli.methods import method_settings, parse_method
from tiltrm.cpu_precision import PRECISIONS, avoid_illegal_instructions, load_options
from tiltrm.data import Puzzles
from tiltrm.data import read as read_puzzles
from tiltrm.device import choose
from tiltrm.evaluate.options import complete
from tiltrm.evaluate.peers import Case, evaluate_method
from tiltrm.folders import write_whole
from tiltrm.model.build import Model
from tiltrm.solving.plans import tuned_plan
from tiltrm.tasks.pencil import PENCIL
from tiltrm.tasks.pencil.puzzle import KINDS


def read(paths: Sequence[Path], limit: int | None = None) -> Puzzles:
    """The puzzles of all files, at most so many of each type, type by type."""
    parts = []
    for path in paths:
        part = read_puzzles(path, PENCIL, skip_sizes=True)
        print(f"{path.name}: {len(part):,} puzzles, {part.skipped:,} left out", flush=True)
        parts.append(part)
    answers = [part.answers for part in parts if part.answers is not None]
    questions = torch.cat([part.questions for part in parts])
    together = Puzzles(
        PENCIL, questions, torch.cat(answers) if len(answers) == len(parts) else None
    )
    types = PENCIL.types(questions)
    rows = [(types == kind.number).nonzero().flatten()[:limit] for kind in KINDS]
    return together.take(torch.cat(rows))


def by_type(puzzles: Puzzles) -> dict[str, Puzzles]:
    """The puzzles of each type that occurs, under its name."""
    types = PENCIL.types(puzzles.questions)
    rows = {kind.name: (types == kind.number).nonzero().flatten() for kind in KINDS}
    return {name: puzzles.take(places) for name, places in rows.items() if len(places)}


def run_method(model: Model, puzzles: Puzzles, text: str) -> Iterator[MethodResult]:
    """One method with its settings: a result for all puzzles, and one for each type.

    Adaptive solving takes the plan of `tiltrm tune`, as in `tiltrm evaluate`.
    """
    plan = tuned_plan(model, PENCIL)
    [(name, own)] = method_settings([parse_method(text)], {}, PENCIL.name, plan)
    case = Case(
        model, PENCIL, puzzles.questions, puzzles.answers, complete(name, own, PENCIL.name), 0,
        torch.arange(len(puzzles)),
    )  # fmt: skip
    found = evaluate_method(name, case)
    solved = torch.as_tensor(found["valid"]).double()
    spent = torch.as_tensor(found["evaluations"]).double()
    oracle = None if found["oracle"] is None else torch.as_tensor(found["oracle"]).double()
    types = PENCIL.types(puzzles.questions)
    masks = {"all": types >= 0} | {kind.name: types == kind.number for kind in KINDS}
    for kind, own_rows in masks.items():
        if own_rows.any():
            best = None if oracle is None else float(oracle[own_rows].mean())
            yield MethodResult(
                text, kind, int(own_rows.sum()), float(solved[own_rows].mean()),
                float(spent[own_rows].mean()), best,
            )  # fmt: skip


def run(given: argparse.Namespace) -> PencilResults:
    """Run the methods, print their rows as they come, and store them after each."""
    device = choose(given.device)
    model = tiltrm.load(given.model, device=device, **load_options(given.precision, device))
    puzzles = read(given.data, given.limit)
    names = tuple(path.name for path in given.data)
    results = PencilResults(
        str(given.model), names, {k: len(v) for k, v in by_type(puzzles).items()}
    )
    if given.method:
        print(f"\n{results.header()}")
    for text in given.method:
        begun = time.perf_counter()
        rows = tuple(run_method(model, puzzles, text))
        results = replace(results, rows=(*results.rows, *rows))
        print(f"{results.line(text)}  <!-- {time.perf_counter() - begun:.1f} s -->", flush=True)
        _store(results, given.json)
    if given.columns:
        settings = guided_settings(given.columns)
        asked = by_type(read(given.asked, given.ask))
        said = dict(say_verdicts(model, asked, settings))
        columns = tuple(measure_columns(model, by_type(puzzles), settings, said))
        results = replace(results, columns=columns)
        _store(results, given.json)
        print(f"\n{results.columns_table()}")
    return results


def _store(results: PencilResults, path: Path | None) -> None:
    if path is not None:
        write_whole(path, results.as_json())


def main() -> None:
    """The commands of the docstring."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="pencil")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, nargs="+")
    what.add_argument("--draw", type=Path, nargs="+", help="stored results instead of a run")
    parser.add_argument("--method", nargs="*", default=["deterministic", "guided", "adaptive"])
    parser.add_argument("--columns", nargs="?", const="guided", help="guided, and its settings")
    parser.add_argument("--asked", type=Path, nargs="+", help="other puzzles, for the verdicts")
    parser.add_argument("--ask", type=int, default=32, help="of them, of each type")
    parser.add_argument("--limit", type=int, help="puzzles of each type")
    parser.add_argument("--json", type=Path, help="where to store the results")
    parser.add_argument("--picture", type=Path, help="where to draw the frontier, as SVG")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", choices=PRECISIONS, help="of the network, as in solve")
    given = parser.parse_args()
    avoid_illegal_instructions()
    if given.columns and not given.asked:
        parser.error("--columns needs --asked FILES: the verdict is about other puzzles")
    if given.draw:
        for path in given.draw:
            results = PencilResults.from_json(path.read_text())
            print(f"{', '.join(results.data)}:\n{results.table()}\n\n{results.columns_table()}")
    else:
        results = run(given)
    if given.picture is not None:
        given.picture.write_text(draw(results))


if __name__ == "__main__":
    main()

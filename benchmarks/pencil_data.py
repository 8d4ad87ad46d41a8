"""The training and validation set of the model `pencil`, from files of generated puzzles.

    for t in lightup nurikabe heyawake tapa; do
        tiltrm data --task $t --generate 20000 --without golden.csv --out $t.csv; done
    python -m benchmarks.pencil_data lightup.csv nurikabe.csv heyawake.csv tapa.csv \
        --sudoku sudoku-extreme/train.csv.gz --out pencil
    tiltrm train --task pencil --preset fast --data pencil/train --val pencil/val

The last 100 puzzles of every file are for validation. Types get the shares of SHARES in training,
by repeating the puzzles of those with fewer. Sudokus come from a file of the task sudoku; in three
of four copies some more cells of the answer are shown, since few people publish extreme ones.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.data import read as read_puzzles
from tiltrm.tasks.base import PAD
from tiltrm.tasks.pencil import PENCIL
from tiltrm.tasks.pencil.dataset import read
from tiltrm.tasks.pencil.mixed import board_of_sudoku
from tiltrm.tasks.pencil.puzzle import KINDS
from tiltrm.tasks.pencil.tokens import BLANK
from tiltrm.tasks.sudoku import SUDOKU

SHARES = {"sudoku": 0.12, "lightup": 0.16, "nurikabe": 0.27, "heyawake": 0.25, "tapa": 0.20}
VALIDATION = 100  # puzzles of every type
MOST_HINTS = 16

Pair = tuple[Tensor, Tensor]  # questions and answers, (puzzle, cell) each


def sudokus(puzzles: Puzzles, copies: int) -> Pair:
    """Sudokus on the board, some with more clues."""
    generator = torch.Generator().manual_seed(0)
    questions = puzzles.questions.repeat(copies, 1)
    answers = puzzles.labels().repeat(copies, 1)
    more = torch.randint(MOST_HINTS + 1, (len(questions), 1), generator=generator)
    more[torch.rand(len(more), generator=generator) < 0.25] = 0
    order = torch.rand(questions.shape, generator=generator)
    order = order.masked_fill(SUDOKU.given(questions), 2.0).argsort(-1).argsort(-1)
    shown = torch.where(order < more, answers, questions)
    return board_of_sudoku(shown, PAD), board_of_sudoku(answers, BLANK)


def repeated(pair: Pair, rows: int) -> Pair:
    """So many rows: every puzzle about equally often."""
    places = torch.arange(rows) % len(pair[0])
    return pair[0][places], pair[1][places]


def write(folder: Path, pairs: list[Pair]) -> None:
    """A folder in the format of TinyRecursiveModels."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"seq_len": PENCIL.cells, "vocab_size": PENCIL.vocabulary, "sets": ["all"]}
    (folder / "dataset.json").write_text(json.dumps(about))
    for name, which in (("inputs", 0), ("labels", 1)):
        tokens = torch.cat([pair[which] for pair in pairs]).to(torch.uint8)
        np.save(folder / f"all__{name}.npy", tokens.numpy())


def main() -> None:
    """The command of the docstring."""
    parser = argparse.ArgumentParser(description="Make the training set of the model pencil.")
    parser.add_argument("files", type=Path, nargs=4, help="lightup, nurikabe, heyawake, tapa")
    parser.add_argument("--sudoku", type=Path, required=True, help="Sudokus with answers")
    parser.add_argument("--out", type=Path, required=True, help="folder for train and val")
    parser.add_argument("--rows", type=int, default=80_000, help="rows of the training set")
    given = parser.parse_args()
    by_type: dict[str, Pair] = {}
    for kind, path in zip(KINDS[1:], given.files, strict=True):
        questions, answers, numbers = read(path)
        assert set(numbers.tolist()) == {kind.number}, f"{path}: expected {kind.name}"
        by_type[kind.name] = questions, answers
    extreme = read_puzzles(given.sudoku, SUDOKU)
    kept = {name: (q[:-VALIDATION], a[:-VALIDATION]) for name, (q, a) in by_type.items()}
    last = {name: (q[-VALIDATION:], a[-VALIDATION:]) for name, (q, a) in by_type.items()}
    kept["sudoku"] = sudokus(extreme.take(slice(-VALIDATION)), 8)
    last["sudoku"] = sudokus(extreme.take(slice(-VALIDATION, None)), 1)
    train = [repeated(kept[name], round(share * given.rows)) for name, share in SHARES.items()]
    for name, share in SHARES.items():
        print(f"{name}: {len(kept[name][0]):,} puzzles, {share:.0%} of the rows")
    write(given.out / "train", train)
    write(given.out / "val", list(last.values()))


if __name__ == "__main__":
    main()

"""The training and validation set of the model `pencil`, from files of generated puzzles.

    for t in lightup nurikabe heyawake tapa; do
        tiltrm data --task $t --generate 20000 --without golden.csv --out $t.csv; done
    python -m benchmarks.pencil_data lightup.csv nurikabe.csv heyawake.csv tapa.csv \
        --sudoku sudoku-extreme/train.csv.gz --out pencil
    tiltrm train --task pencil --preset fast --data pencil/train --val pencil/val

There may be several files of a type. The last 100 puzzles of every type are for validation. Types
get the shares of SHARES, or of `--shares heyawake=0.6 sudoku=0.1 ...`, in training, by repeating
the puzzles of those with fewer. Some copies are easier: Sudokus show more cells of the answer (in
three of four copies, since few people publish extreme ones), and rooms of a Heyawake more of their
numbers (in every second copy).
"""

import argparse
import json
import random
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.data import read as read_puzzles
from tiltrm.errors import SettingsError
from tiltrm.tasks.base import PAD
from tiltrm.tasks.pencil import PENCIL
from tiltrm.tasks.pencil.dataset import read
from tiltrm.tasks.pencil.mixed import board_of_sudoku
from tiltrm.tasks.pencil.puzzle import HEYAWAKE, KINDS, PencilPuzzle, room_clues
from tiltrm.tasks.pencil.tokens import BLANK, SHADED, decode, encode
from tiltrm.tasks.sudoku import SUDOKU

SHARES = {"sudoku": 0.12, "lightup": 0.08, "nurikabe": 0.25, "heyawake": 0.35, "tapa": 0.20}
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


def with_more_numbers(pair: Pair, seed: int) -> Pair:
    """Heyawakes in which further rooms show how many of their cells are shaded."""
    chance = random.Random(seed)
    return torch.stack([_with_more_numbers(*row, chance) for row in zip(*pair, strict=True)]), pair[
        1
    ]


def _with_more_numbers(question: Tensor, answer: Tensor, chance: random.Random) -> Tensor:
    """One Heyawake; both (cell,), in the upper left corner of the board."""
    puzzle = decode(HEYAWAKE, question)
    width, height = puzzle.width, puzzle.height
    board = answer.view(PENCIL.side, PENCIL.side)[:height, :width]
    counts = [0] * len(puzzle.room_numbers)
    for room, shaded in zip(puzzle.rooms, (board == SHADED).flatten().tolist(), strict=True):
        counts[room] += shaded
    share = chance.random()
    numbers = [
        clue or ((count,) if chance.random() < share else ())
        for clue, count in zip(puzzle.room_numbers, counts, strict=True)
    ]
    clues = room_clues(puzzle.rooms, numbers)
    return encode(PencilPuzzle(HEYAWAKE, width, height, clues, puzzle.borders))


def repeated(pair: Pair, rows: int) -> Pair:
    """So many rows: every puzzle about equally often."""
    places = torch.arange(rows) % len(pair[0])
    return pair[0][places], pair[1][places]


def read_shares(texts: list[str]) -> dict[str, float]:
    """`name=share` for every type, as numbers that add up to 1."""
    shares = {name: float(share) for name, _, share in (text.partition("=") for text in texts)}
    if shares.keys() != SHARES.keys() or abs(sum(shares.values()) - 1.0) > 1e-6:
        raise SettingsError(
            f"--shares must be NAME=SHARE for {', '.join(SHARES)}, with a sum of 1, got {texts}"
        )
    return shares


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
    parser.add_argument("files", type=Path, nargs="+", help="of tiltrm data --generate")
    parser.add_argument("--sudoku", type=Path, required=True, help="Sudokus with answers")
    parser.add_argument("--out", type=Path, required=True, help="folder for train and val")
    parser.add_argument("--rows", type=int, default=80_000, help="rows of the training set")
    parser.add_argument("--shares", nargs="+", help="name=share for every type, instead of SHARES")
    given = parser.parse_args()
    shares = read_shares(given.shares) if given.shares else SHARES
    parts: dict[int, list[Pair]] = {}
    for path in given.files:
        questions, answers, numbers = read(path)
        for number in numbers.unique().tolist():
            rows = numbers == number
            parts.setdefault(number, []).append((questions[rows], answers[rows]))
    by_type: dict[str, Pair] = {
        kind.name: (
            torch.cat([questions for questions, _ in parts[kind.number]]),
            torch.cat([answers for _, answers in parts[kind.number]]),
        )
        for kind in KINDS[1:]
    }
    extreme = read_puzzles(given.sudoku, SUDOKU)
    kept = {name: (q[:-VALIDATION], a[:-VALIDATION]) for name, (q, a) in by_type.items()}
    last = {name: (q[-VALIDATION:], a[-VALIDATION:]) for name, (q, a) in by_type.items()}
    easier = with_more_numbers(kept["heyawake"], 0)
    counts = {name: len(questions) for name, (questions, _) in kept.items()}
    kept["heyawake"] = torch.cat((kept["heyawake"][0], easier[0])), kept["heyawake"][1].repeat(2, 1)
    kept["sudoku"] = sudokus(extreme.take(slice(-VALIDATION)), 8)
    last["sudoku"] = sudokus(extreme.take(slice(-VALIDATION, None)), 1)
    train = [repeated(kept[name], round(share * given.rows)) for name, share in shares.items()]
    counts["sudoku"] = len(extreme) - VALIDATION
    for name, share in shares.items():
        print(f"{name}: {counts[name]:,} puzzles, {share:.0%} of the rows")
    write(given.out / "train", train)
    write(given.out / "val", list(last.values()))


if __name__ == "__main__":
    main()

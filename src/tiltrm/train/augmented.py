"""Batches of ARC demonstrations under the augmentations that have puzzle ids of their own.

A row of a batch is a task, one of its puzzle ids, one of its demonstrations and a place on the
board, each drawn uniformly, as in the peers' codes. Augmented boards are made on the device.
Proved by tests/train/test_augmented.py.
"""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from tiltrm.data import Puzzles
from tiltrm.errors import SettingsError
from tiltrm.tasks.arc.augmentation import by_task
from tiltrm.tasks.arc.grids import SIDE, turn_sources
from tiltrm.tasks.arc.tokens import (
    BASE,
    BLACK,
    BOARD,
    ID_CELLS,
    VOCABULARY,
    colour_box,
    is_colour,
    moved,
)
from tiltrm.tasks.base import PAD

UNMOVED = 0.3  # share of the rows with their grids in the upper left corner, as tests have them


class AugmentedDemonstrations:
    """The demonstrations of `puzzles` and the augmentations that `names`, by puzzle id, list.

    side: of the board's upper left part that batches show; larger demonstrations are left out.
    """

    def __init__(
        self, puzzles: Puzzles, names: Sequence[str], device: torch.device, *, translate: bool,
        side: int = SIDE,
    ) -> None:  # fmt: skip
        puzzles = _fitting(puzzles, side)
        listed = by_task(names)
        tasks = list(dict.fromkeys(puzzles.sources or ()))
        missing = [name for name in tasks if name not in listed]
        if missing or not tasks:
            raise SettingsError(
                f"expected demonstrations of tasks with puzzle ids, got {missing[:1] or 'none'}"
            )
        self.translate, self.side = translate, side
        boards = (puzzles.questions[:, :BOARD], puzzles.labels()[:, :BOARD])
        self.boards = [_colours_only(board.to(device)) for board in boards]
        place = {name: number for number, name in enumerate(tasks)}
        pairs: list[list[int]] = [[] for _ in tasks]
        for row, name in enumerate(puzzles.sources or ()):
            pairs[place[name]].append(row)
        self.pairs, self.pair_count = _padded(pairs, device)
        ids = [[number for number, _ in listed[name]] for name in tasks]
        self.ids, self.id_count = _padded(ids, device)
        turns = torch.zeros(len(names), dtype=torch.int64)
        renames = torch.arange(VOCABULARY).repeat(len(names), 1)
        for name in tasks:
            for number, own in listed[name]:
                turns[number] = own.turn
                renames[number, BLACK:] = BLACK + torch.tensor(own.colours)
        self.turns, self.renames = turns.to(device), renames.to(device, torch.uint8)
        self.sources = turn_sources(SIDE).to(device)

    def draw(self, count: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """Questions and labels: (count, cell) uint8 each."""
        device = generator.device
        task = torch.randint(len(self.pairs), (count,), generator=generator, device=device)
        shares = torch.rand(5, count, generator=generator, device=device)
        pair = self.pairs[task, _pick(shares[0], self.pair_count[task])]
        number = self.ids[task, _pick(shares[1], self.id_count[task])]
        boards = [self._augmented(board[pair], number) for board in self.boards]
        boxes = [colour_box(board) for board in boards]
        room = [
            self.side + 1 - torch.maximum(*sizes)
            for sizes in zip(*((box.height, box.width) for box in boxes), strict=True)
        ]
        free = (shares[2] >= UNMOVED) & self.translate
        corner = [_pick(share, each) * free for share, each in zip(shares[3:], room, strict=True)]
        question, answer = (
            self._shown(moved(board, box, *corner))
            for board, box in zip(boards, boxes, strict=True)
        )
        places = BASE ** torch.arange(ID_CELLS - 1, -1, -1, device=device)
        digits = (number[:, None] // places % BASE).to(torch.uint8)
        labels = torch.cat((answer, torch.full_like(digits, PAD)), 1)
        return torch.cat((question, digits), 1), labels

    def _shown(self, board: Tensor) -> Tensor:
        square: Tensor = board.view(-1, SIDE, SIDE)
        return square[:, : self.side, : self.side].flatten(1)

    def _augmented(self, board: Tensor, number: Tensor) -> Tensor:
        """Boards (row, 900) of colours, recoloured and turned as the ids (row,) say."""
        renamed = self.renames[number].gather(1, board.long())
        return renamed.gather(1, self.sources[self.turns[number]])


def _fitting(puzzles: Puzzles, side: int) -> Puzzles:
    """The puzzles whose grids have at most `side` rows and columns."""
    boxes = [colour_box(each[:, :BOARD]) for each in (puzzles.questions, puzzles.labels())]
    fits = [torch.maximum(box.height, box.width) <= side for box in boxes]
    return puzzles.take((fits[0] & fits[1]).nonzero().flatten())


def _colours_only(board: Tensor) -> Tensor:
    return torch.where(is_colour(board), board, PAD)


def _pick(share: Tensor, count: Tensor) -> Tensor:
    """A whole number below `count` for a share in [0, 1)."""
    return (share * count).long().clamp(max=count - 1)


def _padded(lists: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Lists of different lengths as a table (list, longest), and their lengths."""
    count = torch.tensor([len(each) for each in lists])
    table = torch.zeros(len(lists), int(count.max()), dtype=torch.int64)
    for row, each in enumerate(lists):
        table[row, : len(each)] = torch.tensor(each)
    return table.to(device), count.to(device)

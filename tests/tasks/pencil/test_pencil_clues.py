"""Guesses on pencil puzzles: which clues an answer gives, and puzzles with one of them more."""

from dataclasses import replace

import torch

from tiltrm.tasks.base import PAD
from tiltrm.tasks.pencil import HEYAWAKE, NURIKABE, PENCIL
from tiltrm.tasks.pencil.clues import PencilClues
from tiltrm.tasks.pencil.puzzle import PencilPuzzle, room_clues
from tiltrm.tasks.pencil.tokens import SHADED, UNSHADED, decode

CLUES = PencilClues()
ROOMS = "a1 a b b/a c c b/d c e e/d c e e"  # five rooms; only the first one has a number
ANSWER = ".#.#/..../#..#/..#."


def renumbered(text: str, numbers: dict[int, int]) -> PencilPuzzle:
    """The Heyawake with these numbers in rooms that are counted from 0."""
    puzzle = HEYAWAKE.puzzle(HEYAWAKE.encode(text))
    given = [
        (numbers[room],) if room in numbers else clue
        for room, clue in enumerate(puzzle.room_numbers)
    ]
    return replace(puzzle, clues=room_clues(puzzle.rooms, given))


def test_an_answer_gives_numbers_to_rooms_without_one() -> None:
    question = HEYAWAKE.encode(ROOMS)
    answer = HEYAWAKE.encode(ANSWER, answer=True)
    said = CLUES.in_answers(question[None], answer[None, None])[0, 0]
    rooms = HEYAWAKE.puzzle(question).rooms
    assert rooms == (0, 0, 1, 1, 0, 2, 2, 1, 3, 2, 4, 4, 3, 2, 4, 4)
    places = said.nonzero().flatten().tolist()
    assert places == [2, 11, 20, 22]  # first cells of the rooms 1 to 4 on the board of 10 x 10
    for place, (room, count) in zip(places, ((1, 1), (2, 0), (3, 1), (4, 2)), strict=True):
        filled = CLUES.add(question[None], torch.tensor([place]), said[place][None])[0]
        assert decode(HEYAWAKE.kind, filled) == renumbered(ROOMS, {room: count})
        assert (filled == PAD).equal(question == PAD)


def test_numbers_above_six_are_not_guessed() -> None:
    question = HEYAWAKE.encode("/".join(["a a a a"] * 4))
    for count, given in ((6, True), (7, False)):
        answer = torch.full((100,), UNSHADED)
        answer[[0, 2, 11, 13, 20, 22, 31][:count]] = SHADED
        said = CLUES.in_answers(question[None], answer[None, None])
        assert bool(said.any()) == given


def test_types_guess_together_as_each_alone() -> None:
    """Boards of two types, with two particles each, in one batch."""
    questions = [HEYAWAKE.encode(ROOMS), NURIKABE.encode("2 . . . / . . . 3 / . . . . / 1 . . .")]
    answers = [
        torch.stack([task.encode(text, answer=True) for text in texts])
        for task, texts in (
            (HEYAWAKE, (ANSWER, "...." + "/...." * 3)),
            (NURIKABE, (".###/.#../##.#/.###", "####/####/####/####")),
        )
    ]
    both, said = torch.stack(questions), torch.stack(answers)
    together = CLUES.in_answers(both, said)
    for row in range(2):
        alone = CLUES.in_answers(both[row : row + 1], said[row : row + 1])
        assert torch.equal(alone[0], together[row])
    shown = together[1, 0].nonzero().flatten().tolist()
    assert len(shown) == 13  # all cells of the Nurikabe but its clues
    assert 0 not in shown
    cells = torch.tensor([[2, 11], [1, 1]])
    ids = together.gather(-1, cells[..., None])[..., 0]
    filled = CLUES.add(both[:, None].expand(-1, 2, -1), cells, ids)
    assert filled[1, 0, 1] == SHADED
    assert (filled[1] != both[1]).sum(-1).tolist() == [1, 1]
    assert (filled[0] != both[0]).sum(-1).tolist() == [3, 4]  # the cells of the rooms b and c
    assert PENCIL.types(filled).tolist() == [[3, 3], [2, 2]]

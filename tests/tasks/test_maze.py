"""The maze: text, rules, judgement, generator."""

import math
from collections import deque
from pathlib import Path

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tiltrm.data import read
from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.tasks import MAZE, Maze, maze_generate
from tiltrm.tasks.maze_format import FREE, GOAL, PATH, START, WALL

SMALL = Maze(4)
QUESTION = "S #G  #      ## "
SHORTEST = "So#G o#o oooo## "


def neighbours(cell: int, side: int) -> list[int]:
    row, column = divmod(cell, side)
    places = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return [r * side + c for r, c in places if 0 <= r < side and 0 <= c < side]


def steps_from(ids: list[int], side: int, origin: int) -> dict[int, int]:
    """Steps from a cell to every cell that can be reached, by a plain search."""
    steps = {origin: 0}
    queue = deque(steps)
    while queue:
        cell = queue.popleft()
        for other in neighbours(cell, side):
            if ids[other] != WALL and other not in steps:
                steps[other] = steps[cell] + 1
                queue.append(other)
    return steps


def breadth_first(ids: list[int], side: int) -> int:
    """Cells of a shortest path, 0 where there is none."""
    return steps_from(ids, side, ids.index(START)).get(ids.index(GOAL), -1) + 1


def is_valid(puzzle: list[int], answer: list[int], side: int) -> bool:
    """Walk from S: one new path cell lies beside every cell until G, and none is left over."""
    for before, after in zip(puzzle, answer, strict=True):
        if before != after and (before, after) != (FREE, PATH):
            return False
    path = {cell for cell, token in enumerate(answer) if token in (PATH, START, GOAL)}
    cell, seen = puzzle.index(START), {puzzle.index(START)}
    while cell != puzzle.index(GOAL):
        ahead = [other for other in neighbours(cell, side) if other in path - seen]
        if len(ahead) != 1:
            return False
        cell = ahead[0]
        seen.add(cell)
    return seen == path


@st.composite
def mazes(draw: st.DrawFn, side: int = 4) -> list[int]:
    ids = draw(st.lists(st.sampled_from((FREE, FREE, WALL)), min_size=side**2, max_size=side**2))
    start, goal = draw(st.lists(st.integers(0, side**2 - 1), min_size=2, max_size=2, unique=True))
    ids[start], ids[goal] = START, GOAL
    return ids


@st.composite
def drawn(draw: st.DrawFn, side: int = 4) -> tuple[list[int], list[int]]:
    """A maze and an answer: a random walk from S made into 'o', some through walls, some spoilt."""
    puzzle = draw(mazes(side))
    answer = list(puzzle)
    cell, chance = puzzle.index(START), draw(st.randoms(use_true_random=False))
    passable = draw(st.sampled_from([(FREE,), (FREE, WALL)]))
    for _ in range(draw(st.integers(0, 12))):
        ahead = [c for c in neighbours(cell, side) if answer[c] in (*passable, GOAL)]
        if not ahead or answer[cell] == GOAL:
            break
        cell = chance.choice(ahead)
        if answer[cell] != GOAL:
            answer[cell] = PATH
    for where, token in draw(
        st.lists(st.tuples(st.integers(0, side**2 - 1), st.integers(0, 6)), max_size=2)
    ):
        answer[where] = token
    return puzzle, answer


@given(st.text() | st.text("# SGo\nx", max_size=30))
@settings(deadline=None, max_examples=300)
def test_encode_raises_nothing_but_puzzle_error(text: str) -> None:
    for answer in (False, True):
        try:
            tokens = SMALL.encode(text, answer=answer)
        except PuzzleError:
            continue
        assert SMALL.well_formed(tokens, answer=answer)


@given(mazes())
@settings(deadline=None)
def test_decode_undoes_encode(ids: list[int]) -> None:
    text = SMALL.decode(torch.tensor(ids))
    lines = "\n".join(text[i : i + 4] for i in range(0, 16, 4))
    for form in (text, text + "\n", lines, lines.replace("\n", "\r\n") + "\r\n", "\n" + lines):
        assert SMALL.encode(form).tolist() == ids
    assert SMALL.encode_all([text, text]).tolist() == [ids, ids]


@given(st.lists(st.integers(0, 6), min_size=4, max_size=4), st.booleans())
@settings(deadline=None)
def test_well_formed_is_what_encode_accepts(ids: list[int], answer: bool) -> None:
    task, tokens = Maze(2), torch.tensor(ids, dtype=torch.uint8)
    try:
        again = task.encode(task.decode(tokens), answer=answer)
    except PuzzleError:
        assert not task.well_formed(tokens, answer=answer)
    else:
        assert torch.equal(again, tokens)
        assert task.well_formed(tokens, answer=answer)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" " * 15, "expected 16 cells, got 15; spaces"),
        ("S  G\n    \n    ", "expected 4 lines of 4 cells, got 3 lines"),
        ("S  G\n    \n  \n    ", "expected 4 cells in row 3, got 2"),
        ("S  G\n    \n  x \n    ", "got 'x' at row 3, column 3"),
        ("S  G" + "o" + " " * 11, "got 'o' at row 2, column 1"),
        ("   G" + " " * 12, "expected exactly one 'S', got none"),
        ("S GG" + " " * 12, r"exactly one 'G', got 2 \(row 1, column 3; row 1, column 4\)"),
    ],
)
def test_errors_name_the_cells(text: str, message: str) -> None:
    with pytest.raises(PuzzleError, match=message):
        SMALL.encode(text)


def test_an_answer_may_draw_and_a_question_may_not() -> None:
    assert SMALL.encode_all([SHORTEST], answer=True)[0].tolist() == [
        3, 5, 1, 4, 2, 5, 1, 5, 2, 5, 5, 5, 5, 1, 1, 2,
    ]  # fmt: skip
    with pytest.raises(PuzzleError, match="no path drawn"):
        SMALL.encode_all([QUESTION, SHORTEST])


@given(drawn())
@settings(deadline=None, max_examples=300)
def test_violations_are_zero_iff_valid(pair: tuple[list[int], list[int]]) -> None:
    puzzle, answer = pair
    found = SMALL.violations(torch.tensor(puzzle), torch.tensor(answer))
    assert (found == 0) == is_valid(puzzle, answer, 4)


@given(mazes(5))
@settings(deadline=None, max_examples=200)
def test_shortest_length_equals_a_plain_search(ids: list[int]) -> None:
    assert Maze(5).shortest_length(torch.tensor(ids)) == breadth_first(ids, 5)


@given(drawn())
@settings(deadline=None, max_examples=200)
def test_solved_means_valid_and_shortest(pair: tuple[list[int], list[int]]) -> None:
    puzzle, answer = pair
    tokens = torch.tensor(puzzle), torch.tensor(answer)
    right = is_valid(puzzle, answer, 4) and answer.count(PATH) + 2 == breadth_first(puzzle, 4)
    assert SMALL.is_solved(*tokens) == right


def test_a_loop_apart_from_the_path_is_no_path() -> None:
    task = Maze(6)
    question = "SG    " + " " * 30
    loop = "SG    " + "      " + "   ooo" + "   o o" + "   ooo" + "      "
    puzzle, answer = task.encode(question), task.encode(loop, answer=True)
    assert task.violations(puzzle, answer) == 8  # every degree is right; no cell is reached
    assert task.is_solved(puzzle, puzzle)


def test_the_three_judgements_differ() -> None:
    task = Maze(3)
    puzzle = task.encode("S       G")
    label = task.encode("Soo  o  G", answer=True)
    tie = task.encode("S  o  ooG", answer=True)
    wide = Maze(5)
    long = wide.encode("S ooo" "o o o" "ooo o" "    o" "    G", answer=True)  # fmt: skip
    found = task.judge(puzzle, torch.stack([label, tie, puzzle]), label)
    assert found.exact.tolist() == [True, False, False]
    assert found.shortest_valid.tolist() == [True, True, False]
    assert found.valid.tolist() == [True, True, False]
    longer = wide.judge(wide.encode("S" + " " * 23 + "G"), long, long)
    assert [bool(flag) for flag in longer] == [True, False, True]
    assert wide.path_length(wide.encode("S" + " " * 23 + "G"), long) == 13


def test_a_path_through_a_wall_is_no_path() -> None:
    puzzle, answer = Maze(3).encode("S#G      "), Maze(3).encode("SoG      ", answer=True)
    assert Maze(3).violations(puzzle, answer) > 0
    assert not Maze(3).judge(puzzle, answer, answer).valid


def test_no_way_is_never_solved() -> None:
    puzzle = Maze(2).encode("S##G")
    assert Maze(2).shortest_length(puzzle) == 0
    assert not Maze(2).is_solved(puzzle, puzzle)


def test_a_puzzle_without_ends_is_never_solved() -> None:
    empty = torch.full((16,), FREE)
    assert SMALL.violations(empty, empty) > 0


def test_violations_broadcast_over_particles() -> None:
    puzzle = SMALL.encode(QUESTION)
    answers = torch.stack([SMALL.encode(SHORTEST, answer=True), puzzle, puzzle])
    cloud = torch.stack([answers, answers.flip(0)])  # (2, 3, cell)
    found = SMALL.violations(puzzle.expand(2, 1, 16), cloud)
    assert found.shape == (2, 3)
    assert torch.equal(found[0], found[1].flip(0))
    assert found[0].tolist() == [int(SMALL.violations(puzzle, a)) for a in answers]


def test_given_cells_are_walls_and_ends() -> None:
    assert SMALL.given(SMALL.encode(QUESTION)).tolist() == [c in "#SG" for c in QUESTION]


@pytest.mark.parametrize("seed", [0, 1])
def test_generated_mazes_are_long_and_labelled(seed: int) -> None:
    puzzle, answer = MAZE.generate(seed)
    assert MAZE.is_solved(puzzle, answer)
    assert MAZE.shortest_length(puzzle) >= 110
    assert torch.equal(MAZE.answer(puzzle), answer)  # of all shortest ones that of the public rule
    assert torch.equal(MAZE.generate(seed)[1], answer)


def test_generated_walls_are_as_dense_as_the_public_ones() -> None:
    walls = torch.stack([MAZE.generate(seed)[0] == WALL for seed in range(12)]).float().mean()
    assert 0.34 < walls < 0.40  # .371 +- .027 a maze in Maze-Hard


def test_generator_fits_small_sides_and_says_when_it_cannot() -> None:
    puzzle, answer = Maze(6).generate(0)
    assert Maze(6).is_solved(puzzle, answer)
    with pytest.raises(SettingsError, match="got 5"):
        Maze(2).generate(0, at_least=5)
    with pytest.raises(SettingsError, match="at least 2"):
        Maze(1)


def walked(ids: list[int], side: int) -> list[int]:
    """The rule by hand: from S, the first of down, left, right, up that is nearer to G."""
    left = steps_from(ids, side, ids.index(GOAL))
    answer, cell = list(ids), ids.index(START)
    while left.get(cell, 0) > 1:
        up, down, west, east = (
            other if other in neighbours(cell, side) else None
            for other in (cell - side, cell + side, cell - 1, cell + 1)
        )
        ways = [c for c in (down, west, east, up) if left.get(c) == left[cell] - 1]  # type: ignore[arg-type]
        cell = ways[0]  # type: ignore[assignment]
        answer[cell] = PATH
    return answer


@given(ids=mazes())
@settings(deadline=None)
def test_the_answer_is_the_rule_walked_by_hand(ids: list[int]) -> None:
    puzzle = torch.tensor(ids, dtype=torch.uint8)
    answer = SMALL.answer(puzzle)
    assert answer.tolist() == walked(ids, 4)
    assert answer.dtype == puzzle.dtype
    assert bool(SMALL.is_solved(puzzle, answer)) == (int(SMALL.shortest_length(puzzle)) > 0)
    both = torch.stack([puzzle, torch.full_like(puzzle, FREE)])
    assert torch.equal(SMALL.answer(both)[0], answer)
    assert torch.equal(SMALL.answer(both)[1], both[1])


def test_the_public_labels_follow_the_rule() -> None:
    path = Path(__file__).parents[3] / "shared/data/maze-hard/train.csv.gz"
    if not path.exists():
        pytest.skip("the public mazes are not beside the repository")
    mazes = read(path)
    assert torch.equal(MAZE.answer(mazes.questions), mazes.labels())


def test_symmetries_keep_to_the_rule_where_the_answer_does() -> None:
    pairs = [Maze(9).generate(seed) for seed in range(40)]
    questions, answers = (torch.stack(part) for part in zip(*pairs, strict=True))
    moved, labels = Maze(9).symmetries(questions, answers, torch.Generator().manual_seed(0))
    assert torch.equal(labels, Maze(9).answer(moved))
    square, other = Maze(2).encode("S  G"), Maze(2).encode("So G", answer=True)
    flipped = Maze(2).symmetries(
        square.expand(200, -1), other.expand(200, -1), torch.Generator().manual_seed(0)
    )
    assert Maze(2).is_solved(*flipped).all()
    assert not torch.equal(flipped[1], Maze(2).answer(flipped[0]))  # moved, not drawn anew
    ends = {(row.index(START), row.index(GOAL)) for row in flipped[0].tolist()}
    assert ends == {(0, 3), (3, 0), (1, 2), (2, 1)}


def test_symmetries_exchange_the_ends_of_half_the_mazes() -> None:
    """These walls look different from every side, so it shows which end is which."""
    maze, count = Maze(3), 400
    puzzle = maze.encode("S # ##  G")
    views = [torch.from_numpy(row.copy()) for row in _turned(puzzle[None])]
    moved, _ = maze.symmetries(
        puzzle.expand(count, -1), puzzle.expand(count, -1), torch.Generator().manual_seed(0)
    )
    swap = torch.tensor([0, WALL, FREE, GOAL, START, PATH], dtype=torch.uint8)
    straight = torch.stack([(moved == view).all(-1) for view in views]).sum(0)
    exchanged = torch.stack([(moved == swap[view.long()]).all(-1) for view in views]).sum(0)
    assert ((straight + exchanged) == 1).all()
    assert abs(int(exchanged.sum()) - count / 2) < 5 * math.sqrt(count / 4)


def test_fresh_mazes() -> None:
    """Hard enough, labelled by the rule, different, and a function of the generator."""
    maze = Maze(9)
    questions, answers = maze.fresh(300, torch.Generator().manual_seed(3))
    assert questions.shape == answers.shape == (300, 81)
    assert maze.well_formed(questions).all()
    assert maze.is_solved(questions, answers).all()
    assert torch.equal(answers, maze.answer(questions))
    assert int(maze.shortest_length(questions).min()) == maze_generate.least_cells(9)
    assert len({row.numpy().tobytes() for row in questions}) == 300
    again, _ = maze.fresh(20, torch.Generator().manual_seed(3))
    assert torch.equal(again, questions[:20])
    share = (questions == WALL).float().mean()
    one_by_one = torch.stack([maze.generate(seed)[0] for seed in range(300)])
    assert abs(float(share - (one_by_one == WALL).float().mean())) < 0.02


def test_fresh_mazes_say_when_they_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maze_generate, "TRIES", 300)
    with pytest.raises(SettingsError, match="fits 4x4"):
        maze_generate.fresh(4, 1, torch.Generator(), at_least=17)


def test_moved_ends() -> None:
    """The walls stay up to a symmetry, the ends move, and two thirds of the paths are long."""
    maze = Maze(9)
    known, _ = maze.fresh(1, torch.Generator().manual_seed(3))
    questions, answers = maze.moved(known.expand(900, -1), torch.Generator().manual_seed(0))
    assert maze.well_formed(questions).all()
    assert maze.is_solved(questions, answers).all()
    assert torch.equal(answers, maze.answer(questions))
    views = {row.tobytes() for row in _turned(known == WALL)}
    assert {row.tobytes() for row in (questions == WALL).numpy()} == views
    long = maze.shortest_length(questions) >= maze_generate.least_cells(9)
    assert 0.65 < float(long.float().mean()) < 0.85
    assert len({row.tobytes() for row in questions.numpy()}) > 300


def test_windows_are_pieces_of_the_maze() -> None:
    maze = Maze(6)
    known, _ = maze.fresh(1, torch.Generator().manual_seed(1))
    questions, answers = maze.moved(known.expand(400, -1), torch.Generator().manual_seed(0), 4)
    assert Maze(4).is_solved(questions, answers).all()
    squares = {
        bytes(view.reshape(6, 6)[row : row + 4, column : column + 4].tobytes())
        for view in _turned(known == WALL) for row in range(3) for column in range(3)
    }  # fmt: skip
    found = {row.tobytes() for row in (questions == WALL).numpy()}
    assert found <= squares
    assert len(found) > len(squares) // 2


def _turned(grid: torch.Tensor) -> list[numpy.ndarray]:
    """The 8 views of one square grid (1, cell), each flat."""
    side = math.isqrt(grid.numel())
    square = grid.numpy().reshape(side, side)
    faces = [numpy.rot90(face, turns) for face in (square, square.T) for turns in range(4)]
    return [numpy.ascontiguousarray(face).reshape(-1) for face in faces]

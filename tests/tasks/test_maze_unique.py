"""Mazes with exactly one shortest path: the count, both generators, and what follows from it."""

import numpy
import pytest
import torch
from torch import Tensor

from tiltrm.tasks import Maze, by_name, maze_generate, maze_search
from tiltrm.tasks.maze_format import FREE, GOAL, START, WALL

SMALL = Maze(6, unique=True)
UNIQUE = Maze(30, unique=True)


def plain_count(maze: list[int], side: int) -> int:
    """All shortest paths, by walking every one of them."""

    def beside(cell: int) -> list[int]:
        row, column = divmod(cell, side)
        near = ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
        inside = [r * side + c for r, c in near if 0 <= r < side and 0 <= c < side]
        return [other for other in inside if maze[other] != WALL]

    paths = [[maze.index(START)]]
    seen = {maze.index(START)}
    while paths:
        arrived = [path for path in paths if maze[path[-1]] == GOAL]
        if arrived:
            return len(arrived)
        paths = [[*path, cell] for path in paths for cell in beside(path[-1]) if cell not in seen]
        seen |= {path[-1] for path in paths}
    return 0


def random_mazes(count: int, side: int) -> Tensor:
    chance = numpy.random.default_rng(0)
    mazes = numpy.where(chance.random((count, side * side)) < 0.35, WALL, FREE)
    for maze in mazes:
        maze[chance.choice(side * side, 2, replace=False)] = START, GOAL
    return torch.from_numpy(mazes).to(torch.uint8)


def test_counts_are_those_of_all_paths() -> None:
    mazes = random_mazes(300, 5)
    truth = [plain_count(maze.tolist(), 5) for maze in mazes]
    assert {0, 1, 2} <= set(truth)
    assert max(truth) > 2
    grids = mazes.view(-1, 5, 5)
    counts = maze_search.path_counts(grids == START, grids != WALL)[grids == GOAL]
    assert counts.tolist() == [min(2, count) for count in truth]
    assert Maze(5).has_one_shortest(mazes).tolist() == [count == 1 for count in truth]


@pytest.mark.parametrize("seed", range(3))
def test_generated_mazes_have_one_long_shortest_path(seed: int) -> None:
    puzzle, answer = UNIQUE.generate(seed)
    assert UNIQUE.has_one_shortest(puzzle)
    assert plain_count(puzzle.tolist(), 30) == 1
    assert int(UNIQUE.shortest_length(puzzle)) >= 110
    assert UNIQUE.is_solved(puzzle, answer)
    assert torch.equal(UNIQUE.generate(seed)[0], puzzle)


def test_only_ties_are_closed() -> None:
    """Walls are added, never removed; the length stays; a maze without ties stays as it is."""
    mazes = Maze(8).fresh(60, torch.Generator().manual_seed(4))[0]
    alone = Maze(8).has_one_shortest(mazes)
    assert alone.any()
    assert not alone.all()
    closed = maze_generate.without_ties(mazes, 8, torch.Generator().manual_seed(5))
    assert Maze(8).has_one_shortest(closed).all()
    assert torch.equal(Maze(8).shortest_length(closed), Maze(8).shortest_length(mazes))
    assert ((closed == mazes) | ((closed == WALL) & (mazes == FREE))).all()
    assert torch.equal(closed[alone], mazes[alone])
    other = maze_generate.without_ties(mazes, 8, torch.Generator().manual_seed(6))
    assert not torch.equal(other, closed)  # the path that is left is a random one


def test_other_mazes_are_as_they_were() -> None:
    plain = [Maze(30).generate(seed)[0] for seed in range(2)]
    assert not all(bool(Maze(30).has_one_shortest(maze)) for maze in plain)


def test_batches_of_fresh_mazes() -> None:
    generator = torch.Generator().manual_seed(0)
    questions, answers = SMALL.fresh(40, generator)
    assert SMALL.has_one_shortest(questions).all()
    assert SMALL.is_solved(questions, answers).all()
    least = maze_generate.least_cells(6)
    assert (SMALL.shortest_length(questions) >= least).all()
    others = Maze(6).fresh(40, torch.Generator().manual_seed(0))[0]
    assert not SMALL.has_one_shortest(others).all()


def test_the_only_solution_moves_along_with_a_symmetry() -> None:
    """So views are allowed, and a right answer is the label."""
    questions, answers = SMALL.fresh(40, torch.Generator().manual_seed(1))
    symmetry = SMALL.symmetry(40, torch.Generator().manual_seed(2))
    moved = symmetry.apply(questions)
    assert torch.equal(SMALL.answer(moved), symmetry.apply(answers))
    assert SMALL.defaults.symmetric_views
    assert not Maze(6).defaults.symmetric_views


def test_the_name() -> None:
    assert by_name("maze-unique") == UNIQUE
    assert by_name("maze") != UNIQUE
    assert SMALL.name == "maze6-unique"

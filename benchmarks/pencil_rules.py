"""Cost of the rules of pencil puzzles: operations, waits for the device and milliseconds a call.

`python -m benchmarks.pencil_rules --device cuda` prints a table for batches of generated puzzles
of the five types in turn, of whose answers three in four have wrong cells. A GPU with few boards
takes as long as it takes to start the operations. Needs OR-Tools.
"""

import argparse
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.clock import seconds
from tiltrm.tasks.pencil import PENCIL
from tiltrm.tasks.pencil.puzzle import SUDOKU

SHARES = (0.0, 0.03, 0.1, 0.3)  # of wrong cells
GENERATED = 40
CALLS = 30


class Operations(TorchDispatchMode):
    """Counts operations that are no views, and those that wait for a device.

    `Tensor.tolist` waits as well, and is not seen.
    """

    WAITING = ("nonzero", "unique", "_unique", "equal", "masked_select", "_local_scalar_dense")

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count, self.waits = 0, 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = function._schema.name.removeprefix("aten::")
        self.count += not function.is_view
        self.waits += name.startswith(self.WAITING)
        return function(*args, **(kwargs or {}))


def batch(boards: int) -> tuple[Tensor, Tensor]:
    """Questions and answers, (board, cell) each."""
    made = [PENCIL.generate(seed) for seed in range(min(boards, GENERATED))]
    rows = torch.arange(boards) % len(made)
    questions, answers = (torch.stack(each)[rows] for each in zip(*made, strict=True))
    generator = torch.Generator().manual_seed(0)
    share = torch.tensor(SHARES)[torch.randint(len(SHARES), (boards, 1), generator=generator)]
    wrong = torch.rand(answers.shape, generator=generator) < share
    digits = torch.randint(2, 11, answers.shape, generator=generator)
    marks = torch.randint(11, 14, answers.shape, generator=generator)
    is_sudoku = (PENCIL.types(questions) == SUDOKU.number)[:, None]
    other = torch.where(is_sudoku, digits, marks).to(answers.dtype)
    return questions, torch.where(wrong, other, answers)


def row(boards: int, device: torch.device) -> str:
    """A line of the table; the time is that of the fastest call."""
    questions, answers = (each.to(device) for each in batch(boards))
    PENCIL.is_solved(questions, answers)
    with Operations() as found:
        PENCIL.is_solved(questions, answers)
    times = [seconds(lambda: PENCIL.is_solved(questions, answers), device) for _ in range(CALLS)]
    return f"| {boards} | {found.count} | {found.waits} | {1e3 * min(times):.2f} |"


def main() -> None:
    """The command of the docstring."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--boards", type=int, nargs="+", default=[1, 16, 512, 8192])
    given = parser.parse_args()
    print("| boards | operations | waits | ms a call |\n" + "|---" * 4 + "|")
    with torch.inference_mode():
        for boards in given.boards:
            print(row(boards, torch.device(given.device)), flush=True)


if __name__ == "__main__":
    main()

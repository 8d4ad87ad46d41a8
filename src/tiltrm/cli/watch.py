"""The cloud of one puzzle, drawn in place after every outer step."""

import shutil
import sys

import torch
from torch import Tensor

from tiltrm.cli.show import rendered
from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.result import beliefs
from tiltrm.model.base import RecursiveModel, evaluations_per_step
from tiltrm.tasks import Task

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
LINES = 4  # of the history, besides the last step of every cloud


class LiveCloud:
    """Called with every StepInfo. It redraws on a terminal; elsewhere `end` prints a few lines."""

    def __init__(
        self, task: Task, model: RecursiveModel, *, colour: bool, live: bool | None = None
    ) -> None:
        self.task, self.model, self.colour = task, model, colour
        self.live = sys.stdout.isatty() if live is None else live
        self.evaluations = 0
        self.height = 0  # lines on the screen now
        self.steps: list[tuple[int, str]] = []  # (particles, line)

    def __enter__(self) -> "LiveCloud":
        self._write(HIDE)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(SHOW)

    def __call__(self, info: StepInfo) -> None:
        """Draw this step over the last one."""
        particles = info.log_weights.shape[1]
        self.evaluations += particles * evaluations_per_step(self.model)
        self.steps.append((particles, self._line(info, particles)))
        if not self.live:
            return
        lines = [self.steps[-1][1]]
        if self.task.side + 6 < shutil.get_terminal_size().lines:  # a taller frame would scroll
            tokens, share = leading(info, self.model.vocabulary)
            puzzle = info.context.problem.tokens[0].cpu()
            grid = rendered(self.task, puzzle, tokens, share, colour=self.colour)
            lines = [*grid.split("\n"), *lines]
        self._draw(lines)

    def end(self) -> None:
        """Make room for the answer: erase the drawing, or print the steps where there is none."""
        if self.live:
            self._draw([])
        else:
            print("\n".join(self.history()), flush=True)

    def history(self) -> list[str]:
        """A few lines: the last step of every cloud, and some on the way."""
        count = len(self.steps)
        some = {count * k // LINES - 1 for k in range(1, LINES + 1)} - {-1}
        last = {size: place for place, (size, _) in enumerate(self.steps)}
        kept = some | set(last.values())
        return [self.steps[place][1] for place in sorted(kept)]

    def _line(self, info: StepInfo, particles: int) -> str:
        clock = info.context.clock
        best = float(torch.sigmoid(info.context.halt_logit()).nan_to_num(0.0).max())
        return (
            f"step {clock.step:3d} of {clock.steps}  particles {particles:3d}  "
            f"ESS {float(info.ess[0]):5.1f}  best halting {best:.3f}  "
            f"{self.evaluations:,} evaluations"
        )

    def _draw(self, lines: list[str]) -> None:
        """These lines instead of those on the screen, in one write so that nothing flickers."""
        back = f"\x1b[{self.height}A\r\x1b[J" if self.height else ""
        self._write(back + "".join(f"{line}\n" for line in lines))
        self.height = len(lines)

    def _write(self, text: str) -> None:
        if self.live:
            sys.stdout.write(text)
            sys.stdout.flush()


def leading(info: StepInfo, vocabulary: int) -> tuple[Tensor, Tensor]:
    """Every cell's likeliest token, and the share of belief in it: (cell,) each."""
    share, token = beliefs(info, vocabulary).max(-1)
    return token.to(torch.uint8).cpu(), share.float().cpu()

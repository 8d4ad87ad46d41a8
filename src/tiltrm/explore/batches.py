"""The records of a staged search: a batch between two steps, a step that has begun, its outcome."""

from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.explore.cloud import Cloud, Problem, StepInfo
from tiltrm.model.base import State

Columns = dict[str, Tensor]  # the fields of SearchResult but `decided_by`


class Batch(NamedTuple):
    """Undecided puzzles that have taken the same steps."""

    ids: Tensor  # (puzzle,) the caller's numbers of the puzzles
    problem: Problem
    cloud: Cloud | None = None  # None before the first step
    stage: int = 0
    stage_step: int = 0  # steps taken in this stage
    steps: int = 0  # steps taken in all stages
    evaluations: int = 0  # spent on each puzzle
    seconds: float = 0.0  # the same; puzzles that step together share the time of the step

    def part(self, puzzles: slice | Tensor) -> "Batch":
        """Some of its puzzles."""
        cloud = None if self.cloud is None else self.cloud.part(puzzles)
        return self._replace(ids=self.ids[puzzles], problem=self.problem.part(puzzles), cloud=cloud)

    def split(self, size: int) -> list["Batch"]:
        """The same puzzles in batches of at most `size`."""
        return [self.part(slice(i, i + size)) for i in range(0, len(self.ids), size)]


class OpenStep(NamedTuple):
    """An outer step that has begun: consecutive particles were proposed, others may be left."""

    batch: Batch  # with the problem and the cloud of this step
    proposed: tuple[State, ...] = ()  # (puzzle, some particles, position, width) each

    @property
    def done(self) -> int:
        """Particles that were proposed."""
        return sum(part.answer.shape[1] for part in self.proposed)

    @property
    def left(self) -> int:
        """Particles that were not."""
        return len(self.batch.problem.particles) - self.done

    @property
    def state(self) -> State:
        """The proposed particles."""
        if len(self.proposed) == 1:
            return self.proposed[0]
        answers, latents = zip(*self.proposed, strict=True)
        return State(torch.cat(answers, 1), torch.cat(latents, 1))


class Finished(NamedTuple):
    """Results of puzzles that are done, a row each."""

    ids: Tensor  # (row,)
    decided_by: str  # the name of the stopping rule, UNDECIDED or TIMED_OUT
    columns: Columns


class StepResult(NamedTuple):
    """The outcome of one outer step of a batch."""

    rest: Batch | None  # None where all puzzles are done
    finished: list[Finished]
    cloud: Cloud  # after resampling, of all puzzles of the batch
    info: StepInfo

"""A supervision step as two CUDA graphs, so that Python does not launch every kernel.

The first graph is an outer step without a gradient, replayed depth - 1 times. The second graph is
the last outer step with its loss and backward pass. Both read and write fixed memory, so a step
begins by copying its rows there. The weights may change in place between steps.
"""

import torch
from torch import Tensor, nn

from tiltrm.model.base import State
from tiltrm.model.trm import TRM
from tiltrm.train.carry import Carry
from tiltrm.train.settings import TrainSettings
from tiltrm.train.supervision import AddNoise, SupervisionResult, embed, last_step

WARM_UP = 3  # rounds before recording: they compile kernels and set up libraries


class CudaGraphStep:
    """`supervise` and its backward pass for batches of one size, recorded from the first batch."""

    def __init__(
        self, model: TRM, carry: Carry, settings: TrainSettings, dtype: torch.dtype,
        puzzle_rows: nn.Parameter | None = None,
    ) -> None:  # fmt: skip
        self.model, self.settings, self.dtype = model, settings, dtype
        self.puzzle_rows = puzzle_rows  # of every batch in turn, in the same memory
        self.questions, self.labels = carry.questions.clone(), carry.labels.clone()
        self.state = State(carry.state.answer.clone(), carry.state.latent.clone())
        own = () if puzzle_rows is None else (puzzle_rows,)
        self.parameters = [p for p in (*model.parameters(), *own) if p.requires_grad]
        # Cast weights that autocast kept would belong to the recording, and grow stale.
        with torch.autocast("cuda", dtype, cache_enabled=False):
            self.inputs = self._embedded()
            self._warm_up()
            self.outer, self.last = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.outer):
                self._outer_step()
            with torch.cuda.graph(self.last):
                self.result, self.loss = self._last_step()
        self.gradients = [p.grad for p in self.parameters]

    def __call__(
        self, carry: Carry, depth: int, add_noise: AddNoise
    ) -> tuple[SupervisionResult, Tensor]:
        """The result and the mean loss; the gradients are in the parameters.

        The next call overwrites all of them.
        """
        memory = (self.questions, self.labels, *self.state)
        for kept, new in zip(memory, (carry.questions, carry.labels, *carry.state), strict=True):
            kept.copy_(new)
        with torch.autocast("cuda", self.dtype, cache_enabled=False):
            self.inputs.copy_(self._embedded())
        for _ in range(depth - 1):
            self._add_noise(add_noise)
            self.outer.replay()
        self._add_noise(add_noise)
        self.last.replay()
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient  # the optimiser drops them after every step
        return self.result, self.loss

    @torch.no_grad()
    def _embedded(self) -> Tensor:
        return embed(self.model, self.questions, self.dtype, self.puzzle_rows)

    @torch.no_grad()
    def _outer_step(self) -> None:
        """One outer step, in place."""
        for kept, new in zip(self.state, self.model.step(self.inputs, self.state), strict=True):
            kept.copy_(new)

    def _last_step(self) -> tuple[SupervisionResult, Tensor]:
        inputs = embed(self.model, self.questions, self.dtype, self.puzzle_rows)
        result = last_step(self.model, inputs, self.state, self.labels, self.settings)
        loss = result.loss.mean()
        loss.backward()
        state = State(result.state.answer.detach(), result.state.latent.detach())
        return result._replace(state=state, loss=result.loss.detach()), loss.detach()

    def _add_noise(self, add_noise: AddNoise) -> None:
        new = add_noise(self.state)
        if new is not self.state:
            self.state.latent.copy_(new.latent)

    def _warm_up(self) -> None:
        """Changes nothing but the state, which every call overwrites."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self._outer_step()
                self._last_step()
        torch.cuda.current_stream().wait_stream(side)
        for parameter in self.parameters:
            parameter.grad = None  # so that the recording makes its own

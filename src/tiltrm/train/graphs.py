"""A supervision step as two CUDA graphs, so that Python no longer launches every kernel.

The first graph is an outer step without a gradient, replayed as often as the depth asks. The second
is the last outer step with its loss and backward pass. Both read and write memory that stays where
it is, so a step begins by copying its rows there. The weights may change in place between steps.
"""

import torch
from torch import Tensor

from tiltrm.model.base import State
from tiltrm.model.trm import TRM
from tiltrm.train.carry import Carry
from tiltrm.train.settings import Settings
from tiltrm.train.supervision import Disturb, Outcome, conclude, embed

WARM = 3  # rounds before recording: kernels are compiled and libraries set up in them


class Recorded:
    """`supervise` and its backward pass for batches of one size, recorded at the first of them."""

    def __init__(self, model: TRM, live: Carry, settings: Settings, dtype: torch.dtype) -> None:
        self.model, self.settings, self.dtype = model, settings, dtype
        self.questions, self.labels = live.questions.clone(), live.labels.clone()
        self.state = State(live.state.answer.clone(), live.state.latent.clone())
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        # Cast weights that autocast kept would belong to the recording, and grow stale.
        with torch.autocast("cuda", dtype, cache_enabled=False):
            self.inputs = self._embedded()
            self._warm_up()
            self.outer, self.last = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.outer):
                self._advance()
            with torch.cuda.graph(self.last):
                self.outcome, self.loss = self._learn()
        self.gradients = [p.grad for p in self.parameters]

    def __call__(self, live: Carry, depth: int, disturb: Disturb) -> tuple[Outcome, Tensor]:
        """The outcome and the mean loss; the gradients are in the parameters.

        All of them are overwritten by the next call.
        """
        for kept, new in zip(
            self._memory(), (live.questions, live.labels, *live.state), strict=True
        ):
            kept.copy_(new)
        with torch.autocast("cuda", self.dtype, cache_enabled=False):
            self.inputs.copy_(self._embedded())
        for _ in range(depth - 1):
            self._disturb(disturb)
            self.outer.replay()
        self._disturb(disturb)
        self.last.replay()
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient  # the optimiser lets go of them after every step
        return self.outcome, self.loss

    def _memory(self) -> tuple[Tensor, ...]:
        return self.questions, self.labels, *self.state

    @torch.no_grad()
    def _embedded(self) -> Tensor:
        return embed(self.model, self.questions, self.dtype)

    @torch.no_grad()
    def _advance(self) -> None:
        """One outer step, in place."""
        for kept, new in zip(self.state, self.model.step(self.inputs, self.state), strict=True):
            kept.copy_(new)

    def _learn(self) -> tuple[Outcome, Tensor]:
        inputs = embed(self.model, self.questions, self.dtype)
        outcome = conclude(self.model, inputs, self.state, self.labels, self.settings)
        loss = outcome.loss.mean()
        loss.backward()
        state = State(outcome.state.answer.detach(), outcome.state.latent.detach())
        return outcome._replace(state=state, loss=outcome.loss.detach()), loss.detach()

    def _disturb(self, disturb: Disturb) -> None:
        new = disturb(self.state)
        if new is not self.state:
            self.state.latent.copy_(new.latent)

    def _warm_up(self) -> None:
        """Leaves no trace but in the state, which every call fills anew."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM):
                self._advance()
                self._learn()
        torch.cuda.current_stream().wait_stream(side)
        for parameter in self.parameters:
            parameter.grad = None  # so that the recording makes its own

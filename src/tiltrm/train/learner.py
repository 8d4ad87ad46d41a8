"""One training step, and everything it changes: weights, their average, moments, the carry."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from tiltrm import kernels
from tiltrm.cpu_precision import avoid_illegal_instructions
from tiltrm.data import Puzzles
from tiltrm.errors import DeviceError, SettingsError
from tiltrm.model.base import State, evaluations_per_step
from tiltrm.model.trm import TRM, Network, evaluation_flops
from tiltrm.train import batches, carry, distributed, optimiser
from tiltrm.train.carry import Carry, HaltingDraws
from tiltrm.train.cuda_graphs import CudaGraphStep
from tiltrm.train.distributed import World
from tiltrm.train.optimiser import EMA
from tiltrm.train.puzzle_table import PuzzleTable
from tiltrm.train.settings import TrainSettings
from tiltrm.train.state import TrainState
from tiltrm.train.supervision import AddNoise, SupervisionResult, latent_noise, supervise
from tiltrm.train.windows import windowed


class TrainStatistics(NamedTuple):
    """Means over some steps. `right` and `steps_at_halt` are NaN if no row halted in them."""

    loss: float
    right: float  # share of the rows that halted whose answer was right
    halt_accuracy: float  # how often sign(halt logit) told right from wrong
    halted: float  # share of rows
    steps_at_halt: float  # supervision steps of the rows that halted


class Learner:
    """The model in training. `step` depends on it, the step's number and the progress alone."""

    def __init__(
        self, settings: TrainSettings, puzzles: Puzzles, world: World, device: torch.device,
        names: tuple[str, ...] | None = None,
    ) -> None:  # fmt: skip
        _check_sizes(settings, puzzles)
        self.settings, self.world, self.device = settings, world, device
        self.dtype = choose_dtype(settings.precision, device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.model = TRM(settings.model, settings.initial_scale).to(device)
        self.model.task = settings.task
        self.model.puzzle_names = names
        self.table: PuzzleTable | None = None
        if settings.table.augmentations and names is not None:
            self.table = PuzzleTable(len(names), settings, world, device)
            self.model.puzzle_table = self.table.weights
        self.optimisers = optimiser.build_optimisers(self.model, settings)
        self.ema = EMA(list(self.model.parameters()), settings.ema)
        self.model.network = accelerate(self.model.network, device, compiled=settings.compile)
        self.use_graphs = device.type == "cuda"
        self.flops = 0.0  # of forward passes of the network, a backward one counted as two
        self.puzzles = puzzles
        self._use_window(batches.window_side(settings, 0.0))

    def _use_window(self, side: int) -> None:
        """Train on windows of this side from now on; 0: on whole puzzles."""
        self.window = side
        self.training_set = batches.training_set(
            self.puzzles, self.settings, self.device, side, self.model.puzzle_names
        )
        self.view = windowed(self.model, side) if side else self.model
        self.graph_step: CudaGraphStep | None = None
        self.reset_carry()

    @property
    def state(self) -> TrainState:
        """The objects that are saved and restored."""
        table = None if self.table is None else self.table.weights
        return TrainState(self.model, self.optimisers, self.ema, table)

    def reset_carry(self) -> None:
        """Begin with new puzzles in every row, as a resumed run does."""
        rows = self.world.rows(self.settings.batch)
        share = rows.stop - rows.start
        shown = (self.training_set.questions, self.training_set.labels)
        questions, labels = (each[:1].expand(share, -1) for each in shown)
        self.carry = carry.empty(questions, labels, self._start())

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Replace the weights, and their average, by others of the same sizes."""
        self.model.load_state_dict(weights)
        self.ema = EMA(list(self.model.parameters()), self.settings.ema)
        self.reset_carry()

    def step(self, number: int, progress: float) -> Tensor:
        """One supervision step of every row; returns the sums that `statistics` reads."""
        settings, world = self.settings, self.world
        side = batches.window_side(settings, progress)
        if side != self.window:
            self._use_window(side)
        seed = batches.batch_seed(settings.seed, number)
        generator = Generator(self.device).manual_seed(seed)
        rows = world.rows(settings.batch)
        questions, labels = (t[rows] for t in batches.draw(self.training_set, settings, generator))
        draws = carry.draw(settings.batch, settings.halt_max_steps, generator)
        depth = batches.draw_depth(settings.depth, progress, seed)
        add_noise = latent_noise(settings.noise, settings.batch, world, generator)
        before = carry.refill(self.carry, questions, labels, self._start())
        result, loss = self._forward_backward(before, depth, add_noise)
        self._update(number, progress)
        self.carry = carry.advance(
            before, result.state, result.halt_logit, HaltingDraws(*(t[rows] for t in draws)),
            max_steps=settings.halt_max_steps, exploration=settings.halt_exploration,
        )  # fmt: skip
        # A backward pass costs two forward ones, and only the last outer step has one.
        evaluations = settings.batch * (depth + 2) * evaluations_per_step(self.model)
        self.flops += evaluations * evaluation_flops(self.view.config)
        return self._sums(loss, result)

    def _forward_backward(
        self, before: Carry, depth: int, add_noise: AddNoise
    ) -> tuple[SupervisionResult, Tensor]:
        """The result of a supervision step and its mean loss; the gradients are in the weights."""
        rows = None if self.table is None else self.table.batch_rows
        if self.table is not None:
            self.table.gather(before.questions)
        if self.graph_step is None and self.use_graphs and kernels.fused(self.model):
            self.graph_step = CudaGraphStep(self.view, before, self.settings, self.dtype, rows)
        if self.graph_step is not None:
            return self.graph_step(before, depth, add_noise)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            result = supervise(self.view, before, depth, add_noise, self.settings, self.dtype, rows)
        loss = result.loss.mean()
        loss.backward()
        return result, loss.detach()

    def _update(self, number: int, progress: float) -> None:
        """Average the gradients over the processes; update the weights and then their average."""
        settings = self.settings
        distributed.average_gradients(self.model, self.world)
        if settings.clip > 0:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip)
        factor = optimiser.rate_factor(settings.schedule, number, progress)
        optimiser.set_rates(self.optimisers, factor)
        if self.table is not None:
            self.table.update(factor)
        for each in self.optimisers:
            each.step()
            each.zero_grad(set_to_none=True)
        self.ema.update(number)

    def _start(self) -> State:
        """The initial state of one row: (1, position, width)."""
        config = self.view.config
        probe = torch.empty(1, config.positions, config.width, device=self.device)
        return State(*(half.to(self.dtype) for half in self.model.start(probe)))

    def _sums(self, loss: Tensor, result: SupervisionResult) -> Tensor:
        halted = self.carry.halted
        judged = (result.halt_logit > 0) == result.right
        sums = [(result.right & halted), judged, halted, self.carry.steps * halted]
        return torch.stack([loss.float(), *(each.float().mean() for each in sums)])


def statistics(sums: Tensor) -> TrainStatistics:
    """The means over the sums that `Learner.step` returned: (step, 5) -> five numbers."""
    loss, right, judged, halted, steps = sums.double().mean(0)
    means = (loss, right / halted, judged, halted, steps / halted)  # 0 / 0 is NaN in torch
    return TrainStatistics(*(float(mean) for mean in means))


def choose_dtype(precision: str, device: torch.device) -> torch.dtype:
    """The type that states have and products are computed in; weights are always float32."""
    on_gpu = device.type == "cuda"
    if precision == "float32" and on_gpu:
        raise DeviceError(
            "precision must be bfloat16 or auto on a GPU, where the kernels compute in it, got "
            "float32; train with --device cpu for float32"
        )
    if on_gpu or precision == "bfloat16":
        if not on_gpu:
            avoid_illegal_instructions()
        return torch.bfloat16
    return torch.float32


def accelerate(network: Network, device: torch.device, *, compiled: bool) -> Network:
    """Fused kernels where this device runs them, else a compiled network on any other GPU.

    On a CPU it is compiled if asked for: once for every batch size, with and without a gradient.
    """
    on_gpu = device.type == "cuda"
    if on_gpu and kernels.available() and not kernels.interpreted():
        return kernels.fuse(network)
    if on_gpu or compiled:
        torch._dynamo.config.recompile_limit = max(64, torch._dynamo.config.recompile_limit)
        network.compile(dynamic=False)
    return network


def _check_sizes(settings: TrainSettings, puzzles: Puzzles) -> None:
    cells = puzzles.task.cells - settings.model.id_cells
    sizes = {"cells": cells, "vocabulary": puzzles.task.vocabulary}
    for name, wanted in sizes.items():
        got = getattr(settings.model, name)
        if wanted != got:
            raise SettingsError(
                f"model.{name} must be {wanted} for the task {puzzles.task.name}, got {got}; "
                "choose a preset of this task"
            )

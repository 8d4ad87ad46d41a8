"""What a training step changes: weights, their average, moments and the carry."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from tiltrm import kernels
from tiltrm.data import Puzzles
from tiltrm.errors import SettingsError
from tiltrm.model.base import State, evaluations_per_step
from tiltrm.model.trm import TRM, Network, evaluation_flops, windowed
from tiltrm.train import batches, carry, distributed, optimiser
from tiltrm.train.carry import Carry
from tiltrm.train.distributed import World
from tiltrm.train.ema import EMA
from tiltrm.train.graphs import Recorded
from tiltrm.train.settings import Settings
from tiltrm.train.state import Live
from tiltrm.train.supervision import Disturb, Outcome, latent_noise, supervise


class Statistics(NamedTuple):
    """Means over some steps; NaN where no row halted in them."""

    loss: float
    right: float  # share of the rows that halted whose answer was right
    halt_accuracy: float  # how often sign(halt logit) told right from wrong
    halted: float  # share of rows
    steps_at_halt: float  # supervision steps of the rows that halted


class Learner:
    """Everything that learns. `step` is a function of it, the step's number and the progress."""

    def __init__(
        self, settings: Settings, puzzles: Puzzles, world: World, device: torch.device
    ) -> None:
        _check_sizes(settings, puzzles)
        self.settings, self.world, self.device = settings, world, device
        self.dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.model = TRM(settings.model, settings.initial_scale).to(device)
        self.model.task = settings.task
        self.optimisers = optimiser.build(self.model, settings)
        self.ema = EMA(list(self.model.parameters()), settings.ema)
        self.model.network = accelerate(self.model.network, device)
        self.may_record = device.type == "cuda"
        self.flops = 0.0  # of forward passes of the network, a backward one counted as two
        self.puzzles = puzzles
        self._look_at(batches.window(settings, 0.0))

    def _look_at(self, window: int) -> None:
        """From now on, train on windows of this side; 0: on whole puzzles."""
        self.window = window
        self.source = batches.source(self.puzzles, self.settings, self.device, window)
        self.view = windowed(self.model, window) if window else self.model
        self.recorded: Recorded | None = None
        self.restart()

    @property
    def live(self) -> Live:
        """What is saved and restored."""
        return Live(self.model, self.optimisers, self.ema)

    def restart(self) -> None:
        """Begin with new puzzles in every row, as a resumed run does."""
        rows = self.world.rows(self.settings.batch)
        share = rows.stop - rows.start
        questions, labels = (t[:1].expand(share, -1) for t in self.source[1:])
        self.carry = carry.empty(questions, labels, self._start())

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Other weights of the same sizes, in the model and in the average."""
        self.model.load_state_dict(weights)
        self.ema = EMA(list(self.model.parameters()), self.settings.ema)
        self.restart()

    def step(self, number: int, progress: float) -> Tensor:
        """One supervision step of every row; returns the sums that `statistics` reads."""
        settings, world = self.settings, self.world
        if batches.window(settings, progress) != self.window:
            self._look_at(batches.window(settings, progress))
        seed = batches.batch_seed(settings.seed, number)
        generator = Generator(self.device).manual_seed(seed)
        rows = world.rows(settings.batch)
        questions, labels = (t[rows] for t in batches.draw(self.source, settings, generator))
        chance = carry.draw(settings.batch, settings.halt_max_steps, generator)
        depth = batches.draw_depth(settings.depth, progress, seed)
        disturb = latent_noise(settings.noise, settings.batch, world, generator)
        live = carry.refill(self.carry, questions, labels, self._start())
        outcome, loss = self._learn(live, depth, disturb)
        self._update(number, progress)
        self.carry = carry.advance(
            live, outcome.state, outcome.halt_logit, carry.Draws(*(t[rows] for t in chance)),
            max_steps=settings.halt_max_steps, exploration=settings.halt_exploration,
        )  # fmt: skip
        # A backward pass costs two forward ones, and only the last outer step has one.
        evaluations = settings.batch * (depth + 2) * evaluations_per_step(self.model)
        self.flops += evaluations * evaluation_flops(self.view.config)
        return self._sums(loss, outcome)

    def _learn(self, live: Carry, depth: int, disturb: Disturb) -> tuple[Outcome, Tensor]:
        """The outcome of a supervision step and its mean loss; the gradients are in the weights."""
        if self.recorded is None and self.may_record and kernels.fused(self.model):
            self.recorded = Recorded(self.view, live, self.settings, self.dtype)
        if self.recorded is not None:
            return self.recorded(live, depth, disturb)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            outcome = supervise(self.view, live, depth, disturb, self.settings, self.dtype)
        loss = outcome.loss.mean()
        loss.backward()
        return outcome, loss.detach()

    def _update(self, number: int, progress: float) -> None:
        """Weights and their average follow the gradients, which every process has a part of."""
        settings = self.settings
        distributed.average_gradients(self.model, self.world)
        if settings.clip > 0:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip)
        optimiser.set_rates(
            self.optimisers, optimiser.rate_factor(settings.schedule, number, progress)
        )
        for each in self.optimisers:
            each.step()
            each.zero_grad(set_to_none=True)
        self.ema.update(number)

    def _start(self) -> State:
        """The initial state of one row: (1, position, width)."""
        config = self.view.config
        probe = torch.empty(1, config.positions, config.width, device=self.device)
        return State(*(half.to(self.dtype) for half in self.model.start(probe)))

    def _sums(self, loss: Tensor, outcome: Outcome) -> Tensor:
        halted = self.carry.halted
        judged = (outcome.halt_logit > 0) == outcome.right
        sums = [(outcome.right & halted), judged, halted, self.carry.steps * halted]
        return torch.stack([loss.float(), *(each.float().mean() for each in sums)])


def statistics(sums: Tensor) -> Statistics:
    """The means over steps of what `Learner.step` returned: (step, 5) -> five numbers."""
    loss, right, judged, halted, steps = sums.double().mean(0)
    return Statistics(*(float(x) for x in (loss, right / halted, judged, halted, steps / halted)))


def accelerate(network: Network, device: torch.device) -> Network:
    """Fused kernels where this device runs them, else a compiled network on any other GPU."""
    if device.type != "cuda":
        return network
    if kernels.available() and not kernels.interpreted():
        return kernels.fuse(network)
    network.compile(dynamic=False)
    return network


def _check_sizes(settings: Settings, puzzles: Puzzles) -> None:
    for name in ("cells", "vocabulary"):
        wanted, got = getattr(puzzles.task, name), getattr(settings.model, name)
        if wanted != got:
            raise SettingsError(
                f"model.{name} must be {wanted} for the task {puzzles.task.name}, got {got}; "
                "choose a preset of this task"
            )

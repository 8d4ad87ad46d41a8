"""The training run: stretches of steps, with evaluations, scans and saves between them."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.errors import DegenerateError, DeviceError, SettingsError
from tiltrm.explore.batching import total_memory
from tiltrm.model import native
from tiltrm.model.base import evaluations_per_step
from tiltrm.model.trm import TRM, evaluation_flops
from tiltrm.train import distributed, state
from tiltrm.train.batches import batch_seed
from tiltrm.train.best_weights import card_text, describe_origin, recover_best, save_best
from tiltrm.train.clock import TrainingClock
from tiltrm.train.learner import Learner, choose_dtype, statistics
from tiltrm.train.log import SCANS, Evaluation, RunLog
from tiltrm.train.scan import scan
from tiltrm.train.settings import TrainSettings, differences
from tiltrm.train.tensorboard import TensorBoardWriter
from tiltrm.train.validation import ValidationReport, validate

LOG_EVERY = 10  # steps of a stretch; reading the loss more often would make the device wait
PATIENCE = 5.0  # seconds after which a stretch of slow steps ends early
EXPLODED = 4.0  # a loss this many times that of a uniform guess stops the run

Stop = Callable[[], bool]


class Trainer:
    """A training run: build it, perhaps `resume`, then `run`."""

    def __init__(
        self, settings: TrainSettings, train: Puzzles, val: Puzzles, folder: Path, *,
        device: str = "auto", command: Sequence[str] = (), tensorboard: bool = False,
        names: tuple[str, ...] | None = None, held_out: bool = True,
    ) -> None:  # fmt: skip
        """names: of the puzzle ids, for ARC. held_out: whether `val` is apart from `train`; if it
        is not, `best/` gets the newest weights, not the best ones.
        """
        for puzzles in (train, val):
            puzzles.labels()  # raises if there are none
        self.settings, self.val, self.folder = settings, val, folder
        self.world, self.device = distributed.join(device)
        require_fitting(settings, self.world.size, self.device)
        self.held_out = held_out
        self.learner = Learner(settings, train, self.world, self.device, names)
        self.clock = TrainingClock(settings, self.world, self.device)
        rows = torch.linspace(0, len(train) - 1, min(len(val), len(train))).long()
        self.train_sample = train.take(rows)  # from all parts, since files may be sorted by type
        self.best = -1.0
        self.resumed = False
        self.origin = describe_origin(command, train, val, self.device, self.world.size)
        leads = self.world.is_leader
        self.log = RunLog(
            folder, leads, TensorBoardWriter(folder) if tensorboard and leads else None
        )

    def resume(self) -> bool:
        """Continue from the newest saved state in the run's folder, if there is one."""
        if self.world.is_leader:
            recover_best(self.folder)
        saved = state.latest(self.folder)
        if saved is None:
            return False
        meta = state.restore(saved, self.learner.state)
        state.require_meta(meta, saved)
        self.resumed = True
        self.clock.restore(meta)
        # After a kill between an evaluation and the next save, the log and `best/` are newer than
        # the state. The weights in `best/` stay, so their accuracy is read from the log before
        # their evaluation is dropped from it.
        self.best = max(meta["best"], self.log.best_accuracy())
        data = self.origin.data
        changed = differences(meta["settings"], asdict(self.settings))
        changed |= differences(meta.get("data", data), data)  # older states lack it
        self.log.resume(self.clock, self.best, changed)
        return True

    def begin_with(self, folder: Path) -> None:
        """Start from the weights of a saved model; moments, average and clock are new."""
        self._refuse_to_overwrite()
        found = native.load_folder(folder, self.device, torch.float32)
        if found.config != self.settings.model:
            raise SettingsError(
                f"{folder} must hold a model of this run's sizes {self.settings.model}, "
                f"got {found.config}"
            )
        model, table = self.learner.model, self.learner.table
        if found.puzzle_names != model.puzzle_names:
            raise SettingsError(
                f"{folder} must hold a model with the puzzle ids of this run, got other names in "
                "its puzzles.json; train on the same tasks in the same order"
            )
        if table is not None and found.puzzle_table is not None:
            table.weights.copy_(found.puzzle_table)
        self.learner.load_weights(found.state_dict())
        self.log.write("weights", self.clock.step, start=str(folder))

    def run(self, *, stop: Stop = lambda: False) -> ValidationReport:
        """Train to the end of the plan, or until `stop` returns true. Saves before it returns."""
        self._refuse_to_overwrite()
        self.log.begin(self.clock.step, asdict(self.settings))
        try:
            return self._run(stop)
        except torch.OutOfMemoryError:
            raise DeviceError(
                f"a batch of {self.settings.batch} must fit in the device's memory, and this one "
                "did not; use --set batch=... with less, or more devices"
            ) from None

    def _run(self, stop: Stop) -> ValidationReport:
        settings, clock = self.settings, self.clock
        if clock.progress >= 1.0:
            return self.evaluate()
        evaluated = scanned = saved = clock.seconds
        while True:
            self._stretch(stop)
            now = clock.seconds
            last = clock.progress >= 1.0 or distributed.any_process(stop(), self.world, self.device)
            if clock.step in settings.scan.steps or 0 < settings.scan.every <= now - scanned:
                self.scan()
                scanned = now
            if last or now - evaluated >= settings.evaluate_every:
                report, evaluated = self.evaluate(), now
            # The carry is not saved, and moments are rounded. Both happen at fixed steps, saved or
            # not, so the weights do not depend on when the clock asks for a save.
            if last or clock.step % settings.restart_every == 0:
                if last or now - saved >= settings.save_every:
                    self.save()
                    saved = now
                else:
                    with clock.not_training():
                        self._settle()
            if last:
                return report

    def evaluate(self) -> ValidationReport:
        """Validate the averaged weights on val and on training puzzles; save the best by val."""
        with self.clock.not_training(), self.learner.ema.applied():
            val, train = self._validate(self.val), self._validate(self.train_sample)
            if not self.held_out:  # the halting head is sure of puzzles that it was trained on
                val = val._replace(decide_above=math.nan)
            found = Evaluation(self.clock.step, self.clock.seconds, val, train)
            if val.final > self.best or not self.held_out:
                self.best = val.final
                if self.world.is_leader:
                    curve = [*self.log.evaluations(), found]
                    card = card_text(self.origin, self.settings, curve, held_out=self.held_out)
                    save_best(self.learner.model, self.folder, card, val.decide_above)
        self.log.evaluation(found)
        return val

    def scan(self) -> None:
        """Append a line to scan.jsonl: accuracy by three inference methods (Appendix E)."""
        settings, clock = self.settings, self.clock
        with clock.not_training(), self.learner.ema.applied():
            if self.world.is_leader:
                points = scan(
                    self.learner.model, self.val, settings.scan, self.learner.dtype, settings.seed
                )
                values = {name: point._asdict() for name, point in points.items()}
                self.log.write("scan", clock.step, SCANS, seconds=round(clock.seconds, 2), **values)

    def save(self) -> None:
        """Write the state. The carry is too large to be written, so it starts anew."""
        made = {"settings": asdict(self.settings), "data": self.origin.data}
        meta = self.clock.counters() | {"best": self.best} | made
        with self.clock.not_training():
            tensors = self._settle()
            if self.world.is_leader:
                state.write(self.folder, meta, tensors)

    def _settle(self) -> dict[str, Tensor]:
        """Go on as if the state had been written and read again; returns the stored tensors."""
        tensors = state.collect(self.learner.state)
        self.learner.reset_carry()
        return tensors

    def _stretch(self, stop: Stop) -> None:
        """Take a few steps without waiting for the device, then read the clock and the losses."""
        clock, learner = self.clock, self.learner
        begun, first, before = time.monotonic(), clock.step, learner.flops
        sums = []
        for _ in range(self._stretch_length()):
            sums.append(learner.step(clock.step, clock.progress))
            clock.step += 1
            # Several processes must take the same number of steps, so they only stop between.
            slow = time.monotonic() - begun > PATIENCE or clock.over_budget(begun) or stop()
            if slow and self.world.size == 1:
                break
        collected = distributed.mean(torch.stack(sums), self.world).cpu()
        check_losses(collected[:, 0].tolist(), first, self.settings, self.folder)
        spent = clock.since(begun)
        clock.seconds += spent
        speed = (learner.flops - before) / spent
        clock.closing = self._evaluation_flops() / speed
        self.log.training(clock, statistics(collected), speed / 1e12)

    def _stretch_length(self) -> int:
        """Steps of the next stretch, which ends at the plan's end or a step to be scanned."""
        step, every = self.clock.step, self.settings.restart_every
        ends = [*self.settings.scan.steps, (step // every + 1) * every]
        if self.settings.minutes == 0:
            ends.append(self.settings.steps)
        return min([LOG_EVERY, *(end - step for end in ends if end > step)])

    def _validate(self, puzzles: Puzzles) -> ValidationReport:
        return validate(
            self.learner.model, puzzles, outer_steps=self.settings.evaluate_steps,
            batch=self.settings.batch // self.world.size, dtype=self.learner.dtype,
            world=self.world,
        )  # fmt: skip

    def _evaluation_flops(self) -> int:
        """Floating-point operations of one `evaluate`."""
        puzzles = len(self.val) + len(self.train_sample)
        calls = puzzles * self.settings.evaluate_steps * evaluations_per_step(self.learner.model)
        return calls * evaluation_flops(self.settings.model)

    def _refuse_to_overwrite(self) -> None:
        saved = state.latest(self.folder)
        if saved is not None and not self.resumed:
            raise SettingsError(
                f"{self.folder} holds a run at step {int(saved.stem)}; "
                "add --resume to go on with it, or choose another --out"
            )


def require_fitting(settings: TrainSettings, processes: int, device: torch.device) -> None:
    """Raise SettingsError for a model or a batch that the whole memory of the device cannot hold.

    Counted are weights, gradients, two moments and the average in float32, and for each row of the
    batch the puzzle with its answer, both halves of the carry, and one activation a layer for each
    inner step and the answer's, which is less than a step needs. Linux grants memory that it
    lacks, and kills the process later. Proved by tests/train/test_lock.py.
    """
    with torch.device("meta"):
        numbers = sum(weight.numel() for weight in TRM(settings.model).parameters())
    weights = 5 * 4 * numbers
    rows = settings.batch // processes
    model, cuda = settings.model, device.type == "cuda"
    states = 2 + model.layers * (model.inner_steps + 1)
    size = choose_dtype(settings.precision, device).itemsize  # bytes of an activation
    per_row = states * model.positions * model.width * size + 2 * model.cells * 4
    memory = torch.cuda.mem_get_info(device)[1] if cuda else total_memory()
    for what, needed in ((f"a model of {numbers:,} weights", weights),
                         (f"a batch of {settings.batch:,}", rows * per_row)):  # fmt: skip
        if needed > memory:
            raise SettingsError(
                f"{what} must fit in {memory / 1e9:,.0f} GB of memory, got {needed / 1e9:,.0f} GB "
                "at least; make it smaller with --set"
            )


def check_losses(
    losses: Sequence[float], first: int, settings: TrainSettings, folder: Path
) -> None:
    """Raise if a loss of the steps from `first` on is NaN or far above that of a uniform guess.

    A uniform guess costs log(ids), and the halting head costs about 5 at its initial bias of -5.
    """
    uniform = math.log(settings.model.vocabulary) + settings.halt_weight * 5
    for step, loss in enumerate(losses, first):
        if not loss <= EXPLODED * uniform:  # so that NaN fails too
            raise DegenerateError(
                f"the loss was {loss:.3g} at step {step} "
                f"(batch seed {batch_seed(settings.seed, step)}); "
                f"the last good state is {state.latest(folder) or 'none'}"
            )

"""The run: stretches of steps, and between them the looks at val, the scans and the saves."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from tiltrm.data import Puzzles
from tiltrm.errors import DeviceError, SettingsError
from tiltrm.model import native
from tiltrm.model.base import evaluations_per_step
from tiltrm.model.trm import evaluation_flops
from tiltrm.train import card, distributed, guard, keep, monitor, state
from tiltrm.train.board import Board
from tiltrm.train.learner import Learner, statistics
from tiltrm.train.log import Log
from tiltrm.train.pace import Pace
from tiltrm.train.record import SCANS, Evaluation
from tiltrm.train.scan import scan
from tiltrm.train.settings import Settings, differences

LOG_EVERY = 10  # steps between looks at the device, the clock and the loss
PATIENCE = 5.0  # seconds after which a stretch of slow steps is cut short

Stop = Callable[[], bool]


class Trainer:
    """A run: build it, perhaps `resume`, then `run`. What changes is in `learner` and `pace`."""

    def __init__(
        self, settings: Settings, train: Puzzles, val: Puzzles, folder: Path, *,
        device: str = "auto", command: Sequence[str] = (), tensorboard: bool = False,
    ) -> None:  # fmt: skip
        for puzzles in (train, val):
            puzzles.labels()  # both must have them, and now is the time to say so
        self.settings, self.val, self.folder = settings, val, folder
        self.world, self.device = distributed.join(device)
        self.learner = Learner(settings, train, self.world, self.device)
        self.pace = Pace(settings, self.world, self.device)
        self.train_sample = train.take(slice(0, len(val)))
        self.best = -1.0
        self.resumed = False
        self.origin = card.origin(command, train, val, self.device, self.world.size)
        board = Board(folder) if tensorboard and self.world.leads else None
        self.log = Log(folder, self.world.leads, board)

    def resume(self) -> bool:
        """Continue from the newest saved state in the run's folder, if there is one."""
        if self.world.leads:
            keep.recover(self.folder)
        saved = state.latest(self.folder)
        if saved is None:
            return False
        meta = state.restore(saved, self.learner.live)
        self.resumed = True
        self.pace.go_on(meta)
        # A kill after an evaluation and before the next save leaves record and `best/` ahead of
        # the state. The weights stay: their accuracy is noted before their evaluation is dropped.
        self.best = max(meta["best"], self.log.best())
        data = self.origin.data
        changed = differences(meta["settings"], asdict(self.settings))
        changed |= differences(meta.get("data", data), data)  # older states do not say
        self.log.resume(self.pace, self.best, changed)
        return True

    def begin_with(self, folder: Path) -> None:
        """Take the weights of a saved model for a start; moments, average and clock are new."""
        self._refuse_to_overwrite()
        found = native.load_folder(folder, self.device, torch.float32)
        if found.config != self.settings.model:
            raise SettingsError(
                f"{folder} must hold a model of this run's sizes {self.settings.model}, "
                f"got {found.config}"
            )
        self.learner.take(found.state_dict())
        self.log.write("weights", self.pace.step, start=str(folder))

    def run(self, *, stop: Stop = lambda: False) -> monitor.Report:
        """Train to the end of the plan, or until `stop` says so; all is saved on return."""
        self._refuse_to_overwrite()
        self.log.begin(self.pace.step, asdict(self.settings))
        try:
            return self._run(stop)
        except torch.OutOfMemoryError:
            raise DeviceError(
                f"a batch of {self.settings.batch} must fit in the device's memory, and this one "
                "did not; use --set batch=... with less, or more devices"
            ) from None

    def _run(self, stop: Stop) -> monitor.Report:
        settings, pace = self.settings, self.pace
        if pace.progress >= 1.0:
            return self.evaluate()
        evaluated = scanned = saved = pace.seconds
        while True:
            self._stretch(stop)
            now = pace.seconds
            last = pace.progress >= 1.0 or distributed.anyone(stop(), self.world, self.device)
            if pace.step in settings.scan.steps or 0 < settings.scan.every <= now - scanned:
                self.scan()
                scanned = now
            if last or now - evaluated >= settings.evaluate_every:
                report, evaluated = self.evaluate(), now
            if last or now - saved >= settings.save_every:
                self.save()
                saved = now
            if last:
                return report

    def evaluate(self) -> monitor.Report:
        """Measure the average weights on val and on training puzzles; keep the best by val."""
        with self.pace.apart(), self.learner.ema.applied():
            val, train = self._measure(self.val), self._measure(self.train_sample)
            found = Evaluation(self.pace.step, self.pace.seconds, val, train)
            if val.final > self.best:
                self.best = val.final
                self._keep_best(found)
        self.log.evaluation(found)
        return val

    def scan(self) -> None:
        """Append a line to scan.jsonl: accuracy by three ways of inference (Appendix E)."""
        settings, pace = self.settings, self.pace
        with pace.apart(), self.learner.ema.applied():
            if self.world.leads:
                points = scan(
                    self.learner.model, self.val, settings.scan, self.learner.dtype, settings.seed
                )
                values = {name: point._asdict() for name, point in points.items()}
                self.log.write("scan", pace.step, SCANS, seconds=round(pace.seconds, 2), **values)

    def save(self) -> None:
        """Write the state. The carry starts anew, since it is too large to be written."""
        made = {"settings": asdict(self.settings), "data": self.origin.data}
        meta = self.pace.counters() | {"best": self.best} | made
        with self.pace.apart():
            tensors = state.collect(self.learner.live)
            if self.world.leads:
                state.write(self.folder, meta, tensors)
            self.learner.restart()

    def _stretch(self, stop: Stop) -> None:
        """A few steps without looking at the device, then one look at clock and loss."""
        pace, learner = self.pace, self.learner
        begun, first, before = time.monotonic(), pace.step, learner.flops
        sums = []
        for _ in range(self._until_next_mark()):
            sums.append(learner.step(pace.step, pace.progress))
            pace.step += 1
            # Several processes must take the same number of steps, so they only stop between.
            slow = time.monotonic() - begun > PATIENCE or pace.overrun(begun) or stop()
            if slow and self.world.size == 1:
                break
        collected = distributed.average(torch.stack(sums), self.world).cpu()
        guard.check(collected[:, 0].tolist(), first, self.settings, self.folder)
        spent = pace.since(begun)
        pace.seconds += spent
        speed = (learner.flops - before) / spent
        pace.closing = self._evaluation_flops() / speed
        self.log.training(pace, statistics(collected), speed / 1e12)

    def _until_next_mark(self) -> int:
        """Steps of the next stretch: no further than the plan's end or a step to be scanned."""
        step, marks = self.pace.step, [*self.settings.scan.steps]
        if self.settings.minutes == 0:
            marks.append(self.settings.steps)
        return min([LOG_EVERY, *(mark - step for mark in marks if mark > step)])

    def _measure(self, puzzles: Puzzles) -> monitor.Report:
        return monitor.evaluate(
            self.learner.model, puzzles, outer_steps=self.settings.evaluate_steps,
            batch=self.settings.batch // self.world.size, dtype=self.learner.dtype,
            world=self.world,
        )  # fmt: skip

    def _keep_best(self, found: Evaluation) -> None:
        if self.world.leads:
            curve = [*self.log.evaluations(), found]
            text = card.text(self.origin, self.settings, curve)
            keep.best(self.learner.model, self.folder, text, found.val.decide_above)

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

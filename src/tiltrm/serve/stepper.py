"""Stepping the puzzles under way: who enters, takes a step, is shown, leaves or fails.

All of it belongs to one thread. A step that raises is tried again in halves, so that a puzzle on
which a model breaks takes nobody with it.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import torch

from tiltrm.explore.batching import free_memory, out_of_memory, too_small
from tiltrm.explore.cloud import StepInfo, ask
from tiltrm.explore.keys import derive, puzzle_keys
from tiltrm.explore.result import SearchResult
from tiltrm.explore.search import Cohort, Leaving, Taken
from tiltrm.serve.floor import Floor, Group
from tiltrm.serve.orders import Job
from tiltrm.serve.tracks import Track

LOG = logging.getLogger("tiltrm.serve")
UNDER_WAY = {"cpu": 256, "cuda": 8192}  # puzzles
SHARE, MOST = 0.25, {"cpu": 1 << 30, "cuda": 1 << 40}  # of the free memory, and bytes, for clouds


@dataclass
class Counts:
    """What has been done."""

    solved: int = 0
    failed: int = 0
    abandoned: int = 0
    evaluations: int = 0
    turns: int = 0
    rows: int = 0  # trajectories stepped, over all turns
    busy: float = 0.0  # seconds


class Stepper:
    """The puzzles under way on one device; `left` is called for each that is no more."""

    def __init__(self, device: torch.device, left: Callable[[], None]) -> None:
        self.device = device
        self.counts = Counts()
        self.floor = Floor(min(MOST[device.type], int(SHARE * free_memory(device))))
        self._left = left
        self._jobs: dict[int, Job] = {}
        self._numbers = count()

    @property
    def free(self) -> int:
        """Puzzles that may enter."""
        return UNDER_WAY[self.device.type] - len(self._jobs)

    @property
    def idle(self) -> bool:
        return not self._jobs

    def enter(self, jobs: list[Job]) -> None:
        """Newcomers become groups, one for each track."""
        tracks: dict[Track, dict[int, Job]] = {}
        for job in jobs:
            number = next(self._numbers)
            self._jobs[number] = job
            tracks.setdefault(job.track, {})[number] = job
        for track, some in tracks.items():
            self._embed(track, some)

    def turn(self) -> None:
        """One step of one group."""
        begun = time.perf_counter()
        group = self._present(self.floor.take())
        if group is not None:
            self._advance(group)
        self.counts.turns += 1
        self.counts.busy += time.perf_counter() - begun

    def give_up(self, error: Exception) -> None:
        """Fail everybody and start clean."""
        self.floor.groups.clear()
        for number in list(self._jobs):
            self._fail(number, error)

    def _embed(self, track: Track, jobs: dict[int, Job]) -> None:
        try:
            tokens = torch.stack([job.tokens for job in jobs.values()]).to(self.device)
            seeds = torch.tensor([job.seed for job in jobs.values()], device=self.device)
            question = ask(track.host.model, tokens, 1)
            question = question._replace(keys=derive(puzzle_keys(tokens), seeds))
        except Exception as error:
            if len(jobs) == 1:
                LOG.error("a puzzle could not be embedded", exc_info=error)
                self._fail(next(iter(jobs)), error)
                return
            for number, job in jobs.items():
                self._embed(track, {number: job})
            return
        places = torch.tensor(list(jobs), device=self.device)
        self.floor.groups.append(Group(track, Cohort(places, question, None)))

    def _present(self, group: Group) -> Group | None:
        """The group without the puzzles that nobody waits for any more."""
        places = group.cohort.places.tolist()
        here = [self._jobs[place].order.open for place in places]
        for place, wanted in zip(places, here, strict=True):
            if not wanted:
                self._leave(place)
                self.counts.abandoned += 1
        if all(here):
            return group
        return group.part(torch.tensor(here, device=self.device)) if any(here) else None

    def _advance(self, group: Group) -> None:
        """One step, and what comes of it; in halves where it raises."""
        begun = time.perf_counter()
        rows = len(group.cohort.places) * group.particles
        try:
            taken = group.track.walk.advance(group.cohort)
        except Exception as error:
            failure = error
        else:
            self.counts.rows += rows
            self._settle(group, taken, time.perf_counter() - begun)
            return
        # Outside the handler, so that the failed step's tensors are gone before the next try.
        puzzles = len(group.cohort.places)
        if out_of_memory(failure):
            self.floor.shrink(group.track.host, rows // 2)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        if puzzles == 1:
            LOG.error("a puzzle could not be stepped", exc_info=failure)
            self._fail(group.first, too_small() if out_of_memory(failure) else failure)
            return
        del failure
        for half in (slice(puzzles // 2), slice(puzzles // 2, None)):
            self._advance(group.part(half))

    def _settle(self, group: Group, taken: Taken, seconds: float) -> None:
        """Note the time, show the step, let the finished go, put the others back."""
        places = group.cohort.places.tolist()
        for row, place in enumerate(places):
            job = self._jobs[place]
            job.seconds += seconds / len(places)
            _show(job, taken.info, row)
        for leaving in taken.leaving:
            self._deliver(leaving)
        if taken.rest is not None:
            self.floor.groups.append(Group(group.track, taken.rest))

    def _deliver(self, leaving: Leaving) -> None:
        reasons = (leaving.why,) * len(leaving.places)
        solution = SearchResult(**leaving.columns, decided_by=reasons)
        for row, place in enumerate(leaving.places.tolist()):
            job = self._leave(place)
            self.counts.solved += 1
            self.counts.evaluations += int(solution.evaluations[row])
            try:
                job.put(job.conclude(solution, row, job.seconds))
            except Exception as error:
                LOG.exception("a result could not be put into words")
                job.put(None, error)

    def _leave(self, number: int) -> Job:
        job = self._jobs.pop(number)
        self._left()
        return job

    def _fail(self, number: int, error: Exception) -> None:
        self.counts.failed += 1
        self._leave(number).put(None, error)


def _show(job: Job, info: StepInfo, row: int) -> None:
    """Hand a frame to who watches; what goes wrong there is nobody else's trouble."""
    if job.film is None or job.show is None:
        return
    try:
        job.show(job.film.frame(info, row))
    except Exception:
        LOG.exception("a step could not be shown")
        job.film = None

"""The floor: groups of puzzles between two steps, who meets whom, and whose turn it is.

Turns go in alternation to the group that has cost least so far, so that easy puzzles are quick and
newcomers catch up, and to the one that came first, so that nobody starves. Groups that stand at
the same place of the same track go on together. Proved by tests/serve/test_floor.py.
"""

from dataclasses import dataclass
from functools import cached_property

import torch

from tiltrm.explore.cloud import Cloud
from tiltrm.explore.search import Cohort
from tiltrm.model.base import State
from tiltrm.serve.tracks import Host, Track


@dataclass(frozen=True, eq=False)
class Group:
    """A cohort and its track."""

    track: Track
    cohort: Cohort

    @cached_property
    def first(self) -> int:
        """The lowest number among its puzzles: numbers are given in the order of arrival."""
        return int(self.cohort.places.min())

    @property
    def place(self) -> tuple[int, int, int]:
        """Groups with the same one may go on together."""
        return id(self.track), self.cohort.stage, self.cohort.stage_step

    @property
    def particles(self) -> int:
        """Trajectories of each puzzle in the next step."""
        return self.track.walk.particles(self.cohort)

    @property
    def held(self) -> int:
        """Bytes of its clouds now."""
        cloud = self.cohort.cloud
        return 0 if cloud is None else cloud.log_weights.numel() * self.track.host.size

    def growth(self, puzzles: int) -> int:
        """Bytes that the next step of so many of its puzzles adds."""
        cloud = self.cohort.cloud
        now = 0 if cloud is None else cloud.log_weights.shape[1]
        return puzzles * (self.particles - now) * self.track.host.size

    def part(self, puzzles: slice | torch.Tensor) -> "Group":
        """Some of its puzzles."""
        return Group(self.track, self.cohort.part(puzzles))


def together(groups: list[Group]) -> Group:
    """One group of several that stand at the same place."""
    if len(groups) == 1:
        return groups[0]
    cohorts = [group.cohort for group in groups]
    first = cohorts[0]
    question = first.question._replace(
        tokens=torch.cat([c.question.tokens for c in cohorts]),
        inputs=torch.cat([c.question.inputs for c in cohorts]),
        keys=torch.cat([c.question.keys for c in cohorts]),
    )
    clouds = [c.cloud for c in cohorts if c.cloud is not None]
    cloud = None
    if clouds:
        cloud = Cloud(
            State(
                torch.cat([c.state.answer for c in clouds]),
                torch.cat([c.state.latent for c in clouds]),
            ),
            torch.cat([c.log_weights for c in clouds]),
            torch.cat([c.score for c in clouds]),
        )
    places = torch.cat([c.places for c in cohorts])
    return Group(groups[0].track, first._replace(places=places, question=question, cloud=cloud))


class Floor:
    """All groups that are under way; their clouds keep to `room` bytes where that can be."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.groups: list[Group] = []
        self._rows: dict[Host, int] = {}  # where memory ran out with more
        self._turn = 0

    @property
    def puzzles(self) -> int:
        return sum(len(group.cohort.places) for group in self.groups)

    def shrink(self, host: Host, rows: int) -> None:
        """Step at most so many trajectories of this model from now on."""
        self._rows[host] = max(1, rows)

    def take(self) -> Group:
        """The group whose turn it is, its mates among it, cut to a size worth stepping."""
        self._turn += 1
        chosen = self._choose()
        size = self._size(chosen)
        mates = [g for g in self.groups if g is not chosen and g.place == chosen.place]
        taken: list[Group] = []
        count = 0
        for group in (chosen, *mates):
            if count == size:
                break
            self.groups.remove(group)
            over = count + len(group.cohort.places) - size
            if over > 0:
                keep = len(group.cohort.places) - over
                self.groups.append(group.part(slice(keep, None)))
                group = group.part(slice(keep))
            taken.append(group)
            count += len(group.cohort.places)
        return together(taken)

    def _size(self, group: Group) -> int:
        """Puzzles of this group to step at once."""
        host = group.track.host
        return max(1, self._rows.get(host, host.rows) // group.particles)

    def _choose(self) -> Group:
        oldest = min(self.groups, key=lambda group: group.first)
        free = self.room - sum(group.held for group in self.groups)
        fitting = [
            group for group in self.groups
            if group.growth(min(self._size(group), len(group.cohort.places))) <= max(0, free)
        ]  # fmt: skip
        if not fitting:  # all wait for room: the oldest goes on all the same, or none would
            return oldest
        if self._turn % 2:
            return min(fitting, key=lambda group: group.cohort.evaluations)
        return min(fitting, key=lambda group: group.first)

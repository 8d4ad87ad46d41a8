"""Every item that can be reproduced: what must be computed for it, and who draws it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from tiltrm.evaluate.job import Job
from tiltrm.report import (
    contraction,
    doubt,
    frontier,
    frontier_points,
    guide,
    noise,
    steps,
    sweeps,
    training,
)
from tiltrm.report import table1 as table
from tiltrm.report.evidence import BENCHMARKS, MAZE, SUDOKU, SWEEP, Evidence, diagnostics, table1
from tiltrm.report.sheet import Sheet

Plan = Callable[[Evidence, str], list[Job]]  # (evidence, part)


class Item(NamedTuple):
    """Plans by the part that a subject plays, and the drawing that reads their shards.

    `besides` says whether there is something to draw that needs none of them.
    """

    plans: Mapping[str, Plan]
    draw: Callable[[Evidence], Sheet]
    besides: Callable[[Evidence], bool] = lambda evidence: False

    def jobs(self, evidence: Evidence) -> list[Job]:
        """Of all the parts that are there."""
        here = [part for part in self.plans if part in evidence.subjects]
        return [job for part in here for job in self.plans[part](evidence, part)]

    def within(self, evidence: Evidence) -> Evidence | None:
        """The evidence without those parts of which the store lacks something; None: too little."""
        parts = {p: self.plans[p](evidence, p) for p in self.plans if p in evidence.subjects}
        lacking = {p for p, jobs in parts.items() if not jobs or evidence.store.missing(jobs)}
        nothing = lacking == set(parts) and not self.besides(evidence)
        if lacking - {MAZE} or nothing:
            return None
        absent = {p: f"{BENCHMARKS[p]} is left out, since it is not computed yet." for p in lacking}
        left = {p: subject for p, subject in evidence.subjects.items() if p not in lacking}
        return replace(evidence, subjects=left, absent={**evidence.absent, **absent})


ITEMS: dict[str, Item] = {
    "frontier": Item({SUDOKU: frontier_points.plan, MAZE: frontier_points.plan}, frontier.sheet),
    "table1": Item({SUDOKU: table1, MAZE: table1}, table.sheet),
    "fig1": Item({SUDOKU: table1}, steps.sheet),
    "fig2": Item({SUDOKU: diagnostics, SWEEP: noise.plan}, noise.fig2),
    "fig3": Item({SUDOKU: diagnostics, MAZE: diagnostics}, guide.sheet),
    "fig4": Item({SUDOKU: doubt.plan}, doubt.fig4),
    "fig5": Item(
        {MAZE: diagnostics}, noise.fig5, lambda own: bool(training.curves(own.metrics)[0])
    ),
    "fig6": Item({SWEEP: sweeps.plan, MAZE: sweeps.plan}, sweeps.sheet),
    "fig7": Item({SUDOKU: doubt.plan}, contraction.fig7),
    "fig8": Item({}, training.fig8, lambda own: own.scan is not None),
}

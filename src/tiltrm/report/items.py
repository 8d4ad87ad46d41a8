"""The registry of items: for each, the jobs that it needs and the function that draws it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from tiltrm.evaluate.job import Job
from tiltrm.report import (
    fig1_steps,
    fig2_noise,
    fig3_alignment,
    fig4_entropy,
    fig5_stability,
    fig6_settings,
    fig7_contraction,
    fig8_training,
    frontier,
    table1,
)
from tiltrm.report.results import BENCHMARKS, MAZE, SUDOKU, SWEEP, StoredResults
from tiltrm.report.section import Section

Plan = Callable[[StoredResults, str], list[Job]]  # (results, role)


class Item(NamedTuple):
    """One table or figure.

    `plans` maps the role of a subject to the jobs that the item needs of it. `draws_without` says
    whether the item has something to draw when none of those jobs is computed.
    """

    plans: Mapping[str, Plan]
    section: Callable[[StoredResults], Section]
    draws_without: Callable[[StoredResults], bool] = lambda results: False

    def jobs(self, results: StoredResults) -> list[Job]:
        """All jobs of the item, for the targets that are present."""
        return [job for jobs in self._by_role(results).values() for job in jobs]

    def drawable(self, results: StoredResults) -> StoredResults | None:
        """The results without mazes if those are not computed; None if the item cannot be drawn."""
        by_role = self._by_role(results)
        missing = {r for r, jobs in by_role.items() if not jobs or results.store.missing(jobs)}
        nothing = missing == set(by_role) and not self.draws_without(results)
        if missing - {MAZE} or nothing:
            return None
        absent = {
            role: f"{BENCHMARKS[role]} is left out, since it is not computed yet."
            for role in missing
        }
        kept = {role: own for role, own in results.targets.items() if role not in missing}
        return replace(results, targets=kept, absent={**results.absent, **absent})

    def _by_role(self, results: StoredResults) -> dict[str, list[Job]]:
        return {
            role: plan(results, role)
            for role, plan in self.plans.items()
            if role in results.targets
        }


_table1, _diagnosis = StoredResults.table1_jobs, StoredResults.diagnosis_jobs

ITEMS: dict[str, Item] = {
    "frontier": Item({SUDOKU: frontier.jobs, MAZE: frontier.jobs}, frontier.section),
    "table1": Item({SUDOKU: _table1, MAZE: _table1}, table1.section),
    "fig1": Item({SUDOKU: _table1}, fig1_steps.section),
    "fig2": Item({SUDOKU: _diagnosis, SWEEP: fig2_noise.jobs}, fig2_noise.section),
    "fig3": Item({SUDOKU: _diagnosis, MAZE: _diagnosis}, fig3_alignment.section),
    "fig4": Item({SUDOKU: fig4_entropy.jobs}, fig4_entropy.section),
    "fig5": Item({MAZE: _diagnosis}, fig5_stability.section, fig5_stability.has_curves),
    "fig6": Item({SWEEP: fig6_settings.jobs, MAZE: fig6_settings.jobs}, fig6_settings.section),
    "fig7": Item({SUDOKU: fig4_entropy.jobs}, fig7_contraction.section),
    "fig8": Item({}, fig8_training.section, lambda results: results.scan is not None),
}

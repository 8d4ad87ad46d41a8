"""A run of one puzzle as a file that shows it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiltrm.errors import DataError
from tiltrm.explore import adaptive
from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.search import Watch
from tiltrm.model.base import RecursiveModel
from tiltrm.serve import frames
from tiltrm.serve.replay import page
from tiltrm.serve.tracks import BASELINE
from tiltrm.solving import ADAPTIVE, Solved, judges, prepare
from tiltrm.tasks import Task

NOT_THE_METHOD = ("method", "seed", "abstain")


class Recording:
    """Called with every StepInfo of the run; `write` adds the deterministic run and the result."""

    def __init__(
        self, model: RecursiveModel, task: Task, settings: Mapping[str, Any],
        model_name: str | None,
    ) -> None:  # fmt: skip
        self.model, self.task, self.model_name = model, task, model_name
        self.method, self.seed = settings.get("method", ADAPTIVE), settings.get("seed", 0)
        self.settings = {
            name: value for name, value in settings.items()
            if name not in NOT_THE_METHOD and value is not False
        }  # fmt: skip
        recipe = prepare(model, task, method=self.method, **self.settings)
        self.film = frames.Film(model, recipe.plan)
        self.steps: list[dict[str, Any]] = []

    def __call__(self, info: StepInfo) -> None:
        self.steps.append(self.film.frame(info))

    def replay(self, solved: Solved) -> dict[str, Any]:
        """Everything that the page shows."""
        puzzle = self.task.encode(solved.puzzle)
        beside = adaptive.solve(self.model, puzzle[None], judges(self.model, None, None), BASELINE)
        start = frames.start(
            self.task, self.model, puzzle, method=self.method, seed=self.seed,
            settings=self.settings, model_name=self.model_name,
        )  # fmt: skip
        return {
            "start": start,
            "steps": self.steps,
            "baseline": frames.baseline(self.task, puzzle, beside),
            "result": frames.result(solved),
        }

    def write(self, solved: Solved, path: Path) -> None:
        """The page with this run in it; raises DataError."""
        try:
            path.write_text(page(self.replay(solved)), "utf-8")
        except OSError as error:
            raise DataError(
                f"{path}: expected a file that can be written, got: {error.strerror}"
            ) from error


def both(first: Watch | None, second: Watch) -> Watch:
    """Two that watch the same run; the first may be absent."""
    if first is None:
        return second

    def watch(info: StepInfo) -> None:
        first(info)
        second(info)

    return watch

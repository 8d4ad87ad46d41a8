"""One form for answers that differ only in cells that do not count."""

import copy

from tiltrm.model.puzzle_rows import AnyModel
from tiltrm.tasks import Task


def with_tidy_answers(model: AnyModel, task: Task | None) -> AnyModel:
    """The model with the `tidy_answers` of a task that has such a method; the weights are shared.

    Then answers that differ only where the task does not look are the same answer in every vote.
    Of such a task the model also gets the function that reads puzzle ids, by which it refuses
    puzzles that it was not trained on.
    Proved by tests/solving/test_arc.py::test_noise_outside_the_grid_splits_no_vote.
    """
    tidy = getattr(task, "tidy_answers", None)
    if tidy is None:
        return model
    view = copy.copy(model)
    view.tidy_answers = tidy  # type: ignore[attr-defined]
    view.read_ids = getattr(task, "task_numbers", None)  # type: ignore[attr-defined]
    return view

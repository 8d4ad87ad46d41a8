"""The record of one ARC test input: that of a puzzle, its task, and two attempts."""

import json
from dataclasses import dataclass, fields, replace

from tiltrm.data.arc_puzzles import AnyArc
from tiltrm.solving.arc import ArcAnswer
from tiltrm.solving.solution import DIGITS, KEYS, Cells, PuzzleRecord, puzzle_record
from tiltrm.tasks.arc.grids import ColourGrid, write_rows

ARC_KEYS = ("task_name", "index", "attempts")


@dataclass(frozen=True, eq=False)
class ArcRecord(PuzzleRecord):
    """One test input. `answer` is the first attempt; cost is that of all its questions.

    `confidence` is that of the search; of several questions, the share of their votes for it.
    """

    task_name: str = ""
    index: int = 0  # of the test input in its task
    attempts: tuple[ColourGrid, ...] = ()

    def as_json(self) -> str:
        """The object on one line, always with the same keys."""
        return json.dumps({key: getattr(self, key) for key in (*KEYS, *ARC_KEYS)}, allow_nan=False)


def arc_record(model_task: AnyArc, found: ArcAnswer, ranking: str = "weighted") -> ArcRecord:
    """The record of the votes for a test input, ranked as `arc_votes` describes."""
    own = puzzle_record(model_task, found.question, found.result, found.row, rate=0.0)
    attempts = found.ballot.attempts(ranking)
    best = found.ballot.ranked(ranking)
    text = write_rows(attempts[0]) if best else None
    confidence = own.confidence
    if found.ballot.questions > 1:
        confidence = round(best[0].weight / found.ballot.questions, DIGITS) if best else 0.0
    same = best and own.answer == text
    shown = Cells(
        found.question, model_task.answer(attempts[0]) if best else None,
        found.result.cell_confidence[found.row] if same else None,
    )  # fmt: skip
    told = replace(
        own, grid=shown, answer=text, confidence=confidence, evaluations=found.evaluations,
        seconds=round(found.seconds, DIGITS), abstained=text is None,
    )  # fmt: skip
    return ArcRecord(
        **{each.name: getattr(told, each.name) for each in fields(PuzzleRecord)},
        task_name=found.task.name, index=found.index, attempts=attempts,
    )  # fmt: skip

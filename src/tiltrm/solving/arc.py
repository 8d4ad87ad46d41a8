"""ARC tasks solved: each question is searched on its own, then all questions of a test input vote.

Proved by tests/solving/test_arc.py.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tiltrm.data.arc_files import ArcTask
from tiltrm.data.arc_puzzles import AnyArc
from tiltrm.data.arc_questions import ArcQuestion
from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.result import SearchResult
from tiltrm.explore.running import run_search
from tiltrm.explore.search import Progress, StagedSearch, Watch
from tiltrm.solving.arc_votes import Ballot
from tiltrm.solving.final_clouds import CloudRecorder
from tiltrm.tasks.arc.grids import ColourGrid

QUESTIONS_AT_ONCE = 4096


@dataclass
class ArcAnswer:
    """The votes for one test input, and what they cost."""

    task: ArcTask
    index: int  # of the test input
    question: Tensor  # (cell,): the first of its questions, without augmentation
    result: SearchResult  # of the search that this question was part of
    row: int  # the place of the question in it
    ballot: Ballot = field(default_factory=Ballot)
    evaluations: int = 0  # of all its questions
    seconds: float = 0.0


def solve_arc(
    search: StagedSearch, model_task: AnyArc, questions: Sequence[ArcQuestion], *, seed: int = 0,
    at_once: int = QUESTIONS_AT_ONCE, progress: Progress | None = None, watch: Watch | None = None,
) -> Iterator[ArcAnswer]:  # fmt: skip
    """Search the questions and count their votes; an answer as soon as its questions are done.

    search: of any method (`tiltrm.solving.build_search`). The answers come in the order of the
    questions and do not depend on `at_once`.
    """
    current: ArcAnswer | None = None
    for first in range(0, len(questions), at_once):
        part = questions[first : first + at_once]
        recorder = CloudRecorder()
        tokens = torch.stack([question.tokens for question in part])

        def note(info: StepInfo, recorder: CloudRecorder = recorder) -> None:
            recorder(info)
            if watch is not None:
                watch(info)

        def tick(done: int, of: int, first: int = first, size: int = len(part)) -> None:
            if progress is not None:
                progress(first + size * done // of, len(questions))

        begun = time.perf_counter()
        found = run_search(search, tokens, seed=seed, watch=note, progress=tick)
        rate = (time.perf_counter() - begun) / max(1, int(found.evaluations.sum()))
        clouds = recorder.clouds(tokens, seed)
        for row, question in enumerate(part):
            if current is None or not _same_input(current, question):
                if current is not None:
                    yield current
                current = ArcAnswer(question.task, question.index, question.tokens, found, row)

            def read(answers: Tensor, question: ArcQuestion = question) -> list[ColourGrid | None]:
                return question.read(model_task, answers)

            confidence = float(found.confidence[row])
            current.ballot.add(clouds[row], read, found.answers[row], confidence)
            spent = int(found.evaluations[row])
            current.evaluations += spent
            current.seconds += rate * spent
    if current is not None:
        yield current


def _same_input(answer: ArcAnswer, question: ArcQuestion) -> bool:
    return answer.task is question.task and answer.index == question.index

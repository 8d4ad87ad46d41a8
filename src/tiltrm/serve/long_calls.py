"""Requests that take long and are not puzzles to solve: diagnoses and generated puzzles."""

import asyncio
import json
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from fastapi import Request
from torch import Tensor

from tiltrm.diagnose import SMALL, DiagnosisReport, diagnose
from tiltrm.errors import PuzzleError, SettingsError, TiltrmError
from tiltrm.explore.batching import one_worker
from tiltrm.serve.background import StoppedError
from tiltrm.serve.guard import NUMBER
from tiltrm.serve.handler import (
    LATE,
    RequestHandler,
    closing,
    disconnected,
    failure,
    require_count,
)
from tiltrm.serve.logs import LOG, REQUEST
from tiltrm.serve.requests import DiagnoseRequest, Refusal
from tiltrm.solving import exploration_for
from tiltrm.tasks import Task
from tiltrm.tasks.published import answer_text

DIAGNOSIS = "diagnosis"
Value = TypeVar("Value")


class LongCalls:
    """A few diagnoses and one generator at a time, each in a thread of its own."""

    def __init__(self, handler: RequestHandler) -> None:
        self.handler = handler
        self._one_generator = asyncio.Lock()
        self._generating = 0  # requests that wait for a puzzle

    async def diagnose(self, request: Request, body: DiagnoseRequest) -> Any:
        """The report of `tiltrm.diagnose` as a dictionary; raises Refusal.

        It runs beside the engine, and ends with its client.
        """
        require_count(body.puzzles, self.handler.limits.diagnosed)
        loaded, task = self.handler.find(body.model, body.task)
        try:
            tokens = task.encode_all(body.puzzles)
            labels = None
            if body.answers is not None:
                if len(body.answers) != len(body.puzzles):
                    raise Refusal(422, "answers: expected one for each puzzle")
                labels = task.encode_all(body.answers, answer=True)
        except PuzzleError as error:
            raise Refusal(422, str(error)) from None
        background = self.handler.background
        if background.running(DIAGNOSIS) >= self.handler.limits.diagnoses:
            raise Refusal(429, "another diagnosis is running; try again later", retry_after="5")
        settings = exploration_for("guided", task, SMALL)

        def work() -> DiagnosisReport:
            with one_worker():  # the engine's workers belong to the puzzles
                return diagnose(
                    loaded.model, tokens, labels, task=task, settings=settings, seed=body.seed
                )

        report = await self._bounded(
            request, background.run(work, DIAGNOSIS), self.handler.limits.seconds
        )
        return json.loads(report.as_json())

    async def generate(self, request: Request, task: Task, seed: int) -> dict[str, Any]:
        """A generated puzzle with its answer; raises Refusal. One is generated at a time."""
        limits = self.handler.limits
        if self._generating >= limits.generating:
            raise Refusal(429, "too many puzzles are being generated", retry_after="1")

        async def in_turn() -> tuple[Tensor, Tensor]:
            async with self._one_generator:
                return await self.handler.background.run(partial(task.generate, seed))

        self._generating += 1
        try:
            puzzle, answer = await self._bounded(request, in_turn(), limits.generate_seconds, 422)
        finally:
            self._generating -= 1
        return {
            "task": task.name, "seed": seed, "puzzle": task.decode(puzzle),
            "answer": answer_text(task, puzzle, answer),
        }  # fmt: skip

    @staticmethod
    async def _bounded(
        request: Request, work: Coroutine[Any, Any, Value], seconds: float,
        bad_input: int | None = None,
    ) -> Value:  # fmt: skip
        """The value of a long call beside the engine; raises Refusal.

        It is cancelled when its client has gone, when its time is over, and when the server closes.
        `bad_input` is the status of a SettingsError; 500 unless given.
        """
        running = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(disconnected(request))
        try:
            await asyncio.wait(
                (running, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not running.done():
                raise Refusal(504, LATE.format(seconds))
            return running.result()
        except StoppedError:
            raise closing() from None
        except Exception as error:
            if isinstance(error, Refusal):
                raise
            if isinstance(error, SettingsError) and bad_input is not None:
                raise Refusal(bad_input, str(error)) from None
            if not isinstance(error, TiltrmError):
                LOG.exception("a call failed", extra={REQUEST: request.scope[NUMBER]})
            raise failure(error) from None
        finally:
            running.cancel()
            gone.cancel()

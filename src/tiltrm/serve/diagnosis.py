"""POST /v1/diagnose: one diagnosis at a time, beside the engine, of few puzzles."""

import asyncio
import json
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import Request

from tiltrm.diagnose import SMALL, DiagnosisReport, diagnose
from tiltrm.errors import PuzzleError, TiltrmError
from tiltrm.serve.desk import Desk, from_thread
from tiltrm.serve.engine import LOG
from tiltrm.serve.limits import DiagnoseRequest, Refusal
from tiltrm.serve.orders import Order
from tiltrm.solving import exploration_for


class UnwantedError(Exception):
    """Nobody waits for the report any more."""


class Diagnoses:
    """Runs `tiltrm.diagnose`, and refuses while it is at it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.busy = False

    async def run(self, request: Request, body: DiagnoseRequest) -> Any:
        """The report as a dictionary; raises Refusal."""
        host, task = self.desk.host(body.model, body.task)
        try:
            tokens = task.encode_all(body.puzzles)
            labels = None
            if body.answers is not None:
                if len(body.answers) != len(body.puzzles):
                    raise Refusal(422, "answers: expected one for each puzzle")
                labels = task.encode_all(body.answers, answer=True)
        except PuzzleError as error:
            raise Refusal(422, str(error)) from None
        if self.busy:
            raise Refusal(429, "another diagnosis is running; try again later", retry_after="5")
        self.busy = True
        done = asyncio.Event()
        order = Order(1, from_thread(done.set))
        work = partial(
            diagnose, host.model, tokens, labels, task=task,
            settings=exploration_for("guided", task, SMALL), seed=body.seed,
        )  # fmt: skip
        # A thread of its own, not the loop's: the process does not wait for it at its end.
        threading.Thread(target=self._work, args=(work, order), daemon=True).start()
        await self.desk.finish(request, order, done)
        return json.loads(order.outcomes[0].as_json())

    def _work(self, work: Callable[..., DiagnosisReport], order: Order) -> None:
        """Do it, as long as somebody waits for it."""

        def progress(done: int, of: int) -> None:
            if not order.open:
                raise UnwantedError

        report, failed = None, None
        try:
            report = work(progress=progress)
        except Exception as error:
            failed = error
            if not isinstance(error, TiltrmError | UnwantedError):
                LOG.exception("a diagnosis failed")
        self.busy = False
        order.put(0, report, failed)

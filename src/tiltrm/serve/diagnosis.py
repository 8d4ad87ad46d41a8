"""POST /v1/diagnose: one diagnosis at a time, beside the engine, of few puzzles."""

import asyncio
import json
from typing import Any

from tiltrm.diagnose import diagnose
from tiltrm.errors import PuzzleError, TiltrmError
from tiltrm.serve.desk import Desk
from tiltrm.serve.limits import DiagnoseRequest, Refusal


class Diagnoses:
    """Runs `tiltrm.diagnose`, and refuses while it is at it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.busy = False

    async def run(self, body: DiagnoseRequest) -> Any:
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
        try:
            report = await asyncio.to_thread(diagnose, host.model, tokens, labels, seed=body.seed)
        except TiltrmError as error:
            raise Refusal(422, str(error)) from None
        finally:
            self.busy = False
        return json.loads(report.as_json())

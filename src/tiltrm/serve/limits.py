"""What a request may hold and how large it may be; everything beyond is refused in one sentence."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tiltrm.solving import ADAPTIVE, METHODS

PUZZLES = 1000  # in one request
TEXT = 4096  # characters of a puzzle
PARTICLES = 256
OUTER_STEPS = 1024
DIAGNOSED = 64  # puzzles of one diagnosis

Text = Annotated[str, Field(max_length=TEXT)]
Name = Annotated[str, Field(max_length=100)]
Amount = Annotated[float, Field(ge=0.0, le=1e6)]
Seed = Annotated[int, Field(ge=-(2**62), le=2**62)]
Body = TypeVar("Body", bound=BaseModel)


@dataclass(frozen=True)
class Limits:
    """Bounds that the command line may move."""

    queue: int = 4096  # puzzles accepted and not finished
    seconds: float = 600.0  # for one request
    body: int = 2 << 20  # bytes
    body_seconds: float = 10.0  # until all of it has arrived
    streams: int = 32  # at once
    connections: int = 1000


class Refusal(Exception):  # noqa: N818 - it is an answer
    """An answer other than 200: HTTP's number and one sentence."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Settings(BaseModel):
    """The settings of `tiltrm solve`, under the same names; what is left out is the method's."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: Name | None = None
    task: Name | None = None
    method: Name = Field(ADAPTIVE, description=", ".join(METHODS))
    seed: Seed = 0
    rules: bool = False
    guide: Name | None = None
    particles: Annotated[int, Field(ge=1, le=PARTICLES)] | None = None
    noise: Amount | None = None
    beta: Amount | None = None
    resample_below: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    outer_steps: Annotated[int, Field(ge=1, le=OUTER_STEPS)] | None = None
    abstain: Annotated[float, Field(ge=0.0, le=1.0)] | None = None

    def given(self) -> dict[str, Any]:
        """The settings of the method that were given."""
        names = ("rules", "guide", "particles", "noise", "beta", "resample_below", "outer_steps")
        found = {name: getattr(self, name) for name in names}
        # By identity: a beta of 0 equals False.
        return {n: value for n, value in found.items() if value is not None and value is not False}


class SolveRequest(Settings):
    """The body of POST /v1/solve."""

    puzzles: Annotated[list[Text], Field(min_length=1, max_length=PUZZLES)]


class StreamRequest(Settings):
    """The body of POST /v1/solve/stream."""

    puzzles: Annotated[list[Text], Field(min_length=1, max_length=1)]
    baseline: bool = Field(False, description="also run the model without exploration")


class DiagnoseRequest(BaseModel):
    """The body of POST /v1/diagnose."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: Name | None = None
    task: Name | None = None
    seed: Seed = 0
    puzzles: Annotated[list[Text], Field(min_length=1, max_length=DIAGNOSED)]
    answers: Annotated[list[Text], Field(max_length=DIAGNOSED)] | None = None


async def read(request: Request, kind: type[Body], limits: Limits) -> Body:
    """The body as a record of this kind; raises Refusal."""
    declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if declared != "application/json":  # also keeps the forms of other sites out
        raise Refusal(415, "expected Content-Type: application/json", connection="close")
    try:
        async with asyncio.timeout(limits.body_seconds):
            content = await _bytes(request, limits.body)
    except TimeoutError:
        sentence = f"expected the whole body within {limits.body_seconds:g} s, got part of it"
        raise Refusal(408, sentence, connection="close") from None
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise _explained(error, kind) from None


async def _bytes(request: Request, most: int) -> bytes:
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > most:
            raise Refusal(413, f"expected a body of at most {most} bytes", connection="close")
    return bytes(content)


def _explained(error: ValidationError, kind: type[BaseModel]) -> Refusal:
    """The first complaint, in a sentence that repeats little of what came."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])[:100]
    if first["type"] == "json_invalid":
        return Refusal(400, "expected a JSON object, got something that is not JSON")
    if first["type"] == "extra_forbidden":
        known = ", ".join(kind.model_fields)
        return Refusal(422, f"the keys are {known}; got unknown {where!r}")
    said = first["msg"][:1].lower() + first["msg"][1:]
    return Refusal(422, f"{where or 'body'}: {said}")

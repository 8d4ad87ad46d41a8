"""The bodies of requests, made from the table of settings.

Anything else is refused in one sentence. A new row in `tiltrm.settings` is a new key of /v1/solve
and, if it has a label, a new field of the page's form.
"""

import asyncio
import math
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Request
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
)
from pydantic_core import PydanticCustomError
from starlette.requests import ClientDisconnect

from tiltrm.serve.limits import Limits
from tiltrm.settings import ADAPTIVE, METHODS, TABLE, Setting
from tiltrm.solving.guide_folder import LEARNED

LONGEST = 1_000_000  # puzzles in a list; `Limits` has the server's own, smaller number
TEXT = 1 << 20  # characters of a puzzle; `Limits` has the server's own, smaller number
NAME = 100  # characters of a name
LARGEST = 1e6  # of any number
LIMITED = ("particles", "outer_steps")  # settings with a limit of the server's own
CONFIG = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
SETTINGS = {name: row for name, row in TABLE.items() if set(row.methods) & set(METHODS)}

Text = Annotated[str, Field(max_length=TEXT)]
Name = Annotated[str, Field(max_length=NAME)]
Seed = Annotated[int, Field(ge=-(2**62), le=2**62)]
Body = TypeVar("Body", bound=BaseModel)


class Refusal(Exception):  # noqa: N818 - it is an answer
    """An answer other than 200: the HTTP status and one sentence."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def _bounds(row: Setting, limits: Limits | None = None) -> tuple[float | None, float | None]:
    """The least and the greatest value that a server with these limits takes; None: no limit."""
    most = min(row.most, getattr(limits, row.name, LARGEST) if row.name in LIMITED else LARGEST)
    least = None if row.least == -math.inf else row.least
    return least, most


def _key(row: Setting) -> tuple[Any, Any]:
    """The type and the field of a setting's key; None, the default, is the method's own value."""
    if row.kind is bool:
        return bool | None, Field(None, description=row.help)
    if row.kind is str:
        choices = row.unlabelled_choices
        kind: Any = Literal[choices] if choices else Name
        return kind | None, Field(None, description=row.help)
    least, most = _bounds(row)
    return row.kind | None, Field(None, ge=least, le=most, description=row.help)


def with_settings(kind: type[Body]) -> type[Body]:
    """The same model with a key for every setting of the methods of `solve`."""
    keys: dict[str, Any] = {name: _key(row) for name, row in SETTINGS.items()}
    return create_model(kind.__name__, __base__=kind, __doc__=kind.__doc__, **keys)


def form_rows(limits: Limits) -> list[dict[str, Any]]:
    """The settings with a label, for the page's form; limits that do not exist are None."""
    rows = []
    for name, row in SETTINGS.items():
        if row.label:
            least, most = _bounds(row, limits)
            rows.append({
                "name": name, "kind": row.kind.__name__, "least": least, "most": most,
                "choices": row.unlabelled_choices, "label": row.label, "help": row.help,
                "methods": [method for method in row.methods if method in METHODS],
            })  # fmt: skip
    return rows


class SearchRequest(BaseModel):
    """The keys of requests that solve, besides the settings of the method."""

    model_config = CONFIG

    model: Name | None = None
    task: Name | None = None
    method: Name = Field(ADAPTIVE, description=", ".join(METHODS))
    seed: Seed = 0
    abstain: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    risk: Annotated[float, Field(gt=0.0, lt=1.0)] | None = Field(
        None, description="withhold answers so that at most this share of those given is wrong"
    )

    puzzles: Annotated[list[Text], Field(min_length=1, max_length=LONGEST)]

    @field_validator("guide", check_fields=False)
    @classmethod
    def no_folder(cls, guide: str | None) -> str | None:
        """A guide that names no folder of the server: requests open no files."""
        if guide is not None and LEARNED.rstrip(":") in guide:
            raise PydanticCustomError(
                "folder", "expected a guide without a folder, got a learned one; solve with it on "
                "the command line"
            )  # fmt: skip
        return guide

    def given(self) -> dict[str, Any]:
        """The settings of the method that were given; a switch that is off counts as not given."""
        found = {name: getattr(self, name) for name in SETTINGS}
        # By identity: a beta of 0 equals False.
        return {n: value for n, value in found.items() if value is not None and value is not False}


@with_settings
class SolveRequest(SearchRequest):
    """The body of POST /v1/solve."""


@with_settings
class StreamRequest(SearchRequest):
    """The body of POST /v1/solve/stream."""

    puzzles: Annotated[list[Text], Field(min_length=1, max_length=1)]
    baseline: bool = Field(False, description="also run the model without exploration")


class DiagnoseRequest(BaseModel):
    """The body of POST /v1/diagnose."""

    model_config = CONFIG

    model: Name | None = None
    task: Name | None = None
    seed: Seed = 0
    puzzles: Annotated[list[Text], Field(min_length=1, max_length=LONGEST)]
    answers: Annotated[list[Text], Field(max_length=LONGEST)] | None = None


async def read(request: Request, kind: type[Body], limits: Limits) -> Body:
    """The body as a record of this kind; raises Refusal."""
    declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if declared != "application/json":  # this also keeps out the forms of other sites
        raise Refusal(415, "expected Content-Type: application/json", connection="close")
    try:
        async with asyncio.timeout(limits.body_seconds):
            content = await _bytes(request, limits.body)
    except ClientDisconnect:  # nobody reads this answer; the log says what happened
        raise Refusal(400, "the client left before its body had arrived") from None
    except TimeoutError:
        sentence = f"expected the whole body within {limits.body_seconds:g} s, got part of it"
        raise Refusal(408, sentence, connection="close") from None
    try:
        found = kind.model_validate_json(content)
    except ValidationError as error:
        raise _explained(error, kind) from None
    for name in ("puzzles", "answers"):
        if any(len(text) > limits.text for text in getattr(found, name, None) or ()):
            raise Refusal(422, f"{name}: expected at most {limits.text:,} characters in each")
    return found


async def _bytes(request: Request, most: int) -> bytes:
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > most:
            raise Refusal(413, f"expected a body of at most {most} bytes", connection="close")
    return bytes(content)


def _explained(error: ValidationError, kind: type[BaseModel]) -> Refusal:
    """The first error, in a sentence that repeats little of the request."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])[:100]
    if first["type"] == "json_invalid":
        return Refusal(400, "expected a JSON object, got text that is not JSON")
    if first["type"] == "extra_forbidden":
        known = ", ".join(kind.model_fields)
        return Refusal(422, f"the keys are {known}; got unknown {where!r}")
    message = first["msg"][:1].lower() + first["msg"][1:]
    return Refusal(422, f"{where or 'body'}: {message}")

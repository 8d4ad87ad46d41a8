"""Serve the page that shows a run step by step, and the same solver over HTTP."""

import argparse
import ipaddress
import sys
from dataclasses import asdict
from pathlib import Path

from tiltrm import cpu_precision
from tiltrm.checks import require_number
from tiltrm.cli.extras import needs_extra
from tiltrm.cli.values import parse_assignment
from tiltrm.device import choose
from tiltrm.errors import DataError, SettingsError
from tiltrm.model import load
from tiltrm.model.checkpoint import bundled
from tiltrm.records import build_record
from tiltrm.tasks import STANDARD, SUDOKU

SHORTEST_TOKEN = 16
LONGEST = 1_000_000  # seconds of a request


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal."""
    with needs_extra("serve", "serve"):
        from tiltrm.serve import logs, server
        from tiltrm.serve.limits import Limits
    if arguments.queue < 1:
        raise SettingsError(f"--queue must be at least 1 puzzle, got {arguments.queue}")
    if not 0 < arguments.timeout < LONGEST:
        raise SettingsError(
            f"--timeout must be above 0 and below {LONGEST:,} seconds, got {arguments.timeout:g}"
        )
    token = _token(arguments.token_file)
    device = choose(arguments.device)
    precision = cpu_precision.choose(arguments.precision, device, measure_now=True)
    sources = model_sources(arguments)
    models = {
        name: load(source, device=device, puzzle_id=arguments.puzzle_id, **precision._asdict())
        for name, source in sources.items()
    }
    given = {"queue": arguments.queue, "seconds": arguments.timeout}
    given |= dict(parse_assignment(text) for text in arguments.limit)
    bounds = build_record(Limits, given)
    for name, value in asdict(bounds).items():
        if value is not None:
            require_number(name, value, LONGEST * 1e6, 1e-3)
    made, listener = server.build(
        models, device, host=arguments.host, port=arguments.port, token=token,
        limits=bounds, task=arguments.task, names=arguments.name,
        client_header=arguments.client_header, sources=sources,
    )  # fmt: skip
    if arguments.log:
        logs.write_json()
    if token is None and not ipaddress.ip_address(listener.getsockname()[0]).is_loopback:
        print(
            "tiltrm serve: everybody who reaches this address can use the server; give "
            "--token-file F, or put it behind a proxy (docs/serving.md)",
            file=sys.stderr,
        )
    print(f"serving {', '.join(models)} at {server.address(listener)}", flush=True)
    server.run(made, listener)
    return 0


def model_sources(arguments: argparse.Namespace) -> dict[str, str]:
    """The models to load, by the names that requests use: the last part of a path."""
    if arguments.task and not arguments.model:
        raise SettingsError(f"--task {arguments.task} needs --model with models for it, got none")
    own = dict.fromkeys(task.defaults.model for task in STANDARD)
    sources = arguments.model or [name for name in own if name in bundled()]
    found: dict[str, str] = {}
    for source in sources or [SUDOKU.defaults.model]:
        name = Path(source).name or source
        if name in found:
            raise SettingsError(f"models must differ in their last names, got {name!r} twice")
        found[name] = source
    return found


def _token(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        token = Path(path).read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected a file with a token, got {error}") from error
    if len(token) < SHORTEST_TOKEN or len(token.split()) != 1:
        raise DataError(
            f"{path}: expected one token of at least {SHORTEST_TOKEN} characters, got "
            f"{len(token)} characters in {len(token.split())} words"
        )
    return token

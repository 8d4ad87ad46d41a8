"""Choose the command, run it, and turn every expected error into one sentence."""

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from tiltrm.errors import SettingsError, TiltrmError

COMMANDS = ("solve", "import", "data", "train", "serve", "diagnose", "evaluate", "reproduce")
BAD_INPUT = 2
INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one sentence, and that knows no shortened flags."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**{**settings, "allow_abbrev": False})  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{' '.join(message.split())}; see {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run `tiltrm ARGV` and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack the characters of a grid
    name = "tiltrm"
    try:
        arguments = _parser().parse_args(argv)
        name = f"tiltrm {arguments.command}"
        code: int = arguments.run(arguments)
        return code
    except TiltrmError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        # The reader went away (`| head`); Python would complain again at exit otherwise.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> Parser:
    parser = Parser(
        prog="tiltrm",
        description="More right answers from a frozen tiny recursive model, and when to trust it.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"tiltrm.cli.{name}_command")
        summary = (module.__doc__ or "").partition("\n")[0]
        command = commands.add_parser(name, help=summary, description=summary)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser

"""Choose the command, run it, and turn every expected error into one sentence."""

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from tiltrm.errors import SettingsError, TiltrmError
from tiltrm.provenance import release
from tiltrm.tasks import adopt
from tiltrm_entry import INTERRUPTED

COMMANDS = (
    "solve", "import", "data", "train", "calibrate", "serve", "diagnose", "evaluate", "reproduce",
)  # fmt: skip
BAD_INPUT = 2


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one sentence, and that knows no shortened flags.

    An empty word is no value: it is a shell's variable that was never set.
    """

    def __init__(self, **settings: object) -> None:
        super().__init__(**{**settings, "allow_abbrev": False})  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{' '.join(message.split())}; see {self.prog} --help")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        sys.stdout.flush()  # the help; when Python ends, it is too late for an answer
        super().exit(status, message)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if not arg_string and action.option_strings and action.const is None:
            raise argparse.ArgumentError(action, "expected a value, got an empty one")
        return super()._get_value(action, arg_string)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `tiltrm ARGV` and return the exit code."""
    _ready_streams()
    arguments = argparse.Namespace(command=None)  # has its command before its flags are read
    try:
        _parser().parse_args(argv, arguments)
        if ":" in (getattr(arguments, "task", None) or ""):
            arguments.task = adopt(arguments.task).name
        code: int = arguments.run(arguments)
        sys.stdout.flush()  # when Python ends, it is too late for an answer
        return code
    except TiltrmError as error:
        _say(arguments, str(error))
        return BAD_INPUT
    except BrokenPipeError:  # the reader went away (`| head`)
        _drop_output()
        return 0
    except OSError as error:  # a full disk, most of all
        _say(
            arguments,
            f"expected to read and write, got: {error}; make room or name another place",
        )
        _drop_output()
        return BAD_INPUT
    except KeyboardInterrupt:
        _say(arguments, "interrupted")
        return INTERRUPTED


def _ready_streams() -> None:
    """Streams that can be written to: closed ones (`>&-`) lead nowhere, and none lacks a character.

    A terminal may lack those of a grid.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _say(arguments: argparse.Namespace, sentence: str) -> None:
    """In the name of the command, where there is one."""
    name = " ".join(filter(None, ("tiltrm", arguments.command)))
    with suppress(OSError):  # there is nobody else to tell
        print(f"{name}: {sentence}", file=sys.stderr)


def _drop_output() -> None:
    """Send what is left of it nowhere; Python would complain at exit otherwise."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> Parser:
    parser = Parser(
        prog="tiltrm",
        description="More right answers from a frozen tiny recursive model, and when to trust it.",
    )
    parser.add_argument("--version", action="version", version=release())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"tiltrm.cli.{name}_command")
        summary = (module.__doc__ or "").partition("\n")[0]
        command = commands.add_parser(name, help=summary, description=summary)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser

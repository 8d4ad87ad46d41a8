"""Choose the command, run it, and turn every expected error into one sentence.

A command is a module `tiltrm.cli.NAME_command` with `add_arguments(parser)` and `run(arguments)`.
Only the module of the chosen command is imported, and it imports torch in `run` and not before, so
that --help is fast.
"""

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from tiltrm.errors import SettingsError, TiltrmError
from tiltrm_entry import INTERRUPTED, quiet_interrupts

COMMANDS = {
    "solve": "Solve puzzles, and say how sure every cell is and what it cost.",
    "import": "Import another code's checkpoint into a native folder, and say what was inferred.",
    "data": "Check a file of puzzles: its task, count, checksum and bad rows; or generate puzzles.",
    "train": "Train a model from puzzles, for some minutes or steps; resumable.",
    "calibrate": "Choose the stopping threshold on the halt logit, on puzzles with known answers.",
    "serve": "Serve the page where the cloud moves, and the same solver to programs.",
    "diagnose": "Say without labels whether exploration will help, and which answers to trust.",
    "evaluate": "Compare methods on the same puzzles: accuracy, cost, and paired tests.",
    "reproduce": "Make the paper's tables and figures again, beside the paper's numbers.",
}
BAD_INPUT = 2


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, and that accepts no shortened flags.

    It refuses an empty value, which usually is a shell variable that was never set.
    """

    def __init__(self, **settings: object) -> None:
        super().__init__(**{**settings, "allow_abbrev": False})  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{' '.join(message.split())}; see {self.prog} --help")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        sys.stdout.flush()  # now, while `main` can still catch a BrokenPipeError
        super().exit(status, message)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if not arg_string and action.option_strings and action.const is None:
            raise argparse.ArgumentError(action, "expected a value, got an empty one")
        return super()._get_value(action, arg_string)


class ShowVersion(argparse.Action):
    """Print the version; it is looked up only then, because that takes a while."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from tiltrm.provenance import release

        print(release())
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run `tiltrm ARGV` and return the exit code."""
    _ready_streams()
    words = sys.argv[1:] if argv is None else argv
    arguments = argparse.Namespace(command=None)  # argparse sets the command before its flags fail
    try:
        with quiet_interrupts():
            _parser(words).parse_args(words, arguments)
            import torch  # noqa: F401  # every command needs it, and it takes a second
        if ":" in (getattr(arguments, "task", None) or ""):
            from tiltrm.tasks import adopt

            arguments.task = adopt(arguments.task).name
        code: int = arguments.run(arguments)
        sys.stdout.flush()  # now, while a BrokenPipeError can still be caught
        return code
    except TiltrmError as error:
        _say(arguments, str(error))
        return BAD_INPUT
    except BrokenPipeError:  # the reader closed the pipe (`| head`)
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
    """Replace closed streams (`>&-`) by the null device, and characters they lack by ?."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _say(arguments: argparse.Namespace, sentence: str) -> None:
    """Print the sentence on stderr, after the name of the command if there is one."""
    name = " ".join(filter(None, ("tiltrm", arguments.command)))
    with suppress(OSError):  # stderr is the last resort
        print(f"{name}: {sentence}", file=sys.stderr)


def _drop_output() -> None:
    """Send the rest of the output to the null device; Python would complain at exit otherwise."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(words: Sequence[str]) -> Parser:
    """The parser of all commands. Only the command among these words gets its flags."""
    parser = Parser(
        prog="tiltrm",
        description="More right answers from a frozen tiny recursive model, and when to trust it.",
    )
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    chosen = next((word for word in words if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name == chosen:
            module = importlib.import_module(f"tiltrm.cli.{name}_command")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser

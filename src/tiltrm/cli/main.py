"""Choose the command, run it, and turn every expected error into one sentence.

A command is a line in COMMANDS and a module `tiltrm.cli.NAME_command` with `run(arguments)`, its
hyphens as underscores. The module is imported when the command runs, since nearly all of them
import torch.
"""

import argparse
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from tiltrm.cli import flags, reproduce_command
from tiltrm.errors import SettingsError, TiltrmError
from tiltrm_entry import INTERRUPTED, quiet_interrupts


class Command(NamedTuple):
    """A command in the overview of `tiltrm --help`, and its flags."""

    summary: str
    add_flags: Callable[[argparse.ArgumentParser], None]


COMMANDS = {
    "solve": Command(
        "Solve puzzles, and say how sure every cell is and what it cost.", flags.add_solve
    ),
    "import": Command(
        "Import another code's checkpoint into a native folder, and say what was inferred.",
        flags.add_import,
    ),
    "data": Command(
        "Check a file of puzzles: its task, count, checksum and bad rows; or generate puzzles.",
        flags.add_data,
    ),
    "train": Command(
        "Train a model from puzzles, for some minutes or steps; resumable.", flags.add_train
    ),
    "tune": Command(
        "Choose noise, plan and stopping rule for a checkpoint, and calibrate its confidence.",
        flags.add_tune,
    ),
    "fit-guide": Command(
        "Fit a small head that tells which particles will end right, for --guide learned:FOLDER.",
        flags.add_fit_guide,
    ),
    "serve": Command(
        "Serve the page that shows a run step by step, and the same solver over HTTP.",
        flags.add_serve,
    ),
    "site": Command(
        "Write the page as static files that solve in the browser, without a server.",
        flags.add_site,
    ),
    "export": Command(
        "Write a model as ONNX graphs in float32, float16 and int8, checked against torch.",
        flags.add_export,
    ),
    "diagnose": Command(
        "Say without labels whether exploration will help, and which answers to trust.",
        flags.add_diagnose,
    ),
    "evaluate": Command(
        "Compare methods on the same puzzles: accuracy, cost, and paired tests.",
        flags.add_evaluate,
    ),
    "reproduce": Command(
        "Make the paper's tables and figures again, and the frontier, beside the paper's numbers.",
        reproduce_command.add_arguments,
    ),
}
MOVED = {"calibrate": "tune --threshold-only"}  # former commands
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
    arguments = argparse.Namespace(command=None)  # argparse sets the command before its flags fail
    try:
        with quiet_interrupts():
            _refuse_moved(sys.argv[1:] if argv is None else argv)
            _parser().parse_args(argv, arguments)
            command = importlib.import_module(_module(arguments.command))
        arguments.task_source = getattr(arguments, "task", None)
        if ":" in (arguments.task_source or ""):
            from tiltrm.tasks import adopt

            arguments.task = adopt(arguments.task_source).name
        code: int = _run(command.run, arguments)
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
    except (MemoryError, RuntimeError) as error:
        if not _out_of_memory(error):
            raise
        _say(
            arguments,
            "expected to fit in memory, got no more of it; take a smaller batch, fewer particles "
            "or puzzles, or a machine with more memory",
        )
        return BAD_INPUT
    except KeyboardInterrupt:
        _say(arguments, "interrupted")
        return INTERRUPTED


def _refuse_moved(argv: Sequence[str]) -> None:
    if argv and argv[0] in MOVED:
        now = MOVED[argv[0]]
        raise SettingsError(
            f"expected a command, got {argv[0]}, which is part of another one; write tiltrm {now}, "
            "which stores its result unless --dry-run is given"
        )


def _out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out; torch has errors of its own for that."""
    if isinstance(error, MemoryError) or "torch" not in sys.modules:
        return isinstance(error, MemoryError)
    from tiltrm.explore.batching import out_of_memory

    return out_of_memory(error)


def _module(command: str) -> str:
    return f"tiltrm.cli.{command.replace('-', '_')}_command"


def _run(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Run a command; an error in the file of a task of one's own is one sentence that says where.

    Its functions were checked when it was registered, but they may still fail on a later puzzle.
    """
    file = (arguments.task_source or "").rpartition(":")[0]
    try:
        return run(arguments)
    except (TiltrmError, OSError):
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if file and frame.filename == file]
        if not own:
            raise
        said = " ".join(f"{type(error).__name__}: {error}".split())[:160]
        raise SettingsError(
            f"{file}: {own[-1].name} must not raise, got {said} in line {own[-1].lineno}"
        ) from error


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


def _parser() -> Parser:
    parser = Parser(
        prog="tiltrm",
        description="More right answers from a frozen tiny recursive model, and when to trust it.",
    )
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (summary, add_flags) in COMMANDS.items():
        add_flags(commands.add_parser(name, help=summary, description=summary))
    return parser

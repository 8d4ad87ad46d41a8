"""The program `tiltrm`: an interrupt ends it at once and quietly, from the first moment on.

It stands outside the package, since whatever imports that imports torch, a second and more.
"""

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

INTERRUPTED = 130


def main() -> int:
    """Run `tiltrm` with the words of the command line and return the exit code."""
    waiting = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored
    if waiting:
        signal.signal(signal.SIGINT, _leave)
    from tiltrm.cli import main as run

    if waiting:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run()
    if code == INTERRUPTED:
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(code)  # Python would wait for the threads that are still at work
    return code


def _leave(*_: object) -> NoReturn:
    """At once: an error in the middle of an import passes for a broken library."""
    with suppress(OSError):
        os.write(2, b"tiltrm: interrupted\n")
    os._exit(INTERRUPTED)

"""The program `tiltrm`: an interrupt ends it at once and quietly, from the first moment on.

It stands outside the package, since whatever imports that imports torch, a second and more.
`python -m tiltrm` and `python -m tiltrm.cli` end here, too, once Python has imported the package.
"""

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

INTERRUPTED = 130


def main() -> int:
    """Run `tiltrm` with the words of the command line and return the exit code."""
    waiting = hush()
    from tiltrm.cli import main as run

    if waiting:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run()
    if code == INTERRUPTED:
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(code)  # Python would wait for the threads that are still at work
    return code


def hush() -> bool:
    """Let an interrupt end the process at once; False, and nothing done, where it is ignored."""
    if signal.getsignal(signal.SIGINT) not in (signal.default_int_handler, _leave):
        return False
    signal.signal(signal.SIGINT, _leave)
    return True


def _leave(*_: object) -> NoReturn:
    """At once: an error in the middle of an import passes for a broken library."""
    with suppress(OSError):
        os.write(2, b"tiltrm: interrupted\n")
    os._exit(INTERRUPTED)

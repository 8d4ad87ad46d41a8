"""The program `tiltrm`. An interrupt ends it at once and without a traceback, from the start on.

This module is not in the package, so that nothing of the package is imported before the handler
is set. `python -m tiltrm` and `python -m tiltrm.cli` call it, too.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

INTERRUPTED = 130


def main() -> int:
    """Run `tiltrm` with the words of the command line and return the exit code."""
    with quiet_interrupts():
        from tiltrm.cli import main as run

    code = run()
    if code == INTERRUPTED:
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(code)  # Python would wait for the threads that are still at work
    return code


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Let an interrupt end the process at once. Slow imports belong in here.

    A KeyboardInterrupt in the middle of an import can look like a broken library. If SIGINT has a
    handler other than Python's own, or is ignored, it is left alone.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _exit(*_: object) -> NoReturn:
    with suppress(OSError):
        os.write(2, b"tiltrm: interrupted\n")
    os._exit(INTERRUPTED)

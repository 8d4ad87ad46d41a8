"""Long calls beside the engine (diagnoses, generators), each in a thread that can be interrupted.

Such a call knows nothing of clients and may be anybody's code, so it is not asked to look whether
it is still wanted: an exception is raised in its thread, between two of its Python instructions.
Proved by tests/serve/test_background.py.
"""

import asyncio
import ctypes
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

Value = TypeVar("Value")


class InterruptedCall(BaseException):
    """Raised inside a call that nobody waits for any more."""


class StoppedError(Exception):
    """The server closes, and the call was ended."""


class _Call(threading.Thread):
    """A thread that runs `work` and tells its outcome to an event loop."""

    def __init__(self, work: Callable[[], Any], future: "asyncio.Future[Any]", kind: str) -> None:
        # A daemon: the process can end even where an interruption has no effect.
        super().__init__(name=f"tiltrm-{kind}", daemon=True)
        self.kind = kind
        self._work, self._future, self._loop = work, future, asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._working = True

    def run(self) -> None:
        value: Any = None
        error: Exception | None = None
        with suppress(InterruptedCall):  # one that was sent at the last moment
            try:
                value = self._work()
            except InterruptedCall:
                error = StoppedError()
            except BaseException as other:  # SystemExit too: a generator may call exit()
                error = other if isinstance(other, Exception) else StoppedError()
            finally:
                with self._lock:
                    self._working = False
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._tell, value, error)

    def _tell(self, value: Any, error: Exception | None) -> None:
        if self._future.done():
            return
        if error is None:
            self._future.set_result(value)
        else:
            self._future.set_exception(error)

    def interrupt(self) -> None:
        """Raise InterruptedCall in the thread if it still works."""
        with self._lock:
            if self._working and self.ident is not None:
                raised = ctypes.c_ulong(self.ident), ctypes.py_object(InterruptedCall)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(*raised)


class BackgroundCalls:
    """The calls that run now."""

    def __init__(self) -> None:
        self._calls: set[_Call] = set()
        self._closing = False

    def running(self, kind: str) -> int:
        """Calls of this kind that still run, wanted or not."""
        return sum(call.kind == kind and call.is_alive() for call in self._calls)

    async def run(self, work: Callable[[], Value], kind: str = "call") -> Value:
        """The value of `work()`; if the awaiting task is cancelled, the call is interrupted.

        Raises StoppedError after `close`.
        """
        if self._closing:
            raise StoppedError
        future: asyncio.Future[Value] = asyncio.get_running_loop().create_future()
        call = _Call(work, future, kind)
        self._calls = {each for each in self._calls if each.is_alive()} | {call}
        call.start()
        try:
            return await future
        finally:
            call.interrupt()

    def close(self) -> None:
        """Interrupt all calls, and accept no more."""
        self._closing = True
        for call in self._calls:
            call.interrupt()

    def join(self, seconds: float) -> bool:
        """Wait for the end of all calls; whether they ended in time."""
        end = time.monotonic() + seconds
        for call in self._calls:
            call.join(max(0.0, end - time.monotonic()))
        return not any(call.is_alive() for call in self._calls)

"""A user's code in Python that never ends is ended: after so much wall time an exception is raised where it is.

By another thread, because the timer of the process is taken (interrupt.py) and a cluster's workers compute in threads.
What waits in a call of the system is ended when that returns.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dryfly.base.errors import RunError

_AGAIN_S = 0.5  # for code that catches all exceptions


class _TimeIsUp(BaseException):
    """No Exception, so that nothing on its way takes it for one of the user's."""


@contextmanager
def within(seconds: float | None, what: str) -> Iterator[None]:
    """`what` has not ended: raises RunError. None: it has all the time."""
    if seconds is None:
        yield
        return
    thread, over, lock = threading.get_ident(), threading.Event(), threading.Lock()

    def watch() -> None:
        left_s = seconds
        while not over.wait(left_s):
            with lock:
                if not over.is_set():
                    _raise_in(thread, ctypes.py_object(_TimeIsUp))
            left_s = _AGAIN_S

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        try:
            yield
        finally:
            with lock:
                over.set()
                _raise_in(thread, None)  # what is raised and not seen yet
    except _TimeIsUp:
        over.set()
        raise RunError(f"{what} has not ended after {seconds:g} s", exit_status=1) from None
    finally:
        watcher.join()


def _raise_in(thread: int, what: object) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)

"""The signals that end a command, as events of its loop."""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import socket
from collections.abc import Callable

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


def dying_with_parent() -> Callable[[], None]:
    """For subprocess's preexec_fn: a child that nobody waits for any more ends as by SIGTERM."""
    parent = os.getpid()

    def prepare() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def watch(selector: selectors.BaseSelector, handle: Callable[[int], None]) -> Callable[[], None]:
    """Calls `handle` with the number of each signal of ENDING, from a loop that calls the data of what the selector
    returns. What it gives back restores the handlers of before."""
    receive, send = socket.socketpair()
    for end in (receive, send):
        end.setblocking(False)
    before_wakeup = signal.set_wakeup_fd(send.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in ENDING}

    def on_signal() -> None:
        for number in receive.recv(64):  # of every signal that Python knows of
            if number in ENDING:
                handle(number)

    selector.register(receive, selectors.EVENT_READ, on_signal)

    def restore() -> None:
        for number, handler in before.items():
            # One that was installed from C is None here; it cannot be put back.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        signal.set_wakeup_fd(before_wakeup)
        receive.close()
        send.close()

    return restore

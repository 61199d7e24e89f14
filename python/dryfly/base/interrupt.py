"""Ctrl-C that is not lost.

Python raises KeyboardInterrupt wherever it happens to be. In a destructor or in the callback of a weak reference, of
which every import has one, nobody can catch it: it is printed and forgotten, and the command goes on. Such an interrupt
is raised once more, a moment later, until it ends the command.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

_MOMENT_S = 1e-3


class Ended(KeyboardInterrupt):
    """By a signal that ends a command as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class _Again:
    """The hook for what cannot be raised."""

    moment_s = _MOMENT_S
    number: int = signal.SIGINT  # what was lost

    def __call__(self, lost: sys.UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            self.number = number_of(lost.exc_value)
            self.moment_s = _MOMENT_S
            signal.setitimer(signal.ITIMER_REAL, self.moment_s)
        else:
            sys.__unraisablehook__(lost)

    def raise_interrupt(self, _number: int, at: FrameType | None) -> None:
        while at is not None:
            if at.f_code is _Again.__call__.__code__:
                # Below the hook it would be lost again. On a busy computer the hook may need more than a moment.
                self.moment_s *= 2
                signal.setitimer(signal.ITIMER_REAL, self.moment_s)
                return
            at = at.f_back
        raise Ended(self.number)


def number_of(interrupt: BaseException | None) -> int:
    return interrupt.number if isinstance(interrupt, Ended) else signal.SIGINT


def _end(number: int, _at: FrameType | None) -> None:
    raise Ended(number)


def keep() -> None:
    """From now on no interrupt of this process is lost, and SIGTERM and SIGHUP are interrupts: what is to be removed at
    the end is removed. Takes SIGALRM and the real-time timer."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    again = _Again()
    signal.signal(signal.SIGALRM, again.raise_interrupt)
    sys.unraisablehook = again

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


class _Again:
    """The hook for what cannot be raised."""

    moment_s = _MOMENT_S

    def __call__(self, lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is KeyboardInterrupt:
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
        raise KeyboardInterrupt


def keep() -> None:
    """From now on no interrupt of this process is lost. Takes SIGALRM and the real-time timer for it."""
    again = _Again()
    signal.signal(signal.SIGALRM, again.raise_interrupt)
    sys.unraisablehook = again

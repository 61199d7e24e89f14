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


def keep() -> None:
    """From now on no interrupt of this process is lost. Takes SIGALRM and the real-time timer for it."""
    signal.signal(signal.SIGALRM, _raise)
    sys.unraisablehook = _again


def _again(lost: sys.UnraisableHookArgs) -> None:
    if lost.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, _MOMENT_S)
    else:
        sys.__unraisablehook__(lost)


def _raise(_number: int, at: FrameType | None) -> None:
    if at is not None and at.f_code is _again.__code__:
        signal.setitimer(signal.ITIMER_REAL, _MOMENT_S)  # here it would be lost again
    else:
        raise KeyboardInterrupt

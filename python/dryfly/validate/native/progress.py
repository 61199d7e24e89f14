"""How far a real validation has come: a bar that is written over on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

_BAR_EVERY_S = 0.2
_LINE_EVERY_S = 10.0
_WIDTH = 30
_TO_START_AND_CLEAR = "\r\033[K"


def duration(seconds: float) -> str:
    """For people: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Bar:
    """Of all that is to be done in about `expected_s` seconds; what comes on top of that, such as measuring suspects
    again, makes it no longer."""

    def __init__(
        self, *, quiet: bool, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._quiet = quiet
        self._clock = clock
        self._expected_s = 0.0
        self._said_at = clock()
        self._shown = False

    def expect(self, seconds: float) -> None:
        self._expected_s = seconds

    def reached(self, what: str, seconds: float) -> None:
        """So much of the expected time has been worked off."""
        every_s = _BAR_EVERY_S if self._terminal else _LINE_EVERY_S
        now = self._clock()
        if self._quiet or self._expected_s == 0 or now - self._said_at < every_s:
            return
        self._said_at = now
        share = min(seconds / self._expected_s, 1.0)
        left = duration(max(self._expected_s - seconds, 0))
        if self._terminal:
            full = round(share * _WIDTH)
            text = f"{what:24} [{'#' * full}{'.' * (_WIDTH - full)}] {share:4.0%}, about {left} left"
            self._stream.write(_TO_START_AND_CLEAR + text)
        else:
            self._stream.write(f"dryfly: {what}: {share:.0%}, about {left} left\n")
        self._stream.flush()
        self._shown = self._terminal

    def clear(self) -> None:
        """Before anything else is written."""
        if self._shown:
            self._stream.write(_TO_START_AND_CLEAR)
            self._stream.flush()
        self._shown = False

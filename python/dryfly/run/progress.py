"""How far a run has come, said while it lasts: virtual time, and how fast it moves against wall time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from dryfly.base.units import time_text

_LINE_EVERY_S = 10.0
_WRITTEN_OVER_EVERY_S = 0.5
_QUIET_FOR_S = 3.0  # most runs are over by then
_TO_START_AND_CLEAR = "\r\033[K"


class Progress:
    """`lines`: whole lines, every ten seconds, or, `rarer`, each after twice the time; otherwise one line of a terminal
    that is written over, where nobody else writes."""

    def __init__(
        self,
        *,
        lines: bool,
        rarer: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lines = lines
        self._growth = 2 if rarer else 1
        self._every_s = _LINE_EVERY_S if lines else _WRITTEN_OVER_EVERY_S
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._last: tuple[float, int] | None = None  # wall time and virtual time of what was said last
        self._begun = 0.0
        self._shown = False

    def start(self) -> None:
        self._begun = self._clock()
        self._last = (self._begun, 0)

    def reached(self, picoseconds: int) -> None:
        if self._last is None:
            return
        now = self._clock()
        then, before = self._last
        if now - then < self._every_s or now - self._begun < _QUIET_FOR_S:
            return
        self._last = (now, picoseconds)
        self._every_s *= self._growth
        text = (
            f"dryfly: {time_text(picoseconds)} of virtual time in {now - self._begun:.0f} s, "
            f"now {time_text((picoseconds - before) / (now - then))} per second"
        )
        self._stream.write(f"{text}\n" if self._lines else f"{_TO_START_AND_CLEAR}{text}")
        self._stream.flush()
        self._shown = not self._lines

    def clear(self) -> None:
        """Before anything else is written."""
        if self._shown:
            self._stream.write(_TO_START_AND_CLEAR)
            self._stream.flush()
        self._shown = False


def wanted(*, asked: bool, quiet: bool) -> Progress | None:
    """On a terminal it is shown unasked. Where the program writes there too, a line that is written over would be in
    the way."""
    terminal = sys.stderr.isatty()
    if terminal and not sys.stdout.isatty() and (asked or not quiet):
        return Progress(lines=False)
    if asked:
        return Progress(lines=True)
    return Progress(lines=True, rarer=True) if terminal and not quiet else None

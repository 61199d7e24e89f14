"""A program that names its MPI only once it runs may use the other family than was taken for it. Where nobody has said
which one, a rank that finds so in MPI_Init leaves word and ends (preload/mpi/expected_mpi.cpp), before MPI has begun in
any of them, and the run starts again with the other family.

What the program has done by then is done twice, but for what it has read from standard input: that is put back. Where
it cannot be, as of a pipe, there is no second start, and ranks say what to say.
"""

from __future__ import annotations

import errno
import os
import select
from dataclasses import dataclass
from pathlib import Path

from dryfly.run.processes import EXIT_SIMULATOR, Outcome

_VARIABLE = "DRYFLY_OTHER_MPI"
_FILE = "other-mpi"


@dataclass(frozen=True, kw_only=True)
class OtherFamily:
    family: str  # as --mpi has it
    reason: str  # PROGRAM uses it and cannot run on the library


def settings(folder: Path) -> dict[str, str]:
    """Of ranks that are to leave word."""
    return {_VARIABLE: str(folder / _FILE)}


def found(folder: Path) -> OtherFamily | None:
    """What a rank has left there."""
    try:
        text = (folder / _FILE).read_text(errors="replace")
    except FileNotFoundError:
        return None
    family, _, reason = text.partition(" ")
    return OtherFamily(family=family, reason=reason)


def may_start_again(outcome: Outcome) -> bool:
    """Not if a rank has come to the network with the library that was taken, or where something else has ended the
    job than ranks themselves."""
    return outcome.attached == 0 and outcome.exit_status < EXIT_SIMULATOR


class Input:
    """Standard input, as it is now."""

    def __init__(self) -> None:
        self._place: int | None = None
        try:
            self._place = os.lseek(0, 0, os.SEEK_CUR)
            self.can_be_put_back = True
        except OSError as error:
            self.can_be_put_back = error.errno == errno.EBADF or os.isatty(0) or _is_at_end()

    def put_back(self) -> None:
        if self._place is not None:
            os.lseek(0, self._place, os.SEEK_SET)


def _is_at_end() -> bool:
    """Of a pipe that nobody writes to."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    return [event for _, event in poll.poll(0)] == [select.POLLHUP]

"""The verbs in which a program's skeleton is written; each writes down what it is.

An instruction is three words of 64 bits, as core/motif/schedule/schedule.hpp has them: verb, line and request; peer and
tag; size. A peer is counted from the rank itself, so that ranks that do the same where they are have the same list.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NewType

from dryfly.base.errors import UserError

ANY: Final = -1  # as a source or a tag of a receive

# In the order of `Verb`.
_VERBS: Final = [
    "compute",
    "isend",
    "irecv",
    "put",
    "get",
    "send",
    "recv",
    "wait",
    "wait_all",
    "phase",
    "barrier",
    "fence",
    "bcast",
    "reduce",
    "allreduce",
    "alltoall",
    "allgather",
    "reduce_scatter",
    "gather",
    "scatter",
]
_CODE: Final = {name: code for code, name in enumerate(_VERBS)}
_COMPUTE, _ISEND, _IRECV, _PUT, _GET, _SEND, _RECV, _WAIT, _WAIT_ALL, _PHASE = range(10)

_ANY_WORD = (1 << 32) - 1
_NO_SLOT = _ANY_WORD
_MOST_BYTES = 1 << 40
_MOST_S = 86_400.0
_MOST_TAG = (1 << 30) - 1  # collectives have those above

Request = NewType("Request", int)


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Ranks of a collective, in ascending order."""

    ranks: tuple[int, ...]
    number: int


class Recorder:
    """What ranks of one program have in common: names of phases, and groups. `file`: whose lines are named."""

    def __init__(self, *, ranks: int, file: str) -> None:
        self.ranks = ranks
        self.file = file
        self.phases: dict[str, int] = {}
        self.groups: dict[tuple[int, ...], Group] = {}


class Rank:
    """A rank of the program. `rank` is its number, `size` how many there are.

    Sizes are in bytes, times in seconds. What is called takes what it takes on the simulated machine when the schedule
    is run; here nothing takes any time, and no verb returns data.
    """

    def __init__(self, *, rank: int, recorder: Recorder) -> None:
        self.rank = rank
        self.size = recorder.ranks
        self._recorder = recorder
        self._file = recorder.file
        self.words = array("Q")
        self._serials: list[int] = []  # by slot: which request has it, 0 for none
        self._free: list[int] = []
        self._last = 0

    @property
    def slots(self) -> int:
        return len(self._serials)

    # Point to point.

    def isend(self, to: int, size: int, tag: int = 0) -> Request:
        """Begins to send `size` bytes; the request is complete when its buffer could be used again."""
        return self._begin(_ISEND, self._peer(to), size, tag)

    def irecv(self, source: int, tag: int = 0) -> Request:
        """Begins to receive a message of any size. `source` and `tag` may be ANY."""
        peer = _ANY_WORD if source == ANY else self._peer(source)
        return self._begin(_IRECV, peer, 0, tag, may_be_any=True)

    def send(self, to: int, size: int, tag: int = 0) -> None:
        self._put(_SEND, 0, self._peer(to), self._tag(tag), self._bytes(size))

    def recv(self, source: int, tag: int = 0) -> None:
        peer = _ANY_WORD if source == ANY else self._peer(source)
        self._put(_RECV, 0, peer, self._tag(tag, may_be_any=True), 0)

    def sendrecv(self, to: int, size: int, source: int, tag: int = 0) -> None:
        """Sends to one and receives from another, at the same time."""
        peer = _ANY_WORD if source == ANY else self._peer(source)
        received = self._begin(_IRECV, peer, 0, tag)
        sent = self._begin(_ISEND, self._peer(to), size, tag)
        self._wait_two(received, sent)

    def wait(self, *requests: Request) -> None:
        """Until all of these are complete."""
        for first in range(0, len(requests), 2):
            self._wait_two(*requests[first : first + 2])

    def wait_all(self) -> None:
        """Until all is complete that this rank has begun."""
        self._put(_WAIT_ALL, 0, 0, 0, 0)
        self._serials = [0] * len(self._serials)
        self._free = list(range(len(self._serials) - 1, -1, -1))

    def forget(self, *requests: Request) -> None:
        """Nobody will wait for these by name; wait_all() and the end of the program still do."""
        for request in requests:
            self._slot(request)

    # One-sided.

    def put(self, to: int, size: int) -> Request:
        """Begins to write into the memory of another rank; complete when the bytes are there."""
        return self._begin(_PUT, self._peer(to), size, 0)

    def get(self, source: int, size: int) -> Request:
        """Begins to read from the memory of another rank; complete when the bytes are here."""
        return self._begin(_GET, self._peer(source), size, 0)

    def fence(self) -> None:
        """Until all that this rank has begun is complete, and all ranks have come to this."""
        self.wait_all()
        self._collective("fence", 0, None)

    # Collectives: all ranks, or all of a group, call the same ones in the same order.

    def group(self, ranks: Sequence[int]) -> Group:
        """Ranks for collectives, such as a row: `me.group(range(first, last))`."""
        key = tuple(sorted(ranks))
        known = self._recorder.groups.get(key)
        if known is not None:
            return known
        if not key or key[0] < 0 or key[-1] >= self.size or len(set(key)) != len(key):
            raise self._error(f"group = {list(ranks)}: accepted are different ranks from 0 to {self.size - 1}")
        made = Group(ranks=key, number=len(self._recorder.groups) + 1)
        self._recorder.groups[key] = made
        return made

    def barrier(self, group: Group | None = None) -> None:
        self._collective("barrier", 0, group)

    def bcast(self, size: int, root: int = 0, group: Group | None = None) -> None:
        """`root` is a rank of the program, in groups too."""
        self._collective("bcast", size, group, root)

    def reduce(self, size: int, root: int = 0, group: Group | None = None) -> None:
        self._collective("reduce", size, group, root)

    def allreduce(self, size: int, group: Group | None = None) -> None:
        self._collective("allreduce", size, group)

    def alltoall(self, size: int, group: Group | None = None) -> None:
        """`size` bytes from each rank to each other."""
        self._collective("alltoall", size, group)

    def allgather(self, size: int, group: Group | None = None) -> None:
        """Each rank's part has `size` bytes; so in gather, scatter and reduce_scatter."""
        self._collective("allgather", size, group)

    def reduce_scatter(self, size: int, group: Group | None = None) -> None:
        self._collective("reduce_scatter", size, group)

    def gather(self, size: int, root: int = 0, group: Group | None = None) -> None:
        self._collective("gather", size, group, root)

    def scatter(self, size: int, root: int = 0, group: Group | None = None) -> None:
        self._collective("scatter", size, group, root)

    # Time.

    def compute(self, seconds: float) -> None:
        """The rank's core is busy for so long."""
        if not 0 <= seconds <= _MOST_S:
            raise self._error(f"compute({seconds}): accepted are 0 to 86400 seconds")
        ps = round(seconds * 1e12)
        if ps:
            self._put(_COMPUTE, 0, 0, 0, ps)

    def phase(self, name: str) -> None:
        """From now on the rank's time counts for the phase of this name; "" for none."""
        if "\0" in name:
            raise self._error("phase: a name has no zero bytes")
        phases = self._recorder.phases
        number = phases.setdefault(name, len(phases) + 1) if name else 0
        self._put(_PHASE, 0, number, 0, 0)

    # How it is written down.

    def _put(self, verb: int, slot: int, peer: int, tag: int, size: int) -> None:
        self.words.extend((verb | self._line() << 8 | slot << 32, peer | tag << 32, size))

    def _line(self) -> int:
        """Where the program is; helpers of the user's in other files are called from there."""
        file = self._file
        frame = sys._getframe(3) if file else None
        while frame is not None:
            if frame.f_code.co_filename is file or frame.f_code.co_filename == file:
                return frame.f_lineno & 0xFFFFFF
            frame = frame.f_back
        return 0

    def _error(self, sentence: str) -> UserError:
        line = self._line()
        where = f"{self._recorder.file}, line {line}, " if line else ""
        return UserError(f"{where}rank {self.rank}: {sentence}")

    def _peer(self, rank: int) -> int:
        if not 0 <= rank < self.size:
            raise self._error(f"peer = {rank}: accepted is a rank from 0 to {self.size - 1}")
        return (rank - self.rank) % self.size

    def _bytes(self, size: int) -> int:
        if not 0 <= size <= _MOST_BYTES or size != int(size):
            raise self._error(f"size = {size}: accepted is a whole number of bytes from 0 to 2^40")
        return int(size)

    def _tag(self, tag: int, *, may_be_any: bool = False) -> int:
        if tag == ANY and may_be_any:
            return _ANY_WORD
        if not 0 <= tag <= _MOST_TAG:
            raise self._error(f"tag = {tag}: accepted is 0 to {_MOST_TAG}")
        return tag

    def _begin(self, verb: int, peer: int, size: int, tag: int, *, may_be_any: bool = False) -> Request:
        if not self._free:
            self._free.append(len(self._serials))
            self._serials.append(0)
        slot = self._free.pop()
        self._last += 1
        self._serials[slot] = self._last
        self._put(verb, slot, peer, self._tag(tag, may_be_any=may_be_any), self._bytes(size))
        return Request(slot | self._last << 32)

    def _slot(self, request: Request) -> int:
        slot = request & _ANY_WORD
        if slot >= len(self._serials) or self._serials[slot] != request >> 32:
            raise self._error("wait: this request is none of this rank's, or has been waited for already")
        self._serials[slot] = 0
        self._free.append(slot)
        return slot

    def _wait_two(self, first: Request, second: Request | None = None) -> None:
        slot = self._slot(first)
        self._put(_WAIT, slot, _NO_SLOT if second is None else self._slot(second), 0, 0)

    def _collective(self, name: str, size: int, group: Group | None, root: int | None = None) -> None:
        if group is None:
            place = 0 if root is None else root
            if not 0 <= place < self.size:
                raise self._error(f"root = {root}: accepted is a rank from 0 to {self.size - 1}")
            return self._put(_CODE[name], 0, place, 0, self._bytes(size))
        if self.rank not in group.ranks:
            raise self._error(f"{name}: this rank is not in the group")
        if root is not None and root not in group.ranks:
            raise self._error(f"root = {root}: accepted is a rank of the group")
        place = 0 if root is None else group.ranks.index(root)
        return self._put(_CODE[name], group.number, place, 0, self._bytes(size))

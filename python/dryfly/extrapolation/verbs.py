"""What a skeleton that was extrapolated is written in, besides the verbs of dryfly.skeleton."""

from __future__ import annotations

from collections import defaultdict

from dryfly.extrapolation.fits import rounds
from dryfly.extrapolation.grid import Offset, Shape
from dryfly.extrapolation.relations import Slice, Step
from dryfly.skeleton import Rank, Request

__all__ = ["Offset", "Shape", "Slice", "Step", "Verbs", "rounds", "whole"]


def whole(number: float) -> int:
    """Of what was fitted: a size, or how often."""
    return max(round(number), 0)


class Verbs:
    """Of one rank. `work`: seconds for which its core is busy before, beside what the machine's calls cost; where that
    was less than they cost, it is negative, and taken off the next."""

    def __init__(self, me: Rank) -> None:
        self._me = me
        self._owed_s = 0.0
        self._waits = 0
        self._due: dict[int, list[Request]] = defaultdict(list)
        self._peers: dict[tuple[Step, bool], int | None] = {}

    def work(self, seconds: float) -> None:
        self._owed_s += seconds
        if self._owed_s > 0:
            self._me.compute(self._owed_s)
            self._owed_s = 0.0

    def send(self, step: Step, size: float, *, tag: int = 0, waits: int | None = 0, work: float = 0.0) -> None:
        """To the rank that is so many steps on, if there is one. `waits`: how many waits come before that for it."""
        to = self._peer(step, sends=True)
        if to is not None:
            self.work(work)
            self._later(self._me.isend(to, whole(size), tag), waits)

    def receive(self, step: Step, *, tag: int = 0, waits: int | None = 0, work: float = 0.0) -> None:
        """What the rank has sent of which this one is so many steps on."""
        source = self._peer(step, sends=False)
        if source is not None:
            self.work(work)
            self._later(self._me.irecv(source, tag), waits)

    def wait(self, *, work: float = 0.0, behind: float = 0.0) -> None:
        """`behind`: the share of the work that is done when the rank has waited."""
        self.work(work * (1 - behind))
        self._me.wait(*self._due.pop(self._waits, []))
        self._waits += 1
        self.work(work * behind)

    def collective(
        self, verb: str, size: float = 0, *, root: int = 0, of: Slice | None = None, work: float = 0.0
    ) -> None:
        """Of all ranks, or of a slice of the grid. `root`: its place among them."""
        me = self._me
        self.work(work)
        group = None if of is None else me.group(of.members(me.rank, me.size))
        if verb == "barrier":
            me.barrier(group=group)
        elif verb in ("bcast", "reduce", "gather", "scatter"):
            place = root % me.size if group is None else group.ranks[root % len(group.ranks)]
            getattr(me, verb)(whole(size), root=place, group=group)
        else:
            getattr(me, verb)(whole(size), group=group)

    def _peer(self, step: Step, *, sends: bool) -> int | None:
        if (step, sends) not in self._peers:
            which = step.target if sends else step.source
            self._peers[step, sends] = which(self._me.rank, self._me.size)
        return self._peers[step, sends]

    def _later(self, request: Request, waits: int | None) -> None:
        if waits is None:
            self._me.forget(request)
        else:
            self._due[self._waits + waits].append(request)

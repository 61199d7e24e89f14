"""A recorded run as what each rank did: sends, receives, waits and collectives, in its order, and how long it was at
work before each.

A send or a receive is one of libfabric within a point-to-point call of MPI; its wait is the first completing call by
which the rank has seen it complete. Of a collective only name, size, root and members count: its messages are what the
library makes of them. Time between MPI calls and the library's own code are one; what the machine's calls cost
(`host.*`) is taken off, because whoever runs the skeleton charges it again.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dryfly.base.errors import DryflyError, UserError
from dryfly.result import tables

PS = 1e-12

# By MPI's name: the skeleton's verb, and whether the recorded bytes are those for all ranks together.
COLLECTIVES: Mapping[str, tuple[str, bool]] = {
    "MPI_Barrier": ("barrier", False),
    "MPI_Bcast": ("bcast", False),
    "MPI_Reduce": ("reduce", False),
    "MPI_Allreduce": ("allreduce", False),
    "MPI_Alltoall": ("alltoall", True),
    "MPI_Alltoallv": ("alltoall", True),
    "MPI_Allgather": ("allgather", False),
    "MPI_Allgatherv": ("allgather", False),
    "MPI_Reduce_scatter": ("reduce_scatter", True),
    "MPI_Reduce_scatter_block": ("reduce_scatter", True),
    "MPI_Gather": ("gather", False),
    "MPI_Gatherv": ("gather", False),
    "MPI_Scatter": ("scatter", False),
    "MPI_Scatterv": ("scatter", False),
}
# What makes communicators is collectives within the library, which the tags of their messages tell apart. Numbers of
# MPICH's tags, and what it sends then: agreement on a number for the communicator, colours and keys, a flag.
_MAKES = re.compile(r"MPI_(Cart_create|Cart_sub|Comm_(create|dup|dup_with_info|split|split_type))$")
_WITHIN: Mapping[int, tuple[str, int]] = {
    1: ("barrier", 0),
    2: ("bcast", 4),
    7: ("allgather", 8),
    14: ("allreduce", 260),
}
DOWN, UP = frozenset({"bcast", "scatter"}), frozenset({"reduce", "gather"})
_POINT_TO_POINT = re.compile(
    r"MPI_(I?[bsr]?send|I?m?recv|Sendrecv(_replace)?|Isendrecv(_replace)?|Start|Startall)(_c)?$", re.IGNORECASE
)
_COMPLETES = re.compile(r"MPI_(Wait|Test)(all|any|some)?$")
_BLOCKS = re.compile(r"MPI_([BSR]?send|M?recv|Sendrecv(_replace)?)(_c)?$", re.IGNORECASE)
_HOST_COST = re.compile(
    r"^host\.((?:send|send_fetched|receive|rma|rma_fetched|completion|sent|received)_ps) (\d+)$", re.MULTILINE
)
_PUSHED = re.compile(r"^nic\.pushed_bytes (\d+)$", re.MULTILINE)
_CONTEXT_BITS = 20  # of a tag: below these bits is the program's tag


@dataclass(kw_only=True, slots=True)
class Item:
    """`peer`: whom it is sent to, or who has sent it. `waits`: how many waits of the rank come before that for this
    one; None: nobody waits. Bytes of a collective as in the skeleton's verbs. Work in picoseconds: before the rank last
    waited here, and behind it."""

    kind: str  # send, receive, wait, collective
    call: str
    verb: str = ""
    peer: int = -1
    tag: str = ""
    bytes: int = 0
    root: int = 0
    members: tuple[int, ...] | None = None  # None: all ranks; empty: no message tells
    waits: int | None = None
    messages: int = 0  # of a collective, that this rank has sent and received in it
    before_ps: int = 0
    after_ps: int = 0


@dataclass(frozen=True, kw_only=True)
class Recording:
    folder: str
    ranks: int
    ppn: int  # the most on a node
    program: str
    machine: str
    library: str  # of MPI, with its release
    compute: str
    spec: str
    virtual_time_s: float
    messages: int  # that a skeleton can have: of what was sent since virtual time began
    bytes: int
    sequences: tuple[list[Item], ...]  # by rank
    host_costs: Mapping[str, int] = field(default_factory=dict)


class MisfitError(DryflyError):
    """The program is none of those that this can extrapolate; one sentence says where."""


def read(folder: str) -> Recording:
    """Raises UserError: no recorded run. MisfitError: a call that no skeleton can have."""
    path = Path(folder)
    result = _result(path)
    try:
        return _read(folder, path, result)
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise UserError(f"{folder}: the recording is damaged ({error}); record the run again") from None


def _read(folder: str, path: Path, result: Mapping[str, Any]) -> Recording:
    ranks = int(result["ranks"])
    on_node = "provider" if "run.on_node provider\n" in result["spec"] else "shared"
    ppn = max(Counter(one["node"] for one in result["ranks_detail"]).values())
    if on_node == "shared" and ppn > 1:
        raise UserError(
            f"{folder}: recorded with --on-node shared, where messages of a node are not seen; accepted is a run with "
            "--on-node provider"
        )
    costs = {name: int(value) for name, value in _HOST_COST.findall(result["spec"])}
    pushed = _PUSHED.search(result["spec"])
    calls, operations, waits = _by_rank(path, ranks)
    ends = [round(one["virtual_time_s"] / PS) for one in result["ranks_detail"]]
    readers = [
        _Reader(
            folder=folder,
            rank=rank,
            ranks=ranks,
            costs=costs,
            pushed=int(pushed.group(1)) if pushed else 0,
            waits=waits[rank],
        )
        for rank in range(ranks)
    ]
    sequences = tuple(
        reader.sequence(calls[rank], [one for one in operations[rank] if one[1] <= ends[rank]])
        for rank, reader in enumerate(readers)
    )
    _find_members(readers, ranks)
    _find_roots(readers)
    sent = [one for rank, its in enumerate(operations) for one in its if one[0] == "send" and 0 <= one[1] <= ends[rank]]
    return Recording(
        folder=folder,
        ranks=ranks,
        ppn=ppn,
        program=Path(result["program"][0]).name,
        machine=result["machine"],
        library=str(result["mpi"].get("name") or ""),
        compute=str(result["compute"]["mode"] if isinstance(result["compute"], dict) else result["compute"]),
        spec=result["spec"],
        virtual_time_s=result["virtual_time_s"],
        messages=len(sent),
        bytes=sum(one[3] for one in sent),
        sequences=sequences,
        host_costs=costs,
    )


Operation = tuple[str, int, int, int, str, int]  # kind, at_ps, operation, bytes, tag, peer
Call = tuple[str, int, int]  # name, left_ps, bytes


def _result(path: Path) -> dict[str, Any]:
    file = path / tables.RESULT
    if not file.is_file() or not (path / "operations.parquet").is_file():
        raise UserError(f"{path}: there is no recording; accepted is a folder that dryfly run --record has written")
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        raise UserError(f"{file}: it is damaged; record the run again") from None
    return content


def _by_rank(path: Path, ranks: int) -> tuple[list[list[Call]], list[list[Operation]], list[list[tuple[int, int]]]]:
    calls: list[list[Call]] = [[] for _ in range(ranks)]
    operations: list[list[Operation]] = [[] for _ in range(ranks)]
    waits: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    columns = tables.read(path, "calls")
    for rank, name, left, size in zip(*(columns[name] for name in ("rank", "call", "left_s", "bytes")), strict=True):
        calls[rank].append((name, round(left / PS), size))
    columns = tables.read(path, "operations")
    names = ("kind", "at_ps", "operation", "bytes", "tag", "peer")
    for rank, *row in zip(columns["rank"], *(columns[name] for name in names), strict=True):
        operations[rank].append((row[0], row[1], row[2], row[3], row[4], row[5]))
    columns = tables.read(path, "rank_waits")
    for rank, begin, end in zip(columns["rank"], columns["from_ps"], columns["to_ps"], strict=True):
        waits[rank].append((begin, end))
    return calls, operations, waits


@dataclass(kw_only=True, slots=True)
class _Collective:
    """What its members and its root are found by."""

    item: Item
    context: int
    peers: frozenset[int]
    is_root: bool


class _Reader:
    """One rank's calls and operations become its items."""

    def __init__(
        self, *, folder: str, rank: int, ranks: int, costs: Mapping[str, int], pushed: int, waits: list[tuple[int, int]]
    ) -> None:
        self._folder = folder
        self._rank = rank
        self._ranks = ranks
        self._costs = costs
        self._pushed = pushed
        self._rank_waits = waits
        self._next_wait = 0
        self._now = 0
        self._charged = 0  # since the last item
        self._items: list[Item] = []
        self._open: dict[int, Item] = {}  # by operation
        self._posted_at_wait: dict[int, int] = {}
        self._seen: list[int] = []  # operations that are complete, and no wait has come since
        self._waits = 0  # items of that kind
        self.collectives: list[_Collective] = []

    def sequence(self, calls: list[Call], operations: list[Operation]) -> list[Item]:
        sources = {one[2]: (one[5], one[3]) for one in operations if one[0] == "arrived" and one[1] >= 0}
        at = 0
        while at < len(operations) and operations[at][1] < 0:
            at += 1
        for name, left, size in calls:
            its = []
            while at < len(operations) and operations[at][1] <= left:
                its.append(operations[at])
                at += 1
            self._call(name, left, size, its, sources)
        for item in self._items:
            if item.kind == "receive" and item.peer < 0:
                item.kind = "none"
        return [item for item in self._items if item.kind != "none"]

    def _call(
        self,
        name: str,
        left: int,
        size: int,
        its: list[Operation],
        sources: Mapping[int, tuple[int, int]],
    ) -> None:
        plain = name.removesuffix("_c")
        for kind, *_ in its:
            if kind in ("write", "read", "atomic"):
                raise MisfitError(
                    f"{self._where()}: {name} is one-sided (it asks for a {kind}), which is not extrapolated"
                )
        sends = [one for one in its if one[0] == "send"]
        if plain in COLLECTIVES:
            verb, of_all = COLLECTIVES[plain]
            self._collective(name, verb, size, its, left, of_all=of_all)
        elif _MAKES.match(plain):
            self._makes(name, its, left)
        elif _POINT_TO_POINT.match(name):
            self._messages(name, its, sources)
            if _BLOCKS.match(name):
                self._wait(name, left)
        else:
            if sends and plain not in ("MPI_Finalize", "MPI_Comm_free", "MPI_Comm_disconnect"):
                raise MisfitError(f"{self._where()}: {name} sends messages; a skeleton has no verb for it")
            for one in its:
                self._completed(one)
            if _COMPLETES.match(name) and (self._seen or name.startswith("MPI_Wait")):
                self._wait(name, left)

    def _where(self) -> str:
        return f"{self._folder}, rank {self._rank}"

    def _messages(self, name: str, its: list[Operation], sources: Mapping[int, tuple[int, int]]) -> None:
        for one in its:
            kind, at, operation, size, tag, peer = one
            if kind == "send":
                self._sent(operation, size)
                item = Item(kind="send", call=name, peer=peer, bytes=size, tag=tag)
            elif kind == "receive":
                self._charged += self._costs.get("receive_ps", 0)
                source, got = sources.get(operation, (-1, 0))
                item = Item(kind="receive", call=name, peer=source, bytes=got, tag=tag)
            else:
                self._completed(one)
                continue
            self._end(item, at)
            if operation:
                self._open[operation] = item
                self._posted_at_wait[operation] = self._waits

    def _completed(self, one: Operation) -> None:
        kind, _, operation, size, *_ = one
        if kind in ("arrived", "sent", "done"):
            name = {"arrived": "received_ps", "sent": "sent_ps"}.get(kind, "completion_ps")
            self._charged += self._costs.get(name, self._costs.get("completion_ps", 0))
            if operation in self._open:
                self._seen.append(operation)
        elif kind == "receive":
            self._charged += self._costs.get("receive_ps", 0)
        elif kind == "send":
            self._sent(operation, size)

    def _sent(self, operation: int, size: int) -> None:
        fetched = "send_fetched_ps" if size > self._pushed and "send_fetched_ps" in self._costs else "send_ps"
        self._charged += self._costs.get(fetched, 0)
        if not operation:  # a skeleton sees the end of those too that nobody waits for
            self._charged += self._costs.get("sent_ps", self._costs.get("completion_ps", 0))

    def _wait(self, name: str, left: int) -> None:
        """Nothing where nothing is open: a neighbour that there is not has no wait either."""
        if not self._open:
            return
        for operation in self._seen:
            item = self._open.pop(operation, None)
            if item is not None:
                item.waits = self._waits - self._posted_at_wait[operation]
        self._seen.clear()
        last = self._items[-1] if self._items else None
        if last is not None and last.kind == "wait":  # several in a row are one
            before, after = self._worked(left)
            last.before_ps += last.after_ps + before
            last.after_ps = after
            return
        self._end(Item(kind="wait", call=name), left)
        self._waits += 1

    def _makes(self, name: str, its: list[Operation], left: int) -> None:
        """Until the last message of each collective, and of the last one until the call is over."""
        parts: list[list[Operation]] = []
        for one in its:
            if one[0] == "sent" and parts:
                parts[-1].append(one)
            elif not parts or parts[-1][0][4] != one[4]:
                parts.append([one])
            else:
                parts[-1].append(one)
        for part in parts:
            number = int(part[0][4], 16) & ((1 << _CONTEXT_BITS) - 1)
            verb, size = _WITHIN.get(number, ("allreduce", part[0][3]))
            self._collective(name, verb, size, part, left if part is parts[-1] else part[-1][1], of_all=False)

    def _collective(self, name: str, verb: str, size: int, its: list[Operation], left: int, *, of_all: bool) -> None:
        order = [one[0] for one in its if one[0] in ("send", "arrived") and one[2] not in self._open]
        own = [one for one in its if one[0] == "send" or (one[0] == "arrived" and one[2] not in self._open)]
        for one in its:
            self._completed(one)
        item = Item(kind="collective", call=name, verb=verb, bytes=size, messages=len(order))
        self._end(item, left)
        item.before_ps, item.after_ps = item.before_ps + item.after_ps, 0
        is_root = bool(order) and (order[0] == "send" if verb in DOWN else order[-1] == "arrived")
        context = int(own[0][4], 16) >> _CONTEXT_BITS if own else -1
        peers = frozenset(one[5] for one in own)
        self.collectives.append(_Collective(item=item, context=context, peers=peers, is_root=is_root))
        item.waits = -1 if of_all else None  # until the members are known

    def _end(self, item: Item, at: int) -> None:
        item.before_ps, item.after_ps = self._worked(at)
        self._items.append(item)

    def _worked(self, until: int) -> tuple[int, int]:
        """Without what was charged for calls, which is taken off what came last, and off what came before that."""
        before, here, waited = 0, self._now, False
        waits = self._rank_waits
        while self._next_wait < len(waits) and waits[self._next_wait][1] <= until:
            begin, end = waits[self._next_wait]
            self._next_wait += 1
            before += max(begin - here, 0)
            here = max(here, end)
            waited = True
        after = max(until - here, 0)
        self._now = max(until, self._now)
        charged, self._charged = self._charged, 0
        if not waited:
            return after - charged, 0
        taken = min(charged, after)
        return before - (charged - taken), after - taken


def _find_members(readers: list[_Reader], ranks: int) -> None:
    """Ranks belong together that have exchanged messages in the same collective of a context."""
    by_call: dict[tuple[int, int], list[tuple[int, _Collective]]] = defaultdict(list)
    for rank, reader in enumerate(readers):
        counts = Counter[int]()
        for one in reader.collectives:
            by_call[one.context, counts[one.context]].append((rank, one))
            counts[one.context] += 1
    for together in by_call.values():
        if not any(one.peers for _, one in together):
            for _, one in together:
                one.item.members, one.item.waits = (), None
            continue
        leader = {rank: rank for rank, _ in together}

        def first(rank: int, leader: dict[int, int] = leader) -> int:
            while leader[rank] != rank:
                leader[rank] = leader[leader[rank]]
                rank = leader[rank]
            return rank

        for rank, one in together:
            for peer in one.peers:
                if peer in leader:
                    low, high = sorted((first(rank), first(peer)))
                    leader[high] = low
        members: dict[int, list[int]] = defaultdict(list)
        for rank, _ in together:
            members[first(rank)].append(rank)
        for rank, one in together:
            its = members[first(rank)]
            if len(its) < ranks:
                one.item.members = tuple(its)
            if one.item.waits == -1:
                one.item.bytes = round(one.item.bytes / len(its))
                one.item.waits = None


def _find_roots(readers: list[_Reader]) -> None:
    roots: dict[tuple[int, tuple[int, ...] | None, int], int] = {}
    for learn in (True, False):
        for rank, reader in enumerate(readers):
            counts = Counter[tuple[int, tuple[int, ...] | None]]()
            for one in reader.collectives:
                key = (one.context, one.item.members)
                if one.item.verb in DOWN | UP:
                    if learn and one.is_root:
                        roots[(*key, counts[key])] = rank
                    elif not learn:
                        one.item.root = roots.get((*key, counts[key]), 0)
                counts[key] += 1

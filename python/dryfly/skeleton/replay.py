"""A recorded run (`dryfly run --record FOLDER`) as a schedule, to be run on another machine, placement or setting.

What a rank asked of libfabric is asked again, in its order, and what it saw complete is waited for where it saw it.
Between two of these it computes for as long as it was not waiting. The messages are those that the MPI library sent, so
collectives keep the algorithm that it chose. A receive takes the message that it got in the recorded run.

What the CPU did is the recording's, the program's computing and the library's code: of the machine that replays it the
network, the NICs and the protocols count.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.result import tables
from dryfly.skeleton import motif
from dryfly.skeleton.engine import Played, Where, run_schedule
from dryfly.skeleton.rank import Rank, Recorder, Request
from dryfly.skeleton.schedule import Lists, Schedule

_PS = 1e-12
_CALLS = ["send", "send_fetched", "receive", "rma", "rma_fetched", "completion", "sent", "received"]
_CALL_COST = re.compile(rf"^(host\.(?:{'|'.join(_CALLS)})_ps) \d+$", re.MULTILINE)
CALL_COSTS = frozenset(f"host.{name}" for name in _CALLS)  # fields of a machine that a replay does without
_PLACE = re.compile(r"^run\.rank\.(\d+)\.node (\d+)$", re.MULTILINE)
_MOST_COUNTS = 8  # that a sentence names
_COMPLETIONS = ("arrived", "sent", "done")

Row = tuple[str, int, int, int, str, int]  # kind, at_ps, operation, bytes, tag, peer
Key = tuple[int, int, str]  # source, target, tag


@dataclass(frozen=True, kw_only=True)
class Recording:
    """`where`: as it was recorded, and `on` the numbers of the nodes that it was recorded on. `unexplained_s`: the
    longest time of a rank in which it waited for what is not recorded. `left_out`: messages that had no receive in the
    recording, or were under way when virtual time began."""

    schedule: Schedule
    where: Where
    on: tuple[int, ...]
    spec: str
    virtual_time_s: float
    unexplained_s: float
    left_out: int

    def run(self, where: Where | None = None, *, level: str | None = None) -> Played:
        """Without `where` on the nodes of the recording, with all that was set there. `level`: another one. Raises
        UserError."""
        chosen = where or self.where
        chosen = replace(chosen, level=level or chosen.level)
        if where is None:
            spec, on = with_network(self.spec, chosen.level), self.on
        else:
            spec, on = chosen.spec(), None
        return run_schedule(self.schedule, chosen, spec=without_cpu(spec), on=on)

    def warnings(self) -> list[str]:
        said = []
        if self.unexplained_s > 0:
            share = 100 * self.unexplained_s / self.virtual_time_s
            said.append(
                f"a rank waited {self.unexplained_s:.3g} s ({share:.1f} %) for what is not recorded (memory that "
                "others write, counters, polling by MPI_Test); that time is left out"
            )
        if self.left_out:
            said.append(f"{self.left_out} messages are left out: no receive of theirs is in the recording")
        return said


def without_cpu(spec: str) -> str:
    """What calls cost is in the recorded times already."""
    return _CALL_COST.sub(r"\1 0", spec)


def with_costs(spec: str, costs: Mapping[str, int]) -> str:
    """What calls cost, in ps by the spec's names, in place of what the machine says."""
    for name, value in costs.items():
        line = f"{name} {value}"
        spec, found = re.subn(rf"^{re.escape(name)} \d+$", line, spec, flags=re.MULTILINE)
        if not found:
            spec += line + "\n"
    return spec


def with_network(spec: str, level: str) -> str:
    """The other levels run with either model of the network."""
    if level not in ("packet", "flow"):
        return spec
    others = (line for line in spec.splitlines(keepends=True) if not line.startswith("fabric.model "))
    return "".join([*others, f"fabric.model {motif.network_of(level)}\n"])


def replay(folder: str | Path) -> Recording:
    """Raises UserError: no recorded run, or one that no replay can be made of."""
    path = Path(folder)
    result = _result(path)
    try:
        return _replay(path, result)
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise UserError(f"{folder}: the recording is damaged ({error}); record the run again") from None


def where_of(folder: str | Path) -> Where:
    """As it was recorded, from its result alone. Raises UserError."""
    path = Path(folder)
    result = _result(path)
    try:
        return _where(result, nodes=len(_nodes(result["spec"], int(result["ranks"]), folder)))
    except (ValueError, LookupError, TypeError) as error:
        raise UserError(f"{path / tables.RESULT}: {error!r}; record the run again with this version") from None


def _replay(folder: Path, result: Mapping[str, Any]) -> Recording:
    ranks = int(result["ranks"])
    rows = _rows(folder, ranks)
    if not any(rows):
        raise UserError(f"{folder}: the recording has no operations of ranks; record the run again with this version")
    waits = _waits(folder, ranks)
    ends = [round(one["virtual_time_s"] / _PS) for one in result["ranks_detail"]]
    for rank, end in enumerate(ends):
        rows[rank] = [row for row in rows[rank] if row[1] <= end]
    drops = _Drops(rows)
    recorder = Recorder(ranks=ranks, file="")
    lists, unexplained, tags = Lists(), 0, _Tags()
    for rank in range(ranks):
        me = Rank(rank=rank, recorder=recorder)
        track = _Track(me, rows[rank], drops, tags, waits[rank])
        track.write(ends[rank])
        unexplained = max(unexplained, track.unexplained_ps)
        lists.add(me.words, me.slots)
    on = _nodes(result["spec"], ranks, folder)
    return Recording(
        schedule=replace(lists.schedule(recorder), program=str(folder)),
        where=_where(result, nodes=len(on)),
        on=on,
        spec=result["spec"],
        virtual_time_s=result["virtual_time_s"],
        unexplained_s=unexplained * _PS,
        left_out=drops.count,
    )


class _Tags:
    """Small numbers for the tags that the MPI library has made of communicator, source and the program's tag."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, tag: str) -> int:
        return self._numbers.setdefault(tag, len(self._numbers))


class _Drops:
    """Messages of which one side is not in the schedule: sent or received before virtual time began, or never received.

    Of a source, target and tag the first arrivals and the last sends are left out.
    """

    def __init__(self, rows: list[list[Row]]) -> None:
        sent, arrived = Counter[Key](), Counter[Key]()
        sent_before, arrived_before = Counter[Key](), Counter[Key]()
        for rank, its in enumerate(rows):
            for kind, at, _, _, tag, peer in its:
                if kind == "send":
                    (sent if at >= 0 else sent_before)[rank, peer, tag] += 1
                elif kind == "arrived":
                    (arrived if at >= 0 else arrived_before)[peer, rank, tag] += 1
        self._skip_arrivals: dict[Key, int] = {}
        self._sends_left: dict[Key, int] = {}
        self.count = 0
        for key in sent.keys() | arrived.keys():
            early = max(min(sent_before[key] - arrived_before[key], arrived[key]), 0)
            kept = min(sent[key], arrived[key] - early)
            self._skip_arrivals[key] = arrived[key] - kept
            self._sends_left[key] = kept
            self.count += sent[key] + arrived[key] - 2 * kept

    def keeps_send(self, key: Key) -> bool:
        self._sends_left[key] -= 1
        return self._sends_left[key] >= 0

    def keeps_arrival(self, key: Key) -> bool:
        self._skip_arrivals[key] -= 1
        return self._skip_arrivals[key] < 0


class _Track:
    """One rank's rows become its schedule."""

    def __init__(self, me: Rank, rows: list[Row], drops: _Drops, tags: _Tags, waits: list[tuple[int, int]]) -> None:
        self._me = me
        self._drops = drops
        self._tags = tags
        self._waits = deque(waits)
        self._rows = [row for row in rows if row[1] >= 0]
        self._now = 0
        self._requests: dict[int, Request] = {}  # by operation
        self._unseen: list[Request] = []  # accesses that no completion is reported of
        self._matches = self._matched(rows)
        self.unexplained_ps = 0

    def _matched(self, rows: list[Row]) -> Mapping[int, tuple[int, str]]:
        """By operation: source and tag of the message that the receive got. Buffers for several messages have none."""
        arrivals: dict[int, list[tuple[int, str]]] = defaultdict(list)
        self._kept: dict[int, deque[bool]] = defaultdict(deque)
        for kind, at, operation, _, tag, peer in rows:
            if kind == "arrived" and at >= 0:
                arrivals[operation].append((peer, tag))
                self._kept[operation].append(self._drops.keeps_arrival((peer, self._me.rank, tag)))
        return {operation: its[0] for operation, its in arrivals.items() if len(its) == 1 and self._kept[operation][0]}

    def write(self, end_ps: int) -> None:
        posted = {row[2] for row in self._rows if row[0] == "receive"}
        for operation in self._matches.keys() - posted:
            self._post(operation)
        for row in self._rows:
            if row[0] in _COMPLETIONS:
                self._complete(row)
            else:
                self._call(row)
        before, after = self._until(end_ps)
        if before or after:
            self._me.compute((before + after) * _PS)

    def _post(self, operation: int) -> None:
        peer, tag = self._matches[operation]
        self._requests[operation] = self._me.irecv(peer, self._tags.number(tag))

    def _until(self, at: int) -> tuple[int, int]:
        """How long the rank was at work before its last wait on the way to that instant, and behind it."""
        before, here, waited = 0, self._now, False
        while self._waits and self._waits[0][1] <= at:
            begin, end = self._waits.popleft()
            before += max(begin - here, 0)
            here = max(here, end)
            waited = True
        self._waited = waited
        self._waited_ps = here - self._now - before
        self._now = at
        return (before, at - here) if waited else (at - here, 0)

    def _call(self, row: Row) -> None:
        kind, at, operation, size, tag, peer = row
        before, after = self._until(at)
        self._me.compute(before * _PS)
        if self._waited and self._unseen:
            self._me.wait(*self._unseen)
            self._unseen.clear()
        elif self._waited:
            self.unexplained_ps += self._waited_ps
        self._me.compute(after * _PS)
        if kind == "receive":
            if operation in self._matches:
                self._post(operation)
            return
        if kind == "send":
            if not self._drops.keeps_send((self._me.rank, peer, tag)):
                return
            request = self._me.isend(peer, size, self._tags.number(tag))
        else:
            request = (self._me.get if kind == "read" else self._me.put)(peer, size)
        if operation == 0:
            self._me.forget(request)
        else:
            self._requests[operation] = request

    def _complete(self, row: Row) -> None:
        kind, at, operation, _, tag, peer = row
        before, after = self._until(at)
        self._me.compute(before * _PS)
        request = self._requests.pop(operation, None)
        if request is not None:
            self._me.wait(request)
        elif kind == "arrived" and self._kept[operation].popleft():
            self._me.recv(peer, self._tags.number(tag))
        elif self._waited:
            self.unexplained_ps += self._waited_ps
        self._me.compute(after * _PS)


def _result(path: Path) -> dict[str, Any]:
    import json

    file = path / tables.RESULT
    if not file.is_file() or not (path / "operations.parquet").is_file():
        raise UserError(f"{path}: there is no recording; accepted is a folder that dryfly run --record has written")
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UserError(f"{file} is damaged; record the run again") from None
    return content


def _rows(path: Path, ranks: int) -> list[list[Row]]:
    columns = tables.read(path, "operations")
    rows: list[list[Row]] = [[] for _ in range(ranks)]
    names = ("kind", "at_ps", "operation", "bytes", "tag", "peer")
    for rank, *row in zip(columns["rank"], *(columns[name] for name in names), strict=True):
        rows[rank].append(tuple(row))
    return rows


def _waits(path: Path, ranks: int) -> list[list[tuple[int, int]]]:
    columns = tables.read(path, "rank_waits")
    waits: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    for rank, begin, end in zip(columns["rank"], columns["from_ps"], columns["to_ps"], strict=True):
        waits[rank].append((begin, end))
    return waits


def _nodes(spec: str, ranks: int, folder: str | Path) -> tuple[int, ...]:
    """In the order of their ranks."""
    places = {int(rank): int(node) for rank, node in _PLACE.findall(spec)}
    listed = [places[rank] for rank in range(ranks)]
    ppn = listed.count(listed[0])
    nodes = tuple(listed[::ppn])
    if listed != [node for node in nodes for _ in range(ppn)] or len(set(nodes)) != len(nodes):
        raise UserError(
            f"{folder}: ranks in a row on a node: {_in_a_row(listed)}; accepted is a run with as many ranks on each "
            "node, and those of a node in a row"
        )
    return nodes


def _in_a_row(listed: list[int]) -> str:
    """How many ranks follow each other on one node."""
    counts = [sum(1 for _ in its) for _, its in groupby(listed)]
    more = f" and {len(counts) - _MOST_COUNTS} more" if len(counts) > _MOST_COUNTS else ""
    return ", ".join(map(str, counts[:_MOST_COUNTS])) + more


def _where(result: Mapping[str, Any], *, nodes: int) -> Where:
    return Where(
        machine=result["machine"],
        nodes=nodes,
        ppn=result["ranks"] // nodes,
        place=result["placement"]["policy"],
        level="flow" if "fabric.model flow\n" in result["spec"] else "packet",
        on_node="nic" if "run.on_node provider\n" in result["spec"] else "memory",
        seed=result["seed"],
    )

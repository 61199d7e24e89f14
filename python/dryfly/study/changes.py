"""Where a library changes protocol or algorithm with the size of messages.

From dryfly's own counts, for certain: a recorded run of one timed repetition a size tells which messages went, by which
protocol, while a rank was in the timed calls. From the curve, as a guess: a step that is steeper than those on both
sides, or that goes down. In a time of the form a + b n no step is.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dryfly.apps.benchmarks import Table

Counts = dict[str, Any]  # messages, bytes, protocols: {name: messages}

JUMP = 0.25  # of a factor of two: 19 %
_SHARE = 0.1  # of the messages: a protocol with fewer does not name the mix
_MESSAGES = 0.05  # relative change of their number that counts as another algorithm


@dataclass(frozen=True, kw_only=True)
class Change:
    after: int  # the last size of the old kind
    at: int  # the first of the new
    what: str  # protocol, algorithm or jump
    text: str
    seen_in: str  # counts or curve


def count(folder: Path, *, calls: frozenset[str], sizes: Sequence[int], barriers: int, last: bool) -> dict[int, Counts]:
    """From the tables of a recorded run. The k-th size follows `barriers` barriers of each rank; with `last` the timed
    call is the first one after the last of them (a collective), else all after it up to the next barrier."""
    from dryfly.result import tables

    spans = _spans(tables.read(folder, "calls"), calls, barriers=barriers, last=last)
    counted: dict[int, Counts] = {size: {"messages": 0, "bytes": 0, "protocols": {}} for size in sizes}
    messages = tables.read(folder, "messages")
    for at, source, size, protocol in zip(
        messages["called_s"], messages["source"], messages["bytes"], messages["protocol"], strict=True
    ):
        begins, ends, places = spans.get(source, ([], [], []))
        index = bisect.bisect_right(begins, at) - 1
        if index < 0 or at > ends[index] or places[index] >= len(sizes):
            continue
        row = counted[sizes[places[index]]]
        row["messages"] += 1
        row["bytes"] += size
        row["protocols"][protocol] = row["protocols"].get(protocol, 0) + 1
    return counted


_Spans = dict[int, tuple[list[float], list[float], list[int]]]


def _spans(table: Mapping[str, Any], calls: frozenset[str], *, barriers: int, last: bool) -> _Spans:
    """By rank: beginnings and ends of the timed calls, and which size each belongs to."""
    spans: _Spans = {}
    seen: dict[int, int] = {}  # barriers of a rank so far
    taken: dict[int, int] = {}  # barriers at its last timed call
    for rank, call, begin, end in zip(table["rank"], table["call"], table["entered_s"], table["left_s"], strict=True):
        number = seen.get(rank, 0)
        timed = call in calls and number > 0 and number % barriers == 0 and not (last and taken.get(rank) == number)
        if timed:
            begins, ends, places = spans.setdefault(rank, ([], [], []))
            begins.append(begin)
            ends.append(end)
            places.append((number - 1) // barriers)
            taken[rank] = number
        elif call == "MPI_Barrier":
            seen[rank] = number + 1
    return spans


def from_counts(counts: Mapping[int, Counts]) -> list[Change]:
    sizes = sorted(counts)
    changes = []
    for after, at in itertools.pairwise(sizes):
        before, now = counts[after], counts[at]
        if _mix(before) != _mix(now):
            text = f"{' + '.join(_mix(before)) or 'nothing'} -> {' + '.join(_mix(now)) or 'nothing'}"
            changes.append(Change(after=after, at=at, what="protocol", text=text, seen_in="counts"))
        if abs(now["messages"] - before["messages"]) > _MESSAGES * max(now["messages"], before["messages"]):
            text = f"{before['messages']:,} -> {now['messages']:,} messages"
            changes.append(Change(after=after, at=at, what="algorithm", text=text, seen_in="counts"))
    return changes


def _mix(counts: Counts) -> tuple[str, ...]:
    least = _SHARE * counts["messages"]
    return tuple(sorted(name for name, messages in counts["protocols"].items() if messages >= least))


def from_curve(times: Table) -> list[Change]:
    """`times` are times by size, not rates. The first and the last step have a neighbour on one side only, and are
    not judged unless time falls."""
    sizes = sorted(size for size, time in times.items() if time > 0)
    steps = [math.log2(times[b] / times[a]) for a, b in itertools.pairwise(sizes)]
    changes = []
    for place, step in enumerate(steps):
        beside = [steps[other] for other in (place - 1, place + 1) if 0 <= other < len(steps)]
        up = len(beside) == 2 and step > max(beside) + JUMP
        down = step < -JUMP
        if up or down:
            text = f"time x {2**step:.2f}"
            changes.append(Change(after=sizes[place], at=sizes[place + 1], what="jump", text=text, seen_in="curve"))
    return changes


def as_times(table: Table, *, rate: bool) -> Table:
    """A bandwidth is turned into the time of its bytes."""
    return {size: size / value if rate else value for size, value in table.items() if value > 0}

"""What a run's ranks were charged for their MPI library's own code, by MPI call and by kind of interval.

The conductor gives numbers and times (wire::SoftwareSpent). Instructions are the table's: an interval's number times
what it was counted with, so that they agree with `dryfly mpi measure` to the digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dryfly.mpi.software import BOUNDARIES, Charges

COPIED = "copied"  # `how` of bytes that the library copied
PACKED = "packed"  # of those that it put together from blocks, or took apart
LOOKED = "looked"  # at buffers: it asks a GPU's runtime whose they are
UNCOUNTED = (COPIED, PACKED, LOOKED)  # without instructions
HOW = ("counted", "call", "others", *UNCOUNTED)
_BESIDE = {len(BOUNDARIES): COPIED, 0: PACKED, 1: LOOKED}  # rank/software_account.hpp
_PS_PER_S = 10**12

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Kind:
    call: str  # empty: of kinds beyond those that a rank has room for
    start: str
    end: str
    how: str  # where its cost is from: it was counted, or the mean of its call's, or that of other calls'

    @property
    def is_assumed(self) -> bool:
        return self.how in ("call", "others")


@dataclass(frozen=True, kw_only=True)
class Spent:
    intervals: int = 0
    bytes: int = 0
    instructions: float = 0.0
    ps: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            intervals=self.intervals + other.intervals,
            bytes=self.bytes + other.bytes,
            instructions=self.instructions + other.instructions,
            ps=self.ps + other.ps,
        )


ByKind = Mapping[Kind, Spent]


def of_ranks(counted: Mapping[str, Any], charges: Charges | None) -> list[ByKind]:
    """In the order of the conductor's ranks; without a table nothing was charged."""
    ranks = counted.get("ranks", [])
    if charges is None:
        return [{} for _ in ranks]
    kinds: dict[tuple[str, int, int], Kind] = {}
    made: list[ByKind] = []
    for rank in ranks:
        spent: dict[Kind, Spent] = {}
        for call, start, end, count, size, ps in rank.get("software", ()):
            key = (call, start, end)
            if key not in kinds:
                kinds[key] = _kind(*key, charges)
            kind = kinds[key]
            part = Spent(intervals=count, bytes=size, ps=ps, instructions=_instructions(kind, count, size, charges))
            spent[kind] = spent.get(kind, Spent()) + part
        made.append(spent)
    return made


def _kind(call: str, start: int, end: int, charges: Charges) -> Kind:
    if start >= len(BOUNDARIES):
        return Kind(call=call, start="", end="", how=_BESIDE[end])
    interval = (BOUNDARIES[start], BOUNDARIES[end])
    how = charges.cost(call, interval)[1] if call else "others"
    return Kind(call=call, start=interval[0], end=interval[1], how=how)


def _instructions(kind: Kind, count: int, size: int, charges: Charges) -> float:
    if kind.how in UNCOUNTED or not kind.call:
        return 0.0
    cost, _ = charges.cost(kind.call, (kind.start, kind.end))
    return count * cost.instructions + size / 1024 * cost.per_kib


def total(ranks: Iterable[ByKind]) -> ByKind:
    sums: dict[Kind, Spent] = {}
    for spent in ranks:
        for kind, part in spent.items():
            sums[kind] = sums[kind] + part if kind in sums else part
    return sums


def content(ranks: Sequence[ByKind], *, slowest: int, profile: Sequence[Mapping[str, Any]]) -> Json:
    """For the key `software` of the result. `slowest`: its place among them."""
    everything = total(ranks)
    counts = {row["call"]: row["count"] for row in profile}
    time_s = {how: sum(part.ps for kind, part in everything.items() if kind.how == how) / _PS_PER_S for how in HOW}
    return {
        "instructions": instructions(everything),
        "time_s": time_s,
        "calls": [{"call": row["call"], "count": counts.get(row["call"], 0), **row} for row in _calls(everything)],
        "kinds": _kinds(everything),
        "slowest": {
            "rank": slowest,
            "calls": _calls(ranks[slowest]) if ranks else [],
            "kinds": _kinds(ranks[slowest]) if ranks else [],
        },
    }


def instructions(spent: ByKind) -> float:
    return round(sum(part.instructions for part in spent.values()), 1)


def _calls(spent: ByKind) -> list[Json]:
    """The dearest first."""
    calls: dict[str, Json] = {}
    for kind, part in spent.items():
        row = calls.setdefault(
            kind.call,
            {"call": kind.call, "intervals": 0, "instructions": 0.0, "copied_bytes": 0, "ps": 0, "assumed_ps": 0},
        )
        row["instructions"] += part.instructions
        row["ps"] += part.ps
        row["assumed_ps"] += part.ps if kind.is_assumed else 0
        if kind.how == COPIED:
            row["copied_bytes"] += part.bytes
        elif kind.how not in UNCOUNTED:
            row["intervals"] += part.intervals
    return [
        {
            "call": row["call"],
            "intervals": row["intervals"],
            "instructions": round(row["instructions"], 1),
            "copied_bytes": row["copied_bytes"],
            "time_s": row["ps"] / _PS_PER_S,
            "assumed_s": row["assumed_ps"] / _PS_PER_S,
        }
        for row in sorted(calls.values(), key=lambda row: (-row["ps"], row["call"]))
    ]


def _kinds(spent: ByKind) -> list[Json]:
    ordered = sorted(spent.items(), key=lambda item: (-item[1].ps, item[0].call, item[0].start, item[0].end))
    return [_row(kind, part) for kind, part in ordered]


def _row(kind: Kind, part: Spent) -> Json:
    return {
        "call": kind.call,
        "from": kind.start,
        "to": kind.end,
        "how": kind.how,
        "intervals": part.intervals,
        "bytes": part.bytes,
        "instructions": round(part.instructions, 1),
        "time_s": part.ps / _PS_PER_S,
    }


def columns(ranks: Sequence[ByKind], numbers: Sequence[int]) -> dict[str, list[Any]]:
    """The table `software` of a recording: each rank's, by kind. `numbers`: the ranks' own."""
    names = ("call", "from", "to", "how", "intervals", "bytes", "instructions", "time_s")
    made: dict[str, list[Any]] = {name: [] for name in ("rank", *names)}
    for number, spent in zip(numbers, ranks, strict=True):
        for row in _kinds(spent):
            made["rank"].append(number)
            for name in names:
                made[name].append(row[name])
    return made

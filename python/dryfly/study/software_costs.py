"""What an MPI library's own code costs for each message of a run: instructions, and their virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dryfly.base.units import time_text

ROWS = 8
ALL = "all calls"
HEAD = "MPI call"
TITLE = "The library's own code: instructions and virtual time for each message of the run"
_PS_PER_S = 10**12

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class CallCost:
    """Of an MPI function, for each message of the run."""

    call: str
    calls: float
    instructions: float
    time_s: float

    @property
    def text(self) -> str:
        time = time_text(self.time_s * _PS_PER_S) if self.time_s > 0 else "0 s"
        return f"{self.instructions:,.1f} ({time})"


@dataclass(frozen=True, kw_only=True)
class Costs:
    library: str
    total: CallCost
    calls: tuple[CallCost, ...]  # the dearest first
    assumed: float  # share of the time that rests on means

    def of_call(self, name: str) -> CallCost | None:
        return next((row for row in (*self.calls, self.total) if row.call == name), None)

    @property
    def content(self) -> dict[str, Any]:
        return {
            "library": self.library,
            "instructions_per_message": self.total.instructions,
            "time_per_message_s": self.total.time_s,
            "assumed_share": self.assumed,
            "calls": [
                {
                    "call": row.call,
                    "calls_per_message": row.calls,
                    "instructions_per_message": row.instructions,
                    "time_per_message_s": row.time_s,
                }
                for row in self.calls
            ],
        }


def of(outcome: Json) -> Costs | None:
    """None where nothing was charged, and where there is no message to divide by."""
    software, messages = outcome.get("software"), outcome.get("messages", 0)
    if not software or not software["table"] or not messages:
        return None
    calls = tuple(
        CallCost(
            call=row["call"],
            calls=row["count"] / messages,
            instructions=row["instructions"] / messages,
            time_s=row["time_s"] / messages,
        )
        for row in software["calls"]
    )
    charged = software["charged_s"]
    return Costs(
        library=software["table"],
        total=CallCost(
            call=ALL,
            calls=sum(row.calls for row in calls),
            instructions=software["instructions"] / messages,
            time_s=charged / messages,
        ),
        calls=calls,
        assumed=software["assumed_s"] / charged if charged else 0.0,
    )


def paths(outcome: Json, call: str) -> dict[str, float]:
    """Instructions for each message of the run by the path through the library that they belong to, of a call or of
    all."""
    kinds, messages = outcome["software"]["kinds"], outcome["messages"]
    return {
        f"{row['call']}, {row['from']} to {row['to']}": row["instructions"] / messages
        for row in kinds
        if row["instructions"] and call in (row["call"], ALL)
    }


def table(costs: Mapping[str, Costs]) -> list[tuple[str, ...]]:
    """Rows of text with a column for each label: the calls that take most in any of them, and all."""
    most: dict[str, float] = {}
    for one in costs.values():
        for row in one.calls:
            most[row.call] = max(most.get(row.call, 0.0), row.time_s)
    names = sorted(most, key=lambda name: (-most[name], name))
    return [_cells(name, costs.values()) for name in (*names[:ROWS], ALL)]


def _cells(name: str, costs: Iterable[Costs]) -> tuple[str, ...]:
    found = (one.of_call(name) for one in costs)
    return (name or "(no room)", *("-" if row is None else row.text for row in found))


def notes(costs: Mapping[str, Costs], uncounted: Sequence[tuple[str, str]]) -> list[str]:
    """`uncounted`: labels and their libraries."""
    said = [f"{label}: {one.assumed:.0%} of it by means" for label, one in costs.items() if one.assumed >= 0.005]
    said += [
        f'{label}: the instructions of {library} have not been counted; "dryfly mpi measure {library}" counts them'
        for label, library in uncounted
    ]
    return said

"""Where the time of the MPI library's own code went, in a run with `--software measured`. How to read it:
docs/guide/software-costs.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from dryfly.base.units import size_text, time_text
from dryfly.report.page import section, table
from dryfly.result.software_spent import LOOKED, UNCOUNTED

KINDS_SHOWN = 24
_PS_PER_S = 10**12
_FOUND = {"arrived": "message found", "sent": "end of a send found", "done": "completion found"}
_HOW = {
    "counted": "counted",
    "call": "mean of its call",
    "others": "mean of other calls",
    "copied": "by the byte",
    "packed": "by block and byte",
    "looked": "by buffer",
}

Json = Mapping[str, Any]


def shown(result: Json) -> str:
    """Empty where nothing was charged."""
    software = result.get("software", {})
    if not software.get("calls"):
        return ""
    slowest = software["slowest"]
    title = "Where the software's time goes"
    note = (
        f"What {software['table']} executes by its own code, as counted for this release, in virtual time. A call's "
        "waiting and the network's time are not in it."
    )
    parts = [f"<p>{escape(_summary(result))}</p>", _by_call(software, slowest), "<h3>By kind of interval</h3>"]
    parts.append(
        "<p class=note>What lies between two boundaries: the entry of an MPI call, a call of libfabric's provider, "
        "what a poll has found, the return.</p>"
    )
    parts.append(_by_kind(software, slowest))
    return section(title, "\n".join(parts), note)


def _summary(result: Json) -> str:
    software = result["software"]
    charged, messages = software["charged_s"], result["messages"]
    of = result["ranks"] * result["virtual_time_s"]
    said = [f"{_time(charged)} of all ranks" + (f", {charged / of:.1%} of their time" if of > 0 else "")]
    if messages:
        said.append(
            f"{software['instructions'] / messages:,.0f} instructions and {_time(charged / messages)} a message"
        )
    by = software["time_s"]
    means = [(by["call"], "by the mean of the call's other intervals"), (by["others"], "by the mean of other calls")]
    rests = [f"{part / charged:.1%} {text}" for part, text in means if part > 0]
    said.append("of that " + " and ".join(rests) if rests else "every interval's kind was counted")
    return "; ".join(said) + "."


def _by_call(software: Json, slowest: Json) -> str:
    of_slowest = {row["call"]: row["time_s"] for row in slowest["calls"]}
    heads = (
        "MPI call", "calls", "intervals", "instructions", "a call", "copied", "time", "", "by means",
        f"rank {slowest['rank']}, the slowest",
    )  # fmt: skip
    charged = software["charged_s"] or 1.0
    rows = [
        (
            row["call"] or "(no room)",
            f"{row['count']:,}",
            f"{row['intervals']:,}",
            f"{row['instructions']:,.0f}",
            f"{row['instructions'] / row['count']:,.1f}" if row["count"] else "",
            size_text(row["copied_bytes"]) if row["copied_bytes"] else "",
            _time(row["time_s"]),
            f"{row['time_s'] / charged:.1%}",
            f"{row['assumed_s'] / row['time_s']:.0%}" if row["assumed_s"] > 0 else "",
            _time(of_slowest.get(row["call"], 0.0)),
        )
        for row in software["calls"]
    ]
    return table(heads, rows)


def _by_kind(software: Json, slowest: Json) -> str:
    of_slowest = {_key(row): row["time_s"] for row in slowest["kinds"]}
    heads = (
        "MPI call", "from", "to", "number", "bytes each", "instructions each", "time", "", "known by",
        f"rank {slowest['rank']}, the slowest",
    )  # fmt: skip
    charged = software["charged_s"] or 1.0
    kinds: Sequence[Json] = software["kinds"]
    rows = [
        (
            row["call"] or "(no room)",
            *_boundaries(row),
            f"{row['intervals']:,}",
            size_text(row["bytes"] // row["intervals"]) if row["bytes"] else "",
            f"{row['instructions'] / row['intervals']:,.1f}" if row["how"] not in UNCOUNTED else "",
            _time(row["time_s"]),
            f"{row['time_s'] / charged:.1%}",
            _HOW[row["how"]],
            _time(of_slowest.get(_key(row), 0.0)),
        )
        for row in kinds[:KINDS_SHOWN]
    ]
    rest = kinds[KINDS_SHOWN:]
    if rest:
        time_s = sum(row["time_s"] for row in rest)
        number = f"{sum(row['intervals'] for row in rest):,}"
        rows.append((f"{len(rest)} more", "", "", number, "", "", _time(time_s), f"{time_s / charged:.1%}", "", ""))
    return table(heads, rows)


def _key(row: Json) -> tuple[str, str, str, str]:
    return row["call"], row["from"], row["to"], row["how"]


def _boundaries(row: Json) -> tuple[str, str]:
    if row["how"] in UNCOUNTED:
        return "look at a GPU's memory" if row["how"] == LOOKED else "memcpy", ""
    start, end = str(row["from"]), str(row["to"])
    return (
        "entry" if start == "call" else _FOUND.get(start, start),
        "return" if end == "call" else _FOUND.get(end, end),
    )


def _time(seconds: float) -> str:
    return time_text(seconds * _PS_PER_S) if seconds > 0 else "0 s"

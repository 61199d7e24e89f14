"""Where the ranks were, as they themselves told it, and what is doubtful about that."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dryfly.base.grid import Grid
from dryfly.binding import sets
from dryfly.binding.doubts import Seat, doubts, list_doubt
from dryfly.case.bind import BoundCase, wishes_of
from dryfly.machine.names import NodeNames
from dryfly.machine.node import Node, node_of

Json = dict[str, Any]
HEADS = ("rank", "node", "hardware threads", "core", "memory", "GPU", "NIC", "shares its core with")


@dataclass(frozen=True, kw_only=True)
class _Ranks:
    node: Node
    rows: list[Json]


def rows(run: BoundCase, ranks: Sequence[Mapping[str, Any]]) -> list[Json]:
    """A row for each rank, of those that the simulator counted; none where nobody was bound."""
    if not _any_bound(run, ranks):
        return []
    return [row for of in _by_node(run, ranks).values() for row in of.rows]


def health(run: BoundCase, ranks: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, str]]:
    """Name, number of ranks and sentence of each doubt, over all nodes."""
    if not _any_bound(run, ranks):
        return []
    found: dict[str, tuple[int, str]] = {}
    by_node = _by_node(run, ranks).values()
    for of in by_node:
        if run.bindings or any(row["processors"] or row["memories"] for row in of.rows):
            for doubt in doubts(of.node, [_seat(row) for row in of.rows]):
                count, text = found.get(doubt.name, (0, doubt.text))
                found[doubt.name] = count + len(doubt.ranks), text
    per_node = max((len(of.rows) for of in by_node), default=0)
    short = list_doubt(wishes_of(run.case), ranks=per_node)
    if short is not None:
        found[short.name] = len(short.ranks), short.text
    return [(name, count, text) for name, (count, text) in found.items()]


def _any_bound(run: BoundCase, ranks: Sequence[Mapping[str, Any]]) -> bool:
    return bool(run.bindings) or any("place" in row for row in ranks)


def _by_node(run: BoundCase, ranks: Sequence[Mapping[str, Any]]) -> dict[int, _Ranks]:
    names = NodeNames(run.machine)
    found: dict[int, _Ranks] = {}
    of_nics = functools.cache(lambda nics: node_of(run.machine, nics=nics))
    for row in ranks:
        number = int(row.get("rank", 0))
        place = run.placement.ranks[number]
        if place.node not in found:
            found[place.node] = _Ranks(node=of_nics(names.nics(place.node)), rows=[])
        of = found[place.node]
        of.rows.append(_row(run, of.node, row, names.name(place.node)))
    return found


def _row(run: BoundCase, node: Node, row: Mapping[str, Any], name: str) -> Json:
    number = int(row.get("rank", 0))
    place = row.get("place", {})
    processors = place.get("processors", "")
    nic = int(row.get("nic", 0))
    gpus = run.bindings[number].gpus if run.bindings else None
    return {
        "rank": number,
        "node": name,
        "processors": processors,
        "core": place.get("core") if processors else None,
        "socket": node.socket_of(place["core"]) if processors else None,
        "memories": place.get("memories", ""),
        "memory": place.get("memory"),
        "memory_kind": node.domains[place["memory"]].kind if "memory" in place else "",
        "gpus": list(gpus or ()),
        "nic": nic,
        "nic_socket": node.socket(node.nic_domains[nic]) if nic < len(node.nic_domains) else None,
        "others_on_core": place.get("others_on_core", 0),
    }


def _seat(row: Json) -> Seat:
    return Seat(
        rank=row["rank"],
        processors=sets.parse(row["processors"]) if row["processors"] else None,
        memories=frozenset((row["memory"],)) if row["memory"] is not None else None,
        gpus=tuple(row["gpus"]) or None,
        nic=row["nic"],
    )


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    memory = row["memory"]
    kind = f" ({row['memory_kind']})" if row["memory_kind"] else ""
    others = row["others_on_core"]
    return (
        str(row["rank"]),
        row["node"],
        row["processors"] or "-",
        "-" if row["core"] is None else f"{row['core']} (socket {row['socket']})",
        "-" if memory is None else f"{memory}{kind}",
        ", ".join(row["gpus"]) or "-",
        f"{row['nic']} (socket {row['nic_socket']})",
        f"{others} rank{'s' if others > 1 else ''}" if others else "-",
    )


def grid(found: Iterable[Mapping[str, Any]]) -> Grid:
    return Grid(heads=HEADS, rows=[cells(row) for row in found], indent="  ")

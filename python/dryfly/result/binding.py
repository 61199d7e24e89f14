"""Where the ranks were, as they themselves told it, and what is doubtful about that."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dryfly.base.grid import Grid
from dryfly.binding import sets
from dryfly.binding.doubts import Seat, depth_doubt, doubts, list_doubt
from dryfly.case.bind import BoundCase, wishes_of
from dryfly.machine.names import NodeNames
from dryfly.machine.node import Node, node_of

Json = dict[str, Any]
HEADS = ("rank", "node", "hardware threads", "core", "memory", "GPU", "NIC", "shares its core with")


@dataclass(frozen=True, kw_only=True)
class _Ranks:
    node: Node
    allowed: str  # hardware threads that a job may use
    rows: list[Json]
    seats: list[Seat]


def rows(run: BoundCase, ranks: Sequence[Mapping[str, Any]]) -> list[Json]:
    """A row for each rank, of those that the simulator counted."""
    return [row for of in _by_node(run, ranks).values() for row in of.rows]


def health(run: BoundCase, ranks: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, str]]:
    """Name, number of ranks and sentence of each doubt, over all nodes."""
    if not _any_bound(run, ranks):
        return []
    found: dict[str, tuple[int, str]] = {}
    by_node = _by_node(run, ranks).values()
    for of in by_node:
        if run.bindings or any(row["bound"] for row in of.rows):
            for doubt in doubts(of.node, of.seats):
                count, text = found.get(doubt.name, (0, doubt.text))
                found[doubt.name] = count + len(doubt.ranks), text
    per_node = max((len(of.rows) for of in by_node), default=0)
    wishes = wishes_of(run.case)
    for misfit in (list_doubt(wishes, ranks=per_node), depth_doubt(wishes, ranks=per_node)):
        if misfit is not None:
            found[misfit.name] = len(misfit.ranks), misfit.text
    return [(name, count, text) for name, (count, text) in found.items()]


def _any_bound(run: BoundCase, ranks: Sequence[Mapping[str, Any]]) -> bool:
    return bool(run.bindings) or any("place" in row for row in ranks)


def _by_node(run: BoundCase, ranks: Sequence[Mapping[str, Any]]) -> dict[int, _Ranks]:
    names = NodeNames(run.machine)
    per_node = Counter(place.node for place in run.placement.ranks)
    found: dict[int, _Ranks] = {}
    of_nics = functools.cache(lambda nics: _of_nics(run, nics))
    for row in ranks:
        number = int(row.get("rank", 0))
        place = run.placement.ranks[number]
        if place.node not in found:
            node, allowed = of_nics(names.nics(place.node))
            found[place.node] = _Ranks(node=node, allowed=allowed, rows=[], seats=[])
        of = found[place.node]
        seat = _seat(run, row)
        beside = of.node.domain_of_rank(place.local, per_node[place.node])
        of.seats.append(seat)
        of.rows.append(_row(of, row, seat, names.name(place.node), beside))
    return found


def _seat(run: BoundCase, row: Mapping[str, Any]) -> Seat:
    number, place = int(row.get("rank", 0)), row.get("place", {})
    processors = place.get("processors", "")
    return Seat(
        rank=number,
        processors=sets.parse(processors) if processors else None,
        memories=frozenset((place["memory"],)) if "memory" in place else None,
        gpus=run.bindings[number].gpus if run.bindings else None,
        nic=int(row.get("nic", 0)),
    )


def _of_nics(run: BoundCase, nics: int) -> tuple[Node, str]:
    node = node_of(run.machine, nics=nics)
    return node, sets.text(node.allowed)


def _row(of: _Ranks, row: Mapping[str, Any], seat: Seat, name: str, beside: int) -> Json:
    """Of a rank that nobody has bound: all that a job may use, and the memory `beside` which it is taken to be."""
    node, place = of.node, row.get("place", {})
    bound, core = seat.processors is not None, place.get("core")
    memory = place.get("memory", beside)
    nic = int(row.get("nic", 0))
    return {
        "rank": seat.rank,
        "node": name,
        "bound": bound or bool(place.get("memories")),
        "processors": place["processors"] if bound else of.allowed,
        "core": core if bound else None,
        "socket": node.socket_of(core) if bound else None,
        "memories": place.get("memories", ""),
        "memory": memory,
        "memory_assumed": "memory" not in place,
        "memory_kind": node.domains[memory].kind,
        "gpus": list(seat.gpus or map(str, range(len(node.gpu_domains)))),
        "nic": nic,
        "nic_socket": node.socket(node.nic_domains[nic]) if nic < len(node.nic_domains) else None,
        "others_on_core": place.get("others_on_core", 0),
    }


def assumption(found: Iterable[Mapping[str, Any]]) -> str:
    """A sentence where the map has ranks that nobody bound; empty where it has none."""
    if not any(row.get("memory_assumed") for row in found):
        return ""
    return (
        "Nobody has bound these ranks (assumed): hardware threads and GPUs are all that they may use, and memory is "
        "taken to be as if ranks were bound to domains in blocks."
    )


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    kind = f" ({row['memory_kind']})" if row["memory_kind"] else ""
    assumed = ", assumed" if row.get("memory_assumed") else ""
    others = row["others_on_core"]
    return (
        str(row["rank"]),
        row["node"],
        row["processors"],
        "-" if row["core"] is None else f"{row['core']} (socket {row['socket']})",
        f"{row['memory']}{kind}{assumed}",
        _gpus_text(row["gpus"]),
        f"{row['nic']} (socket {row['nic_socket']})",
        f"{others} rank{'s' if others > 1 else ''}" if others else "-",
    )


def _gpus_text(gpus: Sequence[str]) -> str:
    if len(gpus) > 1 and all(gpu.isdecimal() for gpu in gpus):
        return sets.text(map(int, gpus))
    return ", ".join(gpus) or "-"


def grid(found: Iterable[Mapping[str, Any]]) -> Grid:
    return Grid(heads=HEADS, rows=[cells(row) for row in found], indent="  ")

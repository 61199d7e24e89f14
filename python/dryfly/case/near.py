"""What copies on a node cost by where its cores are: of the resolved spec, for machines whose processor has rows of it
(docs/model/on-node.md#places).

A line goes from core to core, and a core keeps so many lines under way as bring it what it copies from memory. What
comes from farther away than memory comes the slower for that.
"""

from __future__ import annotations

from collections import Counter

from dryfly.base.errors import UserError
from dryfly.case.placement import Placement
from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames
from dryfly.machine.node import Node, most_nics, node_of

_ROWS = ("l3_line", "socket_line", "node_line", "memory_latency", "l2_rate", "l3_rate", "memory_rate", "l2_size")
# As many as a node's accounts of what it shares have room for (LongCopies::parts_max).
_MOST_LIMITED = 64
# A message is two lines that come one after the other: the one that its reader looks at, and the one that this points
# to.
_LINES = 2


def spec_lines(machine: Machine, placement: Placement) -> list[tuple[str, int | str]]:
    """Raises UserError where a machine has a part of the rows only, or none and `places` is on."""
    return [*_calls(machine), *_near(machine, placement)] if counts(machine) else []


def counts(machine: Machine) -> bool:
    """Whether copies cost by place, as they do where a machine has the rows, unless `places` is off. Raises UserError
    as spec_lines does."""
    return bool(_rows(machine))


def longest_cached(machine: Machine, per_node: int) -> int:
    """The longest copy, in bytes, that stays in caches where a node has so many ranks; 0 without rows."""
    rows = _rows(machine)
    regions = machine.optional("node.l3") or 1
    in_region = -(-per_node // int(regions))
    return (rows["l2_size"] + int(machine.optional("node.l3_size") or 0) // in_region) // 2 if rows else 0


def _rows(machine: Machine) -> dict[str, int]:
    """Empty where copies cost the same everywhere."""
    places = machine.optional("node.near.places")
    if places == "off":
        return {}
    given = {row: machine.optional(f"node.near.{row}") for row in _ROWS}
    missing = [row for row, value in given.items() if value is None]
    if len(missing) == len(_ROWS):
        if places is None:
            return {}
        raise UserError(
            f"machine {machine.name}: node.near.places = on: accepted is off, for it has no rows of node.near"
        )
    if missing:
        raise UserError(f"machine {machine.name}: node.near.{missing[0]} is not given: accepted are all of node.near")
    rows = {row: int(value) for row, value in given.items() if value is not None}
    if not rows["l3_line"] <= rows["socket_line"] <= rows["node_line"]:
        raise UserError(
            f"machine {machine.name}: node.near.l3_line, socket_line and node_line: accepted are times, none "
            "shorter than the one before it"
        )
    return rows


def _near(machine: Machine, placement: Placement) -> list[tuple[str, int | str]]:
    rows = _rows(machine)
    names = NodeNames(machine)
    per_node = Counter(place.node for place in placement.ranks)
    node = node_of(machine, nics=max((names.nics(each) for each in per_node), default=most_nics(machine)))
    if not node.l3_regions:
        raise UserError(f"machine {machine.name}: node.near needs node.l3")
    lines: list[tuple[str, int | str]] = []
    for distance, (latency, cached, memory) in enumerate(_ways(rows)):
        lines.append((f"node.near.{distance}.latency_ps", latency))
        lines.append((f"node.near.{distance}.cached_bytes_per_s", cached))
        lines.append((f"node.near.{distance}.memory_bytes_per_s", memory))
    lines += [("node.near.regions", node.l3_regions), ("node.near.sockets", node.sockets)]
    lines += [("node.near.l2_bytes", rows["l2_size"]), ("node.near.l2_bytes_per_s", rows["l2_rate"])]
    lines.append(("node.near.l3_bytes", machine.optional("node.l3_size") or 0))
    lines += _ways_of_regions(machine, node.l3_regions)
    for place in placement.ranks:
        lines.append((f"run.rank.{place.rank}.region", region_of_rank(node, place.local, per_node[place.node])))
    return lines


def _ways_of_regions(machine: Machine, regions: int) -> list[tuple[str, int]]:
    given = [(row, machine.optional(f"node.near.{row}")) for row in ("into_region", "out_of_region")]
    lines = [(f"node.near.{row}_bytes_per_s", int(value)) for row, value in given if value is not None]
    if len(lines) == 1:
        raise UserError(
            f"machine {machine.name}: node.near.into_region and node.near.out_of_region: accepted are both or none"
        )
    if lines and regions > _MOST_LIMITED:
        raise UserError(
            f"machine {machine.name}: node.l3 = {regions}: accepted are up to {_MOST_LIMITED} L3 regions of a node "
            "with node.near.into_region"
        )
    return lines


def region_of_rank(node: Node, local: int, per_node: int) -> int:
    """Of a rank that nobody binds: ranks are on L3 regions in blocks, as they are on domains."""
    return local * node.l3_regions // per_node


def _ways(rows: dict[str, int]) -> list[tuple[int, int, int]]:
    """By distance: until a core sees what the other has written, what it copies out of its caches, and out of memory
    beside it."""
    lines = (rows["l3_line"], rows["socket_line"], rows["node_line"])
    memory = rows["memory_rate"]
    from_afar = [min(memory, memory * rows["memory_latency"] // max(line, 1)) for line in lines]
    return [
        (_LINES * lines[0], rows["l3_rate"], memory),
        (_LINES * lines[1], min(rows["l3_rate"], from_afar[1]), memory),
        (_LINES * lines[2], min(rows["l3_rate"], from_afar[2]), from_afar[2]),
    ]


def _calls(machine: Machine) -> list[tuple[str, int | str]]:
    """Of the kernel, by which a process gets at another's memory."""
    cross = machine.optional("node.cross_copy")
    lines: list[tuple[str, int | str]] = [] if cross is None else [("node.cross_copy_ps", cross)]
    if machine.optional("node.xpmem") != "on":
        return lines
    return [
        *lines,
        ("node.xpmem_attach_ps", machine.number("node.xpmem_attach")),
        ("node.xpmem_page_ps", machine.number("node.xpmem_page")),
    ]

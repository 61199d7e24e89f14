"""Node names as on the machine, and back.

A job's nodes are numbered 0, 1, ... over the kinds of groups it may use, group by group; that is the *index* here.
The *number* counts every node of the machine and is what the core uses. Each node also has an x-name
(xCABINETcCHASSISsSLOTbBOARDnNODE), one group being one cabinet; rows of cabinets are 100 apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dryfly.machine.machine import GroupKind, Machine

_XNAME = re.compile(r"x(\d+)c(\d+)s(\d+)b(\d+)n(\d+)")
_CABINET_NUMBERS_PER_ROW = 100


def link_name(raw: Mapping[str, Any], node_names: Mapping[int, str]) -> str:
    """A direction of a cable by its ends, as the simulator writes them: g3s5 is switch 5 of group 3, NODE.N a NIC."""
    nic = f"{node_names.get(raw['node'], raw['node'])}.{raw['nic']}" if "node" in raw else ""
    source = f"g{raw['from_group']}s{raw['from_switch']}" if "from_switch" in raw else nic
    target = f"g{raw['to_group']}s{raw['to_switch']}" if "to_switch" in raw else nic
    return f"{source}>{target}"


class NodeNames:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._job: list[GroupKind] = [machine.kinds[i] for i in machine.job_kinds]
        self._slots = machine.number("names.slots_per_chassis")
        self._boards = machine.number("names.boards_per_slot")
        self._nodes = machine.number("names.nodes_per_board")
        self._listed: dict[str, int] = {}
        if machine.cabling is not None:
            self._listed = {machine.cabling.nodes[self.number(i)]: i for i in range(machine.nodes_max)}

    def number(self, index: int) -> int:
        """The machine-wide number of the job's node `index`."""
        before = 0
        for position, kind in enumerate(self._machine.kinds):
            if position in self._machine.job_kinds:
                if index < kind.nodes_in_all:
                    return before + index
                index -= kind.nodes_in_all
            before += kind.nodes_in_all
        raise IndexError(index)

    def listed_down(self) -> list[int]:
        """The job's nodes that the list of cables says are down, or cut off."""
        down = self._machine.cabling.down if self._machine.cabling is not None else frozenset()
        return [index for index in self._listed.values() if self.number(index) in down]

    def nics(self, index: int) -> int:
        for kind in self._job:
            if index < kind.nodes_in_all:
                return kind.nics_per_node
            index -= kind.nodes_in_all
        raise IndexError(index)

    def group(self, index: int) -> tuple[int, int]:
        """The group that node `index` is in, counted among the job's groups, and its place in it."""
        groups = 0
        for kind in self._job:
            if index < kind.nodes_in_all:
                return groups + index // kind.nodes, index % kind.nodes
            index -= kind.nodes_in_all
            groups += kind.groups
        raise IndexError(index)

    def group_sizes(self) -> list[int]:
        return [kind.nodes for kind in self._job for _ in range(kind.groups)]

    def name(self, index: int) -> str:
        if self._machine.cabling is not None:
            return self._machine.cabling.nodes[self.number(index)]
        if self._machine.text("names.style") == "xname":
            return self.xname(index)
        digits = self._machine.number("names.digits")
        return f"{self._machine.text('names.prefix')}{self._machine.number('names.first') + index:0{digits}d}"

    def xname(self, index: int) -> str:
        if self._machine.cabling is not None:
            return self.name(index)
        group, place = self.group(index)
        row, column = divmod(group, self._machine.number("names.cabinets_per_row"))
        cabinet = self._machine.number("names.cabinet") + row * _CABINET_NUMBERS_PER_ROW + column
        rest, node = divmod(place, self._nodes)
        rest, board = divmod(rest, self._boards)
        chassis, slot = divmod(rest, self._slots)
        return f"x{cabinet}c{chassis}s{slot}b{board}n{node}"

    def index(self, name: str) -> int | None:
        """The node of that name, in either form; None if the machine has none."""
        if self._machine.cabling is not None:
            return self._listed.get(name)
        found = self._index_by_xname(name)
        if found is None:
            found = self._index_by_number(name)
        return found if found is not None and 0 <= found < self._machine.nodes_max else None

    def _index_by_number(self, name: str) -> int | None:
        prefix = self._machine.optional("names.prefix")
        if self._machine.text("names.style") != "numbered" or not isinstance(prefix, str):
            return None
        digits = name.removeprefix(prefix)
        if not name.startswith(prefix) or not digits.isascii() or not digits.isdigit():
            return None
        index = int(digits) - self._machine.number("names.first")
        return index if 0 <= index < self._machine.nodes_max and self.name(index) == name else None

    def _index_by_xname(self, name: str) -> int | None:
        match = _XNAME.fullmatch(name)
        if match is None:
            return None
        cabinet, chassis, slot, board, node = (int(part) for part in match.groups())
        row, column = divmod(cabinet - self._machine.number("names.cabinet"), _CABINET_NUMBERS_PER_ROW)
        group = row * self._machine.number("names.cabinets_per_row") + column
        place = ((chassis * self._slots + slot) * self._boards + board) * self._nodes + node
        sizes = self.group_sizes()
        if not 0 <= group < len(sizes) or place >= sizes[group]:
            return None
        index = sum(sizes[:group]) + place
        return index if index < self._machine.nodes_max and self.xname(index) == name else None

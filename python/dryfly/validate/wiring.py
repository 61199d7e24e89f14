"""What is plugged where on a machine, and which of it a job's nodes reach."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dryfly.base.folder import RunFolder
from dryfly.skeleton import motif


def nic_place(nic: int) -> str:
    return f"n{nic}"


def node_place(node: int) -> str:
    return f"node {node}"


def node_in(place: str) -> int | None:
    """Of a node, or of a GPU of it; None: it is another part's place."""
    found = re.fullmatch(r"node (\d+)(?: gpu\d+)?", place)
    return None if found is None else int(found[1])


@dataclass(frozen=True, kw_only=True)
class Cable:
    """Between two switches; `parallel` counts those between the same two, from 0."""

    a: int
    b: int
    parallel: int
    is_global: bool
    siblings: int  # cables between the same two switches, this one included

    @property
    def name(self) -> str:
        """As scenario files name it."""
        return self.trunk + (f".{self.parallel}" if self.siblings > 1 else "")

    @property
    def trunk(self) -> str:
        """All cables between these two switches."""
        return f"s{self.a}-s{self.b}"


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """Of a whole machine: by number of NIC, node, switch and group."""

    node_of_nic: tuple[int, ...]
    switch_of_nic: tuple[int, ...]
    group_of_switch: tuple[int, ...]
    cables: tuple[Cable, ...]
    nics_of_node: Mapping[int, tuple[int, ...]] = field(repr=False)
    gpus: tuple[tuple[int, ...], ...] = ()  # of a node: the numbers of its NICs for each GPU, the nearest first

    def group_of_node(self, node: int) -> int:
        return self.group_of_switch[self.switch_of_nic[self.nics_of_node[node][0]]]

    def nics_of_switches(self, nodes: Sequence[int]) -> dict[int, list[int]]:
        """The NICs of these nodes, by switch."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for node in nodes:
            for nic in self.nics_of_node[node]:
                found[self.switch_of_nic[nic]].append(nic)
        return dict(found)

    def links_between(self, a: int, b: int) -> int:
        """Cables between two groups."""
        return self._global_counts[min(a, b), max(a, b)]

    def node_at(self, place: str) -> int | None:
        """The node of a place, or of the NIC that it is; None: a link between switches."""
        nic = re.fullmatch(r"n(\d+)", place)
        return node_in(place) if nic is None else self.node_of_nic[int(nic[1])]

    def names_of_trunk(self, place: str) -> list[str]:
        """The cables of a trunk; of anything else itself."""
        return self._names_by_trunk.get(place, [place])

    def cables_of_groups(self, nodes: Sequence[int]) -> list[Cable]:
        """Those of which both ends are in groups of the nodes."""
        groups = {self.group_of_node(node) for node in nodes}
        of = self.group_of_switch
        return [cable for cable in self.cables if of[cable.a] in groups and of[cable.b] in groups]

    def uncovered(self, nodes: Sequence[int]) -> int:
        """Of these, those that have no NIC of the nodes at one end."""
        of_switch = self.nics_of_switches(nodes)
        return sum(cable.a not in of_switch or cable.b not in of_switch for cable in self.cables_of_groups(nodes))

    @cached_property
    def _names_by_trunk(self) -> dict[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for cable in self.cables:
            found[cable.trunk].append(cable.name)
        return dict(found)

    @cached_property
    def _global_counts(self) -> Counter[tuple[int, int]]:
        ends = ((self.group_of_switch[c.a], self.group_of_switch[c.b]) for c in self.cables if c.is_global)
        return Counter((min(x, y), max(x, y)) for x, y in ends)


def read(spec: str) -> Wiring:
    """Of the machine of a resolved spec. Raises UserError."""
    with RunFolder() as folder:
        out = folder.path / "wiring"
        motif.ask(spec, "wiring", ["nodes=1", "ppn=1", f"out={out}"])
        return parse(out.read_text(encoding="ascii"))


def parse(text: str) -> Wiring:
    nodes: list[int] = []
    switches: list[int] = []
    groups: list[int] = []
    ends: list[tuple[int, int, int]] = []
    for line in text.splitlines():
        word, *numbers = line.split()
        values = [int(number) for number in numbers]
        if word == "nic":
            nodes.append(values[1])
            switches.append(values[2])
        elif word == "switch":
            groups.append(values[1])
        else:
            ends.append((values[0], values[1], values[2]))
    siblings = Counter((a, b) for a, b, _ in ends)
    of_node: defaultdict[int, list[int]] = defaultdict(list)
    for nic, node in enumerate(nodes):
        of_node[node].append(nic)
    return Wiring(
        node_of_nic=tuple(nodes),
        switch_of_nic=tuple(switches),
        group_of_switch=tuple(groups),
        cables=tuple(
            Cable(a=a, b=b, parallel=k, is_global=groups[a] != groups[b], siblings=siblings[a, b]) for a, b, k in ends
        ),
        nics_of_node={node: tuple(nics) for node, nics in of_node.items()},
    )

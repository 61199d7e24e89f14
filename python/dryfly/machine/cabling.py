"""A machine's cables from a list (`topology.cabling`): one by one, not by rule; docs/guide/cabling.md has the format.

Groups are cabinets. Groups of the same shape become one kind. What a full dragonfly would have and the list lacks, or
says is down, is absent: known to all, and avoided by routes and placement.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dryfly.base.errors import UserError

_N = "[0-9]{1,6}"
_SWITCH = re.compile(f"(x({_N})c{_N}r{_N})(?:j{_N}p{_N})?")
_NODE = re.compile(f"(x({_N})c{_N}s{_N}b{_N}n{_N})(?:h([0-9]{{1,2}}))?")
_KINDS_MAX = 64
_PORT_ACCEPTED = "accepted are ports of switches, x1000c0r1j2p0, and of nodes, x1000c0s1b0n0h0"


@dataclass(frozen=True, kw_only=True)
class Cabling:
    facts: Mapping[str, object]  # the fields that follow from the list
    nodes: tuple[str, ...]  # x-names, in the machine's order
    switches: tuple[str, ...]
    nic_switches: tuple[tuple[int, ...], ...]  # of each node
    cables: tuple[tuple[int, int], ...]  # between groups
    local_cables: int
    absent: tuple[str, ...]  # places as fabric.down names them
    down: frozenset[int]  # nodes


@dataclass
class _Group:
    cabinet: int
    switches: list[str]
    nodes: dict[str, dict[int, tuple[str, bool]]]  # by NIC: its switch, and whether the cable is up
    local: dict[tuple[str, str], list[bool]]  # of each pair of switches: its cables, and whether each is up

    @property
    def shape(self) -> tuple[int, int, int, int]:
        nics = max((max(places) + 1 for places in self.nodes.values() if places), default=0)
        return len(self.switches), len(self.nodes), nics, max((len(c) for c in self.local.values()), default=1)


def _natural(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _order(names: Iterable[str]) -> list[str]:
    return sorted(set(names), key=_natural)


def read(path: Path, *, ports_max: int) -> Cabling:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise UserError(f'topology.cabling = "{path}": no file that can be read') from None
    return _List(path).read(lines, ports_max=ports_max)


class _List:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._used: dict[str, int] = {}  # ports, and the line that has them
        self._down: set[str] = set()  # switches and nodes
        self._cables: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
        self._nics: defaultdict[str, dict[int, tuple[str, bool]]] = defaultdict(dict)
        self._switches: set[str] = set()

    def read(self, lines: list[str], *, ports_max: int) -> Cabling:
        for number, cells in enumerate(self._cells(lines), start=1):
            words = [cell.strip() for cell in cells]
            if any(words) and not words[0].startswith("#") and words[0] != "from":
                self._line(f"{self._path}, line {number}", [*words, "", ""][:3] if len(words) < 4 else words)
        self._check_ports(ports_max)
        groups = self._groups()
        kinds = list(dict.fromkeys(group.shape for group in groups))
        if not any(group.nodes for group in groups):
            raise UserError(f"{self._path}: no node has a cable; {_PORT_ACCEPTED}")
        if len(kinds) > _KINDS_MAX:
            raise UserError(f"{self._path}: the cabinets have {len(kinds)} shapes; accepted are up to {_KINDS_MAX}")
        self._check_reachable(groups)
        groups.sort(key=lambda group: kinds.index(group.shape))
        return self._cabling(groups, kinds)

    def _cells(self, lines: list[str]) -> list[list[str]]:
        try:
            return list(csv.reader(lines, skipinitialspace=True))
        except csv.Error as error:
            raise UserError(f"{self._path}: no list of cables: {error}") from None

    def _line(self, where: str, words: list[str]) -> None:
        if len(words) > 3 or words[2] not in ("", "up", "down"):
            raise UserError(f"{where}: accepted is FROM,TO,STATE with a state of up or down")
        if not words[1]:
            self._alone(where, words[0], words[2])
            return
        ends = [self._port(where, word) for word in words[:2]]
        ends.sort(key=lambda end: end[1] is None)  # a node's end first
        (name, nic), (switch, other) = ends
        up = words[2] != "down"
        if other is not None:
            raise UserError(f"{where}: {words[0]} and {words[1]} are both NICs; one end is a switch's port")
        if nic is None:
            first, second = _order((name, switch)) if name != switch else (name, switch)
            if first == second:
                raise UserError(f"{where}: both ends are on switch {name}")
            self._cables[first, second].append(up)
            self._switches |= {first, second}
            return
        if _natural(name)[0] != _natural(switch)[0]:
            raise UserError(f"{where}: {words[0]} and {words[1]} are in different cabinets; a cabinet is a group")
        self._nics[name][nic] = (switch, up)
        self._switches.add(switch)

    def _alone(self, where: str, name: str, state: str) -> None:
        if state != "down" or not (_is(_SWITCH, name) or _is(_NODE, name)):
            raise UserError(f'{where}: "{name}": a line with one name is a switch or node that is down')
        self._down.add(name)

    def _port(self, where: str, word: str) -> tuple[str, int | None]:
        switch, node = _SWITCH.fullmatch(word), _NODE.fullmatch(word)
        if (switch is None and node is None) or _is(_SWITCH, word) or _is(_NODE, word):
            raise UserError(f'{where}: "{word}": {_PORT_ACCEPTED}')
        if word in self._used:
            raise UserError(f"{where}: port {word} has a cable already (line {self._used[word]})")
        self._used[word] = int(where.rpartition(" ")[2])
        if switch is not None:
            return switch[1], None
        assert node is not None
        return node[1], int(node[3])

    def _check_ports(self, ports_max: int) -> None:
        used = Counter(match[1] for match in map(_SWITCH.fullmatch, self._used) if match is not None)
        for switch, ports in used.items():
            if ports > ports_max:
                raise UserError(
                    f"{self._path}: switch {switch} has {ports} cables; topology.ports_per_switch is {ports_max}"
                )
        for name in self._down:
            if name not in self._switches and name not in self._nics:
                raise UserError(f"{self._path}: {name} is said to be down but has no cable")

    def _check_reachable(self, groups: list[_Group]) -> None:
        """Every route crosses a cable between the two groups, or two by way of a third: nodes need the direct one."""
        pairs = {(_natural(first)[0], _natural(second)[0]) for first, second in self._cables}
        cabinets = sorted(group.cabinet for group in groups if group.nodes)
        for place, first in enumerate(cabinets):
            for second in cabinets[place + 1 :]:
                if (first, second) not in pairs and (second, first) not in pairs:
                    raise UserError(
                        f"{self._path}: nodes of cabinet x{first} cannot reach those of x{second}: accepted is one "
                        "cable or more between them"
                    )

    def _groups(self) -> list[_Group]:
        groups: dict[int, _Group] = {}
        for switch in _order(self._switches):
            cabinet = _natural(switch)[0]
            groups.setdefault(cabinet, _Group(cabinet, [], {}, {})).switches.append(switch)
        for node in _order(self._nics):
            groups[_natural(node)[0]].nodes[node] = self._nics[node]
        for (first, second), cables in self._cables.items():
            if _natural(first)[0] == _natural(second)[0]:
                groups[_natural(first)[0]].local[first, second] = cables
        return list(groups.values())

    def _cabling(self, groups: list[_Group], kinds: list[tuple[int, int, int, int]]) -> Cabling:
        switches = [switch for group in groups for switch in group.switches]
        nodes = [node for group in groups for node in group.nodes]
        number = {name: index for index, name in enumerate(switches)}
        absent = [f"s{number[name]}" for name in sorted(self._down & self._switches, key=_natural)]
        down = {index for index, name in enumerate(nodes) if name in self._down}
        for group in groups:
            absent += _missing_local(group, number)
        cables: list[tuple[int, int]] = []
        for (first, second), states in sorted(self._cables.items(), key=lambda item: (*map(_natural, item[0]),)):
            if _natural(first)[0] != _natural(second)[0]:
                ends = number[first], number[second]
                cables += [ends] * len(states)
                absent += [f"s{ends[0]}-s{ends[1]}.{index}" for index in range(sum(states), len(states))]
        nic_switches: list[tuple[int, ...]] = []
        first_nic = 0
        for group in groups:
            for places in group.nodes.values():
                nics = group.shape[2]
                some = next(iter(places.values()))[0]
                nic_switches.append(tuple(number[places.get(nic, (some, False))[0]] for nic in range(nics)))
                for nic in range(nics):
                    switch, up = places.get(nic, (some, False))
                    if not up:
                        absent.append(f"n{first_nic + nic}")
                    if not up or switch in self._down:
                        down.add(len(nic_switches) - 1)
                if nodes[len(nic_switches) - 1] in self._down:
                    up_nics = [nic for nic in range(nics) if places.get(nic, (some, False))[1]]
                    absent += [f"n{first_nic + nic}" for nic in up_nics]
                first_nic += nics
        return Cabling(
            facts=self._facts(groups, kinds),
            nodes=tuple(nodes),
            switches=tuple(switches),
            nic_switches=tuple(nic_switches),
            cables=tuple(cables),
            local_cables=sum(len(states) for group in groups for states in group.local.values()),
            absent=tuple(absent),
            down=frozenset(down),
        )

    def _facts(self, groups: list[_Group], kinds: list[tuple[int, int, int, int]]) -> dict[str, object]:
        """As a machine file would say it. The numbers of global links are in the list, not here."""

        def fact(value: object) -> dict[str, object]:
            return {"value": value, "source": "topology.cabling", "certainty": "user"}

        names = [f"cabinets_{index}" for index in range(len(kinds))]
        facts: dict[str, object] = {}
        for name, shape in zip(names, kinds, strict=True):
            prefix = f"topology.group.{name}."
            leaves = dict(zip(("switches", "nodes", "nics_per_node", "local_links"), shape, strict=True))
            leaves["groups"] = sum(group.shape == shape for group in groups)
            facts |= {prefix + leaf: fact(value) for leaf, value in leaves.items()}
            facts[prefix + "attach"] = fact("same_switch")
        for i, first in enumerate(names):
            facts |= {f"topology.global.{first}-{second}": fact(0) for second in names[i:]}
        with_nodes = [name for name, shape in zip(names, kinds, strict=True) if shape[1] > 0]
        facts["job.kinds"] = fact(", ".join(with_nodes))
        facts["job.nodes_max"] = fact(sum(len(group.nodes) for group in groups))
        facts["names.style"] = fact("xname")
        for leaf in ("cabinets_per_row", "slots_per_chassis", "boards_per_slot", "nodes_per_board", "cabinet"):
            facts[f"names.{leaf}"] = fact(1)
        return facts


def _missing_local(group: _Group, number: Mapping[str, int]) -> list[str]:
    wanted = group.shape[3]
    missing: list[str] = []
    for place, first in enumerate(group.switches):
        for second in group.switches[place + 1 :]:
            up = sum(group.local.get((first, second), []))
            link = f"s{number[first]}-s{number[second]}"
            missing += [link] if up == 0 else [f"{link}.{index}" for index in range(up, wanted)]
    return missing


def _is(pattern: re.Pattern[str], name: str) -> bool:
    match = pattern.fullmatch(name)
    return match is not None and match[1] == name

"""What hwloc sees of a simulated node (HWLOC_XMLFILE): sockets, NUMA domains, cores, and NICs as PCI devices.

The wheels of MPICH and Open MPI have hwloc in them, and so have many programs; without this they see the computer that
the simulation runs on. MPICH looks up each NIC's PCI address there and ends the job when it is absent: the addresses
are those that the provider gives (provider/nic_info.hpp), 1000:NN:00.0 with NN counting from 1. The file is hwloc's own
format of version 2. Left out: caches, memory sizes, GPUs, simultaneous multithreading. Nothing can be bound to such a
processor: hwloc knows from HWLOC_THISSYSTEM that it is not this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from xml.sax.saxutils import quoteattr

from dryfly.case.nics import NodeHardware, hardware
from dryfly.machine.machine import Machine

PCI_DOMAIN = 0x1000
_ETHERNET = "0200 [17db:0501] [17db:0501] 00"  # class, vendor and device, as HPE's NIC has them
_WORD = 32


def settings(machine: Machine, *, folder: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Writes the file into the run's folder, unless the user has one, and names it to the ranks."""
    if "HWLOC_XMLFILE" in inherited:
        return {}
    path = folder / "hwloc.xml"
    path.write_text(xml(machine), encoding="utf-8")
    return {"HWLOC_XMLFILE": str(path)}


def xml(machine: Machine) -> str:
    nics = max(machine.kinds[kind].nics_per_node for kind in machine.job_kinds)
    head = ['<?xml version="1.0" encoding="UTF-8"?>', '<topology version="2.0">']
    lines = _Tree(hardware(machine, nics=nics), machine.cores_per_node).lines()
    return "\n".join([*head, *lines, "</topology>", ""])


def _bits(first: int, end: int) -> str:
    """A set of consecutive numbers in hwloc's form: words of 32 bits, the highest first."""
    mask = (1 << end) - (1 << first)
    words = []
    while mask:
        words.append(f"0x{mask & (2**_WORD - 1):08x}")
        mask >>= _WORD
    return ",".join(reversed(words)) or "0x0"


class _Tree:
    def __init__(self, node: NodeHardware, cores: int) -> None:
        self._node = node
        self._cores = cores
        self._ids = count(1)

    def lines(self) -> Iterator[str]:
        node, everything = self._node, (0, self._cores)
        yield self._open("Machine", 0, everything, (0, node.domains), allowed=True)
        for socket in range(node.sockets):
            domains = [domain for domain in range(node.domains) if node.socket(domain) == socket]
            cores = self._cores_of(domains[0])[0], self._cores_of(domains[-1])[1]
            yield self._open("Package", socket, cores, (domains[0], domains[-1] + 1))
            for domain in domains:
                yield from self._domain(domain, group=len(domains) > 1)
            yield "</object>"
        yield "</object>"

    def _cores_of(self, domain: int) -> tuple[int, int]:
        return domain * self._cores // self._node.domains, (domain + 1) * self._cores // self._node.domains

    def _domain(self, domain: int, *, group: bool) -> Iterator[str]:
        cores, memory = self._cores_of(domain), (domain, domain + 1)
        if group:
            yield self._open("Group", None, cores, memory, 'kind="1001" subkind="0"')
        yield self._close(self._open("NUMANode", domain, cores, memory, 'local_memory="137438953472"'))
        for core in range(*cores):
            yield self._open("Core", core, (core, core + 1), memory)
            yield self._close(self._open("PU", core, (core, core + 1), memory))
            yield "</object>"
        for nic, place in enumerate(self._node.nic_domains):
            if place == domain:
                yield from self._nic(nic)
        if group:
            yield "</object>"

    def _nic(self, nic: int) -> Iterator[str]:
        bus = nic + 1
        bridge = f'bridge_type="0-1" depth="0" bridge_pci="{PCI_DOMAIN:04x}:[{bus:02x}-{bus:02x}]"'
        yield f'<object type="Bridge" gp_index="{next(self._ids)}" {bridge}>'
        address = f'pci_busid="{PCI_DOMAIN:04x}:{bus:02x}:00.0" pci_type={quoteattr(_ETHERNET)}'
        device = f'<object type="PCIDev" gp_index="{next(self._ids)}" {address} pci_link_speed="31.500000">'
        yield device
        yield f'<object type="OSDev" gp_index="{next(self._ids)}" name="hsn{nic}" osdev_type="2"/>'
        yield "</object></object>"

    def _open(
        self, kind: str, index: int | None, cores: tuple[int, int], domains: tuple[int, int], more: str = "", *,
        allowed: bool = False,
    ) -> str:  # fmt: skip
        number = "" if index is None else f'os_index="{index}" '
        cpus, memory = _bits(*cores), _bits(*domains)
        sets = f'cpuset="{cpus}" complete_cpuset="{cpus}" nodeset="{memory}" complete_nodeset="{memory}"'
        if allowed:
            sets += f' allowed_cpuset="{cpus}" allowed_nodeset="{memory}"'
        return f'<object type="{kind}" {number}gp_index="{next(self._ids)}" {sets} {more}>'

    @staticmethod
    def _close(opened: str) -> str:
        return f"{opened[:-1]}/>"

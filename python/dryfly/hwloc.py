"""What hwloc sees of a simulated node (HWLOC_XMLFILE): sockets, NUMA domains, cores, and NICs as PCI devices.

The wheels of MPICH and Open MPI have hwloc in them, and so have many programs; without this they see the computer that
the simulation runs on. The file is hwloc's own format of version 2. Each core has one hardware thread, NICs are spread
evenly over the NUMA domains in their order, and their PCI addresses are those that the provider reports (bus 1 for
cxi0, and so on). Left out: caches, memory sizes, GPUs, simultaneous multithreading. Nothing can be bound to such a
processor: hwloc knows from HWLOC_THISSYSTEM that it is not this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

from dryfly.machine import Machine

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">\n'
# An Ethernet controller of Cray (17db): Cassini 1 (0501), as the cxi driver knows it.
_PCI_TYPE = "0200 [17db:0501] [17db:0501] 00"


def settings(machine: Machine, *, folder: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Writes the file into the run's folder, unless the user has one, and names it to the ranks."""
    if "HWLOC_XMLFILE" in inherited:
        return {}
    path = folder / "hwloc.xml"
    path.write_text(xml(machine), encoding="utf-8")
    return {"HWLOC_XMLFILE": str(path)}


def xml(machine: Machine) -> str:
    sockets = int(machine.optional("job.sockets_per_node") or 1)
    domains = sockets * int(machine.optional("job.numa_per_socket") or 1)
    cores = machine.cores_per_node
    nics = max(machine.kinds[kind].nics_per_node for kind in machine.job_kinds)
    node = _Node(sockets=sockets, domains=domains, cores=cores, nics=nics)
    return _HEAD + "\n".join(node.lines()) + "\n</topology>\n"


class _Node:
    def __init__(self, *, sockets: int, domains: int, cores: int, nics: int) -> None:
        self._sockets, self._domains, self._cores, self._nics = sockets, domains, cores, nics
        self._ids = count(1)

    def lines(self) -> Iterator[str]:
        everything = self._sets(range(self._cores), range(self._domains))
        yield f' <object type="Machine" os_index="0" {everything} {self._id()}>'
        for socket in range(self._sockets):
            domains = range(*_part(socket, self._sockets, self._domains))
            sets = self._sets(self._cores_of(domains), domains)
            yield f'  <object type="Package" os_index="{socket}" {sets} {self._id()}>'
            if len(domains) == 1:
                yield from self._domain(domains[0])
            else:
                for domain in domains:
                    sets = self._sets(self._cores_of(range(domain, domain + 1)), range(domain, domain + 1))
                    yield f'   <object type="Group" {sets} {self._id()} kind="1000" subkind="0">'
                    yield from self._domain(domain)
                    yield "   </object>"
            yield "  </object>"
        yield " </object>"

    def _domain(self, domain: int) -> Iterator[str]:
        own = range(domain, domain + 1)
        cores = self._cores_of(own)
        yield f'   <object type="NUMANode" os_index="{domain}" {self._sets(cores, own)} {self._id()}/>'
        for core in cores:
            sets = self._sets(range(core, core + 1), own)
            yield f'   <object type="Core" os_index="{core}" {sets} {self._id()}>'
            yield f'    <object type="PU" os_index="{core}" {sets} {self._id()}/>'
            yield "   </object>"
        nics = range(*_part(domain, self._domains, self._nics))
        for nic in nics:
            yield from self._nic(nic)

    def _nic(self, nic: int) -> Iterator[str]:
        bus = nic + 1
        below = f"0000:[{bus:02x}-{bus:02x}]"
        yield f'   <object type="Bridge" {self._id()} bridge_type="0-1" depth="0" bridge_pci="{below}">'
        address = f'pci_busid="0000:{bus:02x}:00.0" pci_type="{_PCI_TYPE}" pci_link_speed="0.000000"'
        yield f'    <object type="PCIDev" {self._id()} {address}>'
        yield f'     <object type="OSDev" {self._id()} name="cxi{nic}" osdev_type="3"/>'
        yield "    </object>"
        yield "   </object>"

    def _cores_of(self, domains: range) -> range:
        first, _ = _part(domains[0], self._domains, self._cores)
        _, end = _part(domains[-1], self._domains, self._cores)
        return range(first, end)

    def _sets(self, cores: range, domains: range) -> str:
        cpus, nodes = _bitmap(cores), _bitmap(domains)
        parts = [("cpuset", cpus), ("complete_cpuset", cpus), ("allowed_cpuset", cpus)]
        parts += [("nodeset", nodes), ("complete_nodeset", nodes), ("allowed_nodeset", nodes)]
        everything = len(cores) == self._cores and len(domains) == self._domains
        return " ".join(f'{name}="{value}"' for name, value in parts if everything or not name.startswith("allowed"))

    def _id(self) -> str:
        return f'gp_index="{next(self._ids)}"'


def _part(index: int, parts: int, whole: int) -> tuple[int, int]:
    return index * whole // parts, (index + 1) * whole // parts


def _bitmap(members: range) -> str:
    """As hwloc writes it: words of 32 bits, the highest first."""
    value = sum(1 << member for member in members)
    words = []
    while True:
        words.append(f"0x{value & 0xFFFFFFFF:08x}")
        value >>= 32
        if value == 0:
            return ",".join(reversed(words))

"""What hwloc sees of a simulated node (HWLOC_XMLFILE): sockets, NUMA domains with and without cores, L3 regions, cores,
hardware threads, and NICs and GPUs as PCI devices.

The wheels of MPICH and Open MPI have hwloc in them, and so have many programs; without this they see the computer that
the simulation runs on. MPICH looks up each NIC's PCI address there and ends the job when it is absent: the addresses
are those that the provider gives (provider/nic_info.hpp), 1000:NN:00.0 with NN counting from 1. The file is hwloc's own
format of version 2. HWLOC_THISSYSTEM says that it is this node's, so hwloc binds by system calls, which the preload
answers (preload/node). Reserved cores are there and not allowed, as in a job of the machine: hwloc shows them where it
is asked for all (lstopo --disallowed). Left out: L1 and L2 caches, PCI devices besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from dryfly.case.node_files import distance
from dryfly.machine import gpus
from dryfly.machine.machine import Machine
from dryfly.machine.node import Domain, Node, most_nics, node_of

PCI_DOMAIN = 0x1000
GPU_DOMAIN = 0x2000
_ETHERNET = "0200 [17db:0501] [17db:0501] 00"  # class, vendor and device, as HPE's NIC has them
_DISPLAY = "0380 [{0}] [{0}] 00"
_NIC_SPEED = "31.500000"  # GB/s: PCIe 4 x16
_UNKNOWN_MEMORY = 2**37
_WORD = 32


def settings(machine: Machine, *, folder: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Writes the file into the run's folder, unless the user has one, and names it to the ranks."""
    if "HWLOC_XMLFILE" in inherited:
        return {}
    path = folder / "hwloc.xml"
    path.write_text(xml(machine), encoding="utf-8")
    return {"HWLOC_XMLFILE": str(path), "HWLOC_THISSYSTEM": "1"}


def xml(machine: Machine) -> str:
    document = '<!DOCTYPE topology SYSTEM "hwloc2.dtd">'
    head = ['<?xml version="1.0" encoding="UTF-8"?>', document, '<topology version="2.0">']
    node = node_of(machine, nics=most_nics(machine))
    return "\n".join([*head, *_Tree(machine, node).lines(), *_distances(node.domains), "</topology>", ""])


def _distances(domains: Sequence[Domain]) -> Iterator[str]:
    """Of the firmware, which hwloc has where there are several NUMA domains. GROMACS takes it for granted."""
    if len(domains) < 2:
        return
    numbers = "".join(f"{domain.number} " for domain in domains)
    values = "".join(f"{distance(one, other)} " for one in domains for other in domains)
    kind = 'name="NUMALatency" kind="5"'  # from the system, a latency
    yield f'<distances2 type="NUMANode" nbobjs="{len(domains)}" {kind} indexing="os">'
    yield f'<indexes length="{len(numbers)}">{numbers}</indexes>'
    yield f'<u64values length="{len(values)}">{values}</u64values>'
    yield "</distances2>"


def _bits(numbers: Iterable[int]) -> str:
    """A set in hwloc's form: words of 32 bits, the highest first."""
    mask = sum(1 << number for number in set(numbers))
    words = []
    while mask:
        words.append(f"0x{mask & (2**_WORD - 1):08x}")
        mask >>= _WORD
    return ",".join(reversed(words)) or "0x0"


class _Tree:
    def __init__(self, machine: Machine, node: Node) -> None:
        self._node = node
        self._ids = count(1)
        size = machine.optional("node.l3_size")
        self._cache = f'cache_size="{size or 0}" depth="3" cache_linesize="64" cache_associativity="0" cache_type="0"'
        self._gpu_pci = str(machine.optional("node.gpu_pci") or "0000:0000")
        rate = machine.optional("node.gpu_rate")
        self._gpu_speed = f"{rate / 10**9:.6f}" if isinstance(rate, int) else "0.000000"

    def lines(self) -> Iterator[str]:
        node = self._node
        yield self._open("Machine", 0, range(node.cores), node.domains, allowed=True)
        for socket in range(node.sockets):
            domains = [domain for domain in node.domains if domain.socket == socket]
            cored = [domain for domain in domains if domain.cores]
            cores = range(cored[0].cores.start, cored[-1].cores.stop)
            yield self._open("Package", socket, cores, domains)
            for domain in domains:
                if domain.cores:
                    yield from self._domain(domain, group=len(cored) > 1)
                else:
                    yield self._memory(domain, cores)
            yield "</object>"
        yield "</object>"

    def _memory(self, domain: Domain, cores: range) -> str:
        """`cores`: those that it is near."""
        kind = f'subtype="{domain.kind}" ' if domain.kind else ""
        size = f'{kind}local_memory="{domain.size or _UNKNOWN_MEMORY}"'
        return self._close(self._open("NUMANode", domain.number, cores, [domain], size))

    def _domain(self, domain: Domain, *, group: bool) -> Iterator[str]:
        node = self._node
        if group:
            yield self._open("Group", None, domain.cores, [domain], 'kind="1001" subkind="0"')
        yield self._memory(domain, domain.cores)
        regions = [number for number in range(node.l3_regions) if node.region(number)[0] in domain.cores]
        for number in regions:
            yield self._open("L3Cache", number, node.region(number), [domain], self._cache)
            yield from self._cores(node.region(number), domain)
            yield from self._gpus(domain, region=number)
            yield "</object>"
        if not regions:
            yield from self._cores(domain.cores, domain)
        yield from (line for nic, at in enumerate(node.nic_domains) if at == domain.number for line in self._nic(nic))
        yield from self._gpus(domain, region=None)
        if group:
            yield "</object>"

    def _cores(self, cores: range, domain: Domain) -> Iterator[str]:
        for core in cores:
            yield self._open("Core", core, [core], [domain])
            for processor in self._node.processors_of(core):
                yield self._close(self._open("PU", processor, [], [domain], processors=[processor]))
            yield "</object>"

    def _nic(self, nic: int) -> Iterator[str]:
        name = f'name="hsn{nic}" osdev_type="2"'
        address = f'<info name="Address" value="02:00:00:00:00:{nic:02x}"/>'
        yield from self._device(PCI_DOMAIN, nic + 1, _ETHERNET, _NIC_SPEED, name, address)

    def _gpus(self, domain: Domain, *, region: int | None) -> Iterator[str]:
        """Those of the L3 region, or of the domain where the machine's file says no regions."""
        node = self._node
        if (region is None) != (not node.gpu_regions):
            return
        for gpu, at in enumerate(node.gpu_domains):
            if at == domain.number and (region is None or node.gpu_regions[gpu] == region):
                name = f'name="gpu{gpu}" osdev_type="1"'
                yield from self._device(gpus.PCI_DOMAIN, gpu + 1, _DISPLAY.format(self._gpu_pci), self._gpu_speed, name)

    def _device(self, domain: int, bus: int, kind: str, speed: str, name: str, more: str = "") -> Iterator[str]:
        bridge = f'bridge_type="0-1" depth="0" bridge_pci="{domain:04x}:[{bus:02x}-{bus:02x}]"'
        yield f'<object type="Bridge" gp_index="{next(self._ids)}" {bridge}>'
        address = f'pci_busid="{domain:04x}:{bus:02x}:00.0" pci_type="{kind}"'
        yield f'<object type="PCIDev" gp_index="{next(self._ids)}" {address} pci_link_speed="{speed}">'
        yield f'<object type="OSDev" gp_index="{next(self._ids)}" {name}>{more}</object>'
        yield "</object></object>"

    def _open(
        self, kind: str, index: int | None, cores: Iterable[int], domains: Iterable[Domain], more: str = "", *,
        allowed: bool = False, processors: Iterable[int] = (),
    ) -> str:  # fmt: skip
        number = "" if index is None else f'os_index="{index}" '
        threads = [each for core in cores for each in self._node.processors_of(core)]
        cpus, memory = _bits([*threads, *processors]), _bits(domain.number for domain in domains)
        sets = f'cpuset="{cpus}" complete_cpuset="{cpus}" nodeset="{memory}" complete_nodeset="{memory}"'
        if allowed:
            sets += f' allowed_cpuset="{_bits(self._node.allowed)}" allowed_nodeset="{memory}"'
        return f'<object type="{kind}" {number}gp_index="{next(self._ids)}" {sets} {more}>'

    @staticmethod
    def _close(opened: str) -> str:
        return f"{opened[:-1]}/>"

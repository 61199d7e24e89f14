"""What Linux tells of a node's NUMA domains and processors, for libnuma, numactl, lscpu and others in a job:
/sys/devices/system/node, and /proc/cpuinfo. /sys/devices/system/cpu, with many files, a process makes that wants it
(preload/node/processor_files.hpp).

The preload shows these files in the place of this computer's (preload/node/file_calls.hpp). Distances are Linux's own
scale, where 10 is a domain's distance to itself; as on Aurora, another socket is 21, and a domain of memory alone is 3
further away than one with cores: docs/model/nodes.md#memories-of-a-node. What a processor is called and can do stays
this computer's, for its code runs here. Left out: caches, frequencies, and what else Linux tells of a processor.
"""

from __future__ import annotations

from pathlib import Path

from dryfly.binding import sets
from dryfly.binding.ranks import node_words
from dryfly.machine.machine import Machine
from dryfly.machine.node import Domain, Node, most_nics, node_of

PROCESSORS_VARIABLE = "DRYFLY_PROCESSORS"
FILES_VARIABLE = "DRYFLY_NODE_FILES"
_HERE, _SAME_SOCKET, _OTHER_SOCKET, _CORELESS = 10, 12, 21, 3
_UNKNOWN_MEMORY = 2**37
_WORD = 32


def settings(machine: Machine, *, folder: Path) -> dict[str, str]:
    """What the job's processes are told of their node; writes the files into the run's folder."""
    node = node_of(machine, nics=most_nics(machine))
    system = folder / "system"
    system.mkdir()
    for name in ("online", "possible", "present"):
        (system / name).write_text(f"{sets.text(range(node.processors))}\n", encoding="ascii")
    (system / "cpuinfo").write_text(_cpuinfo(node), encoding="utf-8")
    top = system / "node"
    top.mkdir()
    every = sets.text(range(len(node.domains)))
    for name in ("online", "possible", "has_memory"):
        (top / name).write_text(f"{every}\n", encoding="ascii")
    (top / "has_cpu").write_text(f"{sets.text(range(len(node.with_cores)))}\n", encoding="ascii")
    for domain in node.domains:
        _write(top / f"node{domain.number}", node, domain)
    return {PROCESSORS_VARIABLE: node_words(node), FILES_VARIABLE: str(system)}


def _cpuinfo(node: Node) -> str:
    told = _this_computers()
    sockets = [node.socket_of(core) for core in range(node.cores)]
    sections = []
    for each in range(node.processors):
        core = node.core_of(each)
        cores = sockets.count(sockets[core])
        of_node = {
            "processor": each, "physical id": sockets[core], "siblings": cores * node.threads, "core id": core,
            "cpu cores": cores, "apicid": each, "initial apicid": each,
        }  # fmt: skip
        sections.append("".join(f"{name}: {of_node.get(name.strip(), text)}\n" for name, text in told))
    return "\n".join(sections) + "\n"


def _this_computers() -> list[tuple[str, str]]:
    """Names and values of the first processor in /proc/cpuinfo."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return []
    found = [line.partition(":") for line in first.splitlines()]
    return [(name, text.strip()) for name, colon, text in found if colon]


def _write(folder: Path, node: Node, domain: Domain) -> None:
    folder.mkdir()
    processors = [each for core in domain.cores for each in node.processors_of(core)]
    size = (domain.size or _UNKNOWN_MEMORY) // 1024
    prefix = f"Node {domain.number}"
    files = {
        "cpulist": sets.text(processors) if processors else "",
        "cpumap": _mask(processors, node.processors),
        "meminfo": f"{prefix} MemTotal: {size} kB\n{prefix} MemFree: {size} kB\n{prefix} MemUsed: 0 kB",
        "distance": " ".join(str(distance(domain, other)) for other in node.domains),
    }
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n", encoding="ascii")


def distance(one: Domain, other: Domain) -> int:
    """On the scale of the firmware's table."""
    if one.number == other.number:
        return _HERE
    if one.socket != other.socket:
        return _OTHER_SOCKET + (0 if one.cores and other.cores else _CORELESS - 1)
    return _HERE + _CORELESS if not (one.cores and other.cores) else _SAME_SOCKET


def _mask(numbers: list[int], size: int) -> str:
    """Words of 32 bits, the highest first."""
    mask = sum(1 << number for number in numbers)
    words = [f"{mask >> at & 2**_WORD - 1:08x}" for at in range(0, size, _WORD)]
    return ",".join(reversed(words))

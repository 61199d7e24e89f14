"""`dryfly gpu`: the GPUs of a machine's nodes, where they are in a node, what their links carry, and who says so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dryfly.machine.gpu_links import links_of
from dryfly.machine.machine import Fact, Machine
from dryfly.machine.node import Node, most_nics, node_of
from dryfly.machine.schema import FIELDS

FORMAT = 1
# Where a GPU is on PCI, as hwloc, the runtimes and Open MPI show it: this domain, and a bus that is its number and one.
PCI_DOMAIN = 0x2000
_RUNTIMES = {"cuda": "CUDA", "hip": "HIP", "level-zero": "Level Zero"}
_GUIDE = "docs/guide/gpu.md"
_HEADS = ("GPU", "NUMA domain", "socket", "L3 region", "nearest NICs", "PCI address")
# Beside all of node.gpu*.
_OF_DEVICES = ("compute.gpu.memory", "compute.gpu.memory_rate", "node.nic_numa", "node.nic_gpu")
_ALWAYS = ("compute.gpu.memory", "node.gpu_rate", "node.gpu_peer_rate")  # said to be missing where they are
_LONG = 24


def pci_address(gpu: int) -> str:
    return f"{PCI_DOMAIN:04x}:{gpu + 1:02x}:00.0"


def text(machine: Machine) -> str:
    node = node_of(machine, nics=most_nics(machine))
    if not node.gpu_domains:
        return f"{machine.name}: {_why_none(machine)}"
    lines = [f"{machine.name}: {len(node.gpu_domains)} GPUs a node{_tiles(node)}; {_runtime(machine)}", ""]
    rows = [_HEADS, *(_row(node, gpu) for gpu in range(len(node.gpu_domains)))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    lines += [_joined(row, widths) for row in rows]
    lines += [*_links(machine, node), "", *_numbers(machine), ""]
    lines.append(f'"dryfly machines show {machine.name}" says what sources and certainties are.')
    return "\n".join(lines)


def content(machine: Machine) -> dict[str, Any]:
    """The same for programs; null for what the machine's file does not say."""
    node = node_of(machine, nics=most_nics(machine))
    links = links_of(machine, gpus=len(node.gpu_domains)) if node.gpu_domains else None
    return {
        "format": FORMAT,
        "machine": machine.name,
        "runtime": machine.optional("node.gpu_runtime"),
        "tiles": node.gpu_tiles,
        "gpus": [
            {
                "gpu": gpu,
                "domain": domain,
                "socket": node.socket(domain),
                "l3": node.gpu_regions[gpu] if node.gpu_regions else None,
                "nics": list(node.near_nics(domain)),
                "pci": pci_address(gpu),
            }
            for gpu, domain in enumerate(node.gpu_domains)
        ],
        "links": links,
        "facts": {
            path: {
                "value": fact.value,
                "text": fact.text,
                "certainty": fact.certainty,
                "source": fact.source,
                "note": fact.note,
            }
            for path, fact in _facts(machine).items()
        },
    }


def _why_none(machine: Machine) -> str:
    if machine.optional("compute.gpu.count"):
        return "where GPUs are in its nodes is not said (node.gpu_numa), so no program finds one"
    return "its nodes have no GPUs"


def _runtime(machine: Machine) -> str:
    runtime = machine.optional("node.gpu_runtime")
    if runtime is None:
        return f"no program finds one, for it names no runtime (node.gpu_runtime, {_GUIDE})"
    return f"programs find them, simulated, by {_RUNTIMES[str(runtime)]} ({_GUIDE})"


def _tiles(node: Node) -> str:
    return f" of {node.gpu_tiles} tiles" if node.gpu_tiles > 1 else ""


def _row(node: Node, gpu: int) -> tuple[str, ...]:
    domain = node.gpu_domains[gpu]
    region = str(node.gpu_regions[gpu]) if node.gpu_regions else "-"
    nics = ", ".join(map(str, node.near_nics(domain)))
    return str(gpu), str(domain), str(node.socket(domain)), region, nics, pci_address(gpu)


def _joined(row: Sequence[str], widths: Sequence[int]) -> str:
    return ("  " + "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True))).rstrip()


def _links(machine: Machine, node: Node) -> list[str]:
    """The rate between each two where pairs differ."""
    gpus = range(len(node.gpu_domains))
    links, rate = links_of(machine, gpus=len(gpus)), machine.optional("node.gpu_peer_rate")
    if links is None:
        return []
    shown = [[str(each) for each in row] for row in links]
    head = "links between two GPUs, of those without one of their own on the way over others"
    if isinstance(rate, int):
        shown = [[f"{each * rate / 10**9:.4g}" for each in row] for row in links]
        head = "GB/s between two GPUs, each way, over their links or, where they have none, over another GPU"
    rows = [["", *map(str, gpus)], *([str(gpu), *shown[gpu]] for gpu in gpus)]
    for gpu in gpus:
        rows[gpu + 1][gpu + 1] = "-"
    width = max(len(word) for row in rows for word in row)
    return ["", f"  {head}", *("  " + "  ".join(word.rjust(width) for word in row) for row in rows)]


def _paths() -> list[str]:
    return [path for path in FIELDS if path.startswith("node.gpu") or path in _OF_DEVICES]


def _facts(machine: Machine) -> dict[str, Fact]:
    return {path: machine.facts[path] for path in _paths() if path in machine.facts}


def _meaning(path: str) -> str:
    """Without its example and without what is so where it is not given."""
    return re.split(r'[,:] (?=")|; not given', FIELDS[path].meaning)[0]


def _numbers(machine: Machine) -> list[str]:
    rows = [("field", "value", "certainty", "what it is, and who says so")]
    for path in _paths():
        fact = machine.facts.get(path)
        if fact is not None:
            note = f" - {fact.note}" if fact.note else ""
            value = fact.text if len(fact.text) <= _LONG else "above"
            rows.append((path, value, fact.certainty, f"{_meaning(path)}: {fact.source}{note}"))
        elif path in _ALWAYS:
            rows.append((path, "not given", "", _meaning(path)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [_joined(row, [*widths, 0]) for row in rows]

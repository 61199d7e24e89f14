"""The simulated GPUs of a machine's nodes, for ranks: the libraries that stand in for the GPU runtime, and what the
runtime reads in DRYFLY_GPU (gpu/settings.hpp)."""

from __future__ import annotations

from collections.abc import Mapping

from dryfly.base.errors import UserError
from dryfly.base.paths import GPU_CORE, GPU_FOR_OPENMPI, GPU_HIP, native
from dryfly.machine.gpu_links import links_of
from dryfly.machine.machine import Machine
from dryfly.machine.node import most_nics, node_of
from dryfly.mpi import openmpi
from dryfly.mpi.libraries import MpiLibrary

VARIABLE = "DRYFLY_GPU"
_MOST_DEVICES = 16
# The runtime's word, and the machine's field.
_NUMBERS = {
    "memory": "compute.gpu.memory",
    "call_ps": "node.gpu_call",
    "latency_ps": "node.gpu_copy_latency",
    "link_rate": "node.gpu_rate",
    "peer_rate": "node.gpu_peer_rate",
    "memory_rate": "compute.gpu.memory_rate",
}


def description(machine: Machine) -> str | None:
    """The value of DRYFLY_GPU, or None where the machine names no runtime.

    Numbers are bytes, bytes per second and picoseconds; the links between each two GPUs are a digit each.

    Raises UserError where it names one and lacks a number that the runtime needs, or has too many GPUs.
    """
    runtime = machine.optional("node.gpu_runtime")
    if runtime is None:
        return None
    devices = _devices(machine)
    words = [f"runtime={runtime}", f"devices={devices}"]
    words += [f"{word}={_number(machine, field)}" for word, field in _NUMBERS.items()]
    links = links_of(machine, gpus=devices)
    if links is not None:
        words.append("links=" + "".join(str(each) for row in links for each in row))
    return " ".join(words)


def spec_lines(machine: Machine) -> str:
    """What the resolved spec says of copies where messages of a node go by its memory; nothing without a runtime."""
    if machine.optional("node.gpu_runtime") is None:
        return ""
    devices = _devices(machine)
    links = links_of(machine, gpus=devices)
    link_rate, peer_rate = _number(machine, "node.gpu_rate"), _number(machine, "node.gpu_peer_rate")
    lines = [f"node.gpus {devices}", f"node.gpu_copy_ps {_number(machine, 'node.gpu_copy_latency')}"]
    for one in range(devices):
        lines.append(f"node.gpu_copy.0.{one + 1}.bytes_per_s {link_rate}")
        # Within a GPU each byte is read and written.
        within = _number(machine, "compute.gpu.memory_rate") // 2
        for other in range(one, devices):
            between = peer_rate * (links[one][other] if links is not None else 1)
            lines.append(f"node.gpu_copy.{one + 1}.{other + 1}.bytes_per_s {within if one == other else between}")
    return "".join(f"{line}\n" for line in lines)


def _devices(machine: Machine) -> int:
    devices = len(node_of(machine, nics=most_nics(machine)).gpu_domains)
    if not 1 <= devices <= _MOST_DEVICES:
        raise UserError(
            f"machine {machine.name}: node.gpu_runtime is given and node.gpu_numa lists {devices} GPUs: "
            f"accepted is 1 to {_MOST_DEVICES}"
        )
    return devices


def _number(machine: Machine, field: str) -> int:
    value = machine.optional(field)
    if not isinstance(value, int):
        raise UserError(f"machine {machine.name}: node.gpu_runtime needs {field}, which is not given")
    return value


def settings(description: str, *, mpi: MpiLibrary, values: Mapping[str, str]) -> dict[str, str]:
    """What ranks get on top of `values`, their environment so far, where the machine has GPUs of this description."""
    face = GPU_HIP if "runtime=hip" in description.split() else GPU_CORE
    folder = native(face).parent
    added = {VARIABLE: description, "LD_LIBRARY_PATH": f"{folder}:{values['LD_LIBRARY_PATH']}"}
    if mpi.family == "openmpi" and not openmpi.is_release_4(mpi):
        added["LD_PRELOAD"] = f"{values['LD_PRELOAD']}:{native(GPU_FOR_OPENMPI)}"
    return added

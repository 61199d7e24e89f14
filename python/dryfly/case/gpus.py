"""The simulated GPUs of a machine's nodes, for ranks: the libraries that stand in for the GPU runtime, and what the
runtime reads in DRYFLY_GPU (gpu/settings.hpp)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from dryfly.base.errors import UserError
from dryfly.base.paths import GPU_CORE, GPU_FOR_OPENMPI, GPU_HIP, GPU_LEVEL_ZERO, native
from dryfly.binding.device_forms import gpu_number
from dryfly.binding.ranks import RankBinding
from dryfly.machine.gpu_links import direct_links, links_of
from dryfly.machine.machine import Machine
from dryfly.machine.node import most_nics, node_of
from dryfly.mpi import intel, openmpi
from dryfly.mpi.libraries import MpiLibrary

VARIABLE = "DRYFLY_GPU"
_UNAWARE = "DRYFLY_GPU_UNAWARE"  # preload/mpi/gpu_buffers.hpp
_MOST_DEVICES = 16
_LEAST_RATE = 10**6  # that the resolved spec takes
# The runtime's word, and the machine's field.
_NUMBERS = {
    "memory": "compute.gpu.memory",
    "call_ps": "node.gpu_call",
    "lookup_ps": "node.gpu_lookup",
    "query_ps": "node.gpu_query",
    "short_call_ps": "node.gpu_short_call",
    "allocation_ps": "node.gpu_allocation",
    "pinning_rate": "node.gpu_pinning_rate",
    "registration_rate": "node.gpu_registration_rate",
    "latency_ps": "node.gpu_copy_latency",
    "step_ps": "node.gpu_copy_step",
    "local_latency_ps": "node.gpu_local_latency",
    "local_step_ps": "node.gpu_local_step",
    "word_ps": "node.gpu_word",
    "word_in_batch_ps": "node.gpu_word_in_batch",
    "kernel_ps": "compute.gpu.latency",
    "link_rate": "node.gpu_rate",
    "peer_rate": "node.gpu_peer_rate",
    "memory_rate": "compute.gpu.memory_rate",
    "pageable_rate": "node.local_rate",
}
_WHERE_GIVEN = {
    "fp64_rate": "compute.gpu.fp64",
    "fp32_rate": "compute.gpu.fp32",
    "half_rate": "compute.gpu.half",
}
_OF_NODE = {"node_in_rate": "node.gpus_in_rate", "node_out_rate": "node.gpus_out_rate"}  # where given, too
_HOST_ACCESS = {
    "load_latency_ps": "node.gpu_load_latency",
    "load_rate": "node.gpu_load_rate",
    "store_latency_ps": "node.gpu_store_latency",
    "store_rate": "node.gpu_store_rate",
}
_INSTEAD = {"node.gpu_rate": "node.gpu_copy_rate"}  # where that is given
# By which a launcher that binds a rank to GPUs tells the runtime so.
_MASKS = {"cuda": "CUDA_VISIBLE_DEVICES", "hip": "ROCR_VISIBLE_DEVICES", "level-zero": "ZE_AFFINITY_MASK"}
_FACES = {"cuda": GPU_CORE, "hip": GPU_HIP, "level-zero": GPU_LEVEL_ZERO}
_HIERARCHY = "ZE_FLAT_DEVICE_HIERARCHY"  # whether Level Zero's masks count tiles, or GPUs and tiles of these
_OF_TILES = ("compute.gpu.memory", "compute.gpu.memory_rate", *_WHERE_GIVEN.values())  # that a GPU's tiles share


def description(machine: Machine) -> str | None:
    """The value of DRYFLY_GPU, or None where the machine names no runtime.

    Numbers are bytes, bytes per second and picoseconds; the links between each two GPUs are a digit each.

    Raises UserError where it names one and lacks a number that the runtime needs, or has too many GPUs.
    """
    runtime = machine.optional("node.gpu_runtime")
    if runtime is None:
        return None
    tiles = _tiles(machine)
    devices = devices_of_node(machine)
    words = [f"runtime={runtime}", f"devices={devices}"]
    if tiles > 1:
        words += [f"tiles={tiles}", f"tile_rate={_number(machine, 'node.gpu_tile_rate')}"]
        words.append(f"gpu_link_rate={_plain(machine, 'node.gpu_rate')}")
    words += [f"{word}={_of_tile(machine, field, tiles)}" for word, field in _NUMBERS.items()]
    given = {word: field for word, field in (_WHERE_GIVEN | _OF_NODE).items() if machine.optional(field) is not None}
    words += [f"{word}={_of_tile(machine, field, tiles)}" for word, field in given.items()]
    if machine.optional("node.gpu_host_access") == "on":
        words += ["host_access=1", *(f"{word}={_plain(machine, field)}" for word, field in _HOST_ACCESS.items())]
    words += _of_cuda(machine)
    links = _links(machine, tiles)
    if links is not None:
        words.append("links=" + "".join(str(each) for row in links for each in row))
    return " ".join(words)


def _of_cuda(machine: Machine) -> list[str]:
    """What programs ask of a device by its properties, where the machine says it."""
    words = []
    capability = machine.optional("node.gpu_capability")
    if capability is not None:
        if not re.fullmatch(r"\d{1,2}\.\d", str(capability)):
            raise UserError(
                f'machine {machine.name}: node.gpu_capability is "{capability}": accepted is a number such as "8.0"'
            )
        words.append(f"capability={str(capability).replace('.', '')}")
    count = machine.optional("node.gpu_multiprocessors")
    if count is not None:
        words.append(f"multiprocessors={count}")
    return words


def spec_lines(machine: Machine, *, of_skeletons: bool = False) -> str:
    """What the resolved spec says of GPUs' memory: the links that NICs reach it by, and copies where messages of a node
    go by its memory. Nothing without a runtime, but for skeletons, which have no program that would need one.
    """
    if machine.optional("node.gpu_runtime") is None and not of_skeletons:
        return ""
    tiles = _tiles(machine)
    devices = _devices(machine) * tiles
    links = _links(machine, tiles)
    link_rate, peer_rate = _number(machine, "node.gpu_rate"), _number(machine, "node.gpu_peer_rate")
    of_link = "node.gpu_rate" if machine.optional("node.gpu_rate") else "node.gpu_copy_rate"
    lines = [f"node.gpus {devices}", f"node.gpu_link_bytes_per_s {_plain(machine, of_link)}"]
    if tiles > 1:
        lines.append(f"node.gpu_tiles {tiles}")
    lines += [f"node.nic.{nic}.gpu {1 + gpu}" for nic, gpu in enumerate(_gpus_of_nics(machine, devices))]
    for kind in ("copy", "local"):
        ps = _number(machine, f"node.gpu_{kind}_latency") + _number(machine, f"node.gpu_{kind}_step")
        lines.append(f"node.gpu_{kind}_ps {ps}")
    for one in range(devices):
        lines.append(f"node.gpu_copy.0.{one + 1}.bytes_per_s {link_rate}")
        # Within a GPU each byte is read and written.
        within = max(_LEAST_RATE, _of_tile(machine, "compute.gpu.memory_rate", tiles) // 2)
        for other in range(one, devices):
            between = peer_rate * (links[one][other] if links is not None else 1)
            if tiles > 1 and one // tiles == other // tiles:
                between = _number(machine, "node.gpu_tile_rate")
            lines.append(f"node.gpu_copy.{one + 1}.{other + 1}.bytes_per_s {within if one == other else between}")
    return "".join(f"{line}\n" for line in lines)


def _tiles(machine: Machine) -> int:
    """Of a GPU, where the runtime has each as a device of its own; CUDA and HIP know none."""
    return int(machine.optional("node.gpu_tiles") or 1) if machine.optional("node.gpu_runtime") == "level-zero" else 1


def _links(machine: Machine, tiles: int) -> list[list[int]] | None:
    """Between each two devices, each tile having all of its GPU's."""
    links = links_of(machine, gpus=_devices(machine))
    if links is None or tiles == 1:
        return links
    devices = range(len(links) * tiles)
    return [[links[one // tiles][other // tiles] for other in devices] for one in devices]


def _of_tile(machine: Machine, field: str, tiles: int) -> int:
    number = _number(machine, field)
    return number // tiles if field in _OF_TILES else number


def devices_of_node(machine: Machine) -> int:
    """Tiles count each. Raises UserError."""
    return _devices(machine) * _tiles(machine)


def joined(machine: Machine) -> list[list[bool]] | None:
    """Which devices of a node have links of their own: the tiles of a GPU, and each with the tile of its number of each
    GPU that its GPU has links to. None: the machine does not say.
    """
    count, tiles = _devices(machine), _tiles(machine)
    direct = direct_links(machine, gpus=count)
    if direct is None and tiles == 1:
        return None
    devices = range(count * tiles)

    def linked(one: int, other: int) -> bool:
        if one // tiles == other // tiles:
            return True
        of_gpus = direct is None or direct[one // tiles][other // tiles] > 0
        return of_gpus and one % tiles == other % tiles

    return [[linked(one, other) for other in devices] for one in devices]


def _devices(machine: Machine) -> int:
    devices = len(node_of(machine, nics=most_nics(machine)).gpu_domains)
    if not 1 <= devices * _tiles(machine) <= _MOST_DEVICES:
        raise UserError(
            f"machine {machine.name}: node.gpu_runtime is given and node.gpu_numa lists {devices} GPUs: "
            f"accepted is 1 to {_MOST_DEVICES}"
        )
    return devices


def _gpus_of_nics(machine: Machine, devices: int) -> list[int]:
    text = machine.optional("node.nic_gpu")
    if text is None:
        return []
    words = [word.strip() for word in str(text).split(",")]
    nics = most_nics(machine)
    if len(words) != nics or not all(word.isdecimal() and int(word) < devices for word in words):
        raise UserError(
            f'machine {machine.name}: node.nic_gpu = "{text}": accepted is a GPU of 0 to {devices - 1} for each of '
            f"{nics} NICs"
        )
    return [int(word) for word in words]


def _number(machine: Machine, field: str) -> int:
    """Of the field, or of what counts in its place."""
    return _plain(machine, _INSTEAD[field] if machine.optional(_INSTEAD.get(field, "")) else field)


def _plain(machine: Machine, field: str) -> int:
    value = machine.optional(field)
    if not isinstance(value, int):
        raise UserError(f"machine {machine.name}: node.gpu_runtime needs {field}, which is not given")
    return value


def reaches_devices(mpi: MpiLibrary, runtime: str) -> bool:
    """Whether its messages may be in memory of that runtime's GPUs: it was built with it, or is of wheels Intel MPI's,
    which knows CUDA and Level Zero, or Open MPI's, which get a component for CUDA or HIP."""
    if mpi.of_gpus:
        return mpi.of_gpus == runtime
    if mpi.family == "impi":
        return runtime in ("cuda", "level-zero")
    return mpi.family == "openmpi" and not openmpi.is_release_4(mpi) and runtime in ("cuda", "hip")


def _why_unaware(mpi: MpiLibrary, runtime: str) -> str | None:
    """Why memory of that runtime's GPUs is not for its messages, in the words of a rank that gives it some."""
    if not reaches_devices(mpi, runtime):
        return f"{mpi.name} knows nothing of GPUs" if not mpi.of_gpus else f"{mpi.name} was built for {mpi.of_gpus}"
    if mpi.family == "impi" and not intel.takes_gpu_buffers(os.environ):
        return f"{mpi.name} takes it for the host's, for I_MPI_OFFLOAD=1 is not set"
    return None


def settings(description: str, *, mpi: MpiLibrary, values: Mapping[str, str]) -> dict[str, str]:
    """What ranks get on top of `values`, their environment so far, where the machine has GPUs of this description."""
    runtime = description.split()[0].removeprefix("runtime=")
    folder = native(_FACES[runtime]).parent
    # Preloaded, for the provider tells it which memory NICs reach, and programs with kernels look for it by its name.
    preloaded = [native(GPU_CORE)]
    if mpi.family == "openmpi" and not mpi.of_gpus and reaches_devices(mpi, runtime):
        preloaded.append(native(GPU_FOR_OPENMPI))
    of_mpi = intel.settings_for_gpus(inherited=os.environ) if mpi.family == "impi" else {}
    why = _why_unaware(mpi, runtime)
    of_ranks = {_UNAWARE: why} if why is not None else {}
    return (
        of_mpi
        | of_ranks
        | {
            VARIABLE: description,
            "LD_LIBRARY_PATH": f"{folder}:{values['LD_LIBRARY_PATH']}",
            "LD_PRELOAD": ":".join([values["LD_PRELOAD"], *map(str, preloaded)]),
        }
    )


def mask(machine: Machine, binding: RankBinding) -> str | None:
    """What srun, or PALS' mpiexec, sets in the rank so that it sees its own GPUs only, the first of them as device 0.

    None: the rank is bound to none, or the machine has no runtime that would look at it.
    """
    runtime = machine.optional("node.gpu_runtime")
    if runtime is None or binding.gpus is None:
        return None
    if runtime == "level-zero":
        named = [each for gpu in binding.gpus for each in _in_level_zero(gpu, _tiles(machine))]
    else:
        named = [str(gpu_number(gpu)) for gpu in binding.gpus]
    return f"{_MASKS[str(runtime)]}={','.join(named)}"


def _in_level_zero(gpu: str, tiles: int) -> list[str]:
    """As ZE_AFFINITY_MASK has `2` or `2.1`."""
    if os.environ.get(_HIERARCHY) == "COMPOSITE":
        return [gpu]
    number, _, tile = gpu.partition(".")
    return [str(int(number) * tiles + each) for each in ([int(tile)] if tile else range(tiles))]

"""--mem-bind, --gpu-bind and --nic-bind: the memories, GPUs and NICs of each rank of a node, in the forms of srun and
of PALS' mpiexec.

    --mem-bind   srun: none, local, rank, map_mem:LIST, mask_mem:LIST, in front prefer,
                 PALS: none, local, list:SET:SET
    --gpu-bind   srun: none, closest, map_gpu:LIST, mask_gpu:LIST, single:N, per_task:N
                 PALS: none, list:GPUS:GPUS, each GPU, GPU.TILE or several of them with commas
    --nic-bind   neither has it; as theirs: none, closest, map_nic:LIST, list:N:N

A rank whose memory is bound to several domains has it in the one that is nearest to it. --gpu-bind says which GPU is
whose, for the map, for MPICH_OFI_NIC_POLICY=GPU and, where the machine has a runtime, for the mask (case/gpus.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dryfly.base.errors import UserError
from dryfly.binding import sets
from dryfly.binding.cpu_forms import Processors, without_talk
from dryfly.machine.node import Node


def memories(
    form: str, node: Node, *, ranks: int, processors: Sequence[Processors] | None
) -> tuple[frozenset[int], ...] | None:
    """Domains by local rank; None: nobody's is bound. Raises UserError."""
    kind, colon, listed = without_talk(form).partition(":")

    def refuse(why: str) -> UserError:
        has = ", ".join(domain.text for domain in node.domains)
        return UserError(f"--mem-bind {form}: {why}; a node of {node.machine} has the NUMA domains {has}")

    if kind in ("none", "no") and not colon:
        return None
    if kind == "local" and not colon:
        return tuple(frozenset((near_domain(node, processors, local, ranks),)) for local in range(ranks))
    if kind == "rank" and not colon:
        return tuple(frozenset((local % len(node.with_cores),)) for local in range(ranks))
    if kind not in ("map_mem", "mask_mem", "list"):
        raise refuse(
            f'unrecognized --mem-bind argument "{form}"; accepted are srun\'s none, local, rank, map_mem: and '
            "mask_mem:, or PALS' none, local and list:"
        )
    if not listed:
        raise refuse(f'missing list for "{kind}:<list>"')
    items = listed.split(":") if kind == "list" else sets.repeated(listed)
    found = []
    for item in items:
        numbers = _memory_numbers(kind, item)
        if not numbers:
            raise refuse(f'"{item}" is no NUMA domain' if numbers is None else f'the mask "{item}" leaves no domain')
        beyond = sorted(each for each in numbers if each >= len(node.domains))
        if beyond:
            raise refuse(f"there is no NUMA domain {beyond[0]}")
        found.append(numbers)
    return tuple(found[local % len(found)] for local in range(ranks))


def _memory_numbers(kind: str, item: str) -> frozenset[int] | None:
    if kind == "map_mem":
        number = sets.parse_number(item)
        return None if number is None else frozenset((number,))
    return sets.parse_mask(item) if kind == "mask_mem" else sets.parse(item)


def near_domain(node: Node, processors: Sequence[Processors] | None, local: int, ranks: int) -> int:
    """Where a rank's memory is that nobody binds: in the domain of its first core."""
    if processors is None:
        return node.domain_of_rank(local, ranks)
    return node.domain_of(min(node.core_of(each) for each in processors[local]))


def gpus(
    form: str, node: Node, *, ranks: int, processors: Sequence[Processors] | None
) -> tuple[tuple[str, ...], ...] | None:
    """Of each local rank: `2`, or `2.1` for a tile; None: nobody has one of its own. Raises UserError."""
    kind, colon, listed = without_talk(form).partition(":")
    count = len(node.gpu_domains)

    def refuse(why: str) -> UserError:
        has = f"GPUs 0 to {count - 1}" if count else "no GPUs"
        return UserError(f"--gpu-bind {form}: {why}; a node of {node.machine} has {has}")

    if kind in ("none", "no") and not colon:
        return None
    if count == 0:
        raise refuse("there is no GPU to bind to")
    if kind == "closest" and not colon:
        return tuple((str(gpu),) for gpu in _closest_gpus(node, processors, ranks))
    if kind in ("single", "per_task"):
        most = max(ranks, count)
        what = f"accepted is a number of {'ranks a GPU' if kind == 'single' else 'GPUs a rank'} of 1 to {most}"
        if not listed.isdecimal() or not 0 < int(listed) <= most:
            raise refuse(what)
        give = _single_gpu if kind == "single" else _gpus_in_turn
        return tuple(tuple(map(str, each)) for each in give(node, processors, int(listed), ranks))
    if kind not in ("map_gpu", "mask_gpu", "list"):
        raise refuse(
            f'unrecognized --gpu-bind argument "{form}"; accepted are srun\'s none, closest, map_gpu:, mask_gpu:, '
            "single: and per_task:, or PALS' none and list:"
        )
    found = []
    for item in listed.split(":") if kind == "list" else sets.repeated(listed):
        if kind == "mask_gpu":
            numbers = sets.parse_mask(item)
            if not numbers:
                raise refuse(f'"{item}" is no mask of GPUs' if numbers is None else f'the mask "{item}" leaves no GPU')
            names = tuple(map(str, sorted(numbers)))
        else:
            names = tuple(item.split(",")) if kind == "list" else (_decimal(item),)
        for name in names:
            _check_gpu(name, node, refuse, tiles=kind == "list")
        if len(set(names)) < len(names):
            raise refuse(f'"{item}" names a GPU twice')
        found.append(names)
    return tuple(found[local % len(found)] for local in range(ranks))


def _check_gpu(name: str, node: Node, refuse: Callable[[str], UserError], *, tiles: bool) -> None:
    number, dot, tile = name.partition(".")
    if not number.isdecimal() or (dot and (not tiles or not tile.isdecimal())):
        raise refuse(f'"{name}" is no GPU')
    if int(number) >= len(node.gpu_domains):
        raise refuse(f"there is no GPU {number}")
    if dot and int(tile) >= node.gpu_tiles:
        has = f"tiles 0 to {node.gpu_tiles - 1}" if node.gpu_tiles > 1 else "one tile, 0"
        raise refuse(f"GPU {number} has no tile {tile}, but {has}")


def _decimal(item: str) -> str:
    """Of srun's `0x2`; what is no number stays as it is, for its reader to refuse."""
    number = sets.parse_number(item)
    return item if number is None else str(number)


def gpu_number(name: str) -> int:
    return int(name.partition(".")[0])


def _near_gpus(node: Node, cores: Sequence[int], domains: set[int]) -> tuple[int, ...]:
    """In the L3 regions of these cores, else in these domains, else on their sockets; all, where none is."""
    numbers = range(len(node.gpu_domains))
    regions = {node.region_of(core) for core in cores} if node.gpu_regions else set()
    sockets = {node.socket(domain) for domain in domains}
    near = [gpu for gpu in numbers if node.gpu_regions and node.gpu_regions[gpu] in regions]
    near = near or [gpu for gpu in numbers if node.gpu_domains[gpu] in domains]
    near = near or [gpu for gpu in numbers if node.socket(node.gpu_domains[gpu]) in sockets]
    return tuple(near or numbers)


def _closest_gpus(node: Node, processors: Sequence[Processors] | None, ranks: int) -> list[int]:
    """Near the rank's first core; ranks with the same choice take turns."""
    taken: dict[tuple[int, ...], int] = {}
    found = []
    for local in range(ranks):
        cores = [min(map(node.core_of, processors[local]))] if processors else []
        choice = _near_gpus(node, cores, {near_domain(node, processors, local, ranks)})
        found.append(choice[taken.get(choice, 0) % len(choice)])
        taken[choice] = taken.get(choice, 0) + 1
    return found


def _single_gpu(node: Node, processors: Sequence[Processors] | None, number: int, ranks: int) -> list[list[int]]:
    """srun's: of the GPUs that are near any of the rank's cores, the first for so many local ranks, the next for so
    many, and so on. All are near a rank that nobody binds."""
    found = []
    for local in range(ranks):
        cores = sorted(map(node.core_of, processors[local])) if processors else range(node.cores)
        near = _near_gpus(node, cores, {node.domain_of(core) for core in cores})
        found.append([near[local // number % len(near)]])
    return found


def _gpus_in_turn(node: Node, _processors: Sequence[Processors] | None, number: int, ranks: int) -> list[list[int]]:
    count = len(node.gpu_domains)
    return [sorted({(local * number + step) % count for step in range(number)}) for local in range(ranks)]


def nics(form: str, node: Node, *, ranks: int, processors: Sequence[Processors] | None) -> tuple[int, ...] | None:
    """By local rank; None: MPI's own policy chooses. Raises UserError."""
    kind, colon, listed = without_talk(form).partition(":")
    count = len(node.nic_domains)

    def refuse(why: str) -> UserError:
        return UserError(f"--nic-bind {form}: {why}; a node of {node.machine} has NICs 0 to {count - 1}")

    if kind in ("none", "no") and not colon:
        return None
    if kind == "closest" and not colon:
        return tuple(closest_nics(node, [near_domain(node, processors, local, ranks) for local in range(ranks)]))
    if kind not in ("map_nic", "list"):
        raise refuse(f'"{form}" is no form; accepted are none, closest, map_nic:LIST and list:N:N')
    items = listed.split(":") if kind == "list" else [_decimal(item) for item in sets.repeated(listed)]
    for item in items:
        if not item.isdecimal():
            raise refuse(f'"{item}" is no NIC')
        if int(item) >= count:
            raise refuse(f"there is no NIC {item}")
    return tuple(int(items[local % len(items)]) for local in range(ranks))


def closest_nics(node: Node, domains: Sequence[int]) -> list[int]:
    """As MPICH_OFI_NIC_POLICY=NUMA (rank/nic_choice.hpp): ranks of a domain take equally near ones in turn."""
    found = []
    for local, here in enumerate(domains):
        near = node.near_nics(here)
        found.append(near[list(domains[:local]).count(here) % len(near)])
    return found

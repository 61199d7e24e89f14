"""What is doubtful about a binding: a sentence each, for the health table and for `dryfly bind`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dryfly.binding import sets
from dryfly.binding.device_forms import gpu_number
from dryfly.binding.ranks import RankBinding, Wishes, list_lengths
from dryfly.machine.node import Node


@dataclass(frozen=True, kw_only=True)
class Seat:
    """Where a rank of a node is, whoever has bound it; None: nobody has. `nic`: its first one."""

    rank: int
    processors: frozenset[int] | None = None
    memories: frozenset[int] | None = None
    gpus: tuple[str, ...] | None = None
    nic: int | None = None


@dataclass(frozen=True, kw_only=True)
class Doubt:
    name: str
    ranks: tuple[int, ...]
    text: str


def seats(bindings: Sequence[RankBinding]) -> list[Seat]:
    """Of the ranks of a node, as the launcher's options have them."""
    return [
        Seat(rank=local, processors=each.processors, memories=each.memories, gpus=each.gpus, nic=each.nic)
        for local, each in enumerate(bindings)
    ]


def doubts(node: Node, of_node: Sequence[Seat]) -> list[Doubt]:
    """Of the ranks of one node: one for each kind, which names all its ranks."""
    found: list[Doubt] = []

    def add(name: str, ranks: Sequence[int], one: str, several: str, text: str) -> None:
        if ranks:
            does = several if len(ranks) > 1 else one
            found.append(Doubt(name=name, ranks=tuple(ranks), text=f"{_ranks(ranks)} {does} {text}"))

    bound = [seat for seat in of_node if seat.processors is not None]
    add(
        "binding_shared_core", _on_one_core(node, bound), "shares", "share",
        "a core with another, and each waits for the other",
    )  # fmt: skip
    add(
        "binding_across_sockets", [seat.rank for seat in bound if len(_sockets(node, seat)) > 1], "may run", "may run",
        "on cores of more than one socket, so that memory and NIC are far at times",
    )  # fmt: skip
    add(
        "binding_far_memory", [seat.rank for seat in bound if _far_memory(node, seat)], "has its", "have their",
        "memory on another socket: all that is read there comes over the link between the sockets",
    )  # fmt: skip
    add(
        "binding_far_nic", [seat.rank for seat in bound if seat.nic is not None and _far(node, seat, node.nic_domains,
                                                                                      seat.nic)],
        "uses", "use", "a NIC of another socket: each message crosses the link between the sockets",
    )  # fmt: skip
    add(
        "binding_far_gpu", [seat.rank for seat in bound if any(_far(node, seat, node.gpu_domains, gpu_number(gpu))
                                                             for gpu in seat.gpus or ())],
        "has", "have", "a GPU of another socket",
    )  # fmt: skip
    add(
        "binding_far_region", [seat.rank for seat in bound if _other_region(node, seat)], "has", "have",
        "a GPU that is next to another L3 region than that of its core",
    )  # fmt: skip
    return found


def list_doubt(wishes: Wishes, *, ranks: int) -> Doubt | None:
    """A list that is shorter than a node has ranks begins again, and the end of a longer one is nobody's, as with
    srun. All lists have one length (`bind`). `ranks`: of the node that has most."""
    for flag, length in list_lengths(wishes):
        if length > ranks:
            text = f"{flag} lists {length} ranks and a node has {ranks}, so the end of the list is nobody's"
            return Doubt(name="binding_long_list", ranks=tuple(range(ranks, length)), text=text)
        if length < ranks:
            text = f"{flag} lists {length} ranks of a node's {ranks}, so the list begins again"
            return Doubt(name="binding_short_list", ranks=tuple(range(length, ranks)), text=text)
    return None


def depth_doubt(wishes: Wishes, *, ranks: int) -> Doubt | None:
    """A list says itself how many each rank has, and `none` gives none out."""
    says_itself = "--cpu-bind" in dict(list_lengths(wishes)) or wishes.cpu in ("none", "no", "user")
    if wishes.depth is None or not says_itself:
        return None
    text = f"--depth {wishes.depth} has no effect beside --cpu-bind {wishes.cpu}"
    return Doubt(name="binding_unused_depth", ranks=tuple(range(ranks)), text=text)


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {sets.text(ranks)}"


def _cores(node: Node, seat: Seat) -> frozenset[int]:
    return frozenset(map(node.core_of, seat.processors or ()))


def _on_one_core(node: Node, bound: Sequence[Seat]) -> list[int]:
    """Ranks for which there are fewer cores than ranks that have no others."""
    return sorted({rank for rank, count in _crowded(node, bound).items() if count > 1})


def _crowded(node: Node, bound: Sequence[Seat]) -> dict[int, int]:
    """How many ranks are on the core of each one: those with the fewest cores first, each on the emptiest of its own,
    as conductor/places.cpp seats them."""
    taken: dict[int, int] = {}
    core_of: dict[int, int] = {}
    for seat in sorted(bound, key=lambda each: (len(_cores(node, each)), each.rank)):
        core = min(_cores(node, seat), key=lambda each: (taken.get(each, 0), each))
        taken[core] = taken.get(core, 0) + 1
        core_of[seat.rank] = core
    return {rank: taken[core] for rank, core in core_of.items()}


def _sockets(node: Node, seat: Seat) -> set[int]:
    return {node.socket_of(core) for core in _cores(node, seat)}


def _far_memory(node: Node, seat: Seat) -> bool:
    return seat.memories is not None and not _sockets(node, seat) & {node.socket(each) for each in seat.memories}


def _far(node: Node, seat: Seat, domains: Sequence[int], device: int) -> bool:
    return device < len(domains) and node.socket(domains[device]) not in _sockets(node, seat)


def _other_region(node: Node, seat: Seat) -> bool:
    if not node.gpu_regions or not seat.gpus:
        return False
    mine = {node.region_of(core) for core in _cores(node, seat)}
    return any(node.gpu_regions[gpu_number(gpu)] not in mine for gpu in seat.gpus)

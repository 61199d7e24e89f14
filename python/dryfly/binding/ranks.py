"""What each rank of a job is bound to by its launcher's options: --cpu-bind, --mem-bind, --gpu-bind, --nic-bind.

A rank's own process may change it afterwards (taskset, numactl, hwloc, calls of its own): preload/node.
"""

from __future__ import annotations

from dataclasses import dataclass

from dryfly.base.errors import UserError
from dryfly.binding import cpu_forms, device_forms, sets
from dryfly.machine.node import Node


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The options' texts; None: not given."""

    cpu: str | None = None
    mem: str | None = None
    gpu: str | None = None
    nic: str | None = None
    depth: int | None = None

    def __bool__(self) -> bool:
        return any(each is not None for each in (self.cpu, self.mem, self.gpu, self.nic, self.depth))


@dataclass(frozen=True, kw_only=True)
class RankBinding:
    """Of one rank; None: not bound."""

    processors: frozenset[int] | None = None  # hardware threads
    memories: frozenset[int] | None = None  # NUMA domains
    gpus: tuple[str, ...] | None = None
    nic: int | None = None

    def words(self) -> str:
        """As DRYFLY_BINDING tells the rank's process (preload/node/binding.hpp)."""
        parts = []
        if self.processors is not None:
            parts.append(f"cpus={sets.text(self.processors)}")
        if self.memories is not None:
            parts.append(f"memory=bind:{sets.text(self.memories)}")
        return " ".join(parts)


def node_words(node: Node) -> str:
    """As DRYFLY_PROCESSORS tells each process of the job (preload/node/shape.hpp)."""
    sockets = ",".join(str(domain.socket) for domain in node.domains)
    words = [f"cores={node.cores} threads={node.threads} cored={len(node.with_cores)} domains={sockets}"]
    return " ".join([*words, f"allowed={sets.text(node.allowed)}"])


def bind(wishes: Wishes, node: Node, *, ranks: int) -> tuple[RankBinding, ...]:
    """Of the local ranks of a node that has so many. Raises UserError."""
    _check(wishes)
    cpu = wishes.cpu
    if cpu is None and wishes.depth is not None:
        cpu = "depth"
    processors = cpu_forms.processors(cpu, node, ranks=ranks, depth=wishes.depth or 1) if cpu is not None else None
    of_rank = {"ranks": ranks, "processors": processors}
    memories = device_forms.memories(wishes.mem, node, **of_rank) if wishes.mem is not None else None  # type: ignore[arg-type]
    gpus = device_forms.gpus(wishes.gpu, node, **of_rank) if wishes.gpu is not None else None  # type: ignore[arg-type]
    nics = device_forms.nics(wishes.nic, node, **of_rank) if wishes.nic is not None else None  # type: ignore[arg-type]
    return tuple(
        RankBinding(
            processors=processors[local] if processors is not None else None,
            memories=memories[local] if memories is not None else None,
            gpus=gpus[local] if gpus is not None else None,
            nic=nics[local] if nics is not None else None,
        )
        for local in range(ranks)
    )


def _check(wishes: Wishes) -> None:
    if wishes.depth is not None and wishes.depth < 1:
        raise UserError(f"--depth {wishes.depth}: accepted is 1 or more")
    lengths = list_lengths(wishes)
    for flag, length in lengths[1:]:
        if length != lengths[0][1]:
            raise UserError(
                f"{lengths[0][0]} lists {lengths[0][1]} ranks and {flag} {length}: accepted are lists of one length "
                "(an item may be repeated: map_nic:7*4)"
            )


def list_lengths(wishes: Wishes) -> list[tuple[str, int]]:
    """Of those options that list something for each rank: their names, and how many items each has."""
    forms = (
        ("--cpu-bind", wishes.cpu),
        ("--mem-bind", wishes.mem),
        ("--gpu-bind", wishes.gpu),
        ("--nic-bind", wishes.nic),
    )
    return [(flag, length) for flag, form in forms if (length := cpu_forms.list_length(form)) is not None]

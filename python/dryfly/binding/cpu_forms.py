"""--cpu-bind: to which hardware threads of its node each rank is bound, in the forms of srun and of PALS' mpiexec.

    srun   none, rank, rank_ldom, threads, cores, sockets, ldoms, map_cpu:LIST, mask_cpu:LIST, map_ldom:LIST,
           mask_ldom:LIST; in front `quiet,` or `verbose,`
    PALS   none, user, thread, core, numa, socket, depth, list:SET:SET:...; in front `verbose,`

Where both know a word it means the same. Lists that are shorter than a node has ranks begin again, as srun does it.
What is given out automatically leaves reserved cores out. srun deals ranks to its sockets in turn (its default,
block:cyclic), and what is a socket to it says node.slurm_socket: an L3 region on Frontier. Left out: srun's -m and
--hint, boards, and that `cores` gives a rank but the first thread of a core where a site's default is
--threads-per-core=1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dryfly.base.errors import UserError
from dryfly.binding import sets
from dryfly.machine.node import Node

Processors = frozenset[int]

_ACCEPTED = (
    "srun's none, rank, rank_ldom, threads, cores, sockets, ldoms, map_cpu:, mask_cpu:, map_ldom: and mask_ldom:, or "
    "PALS' none, user, thread, core, numa, socket, depth and list:"
)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    text: str  # as on the command line
    node: Node
    ranks: int  # of the node
    depth: int

    def refuse(self, why: str) -> UserError:
        return UserError(f"--cpu-bind {self.text}: {why}")


def processors(form: str, node: Node, *, ranks: int, depth: int = 1) -> tuple[Processors, ...] | None:
    """By local rank; None: nobody is bound. `depth`: PALS' --depth, srun's -c. Raises UserError."""
    asked = _Asked(text=form, node=node, ranks=ranks, depth=depth)
    kind, colon, listed = without_talk(form).partition(":")
    if kind in _LISTED:
        if not listed:
            raise asked.refuse(f'missing list for "{kind}:<list>"')
        items = _LISTED[kind](asked, listed)
        return tuple(items[local % len(items)] for local in range(ranks))
    if kind in ("none", "no", "user") and not colon:
        return None
    if colon or kind not in _AUTOMATIC:
        raise asked.refuse(f'unrecognized --cpu-bind argument "{form}"; accepted are {_ACCEPTED}')
    return tuple(_AUTOMATIC[kind](asked))


def list_length(form: str | None) -> int | None:
    """How many items the form's list has; None where it has none."""
    kind, colon, listed = without_talk(form or "").partition(":")
    if not colon or not listed or kind in ("single", "per_task"):  # which count
        return None
    return len(listed.split(":")) if kind == "list" else len(sets.repeated(listed))


def without_talk(form: str) -> str:
    """Without what changes no binding here: how much is printed, and srun's prefer and sort for memory."""
    for word in ("quiet,", "verbose,", "q,", "v,", "prefer,", "sort,"):
        form = form.removeprefix(word)
    return form


def _in_allocation(asked: _Asked, found: Processors, item: str) -> Processors:
    """What the node has of it, without reserved cores. As the kernel: a mask may name more, but not nothing else."""
    node = asked.node
    beyond = sorted(each for each in found if each >= node.processors)
    if beyond:
        raise asked.refuse(f"there is no CPU {beyond[0]}; a node of {node.machine} has CPUs 0 to {node.processors - 1}")
    usable = found & node.allowed
    if not usable:
        raise asked.refuse(
            f'"{item}": CPU binding outside of job step allocation, allocated CPUs are: {sets.mask(node.allowed)} '
            f"({sets.text(node.allowed)})"
        )
    return usable


# Lists.


def _map_cpu(asked: _Asked, listed: str) -> list[Processors]:
    found = []
    for item in sets.repeated(listed):
        number = sets.parse_number(item)
        if number is None:
            raise asked.refuse(f'"{item}" is not a CPU; accepted is a list such as map_cpu:1,9,17')
        found.append(_in_allocation(asked, frozenset((number,)), item))
    return found


def _masks(asked: _Asked, listed: str, example: str) -> Iterator[tuple[str, Processors]]:
    for item in sets.repeated(listed):
        numbers = sets.parse_mask(item)
        if numbers is None:
            raise asked.refuse(f'"{item}" is not a mask; accepted is a list such as {example}')
        yield item, numbers


def _mask_cpu(asked: _Asked, listed: str) -> list[Processors]:
    found = []
    for item, numbers in _masks(asked, listed, "mask_cpu:0xfe,0xfe00"):
        if not numbers:
            raise asked.refuse(f'the mask "{item}" leaves no CPU')
        found.append(_in_allocation(asked, numbers, item))
    return found


def _ldoms(asked: _Asked, numbers: Processors, item: str) -> Processors:
    node = asked.node
    beyond = sorted(each for each in numbers if each >= len(node.domains))
    if beyond or not numbers:
        what = f"there is no NUMA domain {beyond[0]}" if beyond else f'the mask "{item}" leaves no domain'
        raise asked.refuse(f"{what}; a node of {node.machine} has 0 to {len(node.domains) - 1}")
    cores = [core for number in numbers for core in node.domains[number].cores]
    if not cores:
        raise asked.refuse(f'"{item}": a domain of memory alone, which leaves no CPU')
    return _whole(node, cores)


def _map_ldom(asked: _Asked, listed: str) -> list[Processors]:
    found = []
    for item in sets.repeated(listed):
        number = sets.parse_number(item)
        if number is None:
            raise asked.refuse(f'"{item}" is not a NUMA domain; accepted is a list such as map_ldom:0,1')
        found.append(_ldoms(asked, frozenset((number,)), item))
    return found


def _mask_ldom(asked: _Asked, listed: str) -> list[Processors]:
    return [_ldoms(asked, numbers, item) for item, numbers in _masks(asked, listed, "mask_ldom:0x1,0x2")]


def _pals_list(asked: _Asked, listed: str) -> list[Processors]:
    found = []
    for item in listed.split(":"):
        numbers = sets.parse(item)
        if numbers is None:
            raise asked.refuse(f'"{item}" is not a set of CPUs; accepted is such as list:1-8:9-16 or list:1,2:3,4')
        found.append(_in_allocation(asked, numbers, item))
    return found


_LISTED: dict[str, Callable[[_Asked, str], list[Processors]]] = {
    "map_cpu": _map_cpu, "mask_cpu": _mask_cpu, "map_ldom": _map_ldom, "mask_ldom": _mask_ldom, "list": _pals_list,
}  # fmt: skip


# Given out automatically.


def _whole(node: Node, cores: Sequence[int]) -> Processors:
    return frozenset(each for core in cores for each in node.processors_of(core)) & node.allowed


def _in_turn(asked: _Asked, items: Sequence[int], what: str) -> list[list[int]]:
    """`depth` of them a rank, one rank after the other."""
    if asked.ranks * asked.depth > len(items):
        raise asked.refuse(
            f"{asked.ranks} ranks of {asked.depth} need {asked.ranks * asked.depth} {what}, and a node of "
            f"{asked.node.machine} has {len(items)} for jobs"
        )
    return [list(items[local * asked.depth : (local + 1) * asked.depth]) for local in range(asked.ranks)]


def _pals_depth(asked: _Asked) -> list[Processors]:
    return [frozenset(each) for each in _in_turn(asked, sorted(asked.node.allowed), "hardware threads")]


def _pals_core(asked: _Asked) -> list[Processors]:
    cores = [core for core in range(asked.node.cores) if core not in asked.node.reserved]
    return [_whole(asked.node, each) for each in _in_turn(asked, cores, "cores")]


def _pals_numa(asked: _Asked) -> list[Processors]:
    domains = asked.node.with_cores
    return [_whole(asked.node, domains[local % len(domains)].cores) for local in range(asked.ranks)]


def _sockets_of(node: Node) -> list[range]:
    """The cores of each."""
    found = []
    for socket in range(node.sockets):
        cores = [core for domain in node.with_cores if domain.socket == socket for core in domain.cores]
        found.append(range(cores[0], cores[-1] + 1))
    return found


def _pals_socket(asked: _Asked) -> list[Processors]:
    sockets = _sockets_of(asked.node)
    return [_whole(asked.node, sockets[local % len(sockets)]) for local in range(asked.ranks)]


def _slurm_sockets(node: Node) -> list[range]:
    if node.slurm_socket == "l3":
        return [node.region(number) for number in range(node.l3_regions)]
    if node.slurm_socket == "numa":
        return [domain.cores for domain in node.with_cores]
    return _sockets_of(node)


def _dealt(asked: _Asked) -> list[list[int]]:
    """The cores of each rank: sockets in turn, in each the next ones that are free, and then those of the next."""
    node = asked.node
    free = [[core for core in cores if core not in node.reserved] for cores in _slurm_sockets(node)]
    _in_turn(asked, [core for cores in free for core in cores], "cores")
    dealt = []
    for local in range(asked.ranks):
        mine: list[int] = []
        for step in range(len(free)):
            socket = free[(local + step) % len(free)]
            if step == 0 and len(socket) < asked.depth and any(len(other) >= asked.depth for other in free):
                continue
            while socket and len(mine) < asked.depth:
                mine.append(socket.pop(0))
        for socket in free:  # what its own socket has left, where no other had room
            while socket and len(mine) < asked.depth:
                mine.append(socket.pop(0))
        dealt.append(mine)
    return dealt


def _slurm_cores(asked: _Asked) -> list[Processors]:
    return [_whole(asked.node, cores) for cores in _dealt(asked)]


def _slurm_threads(asked: _Asked) -> list[Processors]:
    return [frozenset(cores) for cores in _dealt(asked)]


def _slurm_whole_sockets(asked: _Asked) -> list[Processors]:
    sockets = _slurm_sockets(asked.node)
    return [_whole(asked.node, [c for s in sockets if set(s) & set(cores) for c in s]) for cores in _dealt(asked)]


def _slurm_ldoms(asked: _Asked) -> list[Processors]:
    domains = asked.node.with_cores
    return [
        _whole(asked.node, [c for domain in domains if set(domain.cores) & set(cores) for c in domain.cores])
        for cores in _dealt(asked)
    ]


def _slurm_rank(asked: _Asked) -> list[Processors]:
    return [_in_allocation(asked, frozenset((local,)), f"CPU {local}") for local in range(asked.ranks)]


_AUTOMATIC: dict[str, Callable[[_Asked], list[Processors]]] = {
    "depth": _pals_depth, "thread": _pals_depth, "core": _pals_core, "numa": _pals_numa, "socket": _pals_socket,
    "rank": _slurm_rank, "rank_ldom": _pals_numa, "threads": _slurm_threads, "cores": _slurm_cores,
    "sockets": _slurm_whole_sockets, "ldoms": _slurm_ldoms,
}  # fmt: skip

"""What a node is made of, as its machine's file says it: cores and their hardware threads, L3 regions, NUMA domains
with and without cores, sockets, NICs and GPUs.

Numbers are those of Linux and hwloc. Hardware thread T of core C is C + T x cores. Cores lie on L3 regions and domains,
and domains on sockets, in equal blocks. Domains without cores (the HBM of Aurora's processors) are numbered behind
those that have some: docs/model/nodes.md#memories-of-a-node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dryfly.base.errors import UserError
from dryfly.machine.machine import Machine


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A NUMA domain. `kind` of memory, `size` in bytes and `rate` in bytes per second where the machine's file says."""

    number: int
    socket: int
    cores: range  # empty: memory alone
    kind: str = ""
    size: int | None = None
    rate: int | None = None

    @property
    def text(self) -> str:
        return f"{self.number} ({self.kind})" if self.kind else str(self.number)


@dataclass(frozen=True, kw_only=True)
class Node:
    """Of the groups that run jobs. `nic_domains` and `gpu_domains`: by number of the device."""

    machine: str
    cores: int
    threads: int  # of a core
    sockets: int
    domains: tuple[Domain, ...]
    l3_regions: int  # 0: the machine's file says nothing of them
    reserved: frozenset[int]  # cores that the system keeps for itself
    nic_domains: tuple[int, ...]
    gpu_domains: tuple[int, ...]
    gpu_regions: tuple[int, ...]  # L3 regions; empty: not said
    gpu_tiles: int = 1  # that a GPU is divided into
    slurm_socket: str = "socket"  # or numa, or l3: what srun deals ranks to

    @cached_property
    def with_cores(self) -> tuple[Domain, ...]:
        return tuple(domain for domain in self.domains if domain.cores)

    @property
    def processors(self) -> int:
        """Hardware threads."""
        return self.cores * self.threads

    @cached_property
    def allowed(self) -> frozenset[int]:
        """Hardware threads that a job gets."""
        return frozenset(each for each in range(self.processors) if self.core_of(each) not in self.reserved)

    def core_of(self, processor: int) -> int:
        return processor % self.cores

    def processors_of(self, core: int) -> tuple[int, ...]:
        return tuple(core + thread * self.cores for thread in range(self.threads))

    def domain_of(self, core: int) -> int:
        return next(domain.number for domain in self.with_cores if core in domain.cores)

    def region(self, number: int) -> range:
        """The cores of an L3 region."""
        return range(number * self.cores // self.l3_regions, (number + 1) * self.cores // self.l3_regions)

    def region_of(self, core: int) -> int:
        return next(number for number in range(self.l3_regions) if core in self.region(number))

    def socket(self, domain: int) -> int:
        return self.domains[domain].socket

    def socket_of(self, core: int) -> int:
        return self.socket(self.domain_of(core))

    def distance(self, here: int, there: int) -> int:
        """Of two domains: 0 if they are one, 1 on one socket, else 2."""
        return 0 if here == there else 1 if self.socket(here) == self.socket(there) else 2

    def near_nics(self, domain: int) -> tuple[int, ...]:
        away = [self.distance(domain, at) for at in self.nic_domains]
        return tuple(nic for nic, distance in enumerate(away) if distance == min(away))

    def domain_of_rank(self, local: int, per_node: int) -> int:
        """Of a rank that nobody binds: as if ranks were bound to cores in blocks, so that all domains have as many."""
        return local * len(self.with_cores) // per_node


def node_of(machine: Machine, *, nics: int) -> Node:
    """`nics`: how many a node has. Raises UserError where fields do not fit together."""
    cored, sockets = _number(machine, "node.numa", 1), _number(machine, "node.sockets", 1)
    coreless = _number(machine, "node.coreless.domains", 0)
    for path, count in (("node.numa", cored), ("node.coreless.domains", coreless)):
        if count % sockets:
            raise UserError(f"machine {machine.name}: {path} = {count}: accepted is a multiple of node.sockets")
    regions = _number(machine, "node.l3", 0)
    if regions and (regions % cored or regions > machine.cores_per_node):
        raise UserError(
            f"machine {machine.name}: node.l3 = {regions}: accepted is a multiple of node.numa, up to one for each core"
        )
    domains = _domains(machine, cored, coreless, sockets)
    listed = _list(machine, "node.nic_numa", cored, "NUMA domains", most=nics)
    if listed and len(listed) < nics:
        count_text = f"{len(listed)} NUMA domains, but a node has {nics} NICs"
        raise UserError(f"machine {machine.name}: node.nic_numa lists {count_text}")
    gpus = _list(machine, "node.gpu_numa", cored, "NUMA domains")
    gpu_regions = _list(machine, "node.gpu_l3", regions, "L3 regions") if regions else ()
    if gpu_regions and len(gpu_regions) != len(gpus):
        raise UserError(
            f"machine {machine.name}: node.gpu_l3 lists {len(gpu_regions)} GPUs and node.gpu_numa {len(gpus)}: "
            "accepted are two lists of one length"
        )
    return Node(
        machine=machine.name,
        cores=machine.cores_per_node,
        threads=_number(machine, "node.threads", 1),
        sockets=sockets,
        domains=domains,
        l3_regions=regions,
        reserved=frozenset(_list(machine, "node.reserved", machine.cores_per_node, "cores")),
        nic_domains=listed or tuple(nic * cored // nics for nic in range(nics)),
        gpu_domains=gpus,
        gpu_regions=gpu_regions,
        gpu_tiles=_number(machine, "node.gpu_tiles", 1),
        slurm_socket=_slurm_socket(machine, regions),
    )


def _slurm_socket(machine: Machine, regions: int) -> str:
    unit = str(machine.optional("node.slurm_socket") or "socket")
    if unit == "l3" and not regions:
        raise UserError(f"machine {machine.name}: node.slurm_socket = l3 needs node.l3")
    return unit


def most_nics(machine: Machine) -> int:
    """Of a node that runs jobs."""
    return max(machine.kinds[kind].nics_per_node for kind in machine.job_kinds)


def _domains(machine: Machine, cored: int, coreless: int, sockets: int) -> tuple[Domain, ...]:
    cores = machine.cores_per_node
    rate = machine.optional("compute.cpu.memory_rate")
    processors = _number(machine, "compute.cpu.count", 1)
    first = [
        Domain(
            number=number,
            socket=number * sockets // cored,
            cores=range(number * cores // cored, (number + 1) * cores // cored),
            kind=str(machine.optional("node.memory.kind") or ""),
            size=_optional(machine, "node.memory.size"),
            rate=rate * processors // cored if isinstance(rate, int) else None,
        )
        for number in range(cored)
    ]
    rest = [
        Domain(
            number=cored + number,
            socket=number * sockets // coreless,
            cores=range(0),
            kind=str(machine.optional("node.coreless.kind") or ""),
            size=_optional(machine, "node.coreless.size"),
            rate=_optional(machine, "node.coreless.rate"),
        )
        for number in range(coreless)
    ]
    return (*first, *rest)


def _optional(machine: Machine, path: str) -> int | None:
    value = machine.optional(path)
    return value if isinstance(value, int) else None


def _number(machine: Machine, path: str, default: int) -> int:
    value = _optional(machine, path)
    return default if value is None else value


def _list(machine: Machine, path: str, end: int, what: str, *, most: int | None = None) -> tuple[int, ...]:
    """A list may be longer than `most`, as when a node is tried with fewer NICs; the rest is not looked at."""
    text = machine.optional(path)
    if text is None or text == "none":
        return ()
    words = [word.strip() for word in str(text).split(",")][:most]
    if not all(word.isdecimal() and int(word) < end for word in words):
        raise UserError(f'machine {machine.name}: {path} = "{text}": accepted is a list of {what}, each 0 to {end - 1}')
    return tuple(int(word) for word in words)

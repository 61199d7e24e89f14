"""How an MPI job starts, in closed form: daemons, the job's description, PMI, the exchange of addresses, ARP.

Messages and bytes are those of protocols that were read off their sockets (docs/model/startup.md has them); the time
that they take is assumed: costs of a server for each message, of a network for the daemons, of starting a process. Each
phase is over before the next one begins. Times in seconds, sizes in bytes.

Left out: loading the program and its libraries from a file system, what MPI does by itself between two requests (but
for one time of all of it), queues in the network, a daemon that answers late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ADDRESS = 8  # of the cxi provider
_ENDPOINTS = 128  # of a rank: an address is the rank's number times this, in dryfly's provider
_HEADER = 24  # Hydra's, before each message between its proxies and mpiexec
_PAIRS = 999  # keys that one message of Hydra holds
# An allgather of MPICH: up to so many bytes in all by doubling, where ranks are a power of two, or by Bruck.
_DOUBLING, _BRUCK = 524288, 81920

_NONE = (0, 0)
PHASES = ("daemons", "job", "init", "fence", "get", "addresses", "arp", "end")


@dataclass(frozen=True, kw_only=True)
class Tree:
    """Of daemons, the launcher at its root."""

    links: int
    depth: int
    sum_of_depths: int  # over all but the root: how many links a message of each to the root crosses
    children: int  # of the root


def tree(count: int, radix: int) -> Tree:
    """Level by level, `radix` children each."""
    left, width, depth, depths = count - 1, radix, 0, 0
    while left > 0:
        depth += 1
        here = min(left, width)
        depths += depth * here
        left -= here
        width *= radix
    return Tree(links=count - 1, depth=depth, sum_of_depths=depths, children=min(radix, count - 1))


@dataclass(frozen=True, kw_only=True)
class Job:
    """`environment`: of the job's description, what is not the launcher's own. `card`: characters in which an address
    is written, 0: as MPICH writes those of dryfly's provider. `node_name`, `key_space`: characters of such names."""

    nodes: int
    ppn: int
    launcher: str  # dryfly, hydra, prterun, pals
    pmi: str  # pmi1, pmi2, pmix
    roots: bool = True  # of MPICH: only one rank of each node tells its address by PMI
    collect: bool = True  # of PMIx: the fence brings all data; else a rank asks for a peer's at first contact
    radix: int = 64
    contacts: int = 0  # other nodes that a NIC talks to first
    static_arp: bool = True
    card: int = 0
    environment: int = 2048
    topology: int = 187000
    node_name: int = 2
    key_space: int = 25

    @property
    def ranks(self) -> int:
        return self.nodes * self.ppn

    @property
    def of_nodes(self) -> bool:
        """MPICH knows which ranks share a node only where it uses it."""
        return self.roots and self.pmi != "pmix"


@dataclass(frozen=True, kw_only=True)
class Costs:
    latency: float  # of a message between daemons
    rate: float  # of their network
    serve: float  # of a daemon or launcher, for each message
    local: float  # of a message between a rank and its daemon
    spawn: float  # to start a daemon on another node
    at_once: int  # daemons that one starts at a time
    fork: float  # to start a rank, one after another on a node
    init: float  # of a rank between its first request and the fence, by itself
    arp: float  # a request and its answer
    fabric_message: float
    fabric_rate: float


@dataclass(frozen=True, kw_only=True)
class Part:
    """`local_messages` and `local_bytes`: what of it ranks and their servers say to one another. `busiest`: messages of
    the process that has most of them."""

    messages: int = 0
    bytes: int = 0
    local_messages: int = 0
    local_bytes: int = 0
    busiest: int = 0
    seconds: float = 0.0


def parts(job: Job, costs: Costs) -> dict[str, Part]:
    """By phase. All of them are over when MPI_Init returns, but for the end, which has no time here."""
    found = _with_pmix(job, costs) if job.pmi == "pmix" else _with_pmi(job, costs)
    return {**found, "addresses": _addresses(job, costs), "arp": _arp(job, costs)}


# A rank and the server of PMI that it is connected to: lines of text, each with its answer.

Lines = Sequence[tuple[int, int]]  # bytes of the request, and of the answer; 0: there is none


def written(rank: int) -> int:
    """Characters of a rank's address, as MPICH writes bytes: in hexadecimal, two zeros and more as [COUNT]."""
    value = (rank * _ENDPOINTS).to_bytes(ADDRESS, "little")
    count, at = 0, 0
    while at < ADDRESS:
        run = next((end for end in range(at, ADDRESS) if value[end]), ADDRESS) - at
        count += 2 if run < 2 else len(f"[{run}]")
        at += max(run, 1)
    return count


def _card(job: Job, rank: int) -> int:
    return job.card or written(rank)


def _key(rank: int) -> int:
    return len(f"-allgather-1-{rank}")


def _space(job: Job) -> int:
    return len(" kvsname=") + job.key_space


def opening(job: Job) -> Lines:
    """Before the fence."""
    unknown = len("cmd=get_result rc=1\n") + (len(" msg=key_not_found") if job.launcher == "dryfly" else 0)
    get = len("cmd=get key=\n") + _space(job)
    asked = [
        (len("cmd=init pmi_version=1 pmi_subversion=1\n"),
         len("cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n")),
        (len("cmd=get_maxes\n"), len("cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n")),
        (len("cmd=get_appnum\n"), len("cmd=appnum rc=0 appnum=0\n")),
        (len("cmd=get_my_kvsname\n"), len("cmd=my_kvsname rc=0\n") + _space(job)),
        (get + len("PMI_hwloc_xmlfile"), unknown),
        (get + len("PMI_mpi_memory_alloc_kinds"), unknown),
    ]  # fmt: skip
    if job.pmi == "pmi2":  # one request says what the first three say; its lines have their length in front
        asked = [(asked[0][0] + 6, asked[0][1] + asked[1][1] + 6), *[(one + 6, other + 6) for one, other in asked[3:]]]
    if job.launcher == "dryfly":
        asked.insert(0, (len("cmd=watched\n"), 0))
    if job.of_nodes:
        known = len("cmd=get_result rc=0 value=\n") + _mapping(job)
        asked.append((get + len("PMI_process_mapping") + _ahead(job), known + _ahead(job)))
    return asked


def _mapping(job: Job) -> int:
    return len(f"(vector,(0,{job.nodes},{job.ppn}))")


def _ahead(job: Job) -> int:
    """Characters that PMI-2 has in front of each line."""
    return 6 if job.pmi == "pmi2" else 0


def putting(job: Job, rank: int) -> tuple[int, int]:
    put = len("cmd=put key= value=\n") + _space(job) + _key(rank) + _card(job, rank)
    return put + _ahead(job), len("cmd=put_result rc=0\n") + _ahead(job)


def waiting(job: Job) -> tuple[int, int]:
    out = "cmd=barrier_out rc=0 tag=0\n" if job.launcher == "dryfly" else "cmd=barrier_out tag=0\n"
    return len("cmd=barrier_in\n") + _ahead(job), len(out) + _ahead(job)


def getting(job: Job, rank: int) -> tuple[int, int]:
    get = len("cmd=get key=\n") + _space(job) + _key(rank)
    return get + _ahead(job), len("cmd=get_result rc=0 value=\n") + _card(job, rank) + _ahead(job)


def closing(job: Job) -> Lines:
    left = [(len("cmd=left\n"), 0)] if job.launcher == "dryfly" else []
    return [*left, (len("cmd=finalize\n") + _ahead(job), len("cmd=finalize_ack rc=0\n") + _ahead(job))]


def _tellers(job: Job) -> range:
    """The ranks that tell their addresses by PMI, and ask for those of one another."""
    return range(0, job.ranks, job.ppn) if job.of_nodes else range(job.ranks)


def _of(lines: Lines, often: int = 1) -> tuple[int, int]:
    """Messages and bytes."""
    messages = sum((one > 0) + (other > 0) for one, other in lines)
    return messages * often, sum(one + other for one, other in lines) * often


def _with_pmi(job: Job, costs: Costs) -> dict[str, Part]:
    tellers = _tellers(job)
    of_node = len(tellers) // job.nodes
    pairs = [_key(rank) + _card(job, rank) + len(" =") for rank in tellers]
    opened, puts = _of(opening(job), job.ranks), _of([putting(job, rank) for rank in tellers])
    waits, gets = _of([waiting(job)], job.ranks), _of([getting(job, rank) for rank in tellers], len(tellers))
    closed = _of(closing(job), job.ranks)
    steps = len(opening(job))
    if job.launcher == "dryfly":  # one server for all ranks, on one computer
        served = costs.serve * 2
        return {
            "daemons": Part(),
            "job": Part(seconds=job.ranks * costs.fork),
            "init": _part(_NONE, opened[0], costs.init + opened[0] * costs.serve + 2 * steps * costs.local,
                          local=opened),
            "fence": _part(_NONE, puts[0] + waits[0], (len(tellers) + job.ranks) * served, local=_sum(puts, waits)),
            "get": _part(_NONE, gets[0], len(tellers) ** 2 * served + 2 * costs.local, local=gets),
            "end": _part(_NONE, closed[0], 0.0, local=closed),
        }  # fmt: skip
    tied = tree(job.nodes + 1, job.nodes) if job.launcher == "hydra" else tree(job.nodes, job.radix)
    hops = tied.sum_of_depths
    described = _described(job)
    # Hydra's proxies do not know which keys there are, and ask mpiexec; PALS is assumed to know.
    asks = _unknown(job) if job.launcher == "hydra" else (0, 0)
    cached = _chunks(pairs, "cmd=keyval_cache\n")
    put_up = _chunks(pairs[:of_node], "cmd=mput\n")  # of the first node, for the time
    told = sum(pairs) + job.nodes * put_up[0] * (_HEADER + len("cmd=mput\n"))
    up = len(f"cmd=barrier_in group=WORLD count={job.ppn} total_count={job.ranks}\n") + _HEADER
    down = len("cmd=barrier_out group=WORLD\n") + _HEADER
    flood = cached[1] + down
    started = (2 * tied.links, (12 + _HEADER + 4 * job.ppn) * tied.links)
    fence = _sum((tied.links * (put_up[0] + 1), tied.links * up + hops * told // job.nodes),
                 (tied.links * (cached[0] + 1), tied.links * flood))  # fmt: skip
    local = 2 * costs.local + costs.serve
    return {
        "daemons": Part(seconds=_daemons(job, costs, tied)),
        "job": _part(_sum(started, (tied.links, tied.links * described)), 3 * tied.children,
                     _down(costs, tied, 1, described) + job.ppn * costs.fork + _up(costs, tied, 2, 64)),
        "init": _part(asks, max(asks[0], opened[0] // job.nodes),
                      costs.init + max(steps * local, steps * job.ppn * 2 * costs.serve, asks[0] * costs.serve)
                      + (2 * costs.latency if asks[0] else 0.0), local=opened),
        "fence": _part(fence, tied.children * (put_up[0] + cached[0] + 2),
                       2 * local + (job.ppn + of_node) * costs.serve
                       + _up(costs, tied, put_up[0] + 1, up + put_up[1] * max(1, hops // max(tied.children, 1)))
                       + _down(costs, tied, cached[0] + 1, flood), local=_sum(puts, waits)),
        "get": _part(_NONE, gets[0] // job.nodes, len(tellers) * max(local, 2 * of_node * costs.serve), local=gets),
        "end": _part((tied.links, tied.links * (_HEADER + 4 * job.ppn)), tied.children, 0.0, local=closed),
    }  # fmt: skip


def _described(job: Job) -> int:
    """Bytes of what Hydra's mpiexec tells a proxy of the job: words, each with its length, and the environment."""
    words = ("--version", "5.0.2", "--iface-ip-env-name", "PMI_HOSTNAME", "--hostname", "--global-process-count",
             str(job.ranks), "--auto-cleanup", "1", "--pmi-kvsname", "--pmi-process-mapping",
             "--global-inherited-env", "48", "--global-user-env", "0", "--global-system-env", "1",
             "'GFORTRAN_UNBUFFERED_PRECONNECTED=y'", "--proxy-core-count", str(job.ppn), "--exec", "--exec-appnum",
             "0", "--exec-rank", str(job.ranks - job.ppn), "--exec-proc-count", str(job.ppn), "--exec-local-env",
             "0", "--exec-wdir", "--exec-args", "1")  # fmt: skip
    names = job.node_name + job.key_space + _mapping(job) + 3 * 5
    return _HEADER + 4 + sum(len(word) + 5 for word in words) + names + job.environment


def _unknown(job: Job) -> tuple[int, int]:
    asked = opening(job)[4:6] if job.pmi == "pmi1" else opening(job)[2:4]
    messages, size = _of(asked, job.ranks)
    return messages, size + messages * _HEADER


def _chunks(pairs: Sequence[int], command: str) -> tuple[int, int]:
    """Messages, and bytes of all of them."""
    count = -(-len(pairs) // _PAIRS)
    return count, count * (_HEADER + len(command)) + sum(pairs)


# PMIx as Open MPI 5's PRRTE has it.

_PMIX_OPENING = ((69, 4), (0, 4), (22, 18), (28, 18), (25, 18), (157, 18))
_PMIX_FENCE = (54, 18)
_PMIX_END = ((54, 18), (54, 18), (36, 18), (26, 0), (18, 18))
_PMIX_JOB = 552  # of the job's data, beside the node's topology
# Messages between PRRTE's daemons: one that says nothing has so many bytes down the tree, or up.
_DOWN, _UP = 614, 649
_COMPRESSED_ABOVE, _COMPRESSED_TO, _PLAIN = 4096, 0.21, 590


def _sent(size: int) -> int:
    """PRRTE compresses what is longer; to which part of it depends on the data."""
    payload = size - _PLAIN
    return size if payload <= _COMPRESSED_ABOVE else _PLAIN + round(payload * _COMPRESSED_TO)


def _contribution(ppn: int) -> int:
    """Of a node to the fence: what its ranks tell others."""
    return 25 + 31 * ppn


def _with_pmix(job: Job, costs: Costs) -> dict[str, Part]:
    alone = job.launcher == "dryfly"
    first = ((12, 0), *_PMIX_OPENING) if alone else _PMIX_OPENING
    opened = _of([*first, (18, 18 + _PMIX_JOB + job.topology)], job.ranks)
    fence, closed = _of([_PMIX_FENCE] * 2, job.ranks), _of(_PMIX_END, job.ranks)
    steps = len(first) + 1
    if alone:
        return {
            "daemons": Part(),
            "job": Part(seconds=job.ranks * costs.fork),
            "init": _part(_NONE, opened[0], costs.init + opened[0] * costs.serve, local=opened),
            "fence": _part(_NONE, fence[0], fence[0] * costs.serve, local=fence),
            "get": Part(),
            "end": _part(_NONE, closed[0], 0.0, local=closed),
        }
    tied = tree(job.nodes, job.radix)
    links, hops = tied.links, tied.sum_of_depths
    names = 593 + job.nodes * (14 + job.node_name)
    nodes = _sent(607 + job.nodes * (102 + job.node_name))
    launch = _sent(989 + 28 * job.ranks)
    data = _sent(640 + job.nodes * _contribution(job.ppn)) if job.collect else _DOWN
    told = _contribution(job.ppn) if job.collect else 0
    local = 2 * costs.local + costs.serve
    topology = 2706 if links else 0  # of the first node of its kind, compressed
    started = (5 * links, links * (577 + names + 577 + 568 + 568) + hops * 158 + topology)
    described = (2 * links + 2 * hops, links * (nodes + launch) + hops * (581 + 9 * job.ppn + 581 + 2 * job.ppn))
    fenced = (4 * links, links * (_UP + data + _UP + _DOWN) + hops * told)
    ended = (6 * links + hops, links * (_UP + data + _UP + _DOWN + 632 + 592) + hops * (told + 587 + 11 * job.ppn))
    # What the ranks of PRRTE hear when they end: a release for each fence, and one for the job.
    ended = (ended[0] + 2 * links, ended[1] + links * (_DOWN + 689))
    direct = _direct(job, costs, tied)
    return {
        "daemons": _part(started, 5 * tied.children, _daemons(job, costs, tied) + _down(costs, tied, 2, names)
                         + _up(costs, tied, 3, 726)),
        "job": _part(described, 2 * tied.children + 2 * links,
                     _down(costs, tied, 2, nodes + launch) + job.ppn * costs.fork + 2 * links * costs.serve
                     + tied.depth * costs.latency),
        "init": _part(_NONE, opened[0] // job.nodes,
                      costs.init + max(steps * local, 2 * steps * job.ppn * costs.serve), local=opened),
        "fence": _part(fenced, 4 * tied.children + fence[0] // job.nodes,
                       2 * (local + 2 * job.ppn * costs.serve) + _up(costs, tied, 2, 2 * _UP + told * job.nodes)
                       + _down(costs, tied, 2, data + _DOWN), local=fence),
        "get": direct,
        "end": _part(ended, 8 * tied.children, 0.0, local=closed),
    }  # fmt: skip


def _direct(job: Job, costs: Costs, tied: Tree) -> Part:
    """Without the fence's data each rank asks for what it needs: by way of its daemon, that of the other node, and the
    tree between them."""
    if job.collect or not tied.links:
        return Part()
    asked = job.ranks * min(job.contacts, job.nodes - 1)
    crossed = 2 * tied.sum_of_depths // tied.links
    wide = (2 * asked * crossed, asked * crossed * (_UP + _DOWN + _contribution(1)))
    each = 2 * costs.local + 2 * crossed * (costs.latency + costs.serve)
    through = 2 * asked // max(tied.children, 1) * costs.serve
    took = max(min(job.contacts, job.nodes - 1) * each, through)
    return _part(wide, 2 * asked, took, local=(2 * asked, asked * (54 + 18)))


# What both have.


def _addresses(job: Job, costs: Costs) -> Part:
    """MPICH's ranks that have not told theirs by PMI: a gather on each node, an allgather of one rank of each over the
    fabric, a broadcast on each node. Each address has its rank's number beside it. Only the fabric counts."""
    if not job.of_nodes or job.ppn == 1 or job.nodes == 1:
        return Part()
    block = job.ppn * (ADDRESS + 4)
    total, nodes = block * job.nodes, job.nodes
    rounds = (nodes - 1).bit_length()
    steps = rounds if (total < _DOUBLING and nodes & nodes - 1 == 0) or total < _BRUCK else nodes - 1
    took = steps * costs.fabric_message + (total - block) / costs.fabric_rate
    return _part((nodes * steps, nodes * (total - block)), 2 * steps, took)


def first_contacts(job: Job) -> int:
    """Other nodes that a node's first rank talks to in that allgather, or in a barrier of all."""
    return min(job.nodes - 1, (job.nodes - 1).bit_length())


def _arp(job: Job, costs: Costs) -> Part:
    """A request to all and an answer, of each NIC for each node that it talks to first."""
    if job.static_arp:
        return Part()
    asked = min(job.contacts, job.nodes - 1)
    return _part((2 * job.nodes * asked, 2 * 64 * job.nodes * asked), 2 * asked, asked * costs.arp)


def _daemons(job: Job, costs: Costs, tied: Tree) -> float:
    """PALS' run already."""
    if job.launcher == "pals":
        return tied.depth * costs.latency
    return tied.depth * -(-tied.children // costs.at_once) * costs.spawn + costs.latency


def _down(costs: Costs, tied: Tree, messages: int, size: int) -> float:
    """To all: each daemon hands on to its children one after another."""
    return tied.depth * (costs.latency + tied.children * (messages * costs.serve + size / costs.rate))


def _up(costs: Costs, tied: Tree, messages: int, size: int) -> float:
    return tied.depth * (costs.latency + tied.children * messages * costs.serve) + tied.children * size / costs.rate


def _sum(*each: tuple[int, int]) -> tuple[int, int]:
    return sum(one for one, _ in each), sum(other for _, other in each)


def _part(wide: tuple[int, int], busiest: int, seconds: float, *, local: tuple[int, int] = (0, 0)) -> Part:
    """`wide`: between nodes."""
    messages, size = _sum(wide, local)
    return Part(messages=messages, bytes=size, local_messages=local[0], local_bytes=local[1], busiest=busiest,
                seconds=seconds)  # fmt: skip

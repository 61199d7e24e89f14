"""Every field that a machine file may have: its dimension, its range, and its name in the resolved spec.

The range is what the models can represent, not what is sensible on a machine. Fields under topology.group.KIND and
topology.global are named per kind of group and therefore checked by machine.py.
"""

from __future__ import annotations

from dryfly.base.units import OPERATIONS, RATE, RATIO
from dryfly.machine.field import Field, count, optional, rate, size, text, time
from dryfly.machine.routing import ROUTING_ALGORITHMS


def _compute_place(name: str, each: str) -> dict[str, Field]:
    """What a node computes with, for --compute model; compute_model.py resolves it."""

    def operations(what: str) -> Field:
        return Field(dimension=OPERATIONS, least=10**6, most=10**16, required=False, meaning=f"{what} of {each}")

    return {
        f"compute.{name}.count": optional(count("", f"{each[2:]}s of a node", least=1, most=1024)),
        f"compute.{name}.fp64": operations("operations in FP64"),
        f"compute.{name}.fp32": operations("operations in FP32"),
        f"compute.{name}.half": operations("operations in 16 bits"),
        f"compute.{name}.memory_rate": Field(
            dimension=RATE, least=10**6, most=10**15, required=False, meaning=f"what the memory of {each} carries"
        ),
        f"compute.{name}.latency": optional(time("", "of one call of a library")),
    }


# The fabric keeps flights and transmission times in 32 bits of picoseconds, up to 4.29 ms. A millisecond is 200 km of
# cable; a frame of 68 KiB takes 0.7 ms at the lowest rate that is accepted.
LONGEST_FLIGHT = 10**9
_MINUTES = 10**15  # ps: 17 of them


def _flight(level: str, between: str) -> Field:
    return time(f"fabric.link.{level}_flight_ps", f"time of flight between {between}", least=1, most=LONGEST_FLIGHT)


def _sweep(name: str) -> Field:
    return time(
        f"fabric.manager.{name}_sweep_ps", f"period of the fabric manager's {name} sweep", least=1, most=_MINUTES
    )


def _trackers() -> dict[str, Field]:
    """What a NIC can keep track of; a machine that has none of these fields has room for everything."""
    path = "fabric.nic.trackers"
    most = 2**20
    fields = [
        count(
            f"{path}.source_connections", "connections of ordered packets that a NIC can have open", least=1, most=most
        ),
        count(
            f"{path}.target_connections", "those of others that it can have open as their target", least=1, most=most
        ),
        count(f"{path}.results", "ordered packets of which it can keep what became of them", least=1, most=most),
        time(f"{path}.idle_ps", "after which a connection without anything under way is closed", most=_MINUTES),
        time(f"{path}.close_ps", "what closing a connection takes", most=_MINUTES),
    ]
    return {field.resolved.removesuffix("_ps"): optional(field) for field in fields}


def _refusals() -> dict[str, Field]:
    """How the source's retry handler goes on with packets that a target could not keep track of."""
    path = "nic.retry.refused"
    fields = [
        time(f"{path}.handling_ps", "of refused packets, until they are sent again", most=_MINUTES),
        count(f"{path}.at_once", "times that they are sent again without a pause", most=64),
        time(
            f"{path}.pause_ps",
            "before the next time; doubled each time, and up to twice as long",
            least=1,
            most=_MINUTES,
        ),
        time(f"{path}.pause_max_ps", "the longest such pause", least=1, most=_MINUTES),
        count(f"{path}.batch", "packets sent again at a time where results are short", least=1, most=64),
    ]
    return {field.resolved.removesuffix("_ps"): optional(field) for field in fields}


# What the provider executes by its own code, under the names of what it costs in the resolved spec.
PROVIDER_CALLS = {
    "send": "a send inside its command",
    "send_fetched": "one whose payload the NIC fetches",
    "receive": "a receive posted",
    "rma": "a write or an atomic inside its command",
    "rma_fetched": "one whose payload the NIC fetches, or which brings something back",
    "completion": "a poll that finds the end of something else than",
    "sent": "a send, or",
    "received": "a message",
    "poll": "a poll that finds nothing",
}

# MPI libraries that ask whose each buffer is, where they are built for GPUs (docs/model/software.md#buffers-of-gpus).
LOOKING_UP = {"mpich": "MPICH and its kin", "openmpi": "Open MPI"}

# What counts where the MPI library's own code is not charged as counted, and what counts only where it is.
COSTS_OF_CALLS = ("host.send", "host.receive", "host.rma", "host.completion", "host.poll")
COSTS_OF_COUNTED = (
    "host.instruction", *(f"host.provider.{call}" for call in PROVIDER_CALLS), "host.wake",
    *(f"host.lookups.{family}" for family in LOOKING_UP), "node.gpu_lookup_host",
)  # fmt: skip

# What memory that a NIC is to read or write costs its CPU (docs/model/registration.md).
REGISTRATION_COSTS = {
    "map": "memory is made known to the NIC: a range",
    "map_page": "and each of its pages",
    "unmap": "the end of that: a range",
    "unmap_page": "and each of its pages",
    "watch": "the kernel is told to watch a range (FI_MR_CACHE_MONITOR=kdreg2 or userfaultfd)",
    "link": "a list entry for a region of the program's, and its end",
    "fault": "on-demand paging: the NIC's first access to 64 KiB",
}

FIELDS: dict[str, Field] = {
    "topology.cabling": text(
        "a list of all cables ([cabling](../guide/cabling.md)), in place of topology.group and topology.global"
    ),
    "topology.ports_per_switch": count(
        "topology.ports_per_switch", "upper bound that the wiring is checked against", least=1, most=64
    ),
    "fabric.link.rate": rate("fabric.link.rate_bytes_per_s", "one direction of a link", least=10**8),
    "fabric.link.edge_flight": _flight("edge", "NIC and switch"),
    "fabric.link.local_flight": _flight("local", "switches of a group"),
    "fabric.link.global_flight": _flight("global", "groups"),
    "fabric.switch.latency": time(
        "fabric.switch.latency_ps", "first byte in to first byte out, unloaded: the mean", least=1, most=LONGEST_FLIGHT
    ),
    "fabric.switch.latency_spread": time(
        "fabric.switch.latency_spread_ps",
        "the most by which that is less or more; at most the latency",
        most=LONGEST_FLIGHT,
    ),
    "fabric.switch.input_buffer": size(
        "fabric.switch.input_buffer_bytes",
        "of each input port and virtual channel; at least a packet",
        least=1,
        most=2**30,
    ),
    "fabric.packet.payload": size("fabric.packet.payload_bytes", "largest payload of a packet", least=1, most=2**16),
    "fabric.packet.header": size(
        "fabric.packet.header_bytes", "added to each data packet on a link", least=1, most=2**12
    ),
    "fabric.packet.ack": size("fabric.packet.ack_bytes", "size of an acknowledgement on a link", least=1, most=2**12),
    "fabric.packet.age": time(
        "fabric.packet.age_ps", "no packet stays in the fabric for longer; the pause in a drain", least=1, most=_MINUTES
    ),
    "fabric.link.retune.least": time("", "of a flap: the least that it lasts", least=1, most=_MINUTES),
    "fabric.link.retune.most": time("", "of a flap: the most that it lasts", least=1, most=_MINUTES),
    "fabric.manager.topology_sweep": _sweep("topology"),
    "fabric.manager.routing_sweep": _sweep("routing"),
    "fabric.manager.deployment_sweep": _sweep("deployment"),
    "fabric.nic.window": count("fabric.nic.window_packets", "unacknowledged packets of one NIC", least=1, most=2**16),
    "fabric.nic.loopback_rate": optional(
        rate("fabric.nic.loopback_rate_bytes_per_s", "what a NIC sends to itself, in payload; not given: as its link")
    ),
    **_trackers(),
    "fabric.routing.algorithm": Field(
        choices=tuple(ROUTING_ALGORITHMS), resolved="fabric.routing.algorithm", meaning="how a packet's way is chosen"
    ),
    **{name: field for algorithm in ROUTING_ALGORITHMS.values() for name, field in algorithm.fields.items()},
    "fabric.routing.staleness": time(
        "fabric.routing.staleness_ps", "age of what a switch knows of another's load", most=LONGEST_FLIGHT
    ),
    "fabric.congestion.management": Field(
        choices=("on", "off"), resolved="fabric.congestion.management", meaning="whether hot end-points are managed"
    ),
    "fabric.congestion.hot_queue": size(
        "fabric.congestion.hot_queue_bytes", "waiting for a NIC: more makes it a hot end-point", least=1, most=2**30
    ),
    "fabric.congestion.round_trip": time(
        "fabric.congestion.round_trip_ps",
        "expected between a hot end-point and its sources",
        least=1,
        most=LONGEST_FLIGHT,
    ),
    "fabric.qos.profile": text("which of the profiles fabric.qos.PROFILE the machine runs", required=True),
    "fabric.qos.default": text("the class of what asks for none or for one that the profile lacks", required=True),
    # For experiments; no machine file has it.
    "fabric.extra_flight": text('"s0>s1 1 ns, n5>s0 2 ns": links with extra time of flight'),
    "fabric.down": text('"s0-s4, n5, t7": cables and nodes that are not there'),
    "fabric.cabling": text("a text file with a cable or node and `up` or `down` on each line"),
    "nic.retry.timeout": time("nic.retry.timeout_ps", "an unanswered packet times out", least=1, most=_MINUTES),
    **_refusals(),
    "nic.pcie.rate": rate("", "of payload, that the PCIe of a NIC carries in order, each way", least=10**8),
    "nic.pcie.width": count("", "its lanes", least=1, most=16),
    "nic.pcie.speed": count("", "of each, in GT/s", least=2, most=64),
    "nic.retry.delays": text('"0 s, 1 s, 2 s": the pause before each retry, up to seven', required=True),
    "nic.inline": size("nic.inline_bytes", "largest message inside the command", most=192),  # wire::inline_bytes_max
    "nic.pushed": size("nic.pushed_bytes", "largest inline message that the CPU writes to the NIC at once", most=192),
    "nic.eager": size("nic.eager_bytes", "largest message that is sent without a rendezvous", most=2**30),
    "nic.rendezvous_head": size(
        "nic.rendezvous_head_bytes", "of a rendezvous: what travels with the request; at most nic.eager", most=2**30
    ),
    "nic.egress_latency": time("nic.egress_latency_ps", "from a command at the NIC to its first byte on the link"),
    "nic.dma_read_latency": time("nic.dma_read_latency_ps", "more for what the NIC reads from the host's memory"),
    "nic.ingress_latency": time("nic.ingress_latency_ps", "from a packet at the NIC to its bytes in the host's memory"),
    "nic.command_interval": time("nic.command_interval_ps", "between two commands of one NIC"),
    "nic.reduction_latency": time("nic.reduction_latency_ps", "of a reduction engine, for each packet"),
    "nic.list_entries": count(
        "nic.list_entries", "list entries of each of a NIC's four matching engines", least=1, most=2**24
    ),
    "nic.list_entries_share": Field(
        dimension=RATIO,
        least=1,
        most=10**6,
        resolved="nic.list_entries_share_ppm",
        meaning="the share of them that the job may use",
    ),
    "nic.rendezvous_get": Field(
        choices=("on", "off"),
        resolved="nic.rendezvous_get",
        required=False,
        meaning="on: NICs that match issue the Get of a rendezvous themselves; off: their CPUs do (rdzv_get_en)",
    ),
    "nic.rendezvous_latency": time(
        "nic.rendezvous_latency_ps", "from the match of a rendezvous to the NIC's Get on the link"
    ),
    "nic.rendezvous_queues": count(
        "nic.rendezvous_queues",
        "queues of a NIC and class for Gets of rendezvous, each with one Get at a time; 0: no such queues",
        least=0,
        most=16,
    ),
    "nic.read_queues": count(
        "nic.read_queues", "the same, for reads that the CPU asks for; 0: no such queues", least=0, most=48
    ),
    "nic.answer_gap": time("nic.answer_gap_ps", "from the last byte of what a NIC answers a Get with to the next such"),
    "nic.command_latency": time(
        "nic.command_latency_ps", "from the CPU's store to the command being at the NIC", least=1
    ),
    "nic.completion_latency": time(
        "nic.completion_latency_ps", "from the NIC's event to a CPU that polls seeing it", least=1
    ),
    "node.local_latency": time(
        "node.local_latency_ps", "until a core sees what another of its node has written", least=2
    ),
    "node.local_rate": rate("node.local_rate_bytes_per_s", "what a core copies"),
    "node.cached": optional(size("node.cached_bytes", "a copy that is not longer stays in the caches of cores")),
    "node.near.places": Field(
        choices=("on", "off"),
        required=False,
        meaning="copies between ranks of a node cost by processor and place, as node.near says; not given: on "
        "where all rows of node.near are; off: the same everywhere, by node.local_latency, node.local_rate and "
        "node.cached",
    ),
    "node.near.l3_line": optional(time("", "a cache line goes from core to core of an L3 region", most=10**6)),
    "node.near.socket_line": optional(time("", "between two L3 regions of a socket", most=10**6)),
    "node.near.node_line": optional(time("", "between two sockets", most=10**6)),
    "node.near.memory_latency": optional(
        time("", "a cache line comes from the memory of the socket", least=1, most=10**6)
    ),
    "node.near.l2_rate": optional(rate("", "a core copies what lies in its own second-level cache")),
    "node.near.l3_rate": optional(rate("", "a core copies what lies in the caches of its L3 region")),
    "node.near.memory_rate": optional(rate("", "what lies in the memory of its socket")),
    "node.near.into_region": optional(rate("", "what cores of an L3 region read from outside of it goes there")),
    "node.near.out_of_region": optional(rate("", "what they write, and what others read of theirs, goes out of it")),
    "node.near.l2_size": optional(size("", "of a core's second-level cache", most=2**36)),
    "node.cross_copy": optional(time("", "a call of the kernel that copies from another process")),
    "node.xpmem": Field(
        choices=("on", "off"), required=False, meaning="whether its kernel has XPMEM (FI_SHM_USE_XPMEM); not given: off"
    ),
    "node.xpmem_attach": optional(time("", "memory of another process is attached: a range, the first time")),
    "node.xpmem_page": optional(time("", "and each of its pages, when it is touched first")),
    "node.sockets": optional(count("", "sockets of a node", least=1, most=16)),
    "node.numa": optional(count("", "NUMA domains with cores, on sockets in equal blocks", least=1, most=64)),
    "node.threads": optional(count("", "hardware threads of a core", least=1, most=8)),
    "node.l3": optional(count("", "L3 regions of a node, cores on them in equal blocks", least=1, most=1024)),
    "node.slurm_socket": Field(
        choices=("socket", "numa", "l3"), required=False, meaning="what Slurm takes for a socket there; else socket"
    ),
    "node.l3_size": optional(size("", "of an L3 region's cache", least=1, most=2**36)),
    "node.reserved": text('cores that the system keeps for itself, "0, 8, 16": jobs do not get them'),
    "node.memory.kind": text("of the memory of a domain with cores, such as DDR5"),
    "node.memory.size": optional(size("", "of such a domain", least=1, most=2**50)),
    "node.coreless.domains": optional(
        count("", "NUMA domains of memory alone, on sockets in equal blocks; numbered behind those with cores", most=64)
    ),
    "node.coreless.kind": text("of their memory, such as HBM2e"),
    "node.coreless.size": optional(size("", "of such a domain", least=1, most=2**50)),
    "node.coreless.rate": optional(rate("", "what the memory of such a domain carries")),
    "node.nic_numa": text('the NUMA domain of each NIC, "0, 0, 1, 1"'),
    "node.nic_gpu": text('the GPU that each NIC hangs off, "0, 2, 4, 6"; not given: none, but the processor'),
    "node.gpu_numa": text('the NUMA domain of each GPU, "0, 0, 1, 1"'),
    "node.gpu_l3": text('the L3 region of each GPU, "1, 0"'),
    "node.gpu_tiles": optional(count("", "stacks of a GPU that a launcher binds ranks to", least=1, most=8)),
    "node.gpu_pci": Field(
        meaning='vendor and device of a GPU, as PCI numbers them: "1002:7408"',
        pattern=r"[0-9a-f]{4}:[0-9a-f]{4}",
        such_as='two numbers of four digits to base 16, as in "1002:7408"',
        required=False,
    ),
    "node.gpu_capability": text('compute capability, as CUDA calls it: "8.0"'),
    "node.gpu_multiprocessors": optional(count("", "of a GPU, as CUDA counts them", least=1, most=10000)),
    "node.gpu_rate": optional(rate("", "of the link between a GPU and its processor, each way")),
    "node.gpu_peer_rate": optional(rate("", "of a link between two GPUs of a node, each way")),
    "node.gpu_tile_rate": optional(rate("", "of copies between two tiles of a GPU, each way")),
    "node.gpu_links": text('links between GPUs of a node, "0-1:4, 1-2:1"; not given: one between each two'),
    "node.gpu_copy_rate": optional(rate("", "of copies over that link; not given: as the link")),
    "node.gpu_copy_latency": optional(
        time("", "until a copy to, from or between GPUs begins, which work before it hides")
    ),
    "node.gpu_copy_step": optional(time("", "of the GPU for such a copy, whatever its size")),
    "node.gpu_local_latency": optional(time("", "until a copy within a GPU begins, which work before it hides")),
    "node.gpu_local_step": optional(time("", "of the GPU for such a copy, whatever its size")),
    "node.gpu_call": optional(time("", "of the processor, for a call of the GPU runtime that starts work", least=1)),
    "node.gpu_lookup": optional(time("", "of the processor, to tell that memory is a GPU's")),
    "node.gpu_lookup_host": optional(
        time("", "and that it is none's: of the host, and no call of the GPU runtime has made it", most=10**9)
    ),
    "node.gpu_query": optional(time("", "of the processor, for a look at an event", least=1)),
    "node.gpu_short_call": optional(
        time("", "of the processor, for a word that a stream writes or waits for, and for memory of a pool", least=1)
    ),
    "node.gpu_host_access": Field(
        choices=("on", "off"),
        required=False,
        meaning="whether the processor can read and write what libfabric maps of a GPU's memory; not given: off",
    ),
    "node.gpu_load_latency": optional(time("", "of the processor, to read from a GPU's memory so")),
    "node.gpu_load_rate": optional(rate("", "what it reads so")),
    "node.gpu_store_latency": optional(time("", "of the processor, to write to a GPU's memory so")),
    "node.gpu_store_rate": optional(rate("", "what it writes so")),
    "node.gpu_allocation": optional(time("", "of the processor, for taking, giving back or registering memory")),
    "node.gpu_pinning_rate": optional(rate("", "at which pinned memory is taken, by chunks of 2 MiB")),
    "node.gpu_registration_rate": optional(rate("", "at which memory is registered, beside node.gpu_allocation")),
    "node.gpu_word": optional(time("", "of the GPU, for a word that a stream writes or waits for")),
    "node.gpu_word_in_batch": optional(time("", "of the GPU, for each word but the first of a batch")),
    "node.gpu_runtime": Field(
        choices=("cuda", "hip", "level-zero"),
        required=False,
        meaning="what programs find there: simulated GPUs, docs/guide/gpu.md",
    ),
    "node.gpus_in_rate": optional(rate("", "of copies to all GPUs of a node at once; not given: as their links")),
    "node.gpus_out_rate": optional(rate("", "of copies from all of them at once")),
    "node.gpus_nic_rate": optional(rate("", "what the NICs of a socket get of GPUs' memory together, each way")),
    "node.socket_latency": optional(time("", "to a NIC or memory on another socket, each time")),
    "node.socket_rate": optional(rate("", "what the link between two sockets carries, each way")),
    "node.pcie_rate": optional(rate("", "what the NICs of a socket share each way")),
    "node.copy": time("node.copy_ps", "one copy to or from memory that the ranks of a node share"),
    "host.send": time("host.send_ps", "what the MPI software costs: a send"),
    "host.receive": time("host.receive_ps", "a receive"),
    "host.rma": time("host.rma_ps", "a write, a read or an atomic"),
    "host.completion": time("host.completion_ps", "a completion"),
    # Nothing may be free that a program can do in an endless loop, or virtual time would stand still.
    "host.poll": time("host.poll_ps", "a poll that finds nothing", least=1),
    "host.clock_read": time("host.clock_read_ps", "reading the clock", least=1),
    "host.match": time("host.match_ps", "one message matched by software"),
    # COSTS_OF_COUNTED (mpi/software.py), in the place of COSTS_OF_CALLS.
    "host.instruction": time("", "one instruction of MPI's own code, on the mean", least=1),
    **{
        f"host.provider.{call}": count("", f"instructions of the cxi provider: {what}", least=1, most=10**6)
        for call, what in PROVIDER_CALLS.items()
    },
    "host.wake": time("", "there too: more for what a rank has waited for"),
    **{
        f"host.lookups.{family}": count(
            "", f"there too: how often {name}, built for GPUs, asks whose the buffer of a send or receive is", most=100
        )
        for family, name in LOOKING_UP.items()
    },
    **{
        f"host.registration.{name}": optional(time(f"host.registration.{name}_ps", meaning))
        for name, meaning in REGISTRATION_COSTS.items()
    },
    "node.page": optional(
        size("node.page_bytes", "of a page of memory, as registering counts it", least=4096, most=2**30)
    ),
    "nic.registration": Field(
        choices=("on", "off"),
        resolved="nic.registration",
        required=False,
        meaning="on: making memory known to NICs takes time, and is counted; not given: off",
    ),
    "nic.ats": Field(
        choices=("on", "off"),
        resolved="nic.ats",
        required=False,
        meaning="whether processor and NIC have PCIe's address translation services (FI_CXI_ATS); not given: off",
    ),
    "nic.translation": Field(
        choices=("on", "off"),
        resolved="nic.translation",
        required=False,
        meaning="on, with nic.registration: NICs look up where pages are, which takes time; not given: off",
    ),
    "nic.atu.lines": optional(count("nic.atu.lines", "of a NIC's cache of translations", least=1, most=2**24)),
    "nic.atu.pages": optional(
        count("nic.atu.pages", "in a row that a line has translations of: a power of two", least=1, most=64)
    ),
    "nic.atu.walks": optional(count("nic.atu.walks", "of the tables that a NIC makes at a time", least=1, most=1024)),
    "nic.atu.read": optional(time("nic.atu.read_ps", "a walk reads one level of the driver's tables")),
    "nic.atu.ask": optional(time("nic.atu.ask_ps", "the processor's IOMMU translates for a NIC (FI_CXI_ATS)")),
    "host.kernel": Field(
        pattern=r"\d+\.\d+(\.\d+)?(-[\w.-]+)?",
        such_as="a version of Linux, such as 5.14.21",
        required=False,
        meaning="version of Linux on its nodes, for what a fork does to memory that a NIC has",
    ),
    "host.noise": text("detours of its cores, for --noise machine: a file of data/noise"),
    "host.compute_factor": Field(
        dimension=RATIO,
        least=1,
        most=2**32 - 1,
        resolved="host.compute_factor_ppm",
        meaning="how measured CPU time counts",
    ),
    **_compute_place("cpu", "a processor"),
    **_compute_place("gpu", "a GPU"),
    "compute.gpu.memory": optional(size("", "of a GPU, for what is held there", least=1, most=2**50)),
    # Groups with storage servers, for --storage; the servers are part of the network only then.
    "storage.kind": text("the kind of groups that has the servers"),
    "storage.servers": optional(count("", "servers of such a group", least=1, most=2**16)),
    "storage.nics": optional(count("", "NICs of a server", least=1, most=64)),
    "storage.server_rate": optional(rate("", "what a server's storage gives or takes")),
    "storage.transfer": optional(size("", "of one operation", least=1, most=2**32)),
    "storage.in_flight": optional(count("", "operations under way of one NIC and stream", least=1, most=65536)),
    "storage.request": optional(size("", "a request, and a reply", least=1, most=2**20)),
    "storage.latency": optional(time("", "of a request in a server")),
    "run.arena": optional(size("", "memory for payloads on their way (sparse)", least=2**20, most=2**44)),
    "run.cross_memory": Field(
        choices=("on", "off"), required=False, meaning="whether large payloads are copied straight between processes"
    ),
    "job.kinds": text('kinds of groups whose nodes run jobs, "compute"', required=True),
    "job.nodes_max": count("", "nodes that a job may have", least=1),
    "job.cores_per_node": count("", "cores of a node", least=1, most=2**16),
    "names.style": Field(choices=("numbered", "xname"), meaning="how nodes are named"),
    "names.prefix": text("of numbered names: what is before the number"),
    "names.digits": optional(count("", "of numbered names: the least digits", least=1, most=12)),
    "names.first": optional(count("", "of numbered names: the first number", most=10**9)),
    "names.cabinet": count("", "of xnames: the first cabinet", most=99999),
    "names.cabinets_per_row": count("", "of xnames", least=1, most=100),
    "names.slots_per_chassis": count("", "of xnames", least=1, most=64),
    "names.boards_per_slot": count("", "of xnames", least=1, most=64),
    "names.nodes_per_board": count("", "of xnames", least=1, most=64),
}

# topology.group.KIND.NAME; resolved as topology.kind.K.NAME.
GROUP_FIELDS: dict[str, Field] = {
    "groups": count("groups", "groups of this kind; groups are numbered kind by kind", least=1, most=511),
    "switches": count("switches", "switches in each group", least=1, most=4096),
    "nodes": count("nodes", "nodes in each group (0: none modelled)", most=2**16),
    "nics_per_node": count("nics_per_node", "NICs of a node", most=64),
    "attach": Field(
        choices=("same_switch", "spread"),
        resolved="attach",
        meaning="same_switch: all NICs of a node on one switch; spread: on consecutive switches",
    ),
    "local_links": count("local_links", "links between each pair of switches of a group", least=1, most=64),
}

GLOBAL_LINKS = count("", "links between each pair of groups of the two kinds; 0: none", most=4096)

# The classes that libfabric names, in the order of core/contract/network.hpp.
TRAFFIC_CLASSES = ("dedicated", "low_latency", "bulk_data", "best_effort", "scavenger", "ethernet")


def _share(resolved: str, meaning: str, *, least: int) -> Field:
    return Field(dimension=RATIO, least=least, most=10**6, resolved=resolved, meaning=meaning)


# fabric.qos.PROFILE.CLASS.NAME; resolved as fabric.qos.class.I.NAME for the profile that the machine runs.
QOS_FIELDS: dict[str, Field] = {
    "assured": _share("assured_ppm", "share of a NIC's link, at least", least=0),
    "ceiling": _share("ceiling_ppm", "share of a NIC's link, at most", least=1),
    "fabric": _share("fabric_ppm", "share of a link between switches", least=1),
    "priority": count("priority", "higher goes first", most=7),
    "bucket": count("bucket_frames", "frames that may pass the ceiling at once", least=1, most=1000),
}

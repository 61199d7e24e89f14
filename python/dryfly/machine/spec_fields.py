"""Every name of the resolved spec, with what is accepted: declared here and in schema.py, and nowhere else.

tool/generate.py writes core/spec/fields.hpp, through which the simulator reads the spec, and the reference page from
it. In a name a capital letter of its own stands for a number: `faults.N.kind`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dryfly.machine.field import Field
from dryfly.machine.schema import (
    FIELDS,
    GLOBAL_LINKS,
    GROUP_FIELDS,
    LONGEST_FLIGHT,
    PROVIDER_CALLS,
    QOS_FIELDS,
    TRAFFIC_CLASSES,
)

_U64 = 2**64 - 1
_U32 = 2**32 - 1
_SECOND = 10**12
_INSTANT = 10**18  # ps, 11 days
_OPERATIONS = 1024 * 10**16  # of a node: what its processors or GPUs have together


@dataclass(frozen=True, kw_only=True)
class SpecField:
    """One name: a whole number, one of `choices`, or text."""

    name: str
    part: str
    meaning: str
    is_number: bool = False
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()
    optional: bool = False

    def accepted(self) -> str:
        if self.is_number:
            return f"{self.least} to {self.most}"
        return " or ".join(self.choices) if self.choices else "text"

    def accepts(self, value: str) -> bool:
        if self.is_number:
            return value.isdecimal() and self.least <= int(value) <= self.most
        return not self.choices or value in self.choices

    def pattern(self) -> re.Pattern[str]:
        parts = (r"\d+" if _is_index(part) else re.escape(part) for part in self.name.split("."))
        return re.compile(r"\.".join(parts))


def _is_index(part: str) -> bool:
    return len(part) == 1 and part.isupper()


def _number(name: str, part: str, meaning: str, least: int, most: int, *, optional: bool = False) -> SpecField:
    return SpecField(name=name, part=part, meaning=meaning, is_number=True, least=least, most=most, optional=optional)


def _text(name: str, part: str, meaning: str, *choices: str, optional: bool = False) -> SpecField:
    return SpecField(name=name, part=part, meaning=meaning, choices=choices, optional=optional)


def _of_machine(name: str, part: str, field: Field) -> SpecField:
    """As the machine's file has it, in the units of the resolved spec."""
    if field.dimension is None:
        return _text(name, part, field.meaning, *field.choices, optional=not field.required)
    return _number(name, part, field.meaning, field.least, field.most, optional=not field.required)


_PARTS = {"topology": "topology", "fabric": "network", "nic": "NICs", "node": "NICs", "host": "ranks"}


def _machine_fields() -> list[SpecField]:
    return [
        _of_machine(field.resolved, _PARTS[path.split(".")[0]], field)
        for path, field in FIELDS.items()
        if field.resolved
    ]


def _declared() -> list[SpecField]:
    groups = [_of_machine(f"topology.kind.K.{leaf}", "topology", field) for leaf, field in GROUP_FIELDS.items()]
    shares = [_of_machine(f"fabric.qos.class.I.{field.resolved}", "network", field) for field in QOS_FIELDS.values()]
    return [
        _text("machine", "run", "name of the machine, for the reader"),
        _number("topology.kinds", "topology", "number of group kinds", 1, 64),
        _text("topology.kind.K.name", "topology", "compute, storage, ..."),
        *groups,
        _of_machine("topology.global.I.J", "topology", GLOBAL_LINKS),
        _number(
            "topology.cables", "topology",
            "with a list of cables: how many between groups; topology.global then counts for nothing",
            0, 10**7, optional=True,
        ),
        _text("topology.cable.N", "topology", "the two switches of a cable", optional=True),
        _text("topology.node.N.switches", "topology", "the switch of each NIC of node N", optional=True),
        _text("fabric.model", "network", "of the network; not given: packet", "packet", "flow", optional=True),
        *_machine_fields(),
        _text("fabric.routing.group_load", "network", FIELDS["fabric.routing.group_load"].meaning, optional=True),
        _text("fabric.qos.profile", "network", "name of the profile, for the reader", optional=True),
        _text("fabric.qos.default", "network", FIELDS["fabric.qos.default"].meaning),
        _number("fabric.qos.classes", "network", "number of the profile's traffic classes", 1, len(TRAFFIC_CLASSES)),
        _text("fabric.qos.class.I.name", "network", "of a traffic class", *TRAFFIC_CLASSES),
        *shares,
        _number("fabric.extra_flight.count", "network", "number of links with extra time of flight", 0, 10**6),
        _text("fabric.extra_flight.N.from", "network", "s12: a switch, n5: a NIC; every parallel link"),
        _text("fabric.extra_flight.N.to", "network", "the other end, in the same way"),
        _number("fabric.extra_flight.N.ps", "network", "what its flight takes longer", 0, LONGEST_FLIGHT),
        _number("nic.retry.count", "network", "retries of an unanswered packet", 0, 7),
        _number("nic.retry.delay.N.ps", "network", "the pause before each", 0, _INSTANT),
        _number(
            "faults.count", "network",
            "entries of faults; 0: nothing goes wrong, and nothing of it is simulated", 0, 10**6,
        ),
        _number("faults.seed", "network", "of what faults draw", 0, 2**63 - 1, optional=True),
        _text(
            "faults.N.kind", "network", "absent: for ever, and known; flaps: at random",
            "down", "absent", "lanes", "replays", "flaps", "drain", "load",
        ),
        _text("faults.N.where", "network", "s0-s4, s0>s4, s0-s4.1, n5, s3, all, edge, local or global"),
        _number("faults.N.from_ps", "network", "from the start of virtual time", 0, _INSTANT),
        _number("faults.N.until_ps", "network", "without it for good", 1, 2 * _INSTANT, optional=True),
        _number("faults.N.lanes", "network", "of lanes: lanes left", 1, 4, optional=True),
        _number(
            "faults.N.rate_ppb", "network",
            "share of packets that are replayed, of seconds in which a flap begins, or of a link that others have",
            1, 10**9, optional=True,
        ),
        _number("faults.N.least_ps", "network", "the least that a flap lasts", 1, _INSTANT, optional=True),
        _number("faults.N.most_ps", "network", "the most that a flap lasts", 1, _INSTANT, optional=True),
        _number("slow.count", "network", "parts of nodes that are slower than the machine's", 0, 10**6, optional=True),
        _text(
            "slow.N.kind", "network",
            "nic: its way to memory; memory: of a node; cpu: all cores of a node; gpu: its link",
            "nic", "memory", "cpu", "gpu",
        ),
        _number("slow.N.number", "network", "the NIC, node or GPU, counted over the machine", 0, 2**32 - 1),
        _number(
            "slow.N.share_ppb", "network",
            "what is left, of the rate of a NIC's or GPU's link or of the part's own speed", 1, 10**9,
        ),
        _number("service.id", "ranks", "the CXI service of the job; without it nothing is restricted", 1, 2**31 - 1,
                optional=True),
        _number("service.vni_count", "ranks", "VNIs that it may use; 0: a range", 0, 4),
        _number("service.vni.N", "ranks", "such a VNI", 1, 65535),
        _number("service.vni.least", "ranks", "of a range of VNIs", 1, 65535),
        _number("service.vni.most", "ranks", "of a range of VNIs", 1, 65535),
        _number("service.classes", "ranks", "traffic classes that it may use, as bits by their order", 0, 63),
        _number("service.portal_entries", "ranks", "that it may use of a NIC", 0, 65535, optional=True),
        _number("service.transmit_queues", "ranks", "that it may use of a NIC", 0, 65535, optional=True),
        _number("service.target_queues", "ranks", "that it may use of a NIC", 0, 65535, optional=True),
        _number("service.event_queues", "ranks", "that it may use of a NIC", 0, 65535, optional=True),
        _number("service.counters", "ranks", "that it may use of a NIC", 0, 65535, optional=True),
        _number("service.triggered_operations", "ranks", "entries for work that waits at a NIC", 0, 65535,
                optional=True),
        _number("node.cores", "NICs", "cores of a node", 1, 2**16),
        _number("node.threads", "NICs", "hardware threads of a core", 1, 8),
        _number("node.domains", "NICs", "NUMA domains of a node, those with cores first", 1, 64),
        _number("node.domain.I.socket", "NICs", "the socket of domain I", 0, 15),
        _number("node.domain.I.cores", "NICs", "its cores, which follow those of the domain before", 0, 2**16),
        _number("node.domain.I.rate_bytes_per_s", "NICs", "what its memory carries", 1, 10**18, optional=True),
        _number(
            "node.nics", "NICs", "most NICs of a node of the job, where nodes have several sockets or node.pcie_rate",
            0, 64, optional=True,
        ),
        _number("node.nic.I.socket", "NICs", "the socket that NIC I of a node is on", 0, 15, optional=True),
        _number(
            "node.gpus", "NICs", "GPUs of a node whose memory messages come from and go to", 1, 16, optional=True,
        ),
        _number(
            "node.gpu_tiles", "NICs", "of those so many are tiles of one GPU, and share its link", 1, 8, optional=True,
        ),
        _number(
            "node.gpu_link_bytes_per_s", "NICs",
            "what the link between a GPU and the processor carries each way, for NICs that reach its memory by it",
            10**6, 10**15, optional=True,
        ),
        _number("node.nic.I.gpu", "NICs", "the GPU that NIC I of a node hangs off, counted from 1; 0: none", 0, 16,
                optional=True),
        _number(
            "node.gpu_copy_ps", "NICs", "where messages go by the node's memory: a copy from or to such memory",
            0, 2 * 10**12, optional=True,
        ),
        _number("node.gpu_local_ps", "NICs", "such a copy within one GPU's", 0, 2 * 10**12, optional=True),
        _number(
            "node.gpu_copy.I.J.bytes_per_s", "NICs",
            "what it carries between I and J, at least I: 0 is the host, another the GPU of the number before",
            10**6, 10**15, optional=True,
        ),
        _number("node.near.I.latency_ps", "NICs", "what a core has written another sees: in its L3 region (0), in "
                "another of its socket (1), on another socket (2)", 2, 10**12, optional=True),
        _number("node.near.I.cached_bytes_per_s", "NICs", "a core copies what the other has in its caches",
                10**6, 10**13, optional=True),
        _number("node.near.I.memory_bytes_per_s", "NICs", "and what it has in its memory", 10**6, 10**13,
                optional=True),
        _number("node.near.regions", "NICs", "L3 regions of a node", 1, 1024, optional=True),
        _number("node.near.sockets", "NICs", "and its sockets", 1, 16, optional=True),
        _number("node.near.l2_bytes", "NICs", "second-level cache of a core", 0, 2**36, optional=True),
        _number("node.near.l2_bytes_per_s", "NICs", "what it copies that lies there", 10**6, 10**13, optional=True),
        _number("node.near.l3_bytes", "NICs", "cache of an L3 region", 0, 2**36, optional=True),
        _number("node.near.into_region_bytes_per_s", "NICs", "comes into a region", 10**6, 10**13, optional=True),
        _number("node.near.out_of_region_bytes_per_s", "NICs", "and goes out of it", 10**6, 10**13, optional=True),
        _number("node.cross_copy_ps", "NICs", "a call of the kernel that copies from another process", 0, 10**12,
                optional=True),
        _number("node.xpmem_attach_ps", "NICs", "a range of another process's memory is attached, where the kernel "
                "has XPMEM", 0, 10**12, optional=True),
        _number("node.xpmem_page_ps", "NICs", "and each of its pages", 0, 10**12, optional=True),
        _of_machine("node.socket_latency_ps", "NICs", FIELDS["node.socket_latency"]),
        _of_machine("node.socket_rate_bytes_per_s", "NICs", FIELDS["node.socket_rate"]),
        _of_machine("node.pcie_rate_bytes_per_s", "NICs", FIELDS["node.pcie_rate"]),
        *(
            _number(f"host.{call}_ps", "ranks", f"with counted software: {what}", 0, 10**12, optional=True)
            for call, what in PROVIDER_CALLS.items()
            if f"host.{call}" not in FIELDS
        ),
        _number(
            "host.wake_ps", "ranks", "with counted software: more for what a rank has waited for", 0, 10**12,
            optional=True,
        ),
        _number(
            "host.buffer_ps", "ranks", "with counted software: more for a send or a receive of the host's memory",
            0, 10**12, optional=True,
        ),
        _number(
            "host.gpu_buffer_ps", "ranks", "with counted software: more for a send or a receive of GPU memory",
            0, 10**12, optional=True,
        ),
        _text(
            "host.compute_mode", "ranks", "how the time between MPI calls counts", "none", "measured", "replay", "model"
        ),
        _number("compute.numerics_skipped", "ranks", "with model only; 1: --skip-numerics", 0, 1, optional=True),
        *(field for place in ("cpu", "gpu") for field in _compute(place)),
        _number(
            "node.memory_rate_bytes_per_s", "NICs", "what the memory of a node carries, read and written",
            FIELDS["compute.cpu.memory_rate"].least, 1024 * FIELDS["compute.cpu.memory_rate"].most, optional=True,
        ),
        _number("run.seed", "run", "for every random choice", 0, 2**63 - 1),
        _number("run.ranks", "run", "number of ranks", 1, 16384),
        _number("run.rank.R.node", "run", "node of rank R, counted over the machine", 0, _U32),
        _number("run.rank.R.nic", "run", "index of its first NIC on that node", 0, 63),
        _number("run.rank.R.socket", "run", "where rank R runs in its node", 0, 15, optional=True),
        _number("run.rank.R.region", "run", "the L3 region, where node.near is given", 0, 1023, optional=True),
        _text("run.node.N.name", "run", "host name of node N; only for nodes that are used"),
        _of_machine("run.arena_bytes", "run", FIELDS["run.arena"]),
        _number(
            "run.cross_memory", "run",
            "1: large payloads are copied straight between processes where the system allows it; 0: never", 0, 1,
        ),
        _text(
            "run.on_node", "run",
            "provider: ranks of a node talk through the provider; shared: through memory, and take turns in MPI",
            "provider", "shared",
        ),
        _number("run.served", "run", "1: processes join and leave (dryfly serve)", 1, 1, optional=True),
        *_storage(),
        *_noise(),
    ]  # fmt: skip


def _compute(place: str) -> list[SpecField]:
    """Of all of a node together."""
    memory = FIELDS[f"compute.{place}.memory_rate"]
    return [
        _of_machine(f"compute.{place}.latency_ps", "ranks", FIELDS[f"compute.{place}.latency"]),
        _number(
            f"compute.{place}.memory_bytes_per_s", "ranks", "what a node's memory carries", memory.least,
            1024 * memory.most, optional=True,
        ),
        *(
            _number(
                f"compute.{place}.{kind}_per_s", "ranks", f"operations of a node in {words}", 10**6, _OPERATIONS,
                optional=True,
            )
            for kind, words in (("fp64", "FP64"), ("fp32", "FP32"), ("half", "16 bits"))
        ),
    ]  # fmt: skip


def _storage() -> list[SpecField]:
    def number(name: str, meaning: str, least: int, most: int) -> SpecField:
        return _number(f"storage.{name}", "storage", meaning, least, most, optional=True)

    def text(name: str, meaning: str, *choices: str) -> SpecField:
        return _text(f"storage.{name}", "storage", meaning, *choices, optional=True)

    rate = FIELDS["storage.server_rate"].most
    return [
        number("streams", "with --storage only, as all that follows: number of streams", 0, 255),
        number("seed", "of what is drawn for them", 0, 2**63 - 1),
        text("servers", "nodes: ranges such as 0-7,12"),
        number("server_nic_rate_bytes_per_s", "what a server's storage gives or takes at each NIC", 1, rate),
        number("server_latency_ps", "of a request in a server", 0, _SECOND),
        number("request_bytes", "a request, and a reply", 1, FIELDS["storage.request"].most),
        number("in_flight", "operations under way of one NIC and stream", 1, FIELDS["storage.in_flight"].most),
        text("stream.N.direction", "what its clients do", "read", "write"),
        text("stream.N.nodes", "client nodes, as the servers"),
        number("stream.N.nic_rate_bytes_per_s", "asked for at each client NIC", 1, _U64),
        number("stream.N.transfer_bytes", "of one operation", 1, FIELDS["storage.transfer"].most),
        number("stream.N.from_ps", "when operations begin", 0, _INSTANT),
        number("stream.N.until_ps", "when no more do", 1, 2 * _INSTANT),
        number("stream.N.nic_amount_bytes", "of each client NIC", 1, 2**60),
        number("stream.N.class", "number of the traffic class", 0, len(TRAFFIC_CLASSES) - 1),
    ]


def _noise() -> list[SpecField]:
    period, skew = 10**16, 10**12
    return [
        _number("noise.sources", "noise", "with --noise only, as all that follows: sources", 0, 32, optional=True),
        _number("noise.start_skew_ps", "noise", "a rank leaves MPI_Init up to so much late", 0, skew, optional=True),
        _number("noise.cores", "noise", "of a node", 1, 2**16, optional=True),
        _text(
            "noise.N.on", "noise", "what a detour is drawn for", "each core", "one core", "all cores", optional=True
        ),
        _text("noise.N.instants", "noise", "at one phase of each period, or anywhere in it", "regular", "random",
              optional=True),
        _number("noise.N.period_ps", "noise", "of which each has one detour, or none", 1000, period, optional=True),
        _number("noise.N.least_ps", "noise", "the least that a detour lasts", 1, period, optional=True),
        _number("noise.N.most_ps", "noise", "the most that a detour lasts", 1, period, optional=True),
        _number("noise.N.chance_ppb", "noise", "share of the periods that have one", 1, 10**9, optional=True),
        _number("noise.N.node", "noise", "on this node only", 0, _U32, optional=True),
    ]  # fmt: skip


def _once(fields: list[SpecField]) -> dict[str, SpecField]:
    by_name = {field.name: field for field in fields}
    assert len(by_name) == len(fields), "a name is declared twice"
    return by_name


SPEC_FIELDS: dict[str, SpecField] = _once(_declared())


def field_of(name: str) -> SpecField | None:
    """The declaration of a line of a resolved spec."""
    if name in SPEC_FIELDS:
        return SPEC_FIELDS[name]
    return next((field for field in SPEC_FIELDS.values() if field.pattern().fullmatch(name)), None)


def problems(text: str) -> list[str]:
    """A sentence for each line of a resolved spec that is not as declared."""
    found = []
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        field = field_of(name)
        if field is None:
            found.append(f"{name} is no name of the resolved spec")
        elif not field.accepts(value):
            found.append(f"{name} = {value}: accepted is {field.accepted()}")
    return found

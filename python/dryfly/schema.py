"""Every field that a machine file may have: its dimension, its range, and its name in the resolved spec.

The range is what the models can represent, not what is sensible on a machine. Fields under topology.group.KIND and
topology.global are named per kind of group and therefore checked by machine.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from dryfly import units
from dryfly.units import COUNT, OPERATIONS, RATE, RATIO, SIZE, TIME, Dimension

_SECOND = 10**12


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field: a quantity when `dimension` is set, otherwise text (one of `choices`, if any are given)."""

    dimension: Dimension | None = None
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()
    resolved: str = ""
    divisor: int = 1  # the resolved number is in this many base units
    required: bool = True

    def accepted(self) -> str:
        if self.dimension is None:
            return " or ".join(self.choices) if self.choices else "text"
        return f"{_text(self.least, self.dimension)} to {_text(self.most, self.dimension)}"


def _text(value: int, dimension: Dimension) -> str:
    if dimension is TIME:
        return units.time_text(value)
    if dimension is SIZE:
        return units.size_text(value)
    if dimension is RATE:
        return units.rate_text(value)
    if dimension is OPERATIONS:
        return f"{value:.0e} F/s"
    if dimension is RATIO:
        return f"{value / 10**4:g} %"
    return str(value)


def _time(resolved: str, *, least: int = 0, most: int = _SECOND, divisor: int = 1) -> Field:
    return Field(dimension=TIME, least=least, most=most, resolved=resolved, divisor=divisor)


def _size(resolved: str, *, least: int = 0, most: int = 2**40) -> Field:
    return Field(dimension=SIZE, least=least, most=most, resolved=resolved)


def _rate(resolved: str) -> Field:
    return Field(dimension=RATE, least=10**6, most=10**13, resolved=resolved)


def _count(resolved: str = "", *, least: int = 0, most: int = 2**31 - 1) -> Field:
    return Field(dimension=COUNT, least=least, most=most, resolved=resolved)


def _operations() -> Field:
    return Field(dimension=OPERATIONS, least=10**6, most=10**18, required=False)


def _compute_place(name: str) -> dict[str, Field]:
    """What a node computes with, for --compute model; compute_model.py resolves it."""
    return {
        f"compute.{name}.count": Field(dimension=COUNT, least=1, most=1024, required=False),
        **{f"compute.{name}.{precision}": _operations() for precision in ("fp64", "fp32", "half")},
        f"compute.{name}.memory_rate": Field(dimension=RATE, least=10**6, most=10**15, required=False),
        f"compute.{name}.latency": Field(dimension=TIME, most=_SECOND, required=False),
    }


FIELDS: dict[str, Field] = {
    # A list of all cables (docs/cabling.md), in place of topology.group and topology.global.
    "topology.cabling": Field(required=False),
    "topology.ports_per_switch": _count("topology.ports_per_switch", least=1, most=4096),
    "fabric.link.rate": _rate("fabric.link.rate_bytes_per_s"),
    "fabric.link.edge_flight": _time("fabric.link.edge_flight_ps", least=1),
    "fabric.link.local_flight": _time("fabric.link.local_flight_ps", least=1),
    "fabric.link.global_flight": _time("fabric.link.global_flight_ps", least=1),
    "fabric.switch.latency": _time("fabric.switch.latency_ps", least=1),
    "fabric.switch.latency_spread": _time("fabric.switch.latency_spread_ps"),
    "fabric.switch.input_buffer": _size("fabric.switch.input_buffer_bytes", least=1, most=2**30),
    "fabric.packet.payload": _size("fabric.packet.payload_bytes", least=1, most=2**16),
    "fabric.packet.header": _size("fabric.packet.header_bytes", least=1, most=2**12),
    "fabric.packet.ack": _size("fabric.packet.ack_bytes", least=1, most=2**12),
    "fabric.packet.age": _time("fabric.packet.age_ps", least=1, most=10**15),
    "fabric.link.retune.least": _time("", least=1, most=10**15),
    "fabric.link.retune.most": _time("", least=1, most=10**15),
    "fabric.manager.topology_sweep": _time("fabric.manager.topology_sweep_ps", least=1, most=10**15),
    "fabric.manager.routing_sweep": _time("fabric.manager.routing_sweep_ps", least=1, most=10**15),
    "fabric.manager.deployment_sweep": _time("fabric.manager.deployment_sweep_ps", least=1, most=10**15),
    "fabric.nic.window": _count("fabric.nic.window_packets", least=1, most=2**16),
    "fabric.routing.algorithm": Field(choices=("minimal", "valiant", "adaptive"), resolved="fabric.routing.algorithm"),
    "fabric.routing.bias_shift": _count("fabric.routing.bias_shift", most=16),
    "fabric.routing.bias": _size("fabric.routing.bias_bytes", most=2**30),
    # "storage, service": kinds of groups whose switches choose the third group of a detour by load.
    "fabric.routing.group_load": Field(required=False),
    "fabric.routing.staleness": _time("fabric.routing.staleness_ps"),
    "fabric.congestion.management": Field(choices=("on", "off"), resolved="fabric.congestion.management"),
    "fabric.congestion.hot_queue": _size("fabric.congestion.hot_queue_bytes", least=1, most=2**30),
    "fabric.congestion.round_trip": _time("fabric.congestion.round_trip_ps", least=1),
    "fabric.qos.profile": Field(),
    "fabric.qos.default": Field(),
    # "s0>s1 1 ns, n5>s0 2 ns": links with extra time of flight; for experiments, no machine file has it.
    "fabric.extra_flight": Field(required=False),
    # "s0-s4, n5, t7": cables and nodes that are not there.
    "fabric.down": Field(required=False),
    # A text file with a cable or node and `up` or `down` on each line.
    "fabric.cabling": Field(required=False),
    "nic.retry.timeout": _time("nic.retry.timeout_ps", least=1, most=10**15),
    "nic.retry.delays": Field(),
    "nic.inline": _size("nic.inline_bytes", most=192),  # wire::inline_bytes_max
    "nic.pushed": _size("nic.pushed_bytes", most=192),
    "nic.eager": _size("nic.eager_bytes", most=2**30),
    "nic.rendezvous_head": _size("nic.rendezvous_head_bytes", most=2**30),
    "nic.egress_latency": _time("nic.egress_latency_ps"),
    "nic.dma_read_latency": _time("nic.dma_read_latency_ps"),
    "nic.ingress_latency": _time("nic.ingress_latency_ps"),
    "nic.command_interval": _time("nic.command_interval_ps"),
    "nic.reduction_latency": _time("nic.reduction_latency_ps"),
    "nic.list_entries": _count("nic.list_entries", least=1, most=2**24),
    "nic.list_entries_share": Field(dimension=RATIO, least=1, most=10**6, resolved="nic.list_entries_share_ppm"),
    # Whether NICs issue the Get of a rendezvous themselves: the driver's rdzv_get_en.
    "nic.rendezvous_get": Field(choices=("on", "off"), resolved="nic.rendezvous_get", required=False),
    "nic.command_latency": _time("nic.command_latency_ps", least=1),
    "nic.completion_latency": _time("nic.completion_latency_ps", least=1),
    "node.local_latency": _time("node.local_latency_ps"),
    "node.local_rate": _rate("node.local_rate_bytes_per_s"),
    # Where things are in a node: NUMA domains, on sockets in equal blocks; that of each NIC and GPU, "0, 0, 1, 1".
    "node.numa": Field(dimension=COUNT, least=1, most=64, required=False),
    "node.sockets": Field(dimension=COUNT, least=1, most=16, required=False),
    "node.nic_numa": Field(required=False),
    "node.gpu_numa": Field(required=False),
    "node.socket_latency": Field(dimension=TIME, most=_SECOND, required=False),
    "node.pcie_rate": Field(dimension=RATE, least=10**6, most=10**13, required=False),
    "node.copy": _time("node.copy_ps"),
    "host.send": _time("host.send_ps"),
    "host.receive": _time("host.receive_ps"),
    "host.rma": _time("host.rma_ps"),
    "host.completion": _time("host.completion_ps"),
    # Nothing may be free that a program can do in an endless loop, or virtual time would stand still.
    "host.poll": _time("host.poll_ps", least=1),
    "host.clock_read": _time("host.clock_read_ps", least=1),
    "host.match": _time("host.match_ps"),
    "host.compute_factor": Field(dimension=RATIO, least=1, most=2**32 - 1, resolved="host.compute_factor_ppm"),
    "host.compute_threshold": _time("host.compute_threshold_ns", divisor=1000),
    **_compute_place("cpu"),
    **_compute_place("gpu"),
    # Groups with storage servers, for --storage; the servers are part of the network only then.
    "storage.kind": Field(required=False),
    "storage.servers": Field(dimension=COUNT, least=1, most=2**16, required=False),
    "storage.nics": Field(dimension=COUNT, least=1, most=64, required=False),
    "storage.server_rate": Field(dimension=RATE, least=10**6, most=10**13, required=False),
    "storage.transfer": Field(dimension=SIZE, least=1, most=2**32, required=False),
    "storage.in_flight": Field(dimension=COUNT, least=1, most=65536, required=False),
    "storage.request": Field(dimension=SIZE, least=1, most=2**20, required=False),
    "storage.latency": Field(dimension=TIME, most=_SECOND, required=False),
    "run.arena": Field(dimension=SIZE, least=2**20, most=2**44, required=False),
    "run.cross_memory": Field(choices=("on", "off"), required=False),
    "job.kinds": Field(),
    "job.nodes_max": _count(least=1),
    "job.cores_per_node": _count(least=1, most=2**16),
    # What hwloc shows of a node; a file of one's own may leave them out.
    "names.style": Field(choices=("numbered", "xname")),
    "names.prefix": Field(required=False),
    "names.digits": Field(dimension=COUNT, least=1, most=12, required=False),
    "names.first": Field(dimension=COUNT, least=0, most=10**9, required=False),
    "names.cabinet": _count(most=99999),
    "names.cabinets_per_row": _count(least=1, most=100),
    "names.slots_per_chassis": _count(least=1, most=64),
    "names.boards_per_slot": _count(least=1, most=64),
    "names.nodes_per_board": _count(least=1, most=64),
}

# topology.group.KIND.NAME; resolved as topology.kind.K.NAME.
GROUP_FIELDS: dict[str, Field] = {
    "groups": _count(least=1, most=511),
    "switches": _count(least=1, most=4096),
    "nodes": _count(most=2**20),
    "nics_per_node": _count(most=64),
    "attach": Field(choices=("same_switch", "spread")),
    "local_links": _count(least=1, most=64),
}

GLOBAL_LINKS = _count(most=4096)

# The classes that libfabric names, in the order of core/contract/network.hpp.
TRAFFIC_CLASSES = ("dedicated", "low_latency", "bulk_data", "best_effort", "scavenger", "ethernet")

# fabric.qos.PROFILE.CLASS.NAME; resolved as fabric.qos.class.I.NAME for the profile that the machine runs.
QOS_FIELDS: dict[str, Field] = {
    "assured": Field(dimension=RATIO, least=0, most=10**6, resolved="assured_ppm"),
    "ceiling": Field(dimension=RATIO, least=1, most=10**6, resolved="ceiling_ppm"),
    "fabric": Field(dimension=RATIO, least=1, most=10**6, resolved="fabric_ppm"),
    "priority": _count("priority", most=7),
    "bucket": _count("bucket_frames", least=1, most=1000),
}

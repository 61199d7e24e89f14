"""Traffic to and from the machine's storage groups beside the job: `--storage FILE`; see docs/guide/storage.md.

What is said here in names of nodes and text with units becomes entries `storage.*` of the resolved spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dryfly.base import toml, units
from dryfly.base.errors import UserError
from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames
from dryfly.machine.schema import TRAFFIC_CLASSES
from dryfly.machine.topology import ports_needed
from dryfly.scenario.faults import down_nodes

_DIRECTIONS = ("read", "write")
_KEYS = ("nodes", "rate", "transfer", "at", "for", "bytes", "class")
_INSTANT_MAX = 10**18  # ps, 11 days
_SEED_MAX = 2**63 - 1
_STREAMS_MAX = 255
_TRANSFER_MAX = 2**32
_AMOUNT_MAX = 2**60


@dataclass(frozen=True, kw_only=True)
class Stream:
    direction: str
    nodes: tuple[int, ...]  # indices of the job's kinds of nodes
    rate: int  # B/s of each node
    transfer: int
    from_ps: int
    until_ps: int | None
    amount: int | None  # bytes of each node
    traffic_class: str


@dataclass(frozen=True, kw_only=True)
class Storage:
    streams: tuple[Stream, ...] = ()
    seed: int = 1


def with_servers(machine: Machine) -> Machine:
    """The machine with the servers of its storage groups, which are there only where something uses them."""
    index = _kind_index(machine)
    kind = machine.kinds[index]
    servers, nics = machine.optional("storage.servers"), machine.optional("storage.nics")
    if not kind.nodes:
        if not isinstance(servers, int) or not isinstance(nics, int):
            raise UserError(
                f"machine {machine.name}: storage.servers and storage.nics are missing: give the servers of a group of "
                f"kind {kind.name} and the NICs of each, such as --set storage.servers=16 --set storage.nics=1"
            )
        kind = replace(kind, nodes=servers, nics_per_node=nics)
    if machine.optional("storage.server_rate") is None:
        raise UserError(f'machine {machine.name}: storage.server_rate is missing, such as "10 GB/s" of each server')
    kinds = (*machine.kinds[:index], kind, *machine.kinds[index + 1 :])
    filled = replace(machine, kinds=kinds)
    needed, ports = ports_needed(filled, index), machine.number("topology.ports_per_switch")
    if needed > ports:
        raise UserError(
            f"machine {machine.name}: storage.servers = {kind.nodes}: a switch of topology.group.{kind.name} would "
            f"need {needed} ports but topology.ports_per_switch is {ports}"
        )
    return filled


def _kind_index(machine: Machine) -> int:
    name = machine.optional("storage.kind")
    if name is None:
        raise UserError(
            f"--storage: machine {machine.name} has no storage groups: accepted are machines that say by storage.kind "
            "which of their groups these are"
        )
    for index, kind in enumerate(machine.kinds):
        if kind.name == name:
            if index in machine.job_kinds:
                raise UserError(f'machine {machine.name}: storage.kind = "{name}": jobs run there (job.kinds)')
            return index
    known = ", ".join(kind.name for kind in machine.kinds)
    raise UserError(f'machine {machine.name}: storage.kind = "{name}": accepted are its kinds of groups, {known}')


def load(path: str | Mapping[str, object], machine: Machine, *, job: Sequence[int], seed: int) -> Storage:
    """The streams of a file, or of a dict of the same form. `job`: the indices of the nodes that the job runs on."""
    if not isinstance(path, str):
        return parse(path, machine, job=job, seed=seed)
    content = toml.read(path, f"--storage {path}")
    return parse(content, machine, job=job, seed=seed, origin=path)


def parse(
    content: Mapping[str, object], machine: Machine, *, job: Sequence[int], seed: int, origin: str = "storage"
) -> Storage:
    """What a file's content, or a dict of the same form, describes."""
    chosen = content.get("seed", seed)
    if not isinstance(chosen, int) or isinstance(chosen, bool) or not 0 <= chosen <= _SEED_MAX:
        raise UserError(f"{origin}: seed = {chosen}: accepted is 0 to {_SEED_MAX}")
    streams: list[Stream] = []
    for direction, entries in content.items():
        if direction == "seed":
            continue
        if direction not in _DIRECTIONS:
            raise UserError(f"{origin}: unknown table [[{direction}]]; accepted are read, write, and seed")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise UserError(f"{origin}: {direction} is a list of tables: write [[{direction}]]")
        for number, entry in enumerate(entries, start=1):
            streams.append(_stream(machine, f"{origin}: {direction} {number}", direction, entry, job))
    if not streams:
        raise UserError(f"{origin}: no stream: give at least one table [[read]] or [[write]]")
    if len(streams) > _STREAMS_MAX:
        raise UserError(f"{origin}: {len(streams)} streams; accepted are up to {_STREAMS_MAX}")
    return Storage(streams=tuple(streams), seed=chosen)


def _stream(machine: Machine, where: str, direction: str, entry: Mapping[str, object], job: Sequence[int]) -> Stream:
    for key in entry:
        if key not in _KEYS:
            raise UserError(f"{where}: unknown key {key}; accepted are {', '.join(_KEYS)}")
    if "rate" not in entry:
        raise UserError(f"{where}: rate is missing")
    nodes = _nodes(machine, where, entry.get("nodes", "job"), job)
    fewest = min(NodeNames(machine).nics(node) for node in nodes)
    payload, header = machine.number("fabric.packet.payload"), machine.number("fabric.packet.header")
    carried = fewest * machine.number("fabric.link.rate") * payload // (payload + header)
    rate = _quantity(where, entry, "rate", units.RATE, least=fewest, most=carried)
    transfer = machine.number("storage.transfer")
    if "transfer" in entry:
        transfer = _quantity(where, entry, "transfer", units.SIZE, least=1, most=_TRANSFER_MAX)
    from_ps = _quantity(where, entry, "at", units.TIME, least=0, most=_INSTANT_MAX) if "at" in entry else 0
    until = from_ps + _quantity(where, entry, "for", units.TIME, least=1, most=_INSTANT_MAX) if "for" in entry else None
    amount = _quantity(where, entry, "bytes", units.SIZE, least=1, most=_AMOUNT_MAX) if "bytes" in entry else None
    traffic_class = entry.get("class", "best_effort")
    if not isinstance(traffic_class, str) or traffic_class not in TRAFFIC_CLASSES:
        raise UserError(f'{where}: class = "{traffic_class}": accepted are {", ".join(TRAFFIC_CLASSES)}')
    return Stream(
        direction=direction, nodes=nodes, rate=rate, transfer=transfer, from_ps=from_ps, until_ps=until, amount=amount,
        traffic_class=traffic_class,
    )  # fmt: skip


def _quantity(
    where: str, entry: Mapping[str, object], key: str, dimension: units.Dimension, *, least: int, most: int
) -> int:
    shown = f'{where}: {key} = "{entry[key]}"'
    try:
        value = units.parse(entry[key], dimension)
    except UserError as error:
        raise UserError(f"{shown}: {error}") from None
    if least <= value <= most:
        return value
    if key == "rate":
        raise UserError(f"{shown}: accepted is up to {units.rate_text(most)}, what the NICs of a node carry")
    text = units.time_text if dimension is units.TIME else units.size_text
    raise UserError(f"{shown}: accepted is {text(least)} to {text(most)}")


def _nodes(machine: Machine, where: str, given: object, job: Sequence[int]) -> tuple[int, ...]:
    """`job`, `others` (of the machine, that are up), `all`, or names."""
    names = NodeNames(machine)
    down = down_nodes(machine)
    mine = sorted(set(job))
    others = [node for node in range(machine.nodes_max) if node not in down and node not in set(mine)]
    if given in ("job", "others", "all"):
        nodes = {"job": mine, "others": others, "all": sorted([*mine, *others])}[str(given)]
        if not nodes:
            raise UserError(f'{where}: nodes = "{given}": there is no such node beside those of the job')
        return tuple(nodes)
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not listed or not all(isinstance(name, str) for name in listed):
        raise UserError(f"{where}: nodes = {given}: accepted is job, others, all, or a list of names of nodes")
    chosen: list[int] = []
    for name in listed:
        index = names.index(name)
        if index is None or index in down:
            first, last = names.name(0), names.name(machine.nodes_max - 1)
            state = "has no such node" if index is None else "has that node down"
            raise UserError(f'{where}: nodes: "{name}": {machine.name} {state}; its nodes are {first} to {last}')
        chosen.append(index)
    return tuple(sorted(set(chosen)))


def lines(machine: Machine, storage: Storage) -> list[tuple[str, int | str]]:
    """Of the resolved spec, for a machine with servers."""
    kind_index = _kind_index(machine)
    kind = machine.kinds[kind_index]
    first = sum(before.nodes_in_all for before in machine.kinds[:kind_index])
    found: list[tuple[str, int | str]] = [
        ("storage.streams", len(storage.streams)),
        ("storage.seed", storage.seed),
        ("storage.servers", f"{first}-{first + kind.nodes_in_all - 1}"),
        ("storage.server_nic_rate_bytes_per_s", machine.number("storage.server_rate") // kind.nics_per_node),
        ("storage.server_latency_ps", machine.number("storage.latency")),
        ("storage.request_bytes", machine.number("storage.request")),
        ("storage.in_flight", machine.number("storage.in_flight")),
    ]
    names = NodeNames(machine)
    for number, stream in enumerate(storage.streams):
        name = f"storage.stream.{number}"
        nics = max(names.nics(node) for node in stream.nodes)
        found += [
            (f"{name}.direction", stream.direction),
            (f"{name}.nodes", _ranges(names.number(node) for node in stream.nodes)),
            (f"{name}.nic_rate_bytes_per_s", stream.rate // nics),
            (f"{name}.transfer_bytes", stream.transfer),
            (f"{name}.from_ps", stream.from_ps),
            (f"{name}.class", TRAFFIC_CLASSES.index(stream.traffic_class)),
        ]
        if stream.until_ps is not None:
            found.append((f"{name}.until_ps", stream.until_ps))
        if stream.amount is not None:
            found.append((f"{name}.nic_amount_bytes", -(-stream.amount // nics)))
    return found


def _ranges(numbers: Iterable[int]) -> str:
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def result(storage: Storage | None, counted: Sequence[Mapping[str, int]], *, seconds: float) -> list[dict[str, object]]:
    """The rows `storage` of the result; none without streams."""
    rows: list[dict[str, object]] = []
    for stream, row in zip(storage.streams if storage is not None else (), counted, strict=False):
        operations = row["operations"]
        rows.append(
            {
                "direction": stream.direction,
                "nodes": len(stream.nodes),
                "rate_bytes_per_s": stream.rate * len(stream.nodes),
                "operations": operations,
                "bytes": row["bytes"],
                "bytes_per_s": row["bytes"] / seconds if seconds > 0 else 0.0,
                "operations_failed": row["operations_failed"],
                "latency_mean_s": row["latency_sum_ps"] / operations / 10**12 if operations else 0.0,
                "latency_max_s": row["latency_max_ps"] / 10**12,
            }
        )
    return rows


def summary_line(row: Mapping[str, object]) -> str:
    def number(key: str) -> float:
        value = row[key]
        assert isinstance(value, int | float)
        return float(value)

    failed = f", {row['operations_failed']} given up" if row["operations_failed"] else ""
    return (
        f"{row['direction']} of {row['nodes']} node{'s' if row['nodes'] != 1 else ''}: "
        f"{row['operations']} operations{failed}, {row['bytes']} bytes, "
        f"{number('bytes_per_s') / 1e9:.2f} of {number('rate_bytes_per_s') / 1e9:.2f} GB/s asked for; an operation "
        f"{units.time_text(round(number('latency_mean_s') * 1e12))}, the longest "
        f"{units.time_text(round(number('latency_max_s') * 1e12))}"
    )

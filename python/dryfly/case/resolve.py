"""The resolved spec of a run: docs/reference/resolved-spec.md lists its names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dryfly.base import units
from dryfly.base.errors import UserError
from dryfly.case import near, nics
from dryfly.case.case import NETWORKS
from dryfly.case.on_node import OnNode
from dryfly.case.placement import Placement
from dryfly.machine import compute_model, qos
from dryfly.machine.machine import BY_USER, Machine
from dryfly.machine.names import NodeNames
from dryfly.machine.schema import COSTS_OF_CALLS, COSTS_OF_COUNTED, FIELDS, LONGEST_FLIGHT, PROVIDER_CALLS
from dryfly.scenario import faults
from dryfly.scenario.noise import Noise
from dryfly.scenario.noise import lines as noise_lines
from dryfly.scenario.service import Service, with_service
from dryfly.scenario.storage import Storage
from dryfly.scenario.storage import lines as storage_lines

_EXTRA_FLIGHT = re.compile(r"([sn]\d+)\s*>\s*([sn]\d+)\s+(.+)")

# Payloads on their way. The memory is sparse: only what is used at once takes pages.
_ARENA_BASE = 2**30
_ARENA_PER_RANK = 64 * 2**20


@dataclass(frozen=True, kw_only=True)
class ComputeSpec:
    """How the time between MPI calls counts."""

    mode: str = "measured"
    factor_ppm: int | None = None  # None: the machine's
    replay_file: str | None = None
    record_file: str | None = None
    skip_numerics: bool = False  # model only

    @classmethod
    def parse(cls, text: str, *, record_file: str | None = None, skip_numerics: bool = False) -> ComputeSpec:
        mode, _, argument = text.partition(":")
        if skip_numerics and mode != "model":
            raise UserError(f"--skip-numerics needs --compute model, not --compute {text}: all else is computed")
        if mode == "none" and not argument:
            if record_file is not None:
                raise UserError("--compute-record needs --compute measured: with none nothing is measured")
            return cls(mode=mode)
        if mode == "measured":
            factor = _factor(argument) if argument else None
            return cls(mode=mode, factor_ppm=factor, record_file=record_file)
        if mode == "replay" and argument:
            if record_file is not None:
                raise UserError("--compute-record needs --compute measured: with replay nothing is measured")
            return cls(mode=mode, replay_file=argument)
        if mode == "model" and not argument:
            if record_file is not None:
                raise UserError("--compute-record needs --compute measured: with model nothing is measured")
            return cls(mode=mode, skip_numerics=skip_numerics)
        raise UserError(f'--compute "{text}": accepted is none, measured, measured:FACTOR, replay:FILE or model')


def _factor(text: str) -> int:
    dimension = units.RATIO
    try:
        value = units.parse(text if text.endswith(("%", "x")) else f"{text} x", dimension)
    except UserError:
        raise UserError(f"--compute measured:{text}: the factor is a number such as 0.8") from None
    if not 1 <= value <= 2**32 - 1:
        raise UserError(f"--compute measured:{text}: accepted is 0.000001 to 4294")
    return value


def resolve(
    machine: Machine,
    placement: Placement,
    *,
    seed: int,
    compute: ComputeSpec,
    scenario: faults.Scenario | None = None,
    network: str = NETWORKS[0],
    on_node: OnNode = OnNode.PROVIDER,
    storage: Storage | None = None,
    noise: Noise | None = None,
    service: Service | None = None,
) -> str:
    lines: list[tuple[str, int | str]] = [("machine", machine.name)]
    lines += _topology(machine)
    lines.append(("fabric.model", network))
    for path, expected in FIELDS.items():
        if path in machine.facts and expected.resolved and not path.startswith(("topology.", "host.compute_factor")):
            value = machine.facts[path].value
            lines.append((expected.resolved, value))
    lines += _group_load(machine)
    lines += qos.lines(machine)
    lines += faults.retry_lines(machine)
    lines += _extra_flight(machine)
    lines += faults.resolved(machine, scenario, seed=seed)
    factor = compute.factor_ppm if compute.factor_ppm is not None else machine.number("host.compute_factor")
    lines += [("host.compute_mode", compute.mode), ("host.compute_factor_ppm", factor)]
    lines += nics.spec_lines(machine, placement)
    lines += near.spec_lines(machine, placement)
    if (memory_rate := compute_model.node_memory_rate(machine)) is not None:
        lines.append(("node.memory_rate_bytes_per_s", memory_rate))
    if compute.mode == "model":
        lines += compute_model.lines(machine, skip_numerics=compute.skip_numerics)
    lines += _run(machine, placement, seed=seed)
    lines.append(("run.on_node", on_node.value))
    if storage is not None:
        lines += storage_lines(machine, storage)
    if noise is not None:
        lines += noise_lines(machine, noise)
    if service is not None:
        lines = with_service(lines, service)
    return "".join(f"{name} {value}\n" for name, value in lines)


def resolve_machine(
    machine: Machine,
    *,
    seed: int,
    ranks: int,
    scenario: faults.Scenario | None = None,
    noise: Noise | None = None,
    network: str = "packet",
) -> str:
    """For skeletons: of the ranks only their number, because there may be a million of them."""
    has_model = "compute.cpu.count" in machine.facts
    text = resolve(
        machine,
        Placement(policy="packed", ranks=()),
        seed=seed,
        compute=ComputeSpec(mode="model" if has_model else "none"),
        scenario=scenario,
        noise=noise,
        network=network,
    )
    return text.replace("run.ranks 0\n", f"run.ranks {ranks}\n")


def with_counted_software(
    spec: str, machine: Machine, family: str, own_code: Mapping[str, float] | None = None, *, between_gpus: bool = False
) -> str:
    """The spec of a run in which the own code of a library of that family is charged: a call costs what the provider
    executes.

    `own_code`, where there are no ranks that would charge it: the instructions of the library that go with some of
    PROVIDER_CALLS; the messages are then of GPUs' memory or all of the host's."""
    instruction_ps = machine.number("host.instruction")
    costs = {
        f"host.{call}_ps": round(
            instruction_ps * (machine.number(f"host.provider.{call}") + (own_code or {}).get(call, 0))
        )
        for call in PROVIDER_CALLS
    }
    costs["host.wake_ps"] = machine.number("host.wake")
    lookups = machine.number(f"host.lookups.{'openmpi' if family == 'openmpi' else 'mpich'}")
    of_host_ps, of_gpu_ps = (
        lookups * int(machine.optional(f"node.{look}") or 0) for look in ("gpu_lookup_host", "gpu_lookup")
    )
    if own_code is None:
        costs |= {"host.buffer_ps": of_host_ps, "host.gpu_buffer_ps": of_gpu_ps}
    else:
        for call in ("send", "send_fetched", "receive"):
            costs[f"host.{call}_ps"] += of_gpu_ps if between_gpus else of_host_ps
    lines = (line for line in spec.splitlines(keepends=True) if line.partition(" ")[0] not in costs)
    return "".join([*lines, *(f"{name} {cost}\n" for name, cost in costs.items())])


def without_effect(machine: Machine, *, counted: bool) -> list[str]:
    """Fields of the machine that the user has set, and that a run does not read whose library's own code is charged as
    counted, or is not."""
    unread = COSTS_OF_CALLS if counted else COSTS_OF_COUNTED
    return [path for path in unread if path in machine.facts and machine.facts[path].source == BY_USER]


def _topology(machine: Machine) -> list[tuple[str, int | str]]:
    lines: list[tuple[str, int | str]] = [("topology.kinds", len(machine.kinds))]
    for index, kind in enumerate(machine.kinds):
        lines += [
            (f"topology.kind.{index}.{leaf}", getattr(kind, leaf))
            for leaf in ("name", "groups", "switches", "nodes", "nics_per_node", "attach", "local_links")
        ]
    lines += [(f"topology.global.{i}.{j}", count) for (i, j), count in sorted(machine.global_links.items())]
    if machine.cabling is not None:
        lines.append(("topology.cables", len(machine.cabling.cables)))
        lines += [(f"topology.cable.{i}", f"{a} {b}") for i, (a, b) in enumerate(machine.cabling.cables)]
        lines += [
            (f"topology.node.{node}.switches", " ".join(map(str, switches)))
            for node, switches in enumerate(machine.cabling.nic_switches)
        ]
    lines.append(("topology.ports_per_switch", machine.number("topology.ports_per_switch")))
    return lines


def _group_load(machine: Machine) -> list[tuple[str, int | str]]:
    text = machine.optional("fabric.routing.group_load")
    known = [kind.name for kind in machine.kinds]
    wanted = [name.strip() for name in str(text).split(",")] if text and text != "none" else []
    for name in wanted:
        if name not in known:
            raise UserError(f'fabric.routing.group_load = "{text}": accepted are none, or of {", ".join(known)}')
    return [("fabric.routing.group_load", ", ".join(wanted))] if wanted else []


def _extra_flight(machine: Machine) -> list[tuple[str, int | str]]:
    text = machine.optional("fabric.extra_flight")
    items = [item.strip() for item in str(text).split(",")] if text else []
    lines: list[tuple[str, int | str]] = [("fabric.extra_flight.count", len(items))]
    for number, item in enumerate(items):
        match = _EXTRA_FLIGHT.fullmatch(item)
        if match is None:
            raise UserError(f'fabric.extra_flight = "{item}": accepted is text such as "s0>s1 1 ns" or "n5>s0 1 ns"')
        try:
            extra = units.parse(match.group(3), units.TIME)
        except UserError as error:
            raise UserError(f'fabric.extra_flight = "{item}": {error}') from None
        if not 0 <= extra <= LONGEST_FLIGHT:
            most = units.time_text(LONGEST_FLIGHT)
            raise UserError(f'fabric.extra_flight = "{item}": out of range; accepted is 0 to {most}')
        prefix = f"fabric.extra_flight.{number}"
        lines += [(f"{prefix}.from", match.group(1)), (f"{prefix}.to", match.group(2)), (f"{prefix}.ps", extra)]
    return lines


def _run(machine: Machine, placement: Placement, *, seed: int) -> list[tuple[str, int | str]]:
    names = NodeNames(machine)
    ranks = len(placement.ranks)
    lines: list[tuple[str, int | str]] = [("run.seed", seed), ("run.ranks", ranks)]
    for place in placement.ranks:
        lines.append((f"run.rank.{place.rank}.node", names.number(place.node)))
        lines.append((f"run.rank.{place.rank}.nic", place.nic))
    lines += [(f"run.node.{names.number(node)}.name", names.name(node)) for node in placement.nodes]
    arena = machine.optional("run.arena")
    lines.append(("run.arena_bytes", arena if arena is not None else _ARENA_BASE + ranks * _ARENA_PER_RANK))
    lines.append(("run.cross_memory", 0 if machine.optional("run.cross_memory") == "off" else 1))
    return lines

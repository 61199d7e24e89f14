"""The result of a run: what the conductor counted, in the form of docs/reference/result-json.md, and its file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dryfly import __version__
from dryfly.base.errors import RunError
from dryfly.base.files import write_whole
from dryfly.case import provider_settings
from dryfly.case.bind import BoundCase
from dryfly.case.environment import of_libraries
from dryfly.case.on_node import WITHOUT_EFFECT, OnNode
from dryfly.case.resolve import without_effect
from dryfly.machine.names import NodeNames, link_name
from dryfly.machine.schema import TRAFFIC_CLASSES
from dryfly.mpi import software as tables_of_software
from dryfly.mpi import system
from dryfly.mpi.libraries import MpiLibrary
from dryfly.result import binding, forks, software_spent
from dryfly.result.counters import TIMEOUTS
from dryfly.result.finding import LET_GO, OUTSIDE, TRIGGERED_LIMIT, Finding
from dryfly.scenario.storage import result as storage_rows

FORMAT = 1
UNSURE_SHARE_WARNING = 0.02
CLOCK_LOOP_SHARE_NOTE = 0.5
CLOCK_READINGS_NOTE = 10_000  # fewer rounds of a loop are simulated within a second or so
_PS_PER_S = 10**12
_NS_PER_S = 10**9

Json = dict[str, Any]


def build(
    run: BoundCase,
    counted: Mapping[str, Any],
    *,
    mpi: MpiLibrary,
    wall_time_s: float,
    findings: Sequence[Finding],
    software: Sequence[software_spent.ByKind] = (),
    additions: system.Additions = system.NONE,
    environment: Mapping[str, str] = os.environ,
) -> Json:
    """`software`: of each rank, where something was charged. `environment`: of the ranks, what they inherit."""
    names = NodeNames(run.machine)
    ranks = [
        _rank(run, names, row, software[place] if software else {})
        for place, row in enumerate(counted.get("ranks", []))
    ]
    skew_ps = run.noise.start_skew if run.noise is not None else 0
    starts = _starts(counted.get("ranks", []), skew_ps)
    profile = [
        {
            "call": row.get("call", ""),
            "count": row.get("count", 0),
            "bytes": row.get("bytes", 0),
            "time_s": _seconds(row.get("time_ps", 0)),
        }
        for row in counted.get("profile", [])
    ]
    split = _split(ranks)
    messages = int(counted.get("messages", 0))
    compute = _compute(run, counted, ranks)
    health = [*_run_health(counted, findings), *_compute_health(compute), *_software_health(run, mpi)]
    health += _unused_field_health(run, mpi)
    of_ranks = counted.get("ranks", [])
    health += [_finding(name, text, count=count) for name, count, text in binding.health(run, of_ranks)]
    health += _node_health(run, mpi, profile)
    health += _setting_health(environment)
    if found := forks.health(run, of_ranks, environment):
        severity, text, count = found
        health.append(_finding("fork", text, severity=severity, count=count))
    spoiled = any(row["name"] in (LET_GO, OUTSIDE, "several_threads") for row in health)
    return {
        "format": FORMAT,
        "dryfly": __version__,
        "machine": run.machine.name,
        "network": run.case.network,
        "nodes": len(run.placement.nodes),
        "ranks": len(run.placement.ranks),
        "placement": {"policy": run.placement.policy, "nodes": [names.name(node) for node in run.placement.nodes]},
        "program": list(run.case.program),
        "virtual_time_s": _seconds(counted.get("virtual_time_ps", 0)),
        "wall_time_s": round(wall_time_s, 3),
        "messages": messages,
        "messages_per_wall_s": round(messages / wall_time_s, 1) if wall_time_s > 0 else 0.0,
        "bytes": counted.get("bytes", 0),
        "packets": counted.get("packets", 0),
        "packet_hops": counted.get("packet_hops", 0),
        "network_timeouts": counted.get("network_timeouts", 0),
        "faults": _faults(run, names, counted.get("faults", {})),
        "trackers": _trackers(counted.get("trackers", {})),
        "triggered": dict(counted.get("triggered", {})),
        "unexpected_messages": counted.get("unexpected_messages", 0),
        "matching": dict(counted.get("matching", {})),
        "seed": run.case.seed,
        "provider": run.case.provider,
        "settings": of_libraries(environment),
        "fingerprint": counted.get("fingerprint", ""),
        "repeatable": run.compute.mode in ("none", "replay", "model") and not spoiled,
        "compute": compute,
        "software": {
            "table": run.software,
            "charged_s": sum(row["software_s"] for row in ranks),
            "assumed_s": sum(_seconds(row.get("software_assumed_ps", 0)) for row in counted.get("ranks", [])),
            **software_spent.content(software, slowest=split["slowest"]["rank"], profile=profile),
        },
        "registration": {**_registration(ranks), "translation": _translation(counted.get("nics", []))},
        "noise": {
            "of": run.noise.name if run.noise is not None else "none",
            "detours": sum(row.get("detours", 0) for row in counted.get("ranks", [])),
            "interrupted_s": sum(row["interrupted_s"] for row in ranks),
            "delayed_s": sum(row["delayed_s"] for row in ranks),
            "start_skew_s": _seconds(skew_ps),
            "last_start_s": _seconds(max(starts, default=0)),
            "mean_start_s": _seconds(sum(starts)) / max(len(starts), 1),
        },
        "mpi": {
            "name": mpi.name,
            "version": mpi.version,
            "libmpi": sorted({row["libmpi"] for row in ranks if row["libmpi"]}),
            "libfabric": sorted({row["libfabric"] for row in ranks if row["libfabric"]}),
            "aliases": dict(additions.aliases),
            "missing": list(additions.missing),
        },
        "time": split,
        "profile": profile,
        "protocols": list(counted.get("protocols", [])),
        "traffic_classes": list(counted.get("traffic_classes", [])),
        "nics": _nics(run, names, counted.get("nics", [])),
        "storage": storage_rows(
            run.storage, counted.get("storage", []), seconds=_seconds(counted.get("virtual_time_ps", 0))
        ),
        "simulator": dict(counted.get("simulator", {})),
        "binding": binding.rows(run, of_ranks),
        "health": health,
        "ranks_detail": ranks,
        "spec": run.spec,
    }


def _rank(run: BoundCase, names: NodeNames, row: Mapping[str, Any], software: software_spent.ByKind) -> Json:
    rank = int(row.get("rank", 0))
    return {
        "rank": rank,
        "node": names.name(run.placement.ranks[rank].node),
        "nic": row.get("nic", 0),
        "pid": row.get("pid", 0),
        "forks": row.get("forks", 0),
        "virtual_time_s": _seconds(row.get("virtual_time_ps", 0)),
        "computing_s": _seconds(row.get("computing_ps", 0)),
        "communicating_s": _seconds(row.get("communicating_ps", 0)),
        "waiting_s": _seconds(row.get("waiting_ps", 0)),
        "gpu_s": _seconds(row.get("gpu_ps", 0)),
        "gpu_calls": row.get("gpu_calls", 0),
        "software_s": _seconds(row.get("software_ps", 0)),
        "software_instructions": software_spent.instructions(software),
        "registration": _registered(row.get("registration", {})),
        "interrupted_s": _seconds(row.get("interrupted_ps", 0)),
        "delayed_s": _seconds(row.get("delayed_ps", 0)),
        "measured_s": row.get("measured_ns", 0) / _NS_PER_S,
        "looked_s": row.get("looked_ns", 0) / _NS_PER_S,
        "unsure_s": row.get("looked_unsure_ns", 0) / _NS_PER_S,
        "messages_sent": row.get("messages_sent", 0),
        "bytes_sent": row.get("bytes_sent", 0),
        "mpi_calls": row.get("mpi_calls", 0),
        "libmpi": row.get("libmpi", ""),
        "libfabric": row.get("libfabric", ""),
        "program": row.get("program", ""),
    }


def _starts(ranks: Sequence[Mapping[str, Any]], skew_ps: int) -> list[int]:
    """When each rank has left MPI_Init, in picoseconds. Its three times begin there and end where it ends, which leaves
    the skew, and a detour that followed at once; that one is a detour."""
    parts = ("computing_ps", "communicating_ps", "waiting_ps")
    spent = (sum(row.get(part, 0) for part in parts) for row in ranks)
    return [min(max(0, row.get("virtual_time_ps", 0) - of), skew_ps) for row, of in zip(ranks, spent, strict=True)]


_REGISTERED = (
    "hits", "misses", "uncached", "evicted", "invalidated", "mapped", "mapped_pages", "mapped_bytes", "unmapped",
    "regions", "faults",
)  # fmt: skip


def _registered(row: Mapping[str, Any]) -> Json:
    return {**{name: row.get(name, 0) for name in _REGISTERED}, "time_s": _seconds(row.get("ps", 0))}


def _registration(ranks: Sequence[Json]) -> Json:
    """All ranks together, and the rank that it took most time."""
    rows = [row["registration"] for row in ranks]
    most = max(ranks, key=lambda row: (row["registration"]["time_s"], -row["rank"]), default=None)
    return {
        **{name: sum(row[name] for row in rows) for name in (*_REGISTERED, "time_s")},
        "most": {
            "rank": most["rank"] if most else 0,
            "time_s": most["registration"]["time_s"] if most else 0.0,
        },
    }


# What the NICs have looked up of where pages are, by their counters (docs/model/counters.md#translations).
_LOOKED_UP = {
    "requests": ("atu_client_req_oxe", "atu_client_req_ixe"),
    "misses": ("atu_cache_miss_0",),
    "evictions": ("atu_cache_evictions",),
}


def _translation(nics: Sequence[Mapping[str, Any]]) -> Json:
    return {
        name: sum(row["counters"].get(counter, 0) for row in nics for counter in counters)
        for name, counters in _LOOKED_UP.items()
    }


def _nics(run: BoundCase, names: NodeNames, rows: Sequence[Mapping[str, Any]]) -> list[Json]:
    name_of = {names.number(node): names.name(node) for node in run.placement.nodes}
    return [
        {
            "node": name_of[row["node"]],
            "index": row["index"],
            "mac": _mac(row.get("address")),
            "network_timeouts": sum(row["counters"].get(name, 0) for name in TIMEOUTS),
            "counters": dict(row["counters"]),
        }
        for row in rows
    ]


def _mac(address: int | None) -> str | None:
    """Of the NIC with this address on the fabric (core/topology/address.hpp)."""
    return None if address is None else f"02:00:00:{address >> 16:02x}:{address >> 8 & 255:02x}:{address & 255:02x}"


def _faults(run: BoundCase, names: NodeNames, counted: Mapping[str, Any]) -> Json:
    rows = counted.get("links", [])
    name_of = {names.number(node): names.name(node) for node in range(run.machine.nodes_max)} if rows else {}
    return {**counted, "links": [_link(name_of, row) for row in rows]}


def _link(name_of: Mapping[int, str], row: Mapping[str, Any]) -> Json:
    return {
        "name": link_name(row, name_of),
        "kind": row["kind"],
        "state": row["state"],
        "times_down": row["times_down"],
        **{f"{what}_s": _seconds(row[f"{what}_ps"]) for what in ("down", "fewer_lanes", "drained")},
        "packets_lost": row["packets_lost"],
        "replays": row["replays"],
    }


def _split(ranks: Sequence[Json]) -> Json:
    """Mean over the ranks, and the rank that the others wait for: the one that itself waits least."""
    parts = ("computing_s", "communicating_s", "waiting_s")
    if not ranks:
        return {"mean": dict.fromkeys(parts, 0.0), "slowest": {"rank": 0, **dict.fromkeys(parts, 0.0)}}
    slowest = max(ranks, key=lambda row: (row["computing_s"] + row["communicating_s"], -row["rank"]))
    return {
        "mean": {part: sum(row[part] for row in ranks) / len(ranks) for part in parts},
        "slowest": {"rank": slowest["rank"], **{part: slowest[part] for part in parts}},
    }


def _compute(run: BoundCase, counted: Mapping[str, Any], ranks: Sequence[Json]) -> Json:
    factor_ppm = run.compute.factor_ppm or run.machine.number("host.compute_factor")
    unsure = sum(row["unsure_s"] for row in ranks)
    job = len(ranks) * _seconds(counted.get("virtual_time_ps", 0))
    return {
        "mode": run.compute.mode,
        "factor": factor_ppm / 10**6,
        "measured_s": sum(row["measured_s"] for row in ranks),
        "looked_s": sum(row["looked_s"] for row in ranks),
        "unsure_s": unsure,
        "unsure_share": unsure * factor_ppm / 10**6 / job if job > 0 else 0.0,
        "announced": sum(row.get("announced_work", 0) for row in counted.get("ranks", [])),
        "numerics_skipped": run.compute.skip_numerics,
    }


def _run_health(counted: Mapping[str, Any], findings: Sequence[Finding]) -> list[Json]:
    """A row per name: what was found during the run, then what the simulator counted."""
    rows: list[Json] = []
    for name in dict.fromkeys(finding.name for finding in findings):
        same = [finding for finding in findings if finding.name == name]
        text = same[0].text + (f" (and {len(same) - 1} more like this)" if len(same) > 1 else "")
        rows.append(_finding(name, text, severity=same[0].severity, count=len(same)))
    ranks = counted.get("ranks", [])
    threads = sum(1 for row in ranks if row.get("several_threads"))
    if threads:
        text = f"{_ranks(threads)} called MPI while having several threads; their order is the host's: not repeatable"
        rows.append(_finding("several_threads", text, severity="note", count=threads))
    rows += _clock_loop(counted, ranks)
    rows += _service_health(ranks)
    mismatched = sum(1 for row in ranks if row.get("replay_mismatches"))
    if mismatched:
        text = f"{_ranks(mismatched)} did not do what was recorded, so the computing time is not the recorded one"
        rows.append(_finding("replay_mismatch", text, count=mismatched))
    matching = counted.get("matching", {})
    disabled = sum(count for name, count in matching.items() if name.startswith("flow_control_"))
    if disabled:
        text = f"a NIC has refused messages, {matching['messages_refused']} in all (see `matching` in the result)"
        rows.append(_finding("flow_control", text, count=disabled))
    rows += _tracker_health(counted.get("trackers", {}))
    rows += _triggered_health(counted.get("triggered", {}))
    if outside := counted.get("simulator", {}).get("outside", 0):
        text = "ranks waited outside virtual time, as for a lock of a file that another rank has: not repeatable"
        rows.append(_finding(OUTSIDE, text, count=outside))
    timeouts = counted.get("network_timeouts", 0)
    if timeouts:
        rows.append(_finding("network_timeouts", "NICs have sent packets again after a time-out", count=timeouts))
    return rows


def _service_health(ranks: Sequence[Mapping[str, Any]]) -> list[Json]:
    refused = [row["classes_refused"] for row in ranks if row.get("classes_refused")]
    if not refused:
        return []
    names = [name for place, name in enumerate(TRAFFIC_CLASSES) if any(bits >> place & 1 for bits in refused)]
    text = (
        f"the job's service does not grant {' and '.join(names)}, which {_ranks(len(refused))} asked for: as on the "
        "machine these messages travel as best effort (--service)"
    )
    return [_finding("service_class", text, count=len(refused))]


def _trackers(counted: Mapping[str, Any]) -> Json:
    found = {name: value for name, value in counted.items() if name != "longest_pause_ps"}
    return {**found, "longest_pause_s": _seconds(counted.get("longest_pause_ps", 0))}


def _tracker_health(counted: Mapping[str, Any]) -> list[Json]:
    """What NICs that had no tracker left have done to the job."""
    rows: list[Json] = []
    waits = counted.get("source_waits", 0)
    if waits:
        text = (
            f"sources had more connections than their NIC keeps, so messages waited {waits:,} times until another was "
            "closed (fabric.nic.trackers.source_connections)"
        )
        rows.append(_finding("trackers_source", text, count=waits))
    for name, field, what in (
        ("target", "target_connections", "of another connection"),
        ("result", "results", "of what becomes of another packet"),
    ):
        refusals = counted.get(f"{name}_refusals", 0)
        if not refusals:
            continue
        longest = _seconds(counted["longest_pause_ps"])
        paused = f", after pauses of up to {longest:.3g} s" if longest else ""
        # Those are behind refusals of either kind, and stand in the first row that there is.
        told = any(row["name"] == "trackers_target" for row in rows)
        behind = "" if told else f" (and {counted['later_refusals']:,} that came behind any refused for a tracker)"
        text = (
            f"target NICs could keep no track {what} and refused packets {refusals:,} times{behind}; their sources "
            f"have sent them again{paused} (fabric.nic.trackers.{field})"
        )
        rows.append(_finding(f"trackers_{name}", text, count=refusals))
    return rows


def _triggered_health(counted: Mapping[str, Any]) -> list[Json]:
    """Deferred work (fi_trigger) that found no entry at its NIC."""
    missed = counted.get("without_entry", 0)
    if not missed:
        return []
    text = (
        f"{missed:,} triggered operation{'s' if missed != 1 else ''} found none of the {counted['entries']} entries of "
        f"their process free ({counted['waiting_max']:,} waited at once), and waited for one behind each other: work "
        f"whose counter is there does not go either; {TRIGGERED_LIMIT}"
    )
    return [_finding("triggered_entries", text, count=missed)]


def _clock_loop(counted: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> list[Json]:
    readers = [row for row in ranks if row.get("clock_readings", 0) >= CLOCK_READINGS_NOTE]
    virtual_time_ps = counted.get("virtual_time_ps", 0)
    if not readers or not virtual_time_ps:
        return []
    most = max(readers, key=lambda row: (row["in_clock_loops_ps"], -row["rank"]))
    share = most["in_clock_loops_ps"] / virtual_time_ps
    if share <= CLOCK_LOOP_SHARE_NOTE:
        return []
    text = (
        f"rank {most['rank']} spent {share:.0%} of the run in loops that read a clock "
        f"({most['clock_readings']:,} times); "
        "one that ends by the clock takes as many rounds as fit into virtual time (docs/guide/loops-by-the-clock.md)"
    )
    return [_finding("clock_loop", text, severity="note", count=len(readers))]


def _compute_health(compute: Json) -> list[Json]:
    if compute["mode"] == "model" and not compute["announced"]:
        text = "the program announces no work (docs/guide/compute-model.md), so its computing has taken no time"
        return [_finding("nothing_announced", text)]
    if compute["unsure_share"] <= UNSURE_SHARE_WARNING:
        return []
    text = (
        "many short gaps between MPI calls: what looking at the CPU clock takes of them is known to "
        f"{compute['unsure_share']:.1%} of the job's time only"
    )
    return [_finding("short_gaps", text)]


def _node_health(run: BoundCase, mpi: MpiLibrary, profile: Sequence[Mapping[str, Any]]) -> list[Json]:
    """MPICH takes ranks for alone on their nodes, and the program has asked who is there."""
    places = run.placement.ranks
    alone = mpi.family == "mpich" and run.on_node.on_node is OnNode.PROVIDER
    asked = [row["call"] for row in profile if row["call"] in ("MPI_Comm_split_type", "MPI_Win_allocate_shared")]
    if not alone or not asked or len({each.node for each in places}) == len(places):
        return []
    text = (
        f"the program called {asked[0]}, and to MPICH each rank was alone on its node; --on-node shared shows the nodes"
    )
    return [_finding("alone_on_node", text, count=1)]


def _setting_health(environment: Mapping[str, str]) -> list[Json]:
    """Settings that nobody reads, as on the machine, where nothing says so."""
    rows: list[Json] = []
    unknown = provider_settings.unknown(environment)
    if unknown:
        named = (f"{name}{f' (meant is perhaps {near})' if near else ''}" for name, near in unknown.items())
        text = f"the cxi provider has no setting {', '.join(named)}, and goes by its defaults"
        rows.append(_finding("unknown_setting", text, count=len(unknown)))
    mapping, policy = environment.get("MPICH_OFI_NIC_MAPPING"), environment.get("MPICH_OFI_NIC_POLICY") or "BLOCK"
    if mapping and policy.upper() != "USER":
        text = (
            f"MPICH_OFI_NIC_MAPPING={mapping} has no effect with MPICH_OFI_NIC_POLICY={policy}: as with Cray MPICH "
            "it is read with USER alone"
        )
        rows.append(_finding("unused_mapping", text))
    others = [f"{name}={environment[name]}" for name in WITHOUT_EFFECT if environment.get(name)]
    if others:
        has = "have" if len(others) > 1 else "has"
        text = (
            f"{', '.join(others)} {has} no effect: on a node messages are copied as MPICH or libfabric's shm does it, "
            "without Cray MPICH's choices and without XPMEM in MPICH"
        )
        rows.append(_finding("unused_setting", text, count=len(others)))
    return rows


def _software_health(run: BoundCase, mpi: MpiLibrary) -> list[Json]:
    if run.software or run.case.software == "none":
        return []
    text = (
        f"the instructions of {mpi.name} have not been counted in this build, so each call costs what an average one "
        f'does (--software none); "dryfly mpi measure {mpi.name}" counts them'
    )
    return [_finding("uncounted_software", text, severity="note")]


def _unused_field_health(run: BoundCase, mpi: MpiLibrary) -> list[Json]:
    """Costs that the user has set, and the other way of charging software goes by."""
    unused = without_effect(run.machine, counted=bool(run.software))
    if not unused:
        return []
    has, they = ("have", "they count") if len(unused) > 1 else ("has", "it counts")
    if run.software:
        why = (
            f"the code of {mpi.name} is charged as counted, by host.instruction, host.wake and host.provider.*; "
            f"{they} with --software none"
        )
    else:
        first = "" if tables_of_software.file_of(mpi.name) else f", after {tables_of_software.how_to_count(mpi.name)}"
        why = (
            f"the code of {mpi.name} is not charged as counted, but by host.send and its neighbours; "
            f"{they} with --software measured{first}"
        )
    return [_finding("unused_field", f"--set {', '.join(unused)} {has} no effect: {why}", count=len(unused))]


def _finding(name: str, text: str, *, severity: str = "warning", count: int = 1) -> Json:
    return {"name": name, "severity": severity, "count": count, "text": text}


def _ranks(count: int) -> str:
    return f"{count} rank{'s' if count != 1 else ''}"


def _seconds(picoseconds: Any) -> float:
    return int(picoseconds) / _PS_PER_S


def load_counted(path: Path) -> Json:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"the simulator's result cannot be read: {error}", exit_status=70) from None
    if not isinstance(content, dict):
        raise RunError("the simulator's result is no JSON object", exit_status=70)
    return content


def write(result: Json, target: str) -> None:
    """In one piece: a file of that name is either the old one or the whole new one. `-` is standard output."""
    write_text(json.dumps(result, indent=1) + "\n", target)


def write_text(text: str, target: str) -> None:
    """As `write`, what is text already."""
    if target == "-":
        print(text, end="", flush=True)
        return
    try:
        write_whole(Path(target), text.encode())
    except OSError as error:
        raise RunError(f"the result cannot be written to {target}: {error.strerror}", exit_status=1) from None

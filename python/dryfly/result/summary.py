"""What a run prints: before it what will be simulated, after it what was."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dryfly.base.grid import Grid
from dryfly.base.printer import Printer
from dryfly.base.units import size_text, time_text
from dryfly.binding import table
from dryfly.case.bind import BoundCase
from dryfly.case.memory import MemoryNeed
from dryfly.case.on_node import OnNode
from dryfly.case.program import Program
from dryfly.machine.names import NodeNames
from dryfly.machine.node import node_of
from dryfly.machine.topology import summarise
from dryfly.mpi.libraries import MpiLibrary
from dryfly.result import binding
from dryfly.result.result import Json
from dryfly.scenario.storage import summary_line as storage_line

_PARTS = ("computing", "communicating", "waiting")
_PROFILE_ROWS = 12
_SHARE_SHOWN = 0.0005
_PS_PER_S = 10**12


_MODELS = {"packet": "modelled packet by packet", "flow": "modelled as flows"}


def before(
    printer: Printer, run: BoundCase, mpi: MpiLibrary, program: Program, memory: MemoryNeed, *, verbose: bool = False
) -> None:
    machine, placement = run.machine, run.placement
    counts = summarise(machine)
    printer.line(f"dryfly: {machine.name}: {machine.title}")
    printer.line(
        f"  network   {counts.groups} groups, {counts.switches:,} switches, {counts.nics:,} NICs, "
        f"{counts.local_links + counts.global_links:,} cables between switches; {_MODELS[run.case.network]}"
    )
    printer.line(
        f"  job       {len(placement.ranks)} ranks on {_nodes_text(run)}, {placement.policy}; seed {run.case.seed}"
    )
    printer.line(f"  program   {shlex.join(run.case.program)} ({program.kind})")
    printer.line(f"  mpi       {mpi.name}; compute {_compute_text(run)}")
    if line := on_node_line(run, mpi):
        printer.line(f"  on a node {line}")
    if verbose:
        for line in system_lines(program, mpi):
            printer.line(line)
        for line in binding_lines(run):
            printer.line(line)
    there = "unknown" if memory.available is None else size_text(memory.available)
    printer.line(
        f"  memory    about {size_text(memory.needed)} for MPI and the simulator, besides the program's own data; "
        f"{there} available"
    )


def system_lines(program: Program, mpi: MpiLibrary) -> list[str]:
    """What the library was given so that a program of the system's own MPI finds in it what it asks for."""
    given = program.additions
    lines = [f"{name} is {file} of {mpi.name}" for name, file in given.aliases]
    if given.missing:
        lines.append(f"bindings ask for what {mpi.name} has not; if called, these say so: {', '.join(given.missing)}")
    return [f"  {'given' if place == 0 else '':9} {line}" for place, line in enumerate(lines)]


def on_node_line(run: BoundCase, mpi: MpiLibrary) -> str:
    """How ranks of a node talk; empty where no two of them share one."""
    places, choice = run.placement.ranks, run.on_node
    if len({each.node for each in places}) == len(places):
        return ""
    linkx, mpich = run.case.provider == "linkx", mpi.family == "mpich"
    messages = "through the node's memory, as LINKx does" if linkx else "through NICs, as cxi does"
    if choice.on_node is OnNode.PROVIDER:
        return messages + (
            "; to MPI each rank is alone there (--on-node shared: its own shared memory)" if mpich else ""
        )
    why = f", as {choice.reason}" if choice.reason else ""
    if mpich:
        return f"by MPI's own shared memory{why}"
    return f"messages {messages}; windows and collectives by MPI's own shared memory{why}"


def binding_lines(run: BoundCase) -> list[str]:
    """The map of the first node's ranks, as the launcher binds them."""
    if not run.bindings:
        return []
    first = run.placement.ranks[0].node
    ranks = [each.rank for each in run.placement.ranks if each.node == first]
    node = node_of(run.machine, nics=NodeNames(run.machine).nics(first))
    found = table.lines(node, [run.bindings[rank] for rank in ranks], indent="            ")
    return [f"  bound     ranks of {NodeNames(run.machine).name(first)}:", *found]


def _nodes_text(run: BoundCase) -> str:
    names = NodeNames(run.machine)
    nodes = [names.name(node) for node in run.placement.nodes]
    shown = ", ".join(nodes) if len(nodes) <= 4 else f"{nodes[0]}, {nodes[1]}, ... {nodes[-1]}"
    return f"{len(nodes)} node{'s' if len(nodes) != 1 else ''} ({shown})"


def _compute_text(run: BoundCase) -> str:
    if run.compute.mode == "measured":
        factor = (run.compute.factor_ppm or run.machine.number("host.compute_factor")) / 10**6
        return f"measured x {factor:g} (not repeatable)"
    if run.compute.mode == "model":
        from dryfly.machine.compute_model import summary

        return summary(run.machine, skip_numerics=run.compute.skip_numerics)
    return run.compute.mode


def after(printer: Printer, run: BoundCase, result: Json, *, verbose: bool = False) -> None:
    printer.line("")
    printer.line(
        f"dryfly: {result['machine']}: {result['ranks']} ranks on {_nodes_text(run)}, {run.placement.policy}; "
        f"virtual time {_time(result['virtual_time_s'])}"
    )
    printer.show(_time_table(result), _profile_table(result), _protocol_table(result))
    if verbose and result["binding"]:
        printer.show(binding.grid(result["binding"]))
        if note := binding.assumption(result["binding"]):
            printer.line(f"  {note}")
    if gpus := gpus_line(result):
        printer.line(f"  gpus     {gpus}")
    if result["software"]["table"]:
        printer.line(f"  software {_software_line(result)}")
    if verbose and (registered := registration_line(result)):
        printer.line(f"  buffers  {registered}")
    if verbose and (translated := translation_line(result)):
        printer.line(f"  pages    {translated}")
    if result["noise"]["of"] != "none":
        printer.line(f"  noise    {noise_line(result)}")
    mpi = result["mpi"]
    repeatable = "repeatable" if result["repeatable"] else "not repeatable"
    printer.line(
        f"  messages {result['messages']:,}   bytes {result['bytes']:,}   packet-hops {result['packet_hops']:,}   "
        f"network time-outs {result['network_timeouts']}"
    )
    classes = [row for row in result["traffic_classes"] if row["packets"]]
    if len(classes) > 1:
        carried = (f"{row['class']} {row['packets']:,} packets, {row['bytes']:,} bytes" for row in classes)
        printer.line(f"  classes  {'; '.join(carried)}")
    if result["faults"].get("links"):
        printer.line(f"  links    {_links_line(result['faults']['links'])}")
    for row in result["storage"]:
        printer.line(f"  storage  {storage_line(row)}")
    printer.line(f"  mapped   {', '.join(mpi['libmpi'] + mpi['libfabric'])}")
    if result["compute"]["mode"] == "measured":
        compute = result["compute"]
        printer.line(
            f"  looks    {compute['looked_s']:.6f} s of CPU time for looking at the clock taken off, sure to "
            f"{compute['unsure_s']:.6f} s ({compute['unsure_share']:.2%} of the job)"
        )
    wall, rate = result["wall_time_s"], result["messages_per_wall_s"]
    printer.line(f"  wall     {wall:.2f} s, {rate:,.0f} messages per wall second")
    printer.line(f"  seed {result['seed']}   fingerprint {result['fingerprint']} ({repeatable})")
    for row in result["health"]:
        printer.line(f"  {row['severity']} ({row['name']}): {row['text']}")


def _software_line(result: Json) -> str:
    """What the MPI library's own code costs, and how much of that stands for kinds that nobody has counted."""
    charged, assumed = result["software"]["charged_s"], result["software"]["assumed_s"]
    of = result["ranks"] * result["virtual_time_s"]
    share = f", {charged / of:.1%} of the ranks' time" if of > 0 else ""
    means = f"; {assumed / charged:.0%} of it by means of other intervals" if assumed > 0 else ""
    return f"{_time(charged)} in {result['software']['table']}'s own code{share}{means}"


def gpus_line(result: Json) -> str:
    """What ranks were in calls of a simulated GPU's runtime, which is among their computing; empty without."""
    rows = [row for row in result["ranks_detail"] if row["gpu_calls"]]
    if not rows:
        return ""
    calls, time_s = (sum(row[name] for row in rows) for name in ("gpu_calls", "gpu_s"))
    most = max(rows, key=lambda row: (row["gpu_s"], -row["rank"]))
    return (
        f"{calls:,} calls of the GPU runtime: {_time(time_s / result['ranks'])} of a rank's computing on the mean, "
        f"{_time(most['gpu_s'])} of rank {most['rank']}'s"
    )


def registration_line(result: Json) -> str:
    """How buffers were made known to NICs; empty where none had to be."""
    counted = result["registration"]
    used = counted["hits"] + counted["misses"] + counted["uncached"]
    if not used and not counted["regions"]:
        return ""
    cache = f"{counted['hits']:,} found in the cache, {counted['misses']:,} not"
    cache += f", {counted['uncached']:,} without one" if counted["uncached"] else ""
    ended = f"{counted['evicted']:,} for lack of room, {counted['invalidated']:,} with their memory"
    return (
        f"{used:,} registered: {cache}; {counted['mapped']:,} mapped ({counted['mapped_pages']:,} pages, "
        f"{size_text(counted['mapped_bytes'])}), {counted['unmapped']:,} ended ({ended}); "
        f"{counted['regions']:,} regions; {_time(counted['time_s'])}, most of rank {counted['most']['rank']}: "
        f"{_time(counted['most']['time_s'])}"
    )


def translation_line(result: Json) -> str:
    """What NICs looked up of where pages are; empty where nobody looks."""
    counted = result["registration"]["translation"]
    if not counted["requests"]:
        return ""
    found = 1 - counted["misses"] / counted["requests"]
    return (
        f"{counted['requests']:,} look-ups by NICs of where a page is: {found:.1%} found, {counted['misses']:,} not; "
        f"{counted['evictions']:,} lines of their caches made room"
    )


def noise_line(result: Json) -> str:
    """What detours have taken from the ranks themselves; what others waited for that is among the waiting."""
    noise, ranks = result["noise"], result["ranks_detail"]
    taken = [row["interrupted_s"] + row["delayed_s"] for row in ranks]
    mean = sum(taken) / max(len(taken), 1)
    share = f" ({mean / result['virtual_time_s']:.2%})" if result["virtual_time_s"] > 0 else ""
    late = f"; each has left MPI_Init up to {_time(noise['start_skew_s'])} late" if noise["start_skew_s"] else ""
    return (
        f"{noise['detours']:,} detours took {_time(mean)} of a rank's time on the mean{share}, "
        f"{_time(max(taken, default=0.0))} of one at most{late}; {noise['of']}"
    )


def _links_line(links: Sequence[Mapping[str, Any]]) -> str:
    """How the links that have had trouble are at the end, and which one lost most; each direction is one."""
    states = Counter(link["state"].replace("fewer", "on fewer") for link in links)
    worst = max(links, key=lambda link: link["packets_lost"])
    lost = f"; {worst['name']} lost most, {worst['packets_lost']:,} packets" if worst["packets_lost"] else ""
    return f"that had trouble: {', '.join(f'{count} now {state}' for state, count in states.items())}{lost}"


def _time(seconds: float) -> str:
    ps = seconds * _PS_PER_S
    return time_text(ps) if ps >= 0.5 else "0 s"  # less is what a sum of fractions leaves


def _time_table(result: Json) -> Grid:
    split, total = result["time"], result["virtual_time_s"] or 1.0
    heads = ("time", "mean", "share", f"slowest (rank {split['slowest']['rank']})", "share")
    lines = []
    for name in _PARTS:
        mean, slowest = split["mean"][f"{name}_s"], split["slowest"][f"{name}_s"]
        lines.append((name, _time(mean), f"{mean / total:.1%}", _time(slowest), f"{slowest / total:.1%}"))
    ended = [result["virtual_time_s"] - sum(split[who][f"{name}_s"] for name in _PARTS) for who in ("mean", "slowest")]
    if max(ended) / total >= _SHARE_SHOWN:  # of the time after a rank's MPI_Finalize, until the last one's
        mean, slowest = (max(0.0, part) for part in ended)
        lines.append(("finished", _time(mean), f"{mean / total:.1%}", _time(slowest), f"{slowest / total:.1%}"))
    return Grid(heads=heads, rows=lines, indent="  ")


def _profile_table(result: Json) -> Grid:
    rows = sorted(result["profile"], key=lambda row: (-row["time_s"], row["call"]))
    lines = [
        (row["call"], f"{row['count']:,}", f"{row['bytes']:,}", _time(row["time_s"])) for row in rows[:_PROFILE_ROWS]
    ]
    if len(rows) > _PROFILE_ROWS:
        rest = rows[_PROFILE_ROWS:]
        lines.append(
            (
                f"{len(rest)} more calls",
                f"{sum(row['count'] for row in rest):,}",
                f"{sum(row['bytes'] for row in rest):,}",
                _time(sum(row["time_s"] for row in rest)),
            )
        )
    return Grid(heads=("MPI call", "count", "bytes", "time (all ranks)"), rows=lines, indent="  ")


def _protocol_table(result: Json) -> Grid:
    """Messages by protocol and by the number of switch-to-switch links crossed."""
    rows = [row for row in result["protocols"] if sum(row["messages_by_hops"]) + row["messages_on_node"]]
    used = max((hops for row in rows for hops, count in enumerate(row["messages_by_hops"]) if count), default=-1)
    heads = ("protocol", "messages", "bytes", "on node", *(f"{hops} hops" for hops in range(used + 1)))
    lines = []
    for row in rows:
        messages = sum(row["messages_by_hops"]) + row["messages_on_node"]
        size = sum(row["bytes_by_hops"]) + row["bytes_on_node"]
        by_hops = (f"{count:,}" for count in row["messages_by_hops"][: used + 1])
        lines.append((row["protocol"], f"{messages:,}", f"{size:,}", f"{row['messages_on_node']:,}", *by_hops))
    return Grid(heads=heads, rows=lines, indent="  ")

"""`dryfly machines` and `dryfly machines show NAME`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache

from dryfly.base.paths import data_folder
from dryfly.base.units import rate_text
from dryfly.machine.load import load, shipped_machines
from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames
from dryfly.machine.topology import TopologySummary, summarise


def listing() -> str:
    lines = [f"{'name':<16} {'nodes':>7} {'switches':>9} {'NICs':>7}  what it is"]
    for name in shipped_machines():
        machine = load(name)
        counts = summarise(machine)
        lines.append(f"{name:<16} {machine.nodes_max:>7,} {counts.switches:>9,} {counts.nics:>7,}  {machine.title}")
    lines.append('"dryfly machines show NAME" explains one, with the source of each number.')
    return "\n".join(lines)


def description(name: str, *, sets: Iterable[str] = ()) -> str:
    machine = load(name, sets=sets)
    return "\n".join([*_network(machine), "", *_facts(machine), "", *_sources(machine)])


def _network(machine: Machine) -> list[str]:
    counts = summarise(machine)
    names = NodeNames(machine)
    lines = [f"{machine.name}: {machine.title}", ""]
    for kind in machine.kinds:
        nodes = f"{kind.nodes} nodes x {kind.nics_per_node} NICs" if kind.nodes else "no nodes modelled"
        lines.append(f"  {kind.groups:>4} groups {kind.name:<12} {kind.switches} switches, {nodes} each")
    first, last = names.name(0), names.name(machine.nodes_max - 1)
    lines += [
        f"  switches        {counts.switches:,}",
        f"  NICs            {counts.nics:,}",
        f"  local links     {counts.local_links:,} (cables)",
        f"  global links    {counts.global_links:,} (cables), {counts.job_global_links:,} between groups that jobs use",
        f"  injection       {rate_text(counts.injection_bytes_per_s)} of the nodes that jobs use, one direction",
        f"  global          {rate_text(counts.job_global_bytes_per_s)} between groups that jobs use, both directions",
        *_bisection(counts),
        f"  ports           {counts.fabric_ports:,} of switches to switches, {counts.nics:,} to NICs",
        f"  nodes for jobs  {machine.nodes_max:,} of {machine.cores_per_node} cores: {first} to {last}",
    ]
    if machine.text("names.style") != "xname":
        lines.append(f"  x-names         {names.xname(0)} to {names.xname(machine.nodes_max - 1)}")
    return lines


def _bisection(counts: TopologySummary) -> list[str]:
    if counts.job_bisection_bytes_per_s is None:
        return []
    return [f"  bisection       {rate_text(counts.job_bisection_bytes_per_s)} between halves of these, both directions"]


def _facts(machine: Machine) -> list[str]:
    wide = max(len(path) for path in machine.facts)
    lines = [f"{'field':<{wide}}  {'value':<17} {'certainty':<11} source"]
    for path, fact in machine.facts.items():
        note = f" - {fact.note}" if fact.note else ""
        lines.append(f"{path:<{wide}}  {fact.text:<17} {fact.certainty:<11} {fact.source}{note}")
    return lines


@cache
def source_keys() -> dict[str, str]:
    content = tomllib.loads((data_folder() / "sources.toml").read_text(encoding="utf-8"))
    return {key: str(text) for key, text in content["sources"].items()}


def _sources(machine: Machine) -> list[str]:
    used = {word.strip() for fact in machine.facts.values() for word in fact.source.split(";")}
    lines = ["sources"]
    lines += [f"  {key:<7} {text}" for key, text in source_keys().items() if key in used]
    lines.append(
        "certainty: H primary source, M+ two secondary sources, M one, L weak, D derived by arithmetic, "
        "calibrated to a published figure, assumed"
    )
    return lines

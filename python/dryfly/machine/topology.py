"""Counts that follow from a machine's topology, for people and for checks; the core builds the graph itself."""

from __future__ import annotations

from dataclasses import dataclass

from dryfly.machine.machine import Machine


@dataclass(frozen=True, kw_only=True)
class TopologySummary:
    groups: int
    switches: int
    nodes: int  # that are modelled, of every kind
    nics: int
    local_links: int  # cables between switches of one group
    global_links: int  # cables between groups
    job_global_links: int  # of these, between groups whose nodes a job may use
    injection_bytes_per_s: int  # of the nodes a job may use, one direction
    job_global_bytes_per_s: int  # of job_global_links, both directions
    job_bisection_bytes_per_s: int | None  # of those between two halves of these groups; None: groups differ

    @property
    def fabric_ports(self) -> int:
        """Of switches, to switches."""
        return 2 * (self.local_links + self.global_links)


def summarise(machine: Machine) -> TopologySummary:
    kinds = machine.kinds
    links = {pair: count * _pairs_of_groups(machine, *pair) for pair, count in machine.global_links.items()}
    job = set(machine.job_kinds)
    job_links = sum(count for (i, j), count in links.items() if i in job and j in job)
    if machine.cabling is not None:
        job_links = len(machine.cabling.cables)
    job_nics = sum(kinds[i].nodes_in_all * kinds[i].nics_per_node for i in job)
    rate = machine.number("fabric.link.rate")
    listed = machine.cabling
    return TopologySummary(
        groups=sum(kind.groups for kind in kinds),
        switches=sum(kind.groups * kind.switches for kind in kinds),
        nodes=sum(kind.nodes_in_all for kind in kinds),
        nics=sum(kind.nodes_in_all * kind.nics_per_node for kind in kinds),
        local_links=listed.local_cables
        if listed is not None
        else sum(kind.groups * kind.switches * (kind.switches - 1) // 2 * kind.local_links for kind in kinds),
        global_links=len(listed.cables) if listed is not None else sum(links.values()),
        job_global_links=job_links,
        injection_bytes_per_s=job_nics * rate,
        job_global_bytes_per_s=2 * job_links * rate,
        job_bisection_bytes_per_s=_bisection_links(machine) * 2 * rate if len(job) == 1 and listed is None else None,
    )


def ports_needed(machine: Machine, index: int) -> int:
    """Of the fullest switch of a kind of group, when end-points and global links are spread evenly."""
    kind = machine.kinds[index]
    endpoints = -(-kind.nodes * kind.nics_per_node // kind.switches)
    if kind.attach == "same_switch":
        endpoints = -(-kind.nodes // kind.switches) * kind.nics_per_node
    leaving = 0
    for other in range(len(machine.kinds)):
        peers = machine.kinds[other].groups - (1 if other == index else 0)
        leaving += machine.global_links[min(index, other), max(index, other)] * peers
    return endpoints + (kind.switches - 1) * kind.local_links + -(-leaving // kind.switches)


def _bisection_links(machine: Machine) -> int:
    """Of the groups of the only kind that jobs use."""
    (kind,) = machine.job_kinds
    groups = machine.kinds[kind].groups
    return (groups // 2) * (groups - groups // 2) * machine.global_links[kind, kind]


def _pairs_of_groups(machine: Machine, i: int, j: int) -> int:
    if i == j:
        return machine.kinds[i].groups * (machine.kinds[i].groups - 1) // 2
    return machine.kinds[i].groups * machine.kinds[j].groups

"""The NICs of a node: on which NUMA domain each one is, and which one a rank is given.

The choice itself is made in the rank, when it asks libfabric for its NICs (rank/nic_choice.hpp): Cray MPICH's
MPICH_OFI_NIC_POLICY, MPICH_OFI_NIC_MAPPING and MPICH_OFI_NUM_NICS may be set by a wrapper script for each rank. Here
stands what the ranks are told of their node, and what can be checked before anything starts.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Mapping, Sequence

from dryfly.base.errors import UserError
from dryfly.binding import device_forms
from dryfly.binding.ranks import RankBinding
from dryfly.case.placement import Placement
from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames
from dryfly.machine.node import Node, most_nics, node_of

NODE_VARIABLE = "DRYFLY_NODE"
_DEVICES = "FI_CXI_DEVICE_NAME"
_POLICIES = ("BLOCK", "ROUND-ROBIN", "NUMA", "GPU", "USER")
_NICS_MAX = 64


def rank_variables(machine: Machine, placement: Placement, bindings: Sequence[RankBinding] = ()) -> list[str]:
    """By rank: what it is told of its node, for rank/nic_choice.hpp. `bindings`: by rank, where ranks are bound."""
    names = NodeNames(machine)
    per_node = Counter(place.node for place in placement.ranks)
    of_nics = functools.cache(lambda nics: node_of(machine, nics=nics))
    told = []
    seen: Counter[tuple[str, int, int]] = Counter()
    for place in placement.ranks:
        nics = names.nics(place.node)
        node = of_nics(nics)
        words = [f"nics={nics}", f"local={place.local}", f"ranks={per_node[place.node]}"]
        words += [f"domains={len(node.with_cores)}", f"sockets={node.sockets}"]
        words.append("at=" + ",".join(map(str, node.nic_domains)))
        if node.gpu_domains:
            words.append("gpus=" + ",".join(map(str, node.gpu_domains)))
        if bindings:
            words += _bound_words(node, bindings[place.rank], place.node, seen)
        told.append(" ".join(words))
    return told


def only_devices(bindings: Sequence[RankBinding]) -> list[str]:
    """By rank: the setting that shows it the NIC of --nic-bind alone; empty: none, or the user's own. Open MPI deals
    NICs that are equally near to the ranks of a node in turn, in whatever order libfabric has them."""
    if os.environ.get(_DEVICES):
        return [""] * len(bindings)
    return [f"{_DEVICES}=cxi{each.nic}" if each.nic is not None else "" for each in bindings]


def _bound_words(node: Node, binding: RankBinding, number: int, seen: Counter[tuple[str, int, int]]) -> list[str]:
    """`seen`: ranks of lower numbers by what they have, node and domain."""
    words = []
    if binding.processors is not None:
        domain = node.domain_of(min(map(node.core_of, binding.processors)))
        words.append(f"domain={domain} turn={seen['domain', number, domain]}")
        seen["domain", number, domain] += 1
    if binding.gpus is not None:
        gpu = device_forms.gpu_number(binding.gpus[0])
        domain = node.gpu_domains[gpu]
        words.append(f"gpu={gpu} gputurn={seen['gpu', number, domain]}")
        seen["gpu", number, domain] += 1
    if binding.nic is not None:
        words.append(f"nic={binding.nic}")
    return words


def spec_lines(machine: Machine, placement: Placement) -> list[tuple[str, int | str]]:
    """Of the resolved spec: what a node is made of, where NICs and ranks are in it, and what the way between costs."""
    names = NodeNames(machine)
    per_node = Counter(place.node for place in placement.ranks)
    nics = max((names.nics(node) for node in per_node), default=most_nics(machine))
    node = node_of(machine, nics=nics)
    lines: list[tuple[str, int | str]] = [("node.cores", node.cores), ("node.threads", node.threads)]
    lines.append(("node.domains", len(node.domains)))
    for each in node.domains:
        lines.append((f"node.domain.{each.number}.socket", each.socket))
        lines.append((f"node.domain.{each.number}.cores", len(each.cores)))
        if each.rate is not None:
            lines.append((f"node.domain.{each.number}.rate_bytes_per_s", each.rate))
    if node.sockets == 1 and machine.optional("node.pcie_rate") is None:
        return lines  # every way in the node is like any other
    lines.append(("node.nics", nics))
    for path, name in (
        ("node.socket_latency", "node.socket_latency_ps"),
        ("node.socket_rate", "node.socket_rate_bytes_per_s"),
        ("node.pcie_rate", "node.pcie_rate_bytes_per_s"),
    ):
        value = machine.optional(path)
        if value is not None:
            lines.append((name, value))
    lines += [(f"node.nic.{nic}.socket", node.socket(domain)) for nic, domain in enumerate(node.nic_domains)]
    for place in placement.ranks:
        domain = node.domain_of_rank(place.local, per_node[place.node])
        lines.append((f"run.rank.{place.rank}.socket", node.socket(domain)))
    return lines


def check(
    environment: Mapping[str, str], machine: Machine, placement: Placement, *, nic_bind: str | None = None
) -> None:
    """Raises UserError for settings of NICs with which no rank could start."""
    if nic_bind is not None and environment.get("MPICH_OFI_NIC_POLICY"):
        raise UserError(
            f"--nic-bind {nic_bind} and MPICH_OFI_NIC_POLICY={environment['MPICH_OFI_NIC_POLICY']} both choose NICs: "
            "accepted is one of the two"
        )
    names = NodeNames(machine)
    per_node = Counter(place.node for place in placement.ranks)
    fewest = min(names.nics(node) for node in per_node)
    node = node_of(machine, nics=fewest)
    verbose = environment.get("MPICH_OFI_NIC_VERBOSE", "0")
    if verbose not in ("0", "1", "2"):
        raise UserError(f"MPICH_OFI_NIC_VERBOSE={verbose}: accepted is 0, 1 or 2")
    _check_devices(environment.get(_DEVICES), fewest)
    _check_count(environment.get("MPICH_OFI_NUM_NICS"), fewest)
    policy = environment.get("MPICH_OFI_NIC_POLICY", "BLOCK")
    if policy.upper() not in _POLICIES:
        raise UserError(f"MPICH_OFI_NIC_POLICY={policy}: accepted is {', '.join(_POLICIES[:-1])} or {_POLICIES[-1]}")
    if policy.upper() == "GPU" and not node.gpu_domains:
        raise UserError(f"MPICH_OFI_NIC_POLICY=GPU: machine {machine.name} says nothing of GPUs (node.gpu_numa)")
    if policy.upper() == "USER":
        _check_mapping(environment.get("MPICH_OFI_NIC_MAPPING"), nics=fewest, ranks=max(per_node.values()))


def _check_devices(text: str | None, nics: int) -> None:
    """As libfabric looks for them, by name anywhere in the list; what is no list of names the provider refuses."""
    if not text or any(f"cxi{nic}" in text for nic in range(nics)):
        return
    raise UserError(
        f"FI_CXI_DEVICE_NAME={text}: it names no NIC of the job's nodes, so fi_getinfo would find none (No data "
        f"available); accepted are cxi0 to cxi{nics - 1}"
    )


def _check_count(text: str | None, nics: int) -> None:
    """`2`, or `2:1,3` to say which."""
    if not text:
        return
    count, colon, listed = text.strip().strip('"').partition(":")
    chosen = [word.strip() for word in listed.split(",")] if colon else []
    valid = count.strip().isdecimal() and 1 <= int(count) <= nics
    if not valid or not all(word.isdecimal() and int(word) < nics for word in chosen):
        raise UserError(
            f"MPICH_OFI_NUM_NICS={text}: accepted is 1 to {nics}, the NICs of a node, or number and list such as 1:0"
        )
    if colon and len(set(chosen)) != int(count):
        raise UserError(f"MPICH_OFI_NUM_NICS={text}: {count.strip()} NICs are announced and {len(set(chosen))} listed")


def _check_mapping(text: str | None, *, nics: int, ranks: int) -> None:
    """`0:0-3; 1:4,5,6,7`: a NIC and the local ranks that use it."""
    if not text:
        raise UserError("MPICH_OFI_NIC_POLICY=USER needs MPICH_OFI_NIC_MAPPING, such as 0:0-3;1:4-7")
    mapped: set[int] = set()
    for entry in text.strip().strip('"').split(";"):
        nic, colon, listed = entry.partition(":")
        if not colon or not nic.strip().isdecimal():
            raise UserError(f'MPICH_OFI_NIC_MAPPING={text}: "{entry.strip()}" is not NIC:RANKS, such as 0:0-3 or 1:4,5')
        if int(nic) >= nics:
            raise UserError(f"MPICH_OFI_NIC_MAPPING={text}: there is no NIC {nic.strip()}; accepted is 0 to {nics - 1}")
        for local in _ranks_of(text, listed):
            if local in mapped:
                raise UserError(f"MPICH_OFI_NIC_MAPPING={text}: local rank {local} is mapped twice")
            mapped.add(local)
    missing = sorted(set(range(ranks)) - mapped)
    if missing:
        raise UserError(
            f"MPICH_OFI_NIC_MAPPING={text}: local rank {missing[0]} is not mapped; a node has {ranks} ranks"
        )


def _ranks_of(text: str, listed: str) -> list[int]:
    ranks: list[int] = []
    for word in listed.split(","):
        first, dash, last = (part.strip() for part in word.partition("-"))
        last = last if dash else first
        if not first.isdecimal() or not last.isdecimal() or int(last) < int(first) or int(last) >= 2**16:
            raise UserError(
                f'MPICH_OFI_NIC_MAPPING={text}: "{word.strip()}" is neither a local rank nor a range of them'
            )
        ranks += range(int(first), int(last) + 1)
    return ranks

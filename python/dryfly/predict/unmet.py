"""Faults of a scenario that nothing of a skeleton meets: parts that no rank of the job uses, and links of GPUs.

Faults of cables between switches are left out: which way messages take is the engine's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from dryfly.machine.machine import Machine
from dryfly.predict.question import Question
from dryfly.scenario.faults import Said, Scenario, first_nic

_NIC = re.compile(r"n(\d+)")
# Their ranks send through NICs that phases name, whichever are usual for a rank.
_OWN_NICS = ("hpl", "hplmxp", "transformer")


def warnings(question: Question, scenario: Scenario | None, on: Sequence[int], ranks: int) -> tuple[str, ...]:
    """`on`: numbers of the job's nodes, over the machine, which the first `ranks` places of are taken."""
    if scenario is None:
        return ()
    assert question.ppn is not None
    used = on[: -(-ranks // question.ppn)]
    nics = _nics(question, used, ranks)
    return tuple(
        f"{said.where}: nothing of this workload meets it{reason}"
        for said in scenario.said
        if (reason := _reason(said, question, frozenset(used), nics)) is not None
    )


def _reason(said: Said, question: Question, nodes: Collection[int], nics: Collection[int]) -> str | None:
    """None: something may."""
    if said.kind == "gpu":
        return ": links of GPUs in skeletons are as the machine's"
    if said.kind in ("memory", "cpu"):
        if said.node not in nodes:
            return ": no rank is on that node"
        copies = question.parameter("on_node") in (None, "memory") and (question.ppn or 1) > 1
        return None if said.kind == "cpu" or copies else ": no two ranks of a node copy by its memory"
    found = [_NIC.fullmatch(place) for place in said.places]
    numbers = {int(one[1]) for one in found if one is not None}
    if said.kind == "node" or not found or len(numbers) < len(found) or numbers & set(nics):
        return None
    return f": no rank uses {'that NIC' if len(numbers) == 1 else 'one of these NICs'}"


def _nics(question: Question, nodes: Sequence[int], ranks: int) -> set[int]:
    """As the engine gives them to ranks: those of a node in equal parts, in their order."""
    assert question.ppn is not None
    machine, ppn, found = question.loaded, question.ppn, set[int]()
    for place, node in enumerate(nodes):
        first, count = first_nic(machine, node), _nics_of(machine, node)
        here = min(ppn, ranks - place * ppn)
        found |= (
            set(range(first, first + count))
            if question.workload in _OWN_NICS or question.parameter("on_node") == "gpu"
            else {first + local * count // ppn for local in range(here)}
        )
    return found


def _nics_of(machine: Machine, node: int) -> int:
    for kind in machine.kinds:
        if node < kind.nodes_in_all:
            return kind.nics_per_node
        node -= kind.nodes_in_all
    raise IndexError(node)

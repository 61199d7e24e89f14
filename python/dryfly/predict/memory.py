"""Whether what a skeleton's ranks have fits into the memory that it computes in."""

from __future__ import annotations

import math

from dryfly.base.errors import UserError
from dryfly.base.units import size_text
from dryfly.machine.machine import Machine
from dryfly.predict.question import Question

_WORD = 8
_ON_PROCESSORS = ("alltoall", "hacc", "lammps")


def check(question: Question) -> None:
    """Raises UserError, where the machine's file says how much memory there is and the workload's size is known."""
    needed = _of_rank(question)
    if needed is None:
        return
    may_be_on_gpus = question.workload not in _ON_PROCESSORS and question.parameter("compute") in (None, "gpu")
    on_gpus = may_be_on_gpus and bool(question.loaded.optional("compute.gpu.count"))
    there = _of_node(question.loaded, on_gpus=on_gpus)
    assert question.ppn is not None
    if there is None or needed[1] * question.ppn <= there:
        return
    name, size = needed
    raise UserError(
        f"{name}={question.parameter(name)}: {question.ppn} ranks of a node need {size_text(size * question.ppn)}; "
        f"accepted is what fits {size_text(there)}, the memory of {'its GPUs' if on_gpus else 'its processors'}"
    )


def _of_rank(question: Question) -> tuple[str, int] | None:
    """Which parameter says so, and bytes."""
    value = question.parameter
    if question.workload == "hpcg":
        # A row of 27 values and columns, a diagonal and six vectors; the coarser levels have a seventh of it.
        return "local", _product(value("local")) * (27 * 12 + 7 * _WORD) * 8 // 7
    if question.workload == "nekbone":
        # Seven vectors and six geometric factors.
        return "local", _product(value("local")) * int(value("nx1") or 0) ** 3 * 13 * _WORD
    if question.workload == "amrwind":
        # Some 50 fields of the step; of the velocity's solve six vectors of three components and ten coefficients, of
        # which the coarser levels have a seventh.
        return "local", _product(value("local")) * (50 + 28 * 8 // 7) * _WORD
    if question.workload == "hacc":
        # Of a particle place, velocity, mass, potential, identity and mask; two meshes of complex numbers.
        return "local", _product(value("local")) * (38 + 2 * 2 * _WORD)
    if question.workload == "lammps" and value("atoms") is not None:
        # Place, velocity, force, image, type, tag and charge; of neighbours, half of them, what a sphere of the cut-off
        # and the skin holds.
        reach_nm = (int(value("cutoff") or 0) + int(value("skin") or 0)) / 1000
        neighbours = 2 / 3 * math.pi * reach_nm**3 * int(value("density") or 0) / 1000
        return "atoms", int(int(value("atoms") or 0) * (120 + 4 * neighbours))
    if question.workload == "alltoall":
        return "bytes", 2 * int(value("bytes") or 0) * question.ranks
    if question.workload == "graph500" and value("scale") is not None:
        # Each edge from both of its ends.
        return "scale", (2 << int(value("scale") or 0)) * int(value("edgefactor") or 0) * _WORD // question.ranks
    return None


def _product(sides: str | None) -> int:
    return math.prod(map(int, (sides or "0").split("x")))


def _of_node(machine: Machine, *, on_gpus: bool) -> int | None:
    if on_gpus:
        count, size = machine.optional("compute.gpu.count"), machine.optional("compute.gpu.memory")
    else:
        count, size = machine.optional("node.numa") or 1, machine.optional("node.memory.size")
    return int(count) * int(size) if isinstance(count, int) and isinstance(size, int) else None

"""Order, block and grid of HPL where nobody gives them: N from the memory, the grid by the closed form's own time.

Of all grids P x Q with P <= Q <= 8 P that have as many processes, the one that the closed form finds fastest is taken;
with --fit and no `nb`, of several block sizes too. No published result enters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dryfly.base.errors import UserError
from dryfly.base.units import size_text
from dryfly.machine.machine import Machine
from dryfly.oracle import hpl
from dryfly.predict.question import Question

BLOCKS = (128, 192, 256, 384, 512, 768, 1024)
_FLATTEST = 8
_SHARE = 1e-6

Candidate = tuple[int, str, int, float]  # block, grid, order, operations a second


@dataclass(frozen=True, kw_only=True)
class Choice:
    problem: hpl.Problem
    reasons: Sequence[str]
    candidates: Sequence[Candidate]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """That the matrix may fill, of a process."""

    what: str
    of_process: float  # usable
    share: float


def memory_of(machine: Machine, question: Question) -> Memory:
    assert question.ppn is not None
    share = int(question.parameter("memory_share") or 0) * _SHARE
    gpus = machine.optional("compute.gpu.count")
    of_gpu = machine.optional("compute.gpu.memory")
    if on_host(machine, question):
        size, domains = machine.optional("node.memory.size"), machine.optional("node.numa") or 1
        if not isinstance(size, int):
            raise UserError(
                f"machine {machine.name} has no node.memory.size, from which n follows: give n=..., or --set it"
            )
        of_node = size * int(domains)
        what = f"{size_text(of_node)} of {machine.optional('node.memory.kind') or 'memory'} a node"
    else:
        if not isinstance(of_gpu, int) or not isinstance(gpus, int):
            raise UserError(
                f"machine {machine.name} has no compute.gpu.memory, from which n follows: give n=..., or --set it"
            )
        of_node = gpus * of_gpu
        what = f"{gpus} GPUs of {size_text(of_gpu)} a node"
    return Memory(what=what, of_process=share * of_node / question.ppn, share=share)


def on_host(machine: Machine, question: Question) -> bool:
    """Where the matrix lies."""
    matrix, gpus = question.parameter("matrix"), machine.optional("compute.gpu.count")
    if matrix == "gpu" and not gpus:
        raise UserError(f"matrix=gpu: {machine.name} says nothing of GPUs (compute.gpu.count); accepted is host")
    return matrix == "host" if matrix is not None else not gpus


def any_problem(question: Question) -> hpl.Problem:
    """The first of those that are tried. Raises UserError for what the machine or its memory does not allow."""
    machine, order, grid = question.loaded, question.parameter("n"), question.parameter("grid")
    rows, columns = _sides(grid) if grid is not None else next(_grids(question.ranks))
    memory = memory_of(machine, question) if order is None else None
    return _problem(machine, question, int(question.parameter("nb") or 0), rows, columns, order, memory)


def choose(question: Question, process_of: Callable[[hpl.Problem], hpl.Process]) -> Choice:
    machine = question.loaded
    order, grid = question.parameter("n"), question.parameter("grid")
    blocks = BLOCKS if question.open_block else (int(question.parameter("nb") or 0),)
    grids = [_sides(grid)] if grid is not None else list(_grids(question.ranks))
    memory = memory_of(machine, question) if order is None else None
    found = []
    for block in blocks:
        for rows, columns in grids:
            problem = _problem(machine, question, block, rows, columns, order, memory)
            found.append((problem, problem.operations / hpl.outcome(problem, process_of(problem)).time))
    best, _ = max(found, key=lambda pair: pair[1])
    ranked = sorted(found, key=lambda pair: -pair[1])
    candidates = [(each.block, f"{each.rows}x{each.columns}", each.order, rate) for each, rate in ranked]
    return Choice(
        problem=best,
        reasons=_reasons(best, memory, candidates, open_block=question.open_block, open_grid=grid is None),
        candidates=candidates,
    )


def _sides(grid: str) -> tuple[int, int]:
    rows, columns = (int(side) for side in grid.split("x"))
    return rows, columns


def _grids(ranks: int) -> Iterator[tuple[int, int]]:
    """Where none is flat enough, the flattest that there is."""
    pairs = [(rows, ranks // rows) for rows in range(1, math.isqrt(ranks) + 1) if ranks % rows == 0]
    flat = [pair for pair in pairs if pair[1] <= _FLATTEST * pair[0]]
    yield from flat or pairs[-1:]


def _problem(
    machine: Machine, question: Question, block: int, rows: int, columns: int, order: str | None, memory: Memory | None
) -> hpl.Problem:
    host = on_host(machine, question) and bool(machine.optional("compute.gpu.count"))

    def of(size: int) -> hpl.Problem:
        return hpl.Problem(
            order=size,
            block=block,
            rows=rows,
            columns=columns,
            broadcast="long" if str(question.parameter("bcast")).startswith("long") else "ring",
            swap=str(question.parameter("swap")),
            swap_threshold=int(question.parameter("swap_threshold") or 0),
            look_ahead=question.parameter("depth") == "1",
            on_host=host,
        )

    if order is not None:
        return of(int(order))
    assert memory is not None
    panels = int(math.sqrt(memory.of_process * rows * columns / hpl.WORD) / block)
    while panels > 1 and hpl.local_bytes(of(panels * block)) > memory.of_process:
        panels -= 1
    return of(max(1, panels) * block)


def check_memory(question: Question) -> None:
    """Raises UserError where a matrix whose size is given does not fit. Of machines that do not say what they have
    nothing is known."""
    problem = any_problem(question)
    try:
        memory = memory_of(question.loaded, question)
    except UserError:
        return
    needed, whole = hpl.local_bytes(problem), memory.of_process / memory.share
    if needed > whole:
        raise UserError(
            f"n={problem.order}: a process needs {size_text(needed)} for its part of the matrix, panels and rows; "
            f"accepted is what fits {size_text(whole)} ({memory.what})"
        )


def _reasons(
    best: hpl.Problem, memory: Memory | None, candidates: Sequence[Candidate], *, open_block: bool, open_grid: bool
) -> list[str]:
    reasons = []
    if memory is not None:
        used = hpl.local_bytes(best)
        reasons.append(
            f"n = {best.order:,}: {size_text(used)} of matrix, panels and rows in a process, of the "
            f"{size_text(memory.of_process)} that {memory.share:.0%} of {memory.what} leave it"
        )
    grid = f"{best.rows}x{best.columns}"
    if open_block:
        others = {block: max(row[3] for row in candidates if row[0] == block) for block in BLOCKS}
        shown = ", ".join(f"{block}: {rate / 1e15:.4g}" for block, rate in others.items())
        reasons.append(f"nb = {best.block}: fastest of {shown} PF/s")
    if open_grid:
        same = [row for row in candidates if row[0] == best.block]
        shown = ", ".join(f"{row[1]}: {row[3] / 1e15:.4g}" for row in same[:4])
        more = f" and {len(same) - 4} more" if len(same) > 4 else ""
        reasons.append(f"grid = {grid}: fastest of {shown} PF/s{more}")
    return reasons

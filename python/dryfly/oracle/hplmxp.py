"""HPL-MxP in closed form: LU without pivoting with products of 16 bits, a sum over panels, then refinement in FP64.

A step takes max(T_GEMM, T_PANEL + T_TRSM + T_BCAST): with a look-ahead of one the trailing matrix is updated while the
next block column and row are made and sent, as programs/mxp does. The cost model is that of dryfly/oracle/hpl.py, whose
terms are those of the Aurora experience report; docs/model/hplmxp.md has what differs and how sure it is. Times are
those of the process with most blocks, in seconds; sizes in bytes.

Left out: queues in the network, skew between processes, clocks that fall under load, and converting between
precisions, which takes memory's time like the panel's own products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dryfly.oracle import hpl

HALF, SINGLE, DOUBLE = 2, 4, 8  # bytes of a number
BOUNDS = ("gemm", "panel")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """`rows` x `columns` is the grid of processes, P x Q. `corrections`: steps of refinement after the first solve.
    `element`: bytes that an element of the matrix and of its factors takes where they are kept and sent."""

    order: int
    block: int
    rows: int
    columns: int
    look_ahead: bool = True
    corrections: int = 0
    element: int = HALF

    @property
    def panels(self) -> int:
        return -(-self.order // self.block)

    @property
    def operations(self) -> float:
        """As HPL-MxP counts them, whatever refinement takes."""
        return (2 / 3 * self.order + 3 / 2) * self.order**2


@dataclass(frozen=True, kw_only=True)
class Process:
    """What one process has of its node. Rates in operations or bytes a second; of NICs, each way."""

    half_rate: float  # of large products, 16 bits in and FP32 out
    gemm_memory: float
    gemm_exposed: float  # share of the trailing matrix' traffic that products do not hide
    gemm_tile: int  # a product is made of square tiles, a wave of them at a time
    gemm_tiles: int  # of a wave
    gpus: int  # that its columns are divided among: each has the whole left panel
    call: float  # seconds, of one call of a library
    triangle_rate: float  # operations a second, of what does the triangular solves
    panel_rate: float  # operations a second in FP32, of what factors the diagonal block
    message: float  # seconds, of a small one
    nic_rate: float  # of all its NICs
    copy_in: float = math.inf  # to all its GPUs
    copy_out: float = math.inf
    triangle_on_host: bool = False
    direct: bool = False  # messages leave and reach GPUs' memory, without a copy on the processors
    one_queue: bool = False  # of a GPU: copies and products wait for one another
    mapping: hpl.Mapping = hpl.KEPT


@dataclass(frozen=True, kw_only=True)
class Step:
    """Seconds by part, and what the step takes."""

    gemm: float
    factor: float  # of the diagonal block
    triangle: float
    broadcast: float
    took: float

    @property
    def panel(self) -> float:
        return self.factor + self.triangle + self.broadcast

    @property
    def bound(self) -> str:
        """The part that bounds it."""
        return max(BOUNDS, key=lambda name: getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    time: float
    first: float  # the first panel, which nothing hides
    refinement: float  # the solve with the factors, and each correction
    bound: dict[str, float]  # seconds of steps by what bounds them
    sums: dict[str, float]  # seconds of each part, hidden or not
    steps: Sequence[tuple[int, int, Step]]  # the first panel of a stretch, how many are like it, its step
    unhidden_from: int  # the panel from which on something takes longer than multiplying; `panels`: none


def outcome(problem: Problem, process: Process) -> Outcome:
    time, unhidden_from = 0.0, problem.panels
    bound = dict.fromkeys(BOUNDS, 0.0)
    sums = dict.fromkeys(("gemm", "factor", "triangle", "broadcast"), 0.0)
    steps = []
    for first, count in hpl.stretches(problem.panels, problem.rows, problem.columns):
        found = step(problem, process, first)
        time += found.took * count
        bound[found.bound] += found.took * count
        for name in sums:
            sums[name] += getattr(found, name) * count
        if found.took:  # the last panel has nothing to its right
            unhidden_from = min(unhidden_from, first) if found.bound != "gemm" else problem.panels
        steps.append((first, count, found))
    opening = _panel(problem, process, problem.panels)[0]
    refinement = _refinement(problem, process)
    return Outcome(
        time=time + opening + refinement,
        first=opening,
        refinement=refinement,
        bound=bound,
        sums=sums,
        steps=steps,
        unhidden_from=unhidden_from,
    )


def step(problem: Problem, process: Process, number: int) -> Step:
    """Panel `number` is multiplied onto what is right of it, while the next one is made and sent."""
    blocks = problem.panels - number - 1  # of the trailing matrix, each way
    if not blocks:
        return Step(gemm=0.0, factor=0.0, triangle=0.0, broadcast=0.0, took=0.0)
    below = -(-blocks // problem.rows) * problem.block
    right = -(-blocks // problem.columns) * problem.block
    gemm = _gemm(problem, process, below, right)
    if process.one_queue and problem.look_ahead:
        gemm += _copied(process, *_strips(problem, blocks))
    panel, factor, triangle, broadcast = _panel(problem, process, blocks)
    took = max(gemm, panel) if problem.look_ahead else gemm + panel
    return Step(gemm=gemm, factor=factor, triangle=triangle, broadcast=broadcast, took=took)


def _gemm(problem: Problem, process: Process, below: int, right: int) -> float:
    """Whole waves of tiles, and what they read and write of the matrix before and after their products."""
    tile = process.gemm_tile
    waves = -(-(-(-below // tile) * -(-right // tile)) // process.gemm_tiles)
    padded = waves * process.gemm_tiles * tile * tile
    traffic = 2 * problem.element * below * right / process.gemm_memory
    return 2.0 * padded * problem.block / process.half_rate + process.gemm_exposed * traffic + process.call


def _panel(problem: Problem, process: Process, blocks: int) -> tuple[float, float, float, float]:
    """Of the block column and row that begin with a diagonal block: all of it, and by part. It has no pivots, so that
    a block's factors are all that its column and row need."""
    block = problem.block
    below = -(-blocks // problem.rows) * block
    right = -(-blocks // problem.columns) * block
    factor = 2 / 3 * block**3 / process.panel_rate + process.call
    triangle = block**2 * (below + right) / process.triangle_rate + 2 * process.call
    # The factors go along the row and the column, then each part of the column along its row, and the reverse.
    small = float(SINGLE * block**2)
    left, upper = _strips(problem, blocks)
    sent = left * (problem.columns > 1) + upper * (problem.rows > 1)
    hops = math.ceil(math.log2(problem.rows)) + math.ceil(math.log2(problem.columns))
    network = hops * (process.message + small / process.nic_rate) + sent / process.nic_rate + 2 * process.message
    mapped = process.mapping.of(hops + 2, hops * small + sent)
    broadcast = network + mapped + _copied(process, left, upper)
    return factor + triangle + broadcast, factor, triangle, broadcast


def _strips(problem: Problem, blocks: int) -> tuple[float, float]:
    """Bytes of a process' part of the block column, and of the block row."""
    below = -(-blocks // problem.rows) * problem.block
    right = -(-blocks // problem.columns) * problem.block
    return float(problem.element * problem.block * below), float(problem.element * problem.block * right)


def _copied(process: Process, left: float, upper: float) -> float:
    """To and from the GPUs, as messages are the processors': each GPU gets the whole block column."""
    out = (left + upper) / process.copy_out
    if process.direct:
        return out if process.triangle_on_host else 0.0
    return out + (process.gpus * left + upper) / process.copy_in


def _refinement(problem: Problem, process: Process) -> float:
    """Each solve reads both factors once, and goes on from block to block in a reduction and a broadcast. A residual
    makes the matrix anew, and sums a vector over all processes."""
    own = problem.order**2 / (problem.rows * problem.columns)
    hops = math.ceil(math.log2(problem.rows)) + math.ceil(math.log2(problem.columns))
    chain = problem.panels * hops * (2 * process.message + process.mapping.of(2, 0))
    solve = problem.element * own / process.gemm_memory + chain
    vector = 2 * DOUBLE * problem.order / process.nic_rate
    residual = DOUBLE * own / process.gemm_memory + vector
    return solve + residual + problem.corrections * (solve + residual + vector)


def local_bytes(problem: Problem) -> int:
    """Of the process with most: its matrix, two left panels and one right one."""
    below = -(-problem.panels // problem.rows) * problem.block
    right = -(-problem.panels // problem.columns) * problem.block
    return problem.element * (below * right + problem.block * (2 * below + right))

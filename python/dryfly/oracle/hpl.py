"""High-Performance Linpack in closed form: a sum over panels, as the Aurora experience report models a step.

A step takes max(T_DGEMM, T_PFACT + T_BCAST, T_SWAP): with a look-ahead of one, the update of the trailing matrix, the
next panel with its broadcast, and the exchange of rows go on at the same time. docs/model/hpl.md has where each term
comes from and how sure it is. Times are those of the process with most blocks, in seconds; sizes in bytes.

Left out: queues in the network, skew between processes and how long it lasts, and memory that copies share with NICs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WORD = 8  # bytes of a number in FP64
SPREAD_ROLL = 2.4  # times the rows' bytes: what the exchange moves, by HPL's own documentation (2 to 3)
BOUNDS = ("gemm", "panel", "swap", "copies", "nics")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """`rows` x `columns` is the grid of processes, P x Q."""

    order: int
    block: int
    rows: int
    columns: int
    broadcast: str = "ring"  # or long
    swap: str = "spread"  # or binary, or mix
    swap_threshold: int = 0  # columns up to which mix is binary
    look_ahead: bool = True
    on_host: bool = False  # the matrix lies in the memory of processors: products stream it through

    @property
    def panels(self) -> int:
        return -(-self.order // self.block)

    @property
    def operations(self) -> float:
        """As HPL counts them."""
        return (2 / 3 * self.order + 3 / 2) * self.order**2


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """What it takes, in seconds, to make a buffer known to the NIC and to end that again. Nothing, where it is kept."""

    call: float = 0.0
    of_page: float = 0.0
    page: int = 4096  # bytes

    def of(self, messages: float, size: float) -> float:
        """Of as many messages sent and as many received, of `size` bytes together each way."""
        return 2 * (messages * self.call + max(messages, size / self.page) * self.of_page)


KEPT = Mapping()


@dataclass(frozen=True, kw_only=True)
class Process:
    """What one process has of its node. Rates in operations or bytes a second; of NICs, each way."""

    gemm_rate: float  # of large products
    gemm_memory: float  # of the memory that the matrix lies in
    gemm_exposed: float  # share of the trailing matrix' traffic that products do not hide
    gemm_tile: int  # a product is made of square tiles, a wave of them at a time
    gemm_tiles: int  # of a wave
    call: float  # seconds, of one call of a library
    triangle_share: float  # of gemm_rate, in the triangular solve
    panel_rate: float
    panel_memory: float
    host_memory: float  # of the processors, for a matrix that lies there
    panel_base: int  # columns: below them the recursive factorisation stays in caches, however long they are
    panel_cache: float = 0.0  # bytes of the last caches: what columns fit stay there, too
    panel_call: float  # seconds for each column, besides messages
    message: float  # seconds, of a small one
    swap_rate: float
    swap_off_node: float  # share of the rows' bytes that leave the node
    broadcast_rate: float
    nic_rate: float  # of all NICs for the process, where phases share them; 0: each phase has its own
    copy_in: float = math.inf  # to the GPU
    copy_out: float = math.inf
    direct: bool = False  # messages leave and reach the GPU's memory, without a copy on the processors
    panel_on_gpu: bool = False
    one_queue: bool = False  # of the GPU: copies and products wait for one another
    mapping: Mapping = KEPT


@dataclass(frozen=True, kw_only=True)
class Step:
    """Seconds by part, and what the step takes."""

    gemm: float
    factor: float
    broadcast: float
    swap: float
    copies: float  # of the matrix itself, where it does not lie beside what multiplies
    nics: float  # what NICs that phases share need for all of them
    took: float

    @property
    def panel(self) -> float:
        return self.factor + self.broadcast

    @property
    def bound(self) -> str:
        """The part that bounds it."""
        return max(BOUNDS, key=lambda name: getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    time: float
    first: float  # the first panel, which nothing hides
    solve: float  # back substitution
    bound: dict[str, float]  # seconds of steps by what bounds them
    sums: dict[str, float]  # seconds of each part, hidden or not
    steps: Sequence[tuple[int, int, Step]]  # the first panel of a stretch, how many are like it, its step
    swap_from: int  # the panel from which on, to the end, swapping takes longer than multiplying; `panels`: none
    unhidden_from: int  # from which on something does


def outcome(problem: Problem, process: Process) -> Outcome:
    panels = problem.panels
    time, swap_from, unhidden_from = 0.0, panels, panels
    bound = dict.fromkeys(BOUNDS, 0.0)
    sums = dict.fromkeys(("gemm", "factor", "broadcast", "swap", "copies", "nics"), 0.0)
    steps = []
    for first, count in stretches(problem.panels, problem.rows, problem.columns):
        found = step(problem, process, first)
        took = found.took * count
        time += took
        bound[found.bound] += took
        for name in sums:
            sums[name] += getattr(found, name) * count
        if found.took:  # the last panel has nothing to its right
            swap_from = min(swap_from, first) if found.swap > found.gemm else panels
            unhidden_from = min(unhidden_from, first) if found.bound != "gemm" else panels
        steps.append((first, count, found))
    opening = _first(problem, process)
    solve = _back_substitution(problem, process)
    return Outcome(
        time=time + opening + solve,
        first=opening,
        solve=solve,
        bound=bound,
        sums=sums,
        steps=steps,
        swap_from=swap_from,
        unhidden_from=unhidden_from,
    )


def stretches(panels: int, rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Panels whose steps are alike, because the process with most blocks has as many: the first one, and how many."""
    number = 0
    while number < panels:
        blocks = panels - number - 1
        least = max((-(-blocks // way) - 1) * way for way in (rows, columns)) if blocks else -1
        yield number, blocks - least
        number += blocks - least


def step(problem: Problem, process: Process, number: int) -> Step:
    """Panel `number` is multiplied onto what is right of it, while the next one is factored and sent."""
    block = problem.block
    blocks = problem.panels - number - 1  # of the trailing matrix, each way
    below = -(-blocks // problem.rows) * block
    right = -(-blocks // problem.columns) * block
    gemm = _gemm(process, below, right, block)
    if process.one_queue and problem.look_ahead:
        gemm += _copied(problem, process, below, right)
    factor = _factor(problem, process, below)
    broadcast, sent = _broadcast(problem, process, below)
    swap, swapped = _swap(problem, process, right)
    copies = 0.0
    if problem.on_host:
        matrix = WORD * below * right
        copies = max(matrix / process.copy_in, matrix / process.copy_out)
    nics = (sent + swapped) / process.nic_rate if process.nic_rate else 0.0
    together = max if problem.look_ahead else _sum
    took = together((max(gemm, copies), factor + broadcast, swap))
    return Step(
        gemm=gemm, factor=factor, broadcast=broadcast, swap=swap, copies=copies, nics=nics, took=max(took, nics)
    )


def _sum(parts: Sequence[float]) -> float:
    return sum(parts)


def _gemm(process: Process, below: int, right: int, block: int) -> float:
    """The triangular solve of the rows, and the product: whole waves of tiles, and what they read and write of the
    matrix before and after their products."""
    if not right:
        return 0.0
    tile = process.gemm_tile
    waves = -(-(-(-below // tile) * -(-right // tile)) // process.gemm_tiles)
    padded = waves * process.gemm_tiles * tile * tile
    triangle = block * block * right / (process.gemm_rate * process.triangle_share)
    traffic = 2 * WORD * below * right / process.gemm_memory
    product = 2.0 * padded * block / process.gemm_rate
    return triangle + product + process.gemm_exposed * traffic + 2 * process.call


def _factor(problem: Problem, process: Process, below: int) -> float:
    """Recursive, with a search for a pivot in each column: a binary exchange of the candidate's row and the current
    one."""
    if not below:
        return 0.0
    block = problem.block
    operations = float(below) * block * block
    in_caches = max(process.panel_base, process.panel_cache / (WORD * below))
    levels = max(0.0, math.log2(block / in_caches))
    traffic = 2 * WORD * below * block * (1 + levels)
    candidates = WORD * (2 * block + 4)
    exchange = process.message + candidates / process.swap_rate + process.mapping.of(1, candidates)
    pivots = block * (math.ceil(math.log2(problem.rows)) * exchange + process.panel_call)
    copied = 0.0 if process.direct and process.panel_on_gpu else WORD * below * block / process.copy_out
    return operations / process.panel_rate + traffic / process.panel_memory + pivots + copied


def _broadcast(problem: Problem, process: Process, below: int) -> tuple[float, float]:
    """Of the factored panel along a row of processes: its time, and the bytes of a process.

    In a ring a process passes on what it gets, and the next panel's owner gets it first: the others lag behind, but no
    step waits for the whole ring. `long` spreads the panel and rolls its pieces: all have it after twice its bytes."""
    if problem.columns == 1 or not below:
        return 0.0, 0.0
    size = float(WORD * (below * problem.block + problem.block * (problem.block + 1)))
    if problem.broadcast == "long":
        sent = 2 * size * (problem.columns - 1) / problem.columns
        messages = math.ceil(math.log2(problem.columns)) + problem.columns - 1
    else:
        sent, messages = size, 1
    copied = 0.0 if process.direct else size / process.copy_in
    mapped = process.mapping.of(messages, sent)
    return sent / process.broadcast_rate + messages * process.message + copied + mapped, sent


def _swap(problem: Problem, process: Process, right: int) -> tuple[float, float]:
    """Of the rows that the pivots name, along a column of processes; each process ends with all of them."""
    if problem.rows == 1 or not right:
        return 0.0, 0.0
    size = float(WORD * problem.block * right)
    rounds = math.ceil(math.log2(problem.rows))
    if problem.swap == "binary" or (problem.swap == "mix" and right <= problem.swap_threshold):
        moved, messages = rounds * size, rounds
    else:
        moved, messages = SPREAD_ROLL * size, rounds + problem.rows - 1
    sent = moved * process.swap_off_node
    copied = 0.0 if process.direct else size / process.copy_out + size / process.copy_in
    mapped = process.mapping.of(messages, sent)
    return sent / process.swap_rate + messages * process.message + copied + mapped, sent


def _copied(problem: Problem, process: Process, below: int, right: int) -> float:
    """To and from the GPU in a step: the panel before it is factored and when it has come, rows both ways."""
    panel = float(WORD * below * problem.block)
    rows = float(WORD * problem.block * right) if problem.rows > 1 else 0.0
    if process.direct:
        return 0.0 if process.panel_on_gpu else panel / process.copy_out
    return panel / process.copy_out + panel / process.copy_in + rows / process.copy_out + rows / process.copy_in


def _first(problem: Problem, process: Process) -> float:
    below = -(-problem.panels // problem.rows) * problem.block
    return _factor(problem, process, below) + _broadcast(problem, process, below)[0]


def _back_substitution(problem: Problem, process: Process) -> float:
    """Each process reads its part of the matrix once; from panel to panel the solution goes on in two messages."""
    local = WORD * problem.order**2 / 2 / (problem.rows * problem.columns)
    memory = process.host_memory if problem.on_host else process.gemm_memory
    messages = 2 if problem.rows * problem.columns > 1 else 0
    return local / memory + problem.panels * (messages * process.message + process.mapping.of(messages, 0))


def block_counts(order: int, block: int, processes: int) -> int:
    """Rows or columns of the process that has most of them."""
    blocks = -(-order // block)
    return -(-blocks // processes) * block


def local_bytes(problem: Problem) -> int:
    """Of the process with most: its matrix, two panels and two sets of exchanged rows."""
    below = block_counts(problem.order, problem.block, problem.rows)
    right = block_counts(problem.order, problem.block, problem.columns)
    return WORD * (below * right + 2 * problem.block * (below + right))

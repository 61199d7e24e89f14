"""`dryfly mpi measure`: counts the instructions of an MPI library's own code, by a run of programs/measure/calls.c in
which each rank is under dryfly-count (app/count_main.cpp)."""

from __future__ import annotations

import platform
import struct
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import LinearRegression, linear_regression, mean, median

from dryfly.base.errors import UserError
from dryfly.base.folder import RunFolder
from dryfly.base.paths import COUNTER, native, programs_folder
from dryfly.base.signals import dying_with_parent
from dryfly.case.case import Case
from dryfly.case.program import prepare
from dryfly.mpi.libraries import MpiLibrary
from dryfly.mpi.software import (
    BOUNDARIES,
    LOOP_PER_KIB,
    NO_PACKING,
    SCHEDULES,
    SENDS,
    SUMS,
    Cost,
    Interval,
    Packing,
    SoftwareTable,
    build_of,
    reduces,
)
from dryfly.run import runner

NODES = 8  # of a rank each; fewer, and MPICH broadcasts in one way only. calls.c has six of them for itself too
_COUNTED = "0,2,3"  # of a tree of ranks the root, a leaf, and one between
_COUNTED_WITHIN = "0,3"  # of two nodes with two ranks each
_WITHIN = "node"  # folder, and argument of calls.c, of the run in which ranks share the memory of their nodes
_WIDE = "wide"  # and of the one with so many ranks that collectives take other ways
_WIDE_RANKS = 16
_COUNTED_WIDE = "0,6,15"
_INTERVAL = struct.Struct("=HBBIQII")  # Interval of preload/clock/software.cpp
_SCHEDULE_SHIFT = 14  # wire::schedule_shift
_PROCESSOR = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512vl", "erms", "fsrm")
_TIMEOUT_S = 3600
_WIDE_KIB = 4.0  # between smaller messages other things differ
_NOT_COUNTED = "instructions cannot be counted: "  # dryfly-count begins so

Sizes = dict[int, list[int]]  # instructions, by the bytes of the message
Counted = dict[str, dict[Interval, Sizes]]


@dataclass(frozen=True, kw_only=True)
class InBlocks:
    """An interval at whose end, or since whose beginning, a message that is not contiguous was put together or taken
    apart."""

    call: str
    interval: Interval
    size: int
    blocks: int
    executed: int

    @property
    def is_pack(self) -> bool:
        return self.interval[1] in SENDS


def measure(library: MpiLibrary, *, say: Callable[[str], None] = lambda _: None) -> SoftwareTable:
    """Minutes, in which `say` is told of each step, and each minute how long it takes. Raises UserError where ranks
    cannot be traced, or the library ends otherwise than it should."""
    if platform.machine() != "x86_64":
        raise UserError(
            f"dryfly mpi measure: accepted is a computer with an x86-64 processor, not {platform.machine()}"
        )
    with RunFolder() as made:
        folder = made.path
        program = prepare(str(programs_folder() / "measure" / "calls.c"), (), mpi=library, build_folder=folder)
        steps = (
            ("", _COUNTED, Case(nodes=NODES, mpi=library.name), f"{NODES} ranks on a node each"),
            (_WIDE, _COUNTED_WIDE, Case(nodes=_WIDE_RANKS, mpi=library.name), f"{_WIDE_RANKS} ranks on a node each"),
            (_WITHIN, _COUNTED_WITHIN, Case(nodes=2, ppn=2, on_node="shared", mpi=library.name),
             "4 ranks on 2 nodes, with their memory"),
        )  # fmt: skip
        for number, (name, ranks, case, what) in enumerate(steps, start=1):
            tell = partial(_tell, say, f"{library.name}: step {number} of {len(steps)}")
            tell(what)
            (folder / name).mkdir(exist_ok=True)
            words = (str(native(COUNTER)), f"--ranks={ranks}", *program.command, *([name] if name else []))
            _count(replace(case, program=words), folder / name, say=tell)
        return table_of(library, folder)


def _tell(say: Callable[[str], None], step: str, text: str) -> None:
    say(f"{step}: {text}")


def _count(case: Case, folder: Path, *, say: Callable[[str], None]) -> None:
    case = replace(
        case,
        compute="none",
        software="none",
        environment=(("DRYFLY_SOFTWARE_RECORD", str(folder)), ("LD_BIND_NOW", "1")),
    )
    command = runner.command_line(case, runner.Runner(quiet=True, timeout_s=_TIMEOUT_S, json=str(folder / "json")))
    with subprocess.Popen(
        command,
        env=runner.environment_of(case),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=dying_with_parent(),
    ) as run:
        said = patiently(run, say)
    if run.returncode != 0:
        raise UserError(f"{case.mpi} cannot be measured: {why(said)}")


def patiently(run: subprocess.Popen[str], say: Callable[[str], None], *, every_s: float = 60.0) -> str:
    """What it has said when it has ended; in the meantime it is told how long that takes. Whoever is interrupted here
    ends it."""
    passed_s = 0.0
    try:
        while True:
            try:
                return run.communicate(timeout=every_s)[0]
            except subprocess.TimeoutExpired:
                passed_s += every_s
                say(f"{passed_s / 60:g} min so far")
    except BaseException:
        run.kill()
        raise


def table_of(library: MpiLibrary, folder: Path) -> SoftwareTable:
    """Of what its ranks have written into the folder. Kinds that 8 ranks on a node each have are taken from these."""
    counted, in_blocks = _read(sorted(folder.glob("intervals-*.bin")))
    if not counted:
        raise UserError(f"{library.name} cannot be measured: no MPI call of it was counted")
    for name in (_WIDE, _WITHIN):
        more, _ = _read(sorted(folder.glob(f"{name}/intervals-*.bin")))
        for call, intervals in more.items():
            for interval, sizes in intervals.items():
                counted[call].setdefault(interval, sizes)
    reductions = _reductions(sorted(folder.glob("reductions-*.txt")))
    return SoftwareTable(
        library=library.name,
        build=build_of(library),
        architecture=platform.machine(),
        processor=_processor(),
        tool=f"dryfly {version('dryfly')}",
        calls={
            call: {interval: cost_in(call, sizes, reductions.get(SUMS, 0.0)) for interval, sizes in of.items()}
            for call, of in counted.items()
        },
        pack=packing_of(counted, [one for one in in_blocks if one.is_pack]),
        unpack=packing_of(counted, [one for one in in_blocks if not one.is_pack]),
        reductions=reductions,
    )


def cost_in(call: str, sizes: Sizes, sums: float) -> Cost:
    """`sums`: instructions for each KiB of a sum of doubles, which reductions are counted with. Long messages are of
    one size, which has no slope: an interval that takes as many is taken to add them up."""
    cost = cost_of(sizes, means=reduces(call))
    if not reduces(call) or not sums or len(sizes) > 1:
        return cost
    kib = next(iter(sizes)) / 1024
    if kib < _WIDE_KIB or cost.instructions < sums * kib:
        return cost
    return replace(cost, instructions=round(cost.instructions - sums * kib, 1), per_kib=sums)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return " ".join(name for name in _PROCESSOR if name in flags)


def why(said: str) -> str:
    """What a rank could not do, and else the last that was said."""
    lines = [line.removeprefix("dryfly: ") for line in said.strip().splitlines()]
    cause = (line for line in lines if line.startswith(_NOT_COUNTED))
    return next(cause, lines[-1] if lines else "the run says nothing")


def _read(files: Iterable[Path]) -> tuple[Counted, list[InBlocks]]:
    counted: Counted = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    in_blocks: list[InBlocks] = []
    for file in files:
        head, _, intervals = file.read_bytes().partition(b"\n\n")
        names = head.decode().split()
        for call, start, end, executed, size, blocks, _ in _INTERVAL.iter_unpack(intervals):
            interval = (BOUNDARIES[start], BOUNDARIES[end])
            schedule, place = divmod(call, 1 << _SCHEDULE_SHIFT)
            name = names[place] + SCHEDULES[schedule]
            if blocks == 0:
                counted[name][interval][size].append(executed)
            elif (interval[0] == "arrived") != (interval[1] in SENDS):  # else it would be both
                one = InBlocks(call=name, interval=interval, size=size, blocks=blocks, executed=executed)
                in_blocks.append(one)
    return counted, in_blocks


def _reductions(files: Iterable[Path]) -> dict[str, float]:
    """Instructions for each KiB: what the larger of two buffers takes more, beside the smaller one."""
    counted: dict[str, dict[int, int]] = defaultdict(dict)
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            datatype, operation, size, executed = line.split()
            counted[f"{datatype} {operation}"][int(size)] = int(executed)
    slopes = {
        name: 1024 * (of[max(of)] - of[min(of)]) / (max(of) - min(of)) for name, of in counted.items() if len(of) > 1
    }
    return {name: round(slope, 1) for name, slope in slopes.items() if slope > 0}  # 0: not an operation for this type


def packing_of(counted: Counted, seen: list[InBlocks]) -> Packing:
    """What intervals take more than the same ones of contiguous messages. Among messages of one size it is a line
    through their numbers of blocks; what that leaves is a line through the sizes."""
    more: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in seen:
        sizes = counted.get(one.call, {}).get(one.interval)
        if sizes:
            plain = median(sizes.get(one.size) or [count for of in sizes.values() for count in of])
            more[one.size][one.blocks].append(one.executed - plain)
    medians = {size: {blocks: median(counts) for blocks, counts in of.items()} for size, of in more.items()}
    largest = max((size for size, of in medians.items() if len(of) > 1), default=None)
    if largest is None:
        return NO_PACKING
    per_block = max(linear_regression(*zip(*medians[largest].items(), strict=True)).slope, 0.0)
    left = [(size / 1024, count - per_block * blocks) for size, of in medians.items() for blocks, count in of.items()]
    if len(medians) > 1:
        line = linear_regression(*zip(*left, strict=True))
    else:
        line = LinearRegression(slope=0.0, intercept=median(count for _, count in left))
    return Packing(
        instructions=round(max(line.intercept, 0.0), 1),
        per_block=round(per_block, 2),
        per_kib=round(max(line.slope, 0.0), 1),
        seen=len(seen),
    )


def cost_of(sizes: Sizes, *, means: bool = False) -> Cost:
    """The median: first calls take detours, which it leaves out; the mean in reductions, which add up in some of their
    steps and not in others. Where the library goes through the data, as where it
    adds up in a reduction, what is more for each KiB is told apart: the slope of a line through the sizes' medians."""
    middle = mean if means else median
    points = sorted((size / 1024, middle(executed), len(executed)) for size, executed in sizes.items())
    seen = sum(weight for _, _, weight in points)
    mean_x = sum(x * weight for x, _, weight in points) / seen
    mean_y = sum(y * weight for _, y, weight in points) / seen
    spread = sum(weight * (x - mean_x) ** 2 for x, _, weight in points)
    slope = sum(weight * (x - mean_x) * (y - mean_y) for x, y, weight in points) / spread if spread else 0.0
    (first_x, first_y, _), (last_x, last_y, _) = points[0], points[-1]
    falls = last_y <= first_y and not means  # the last steps of a reduction, with long messages, only pass on
    if last_x - first_x < _WIDE_KIB or slope < LOOP_PER_KIB or falls:
        flat = median(count for executed in sizes.values() for count in executed)
        return Cost(instructions=round(flat, 1), per_kib=0.0, seen=seen)
    return Cost(instructions=round(max(first_y - slope * first_x, 0.0), 1), per_kib=round(slope, 3), seen=seen)

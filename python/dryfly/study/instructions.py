"""`dryfly mpi measure`: counts the instructions of an MPI library's own code, by a run of programs/measure/calls.c in
which each rank is under dryfly-count (app/count_main.cpp)."""

from __future__ import annotations

import platform
import struct
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from statistics import median

from dryfly.base.errors import UserError
from dryfly.base.folder import RunFolder
from dryfly.base.paths import COUNTER, native, programs_folder
from dryfly.base.signals import dying_with_parent
from dryfly.case.case import Case
from dryfly.case.program import prepare
from dryfly.mpi.libraries import MpiLibrary
from dryfly.mpi.software import BOUNDARIES, LOOP_PER_KIB, Cost, Interval, SoftwareTable, build_of
from dryfly.run import runner

RANKS = 4
_INTERVAL = struct.Struct("=HBBIQ")  # Interval of preload/clock/software.cpp
_TIMEOUT_S = 3600
_WIDE_KIB = 4.0  # between smaller messages other things differ
_NOT_COUNTED = "instructions cannot be counted: "  # dryfly-count begins so

Sizes = dict[int, list[int]]  # instructions, by the bytes of the message


def measure(library: MpiLibrary) -> SoftwareTable:
    """Minutes. Raises UserError where ranks cannot be traced, or the library ends otherwise than it should."""
    if platform.machine() != "x86_64":
        raise UserError(
            f"dryfly mpi measure: accepted is a computer with an x86-64 processor, not {platform.machine()}"
        )
    with RunFolder() as made:
        folder = made.path
        program = prepare(str(programs_folder() / "measure" / "calls.c"), (), mpi=library, build_folder=folder)
        case = Case(
            program=(str(native(COUNTER)), *program.command),
            nodes=RANKS,
            mpi=library.name,
            compute="none",
            software="none",
            environment=(("DRYFLY_SOFTWARE_RECORD", str(folder)), ("LD_BIND_NOW", "1")),
        )
        command = runner.command_line(case, runner.Runner(quiet=True, timeout_s=_TIMEOUT_S, json=str(folder / "json")))
        ended = subprocess.run(
            command,
            env=runner.environment_of(case),
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=dying_with_parent(),
        )
        if ended.returncode != 0:
            raise UserError(f"{library.name} cannot be measured: {why(ended.stdout)}")
        counted = _read(sorted(folder.glob("intervals-*.bin")))
    if not counted:
        raise UserError(f"{library.name} cannot be measured: no MPI call of it was counted")
    return SoftwareTable(
        library=library.name,
        build=build_of(library),
        architecture=platform.machine(),
        tool=f"dryfly {version('dryfly')}",
        calls={call: {interval: cost_of(sizes) for interval, sizes in of.items()} for call, of in counted.items()},
    )


def why(said: str) -> str:
    """What a rank could not do, and else the last that was said."""
    lines = [line.removeprefix("dryfly: ") for line in said.strip().splitlines()]
    cause = (line for line in lines if line.startswith(_NOT_COUNTED))
    return next(cause, lines[-1] if lines else "the run says nothing")


def _read(files: Iterable[Path]) -> dict[str, dict[Interval, Sizes]]:
    counted: dict[str, dict[Interval, Sizes]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for file in files:
        head, _, intervals = file.read_bytes().partition(b"\n\n")
        names = head.decode().split()
        for call, start, end, executed, size in _INTERVAL.iter_unpack(intervals):
            counted[names[call]][(BOUNDARIES[start], BOUNDARIES[end])][size].append(executed)
    return counted


def cost_of(sizes: Sizes) -> Cost:
    """The median: first calls take detours, which it leaves out. Where the library goes through the data, as where it
    adds up in a reduction, what is more for each KiB is told apart: the slope of a line through the sizes' medians."""
    points = sorted((size / 1024, median(executed), len(executed)) for size, executed in sizes.items())
    seen = sum(weight for _, _, weight in points)
    mean_x = sum(x * weight for x, _, weight in points) / seen
    mean_y = sum(y * weight for _, y, weight in points) / seen
    spread = sum(weight * (x - mean_x) ** 2 for x, _, weight in points)
    slope = sum(weight * (x - mean_x) * (y - mean_y) for x, y, weight in points) / spread if spread else 0.0
    (first_x, first_y, _), (last_x, last_y, _) = points[0], points[-1]
    if last_x - first_x < _WIDE_KIB or slope < LOOP_PER_KIB or last_y <= first_y:
        flat = median(count for executed in sizes.values() for count in executed)
        return Cost(instructions=round(flat, 1), per_kib=0.0, seen=seen)
    return Cost(instructions=round(max(first_y - slope * first_x, 0.0), 1), per_kib=round(slope, 3), seen=seen)

"""What an MPI library's own code executes between two boundaries: the tables, and what a run is given of them.

A table is a TOML file of a library's release: data/mpi/software/NAME.toml for those that dryfly's tests use, the user's
cache for what `dryfly mpi measure` has counted there. rank/software.hpp says what a boundary is; docs/model/software.md
how the instructions were counted and how they become time.
"""

from __future__ import annotations

import hashlib
import math
import platform
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dryfly.base import toml
from dryfly.base.errors import UserError
from dryfly.base.files import write_whole
from dryfly.base.paths import cache_folder, data_folder
from dryfly.mpi.libraries import MpiLibrary, installed

# In the order of rank::Boundary.
BOUNDARIES = (
    "call", "inject", "send_short", "send_eager", "send_long", "receive", "peek", "write", "read", "atomic", "poll",
    "sent", "arrived", "done", "counter", "memory",
)  # fmt: skip
_PLACES = {name: place for place, name in enumerate(BOUNDARIES)}
_SQUARE = 17  # rank::boundary_count
_ASSUMED = 1 << 31
_LARGEST = _ASSUMED - 1
_FORMAT = b"dfsoft02"
SCHEDULES = ("", " (collective)", " (reduction)")  # wire::schedule_suffixes: what a call waits for
_ADDS_UP = "MPI_Reduce_local"
_LIKE_WAITS = {
    "MPI_Wait": ("MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"),
    "MPI_Test": ("MPI_Testall", "MPI_Testany", "MPI_Testsome"),
}
_NEXT = {"send_long": "send_eager"}
_TYPE_NAME, _OPERATION_NAME, _REDUCTION_UNIT = 32, 16, 1024  # rank::ReductionCost
SUMS = "MPI_DOUBLE MPI_SUM"  # what is counted within MPI calls
INJECTED_MAX = 192  # nic.inline
LOOP_PER_KIB = 64.0  # whoever goes through data takes at least an instruction for 16 bytes of it
LOOKS = frozenset({"poll", "counter"})
SENDS = frozenset({"inject", "send_short", "send_eager", "send_long"})
_LOOP_TIME = (
    0.2  # of an instruction in a loop over data, beside one of MPI's own code: docs/model/software.md#reductions
)

Interval = tuple[str, str]  # from one boundary to another


@dataclass(frozen=True, kw_only=True)
class Cost:
    instructions: float
    per_kib: float  # more for each KiB of the message at one of its ends, where it goes through the data
    seen: int  # how often it was counted


@dataclass(frozen=True, kw_only=True)
class Packing:
    """Of a message that is put together from blocks of memory, or taken apart."""

    instructions: float
    per_block: float
    per_kib: float
    seen: int


NO_PACKING = Packing(instructions=0.0, per_block=0.0, per_kib=0.0, seen=0)


@dataclass(frozen=True, kw_only=True)
class SoftwareTable:
    library: str
    build: str  # build_of the library
    architecture: str
    processor: str  # what of the computer's processor a library may choose its code by
    tool: str  # version of dryfly
    calls: Mapping[str, Mapping[Interval, Cost]]
    pack: Packing
    unpack: Packing
    reductions: Mapping[str, float]  # "MPI_DOUBLE MPI_SUM": instructions for each KiB


def build_of(library: MpiLibrary) -> str:
    """What tells one build of a release from another: a digest of libmpi and libfabric."""
    return _digest(library.libmpi, library.libfabric)


@cache
def _digest(*paths: str) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with Path(path).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def cached_file(name: str) -> Path:
    return cache_folder() / "mpi" / "software" / f"{name}.toml"


def make_cache() -> None:
    folder = cached_file("any").parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}); -o FILE writes the table elsewhere") from None


def files_of(name: str) -> list[Path]:
    """The user's table of the library of that name, and dryfly's own, as far as they are there."""
    paths = (cached_file(name), data_folder() / "mpi" / "software" / f"{name}.toml")
    return [path for path in paths if path.is_file()]


def file_of(name: str) -> Path | None:
    return next(iter(files_of(name)), None)


def load(library: MpiLibrary) -> SoftwareTable | None:
    """None where its instructions have not been counted. Raises UserError for a table of another build."""
    path = file_of(library.name)
    return None if path is None else _fitting(path, library)


def charged(
    how: str | None, library: MpiLibrary, *, say: Callable[[str], None] = lambda _: None
) -> SoftwareTable | None:
    """What a run with `--software how` charges. None takes the first table that fits this very build, if there is one,
    and `say` is told why the user's own does not; whoever asks for measured gets that as a UserError."""
    if how == "none":
        return None
    if how == "measured":
        table = load(library)
        if table is None:
            raise UserError(
                f"--software measured: the instructions of {library.name} have not been counted; "
                f"{how_to_count(library.name)} counts them"
            )
        return table
    for path in files_of(library.name):
        try:
            return _fitting(path, library)
        except UserError as error:
            if path == cached_file(library.name):
                say(str(error))
    return None


def _fitting(path: Path, library: MpiLibrary) -> SoftwareTable:
    table = read(path)
    _require_same_build(table, library, path)
    return table


def how_to_count(name: str) -> str:
    """The command, with that which sets the library up where that is needed and a wheel can be meant."""
    count = f"dryfly mpi measure {name}"
    family, _, version = name.partition("-")
    if family not in ("mpich", "openmpi") or not version or any(library.name == name for library in installed()):
        return f'"{count}"'
    return f'"dryfly mpi add {family}=={version} && {count}"'


def _require_same_build(table: SoftwareTable, library: MpiLibrary, path: Path) -> None:
    for what, counted, here in (
        ("library", table.library, library.name),
        ("processor architecture", table.architecture, platform.machine()),
        ("build", table.build, build_of(library)),
    ):
        if counted != here:
            raise UserError(
                f"{path}: it was counted for {what} {counted}, and this is {here}; "
                f'"dryfly mpi measure {library.name}" counts it anew, --software none does without'
            )


def read(path: Path) -> SoftwareTable:
    try:
        content = toml.content_of(path.read_text(encoding="utf-8"))
        return SoftwareTable(
            library=content["library"],
            build=content["build"],
            architecture=content["architecture"],
            processor=content["processor"],
            tool=content["tool"],
            calls={
                call: {_interval(text): _cost(numbers) for text, numbers in intervals.items()}
                for call, intervals in content["calls"].items()
            },
            pack=_packing(content["packing"]["pack"]),
            unpack=_packing(content["packing"]["unpack"]),
            reductions={name: _reduction(name, per_kib) for name, per_kib in content["reductions"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f'{path}: not a table of software costs: {error}; "dryfly mpi measure {path.stem}" makes one'
        ) from None


def _interval(text: str) -> Interval:
    first, second = text.split(" ")
    if first not in BOUNDARIES or second not in BOUNDARIES:
        raise ValueError(f"unknown boundary in {text!r}")
    return first, second


def _cost(numbers: list[float]) -> Cost:
    instructions, per_kib, seen = numbers
    if not all(map(math.isfinite, numbers)) or instructions < 0 or per_kib < 0 or seen < 1:
        raise ValueError(f"{numbers}: accepted are instructions, instructions per KiB, and how often they were seen")
    return Cost(instructions=instructions, per_kib=per_kib, seen=int(seen))


def _packing(numbers: list[float]) -> Packing:
    instructions, per_block, per_kib, seen = numbers
    if not all(map(math.isfinite, numbers)) or min(numbers) < 0:
        raise ValueError(f"{numbers}: accepted are instructions, for each block, for each KiB, and how often seen")
    return Packing(instructions=instructions, per_block=per_block, per_kib=per_kib, seen=int(seen))


def _reduction(name: str, per_kib: float) -> float:
    datatype, operation = name.split(" ")
    if not math.isfinite(per_kib) or per_kib < 0 or len(datatype) >= _TYPE_NAME or len(operation) >= _OPERATION_NAME:
        raise ValueError(f"{name!r} = {per_kib}: accepted are a type and an operation, and instructions for each KiB")
    return per_kib


def write(table: SoftwareTable, path: Path) -> None:
    content = {
        "library": table.library,
        "build": table.build,
        "architecture": table.architecture,
        "processor": table.processor,
        "tool": table.tool,
        "packing": {"pack": _numbers(table.pack), "unpack": _numbers(table.unpack)},
        "reductions": dict(sorted(table.reductions.items())),
        "calls": {
            call: {
                " ".join(interval): [cost.instructions, cost.per_kib, cost.seen]
                for interval, cost in sorted(of.items())
            }
            for call, of in sorted(table.calls.items())
        },
    }
    head = (
        f"# Instructions that {table.library} executes by its own code between two boundaries, counted by\n"
        f"# `dryfly mpi measure {table.library}`: how many, how many more for each KiB of it, how often seen.\n"
        "# Packing: how many, how many more for each block, for each KiB, how often seen. Reductions: for each KiB.\n"
    )
    write_whole(path, (head + toml.text(content)).encode())


def _numbers(packing: Packing) -> list[float]:
    return [packing.instructions, packing.per_block, packing.per_kib, packing.seen]


@dataclass(frozen=True, kw_only=True)
class Prices:
    instruction_ps: int
    data_ps_per_kib: int  # of data that the library goes through, where memory is what binds its loop

    def loop_ps_per_kib(self, instructions_per_kib: float) -> int:
        """A loop over data takes what memory takes, or its instructions."""
        instructions_ps = round(instructions_per_kib * self.instruction_ps * _LOOP_TIME)
        return min(max(self.data_ps_per_kib, instructions_ps), _LARGEST)


class Charges:
    """What a run charges by a table. An interval that a call lacks costs the call's mean, and a call that is not there
    the mean of those that are."""

    def __init__(self, table: SoftwareTable) -> None:
        self.calls = {call: _Costs(intervals) for call, intervals in sorted(_with_like_waits(table.calls).items())}
        self.others = _of_unknown_call(table.calls)

    def cost(self, call: str, interval: Interval) -> tuple[Cost, str]:
        """And how it is known: counted, by the mean of the call's, or by that of the others'."""
        call = call.removesuffix("_c")  # with large counts it is the plain one in all else
        if call not in self.calls:
            return self.others.of(interval), "others"
        cost = self.calls[call].of(interval)
        return cost, "counted" if cost.seen else "call"


def encoded(table: SoftwareTable, prices: Prices) -> bytes:
    """The file that DRYFLY_SOFTWARE names: rank::SoftwareTable. Means are marked."""
    charges = Charges(table)
    sums = table.reductions.get(SUMS, 0.0)
    rows = [_row("", charges.others, prices, sums)]
    rows += [_row(call, costs, prices, sums) for call, costs in charges.calls.items()]
    reductions = [_reduction_row(name, per_kib, prices, sums) for name, per_kib in sorted(table.reductions.items())]
    head = struct.pack("=8sQQ", _FORMAT, len(rows), len(reductions))
    packing = _packing_row(table.pack, prices) + _packing_row(table.unpack, prices)
    return head + packing + b"".join(rows) + b"".join(reductions)


def of_messages(table: SoftwareTable, size: int) -> dict[str, float]:
    """Instructions of the library's own code that go with a send, a receive and their completions, of `size` bytes, in
    a window of MPI_Isend and MPI_Irecv with an MPI_Waitall."""
    send = "inject" if size <= INJECTED_MAX else "send_eager"
    of_send = _sum(table, ("MPI_Isend", ("call", send)), ("MPI_Isend", (send, "call")))
    return {
        "send": of_send,
        "send_fetched": of_send,
        "receive": _sum(table, ("MPI_Irecv", ("call", "receive")), ("MPI_Irecv", ("receive", "call"))),
        "sent": _sum(table, ("MPI_Waitall", ("sent", "poll"))),
        "received": _sum(table, ("MPI_Waitall", ("arrived", "poll"))),
    }


def of_doubling(table: SoftwareTable) -> dict[str, float]:
    """The same for a round of an MPI_Allreduce of up to INJECTED_MAX bytes: a completion is followed by the next
    receive and send."""
    return {
        "send": _sum(table, ("MPI_Allreduce", ("receive", "inject"))),
        "receive": _sum(table, ("MPI_Allreduce", ("arrived", "receive"))),
    }


def _sum(table: SoftwareTable, *intervals: tuple[str, Interval]) -> float:
    charges = Charges(table)
    return sum(charges.cost(call, interval)[0].instructions for call, interval in intervals)


def _mean(costs: list[Cost]) -> Cost:
    seen = sum(cost.seen for cost in costs)
    instructions = sum(cost.instructions * cost.seen for cost in costs) / max(seen, 1)
    return Cost(instructions=instructions, per_kib=0.0, seen=0)


def _with_like_waits(calls: Mapping[str, Mapping[Interval, Cost]]) -> dict[str, Mapping[Interval, Cost]]:
    """Waits and tests for schedules that were not counted cost what the one for a single request does; those that add
    up, in a table of before they were told apart, what others do."""
    made = dict(calls)
    collective, reduction = SCHEDULES[1:]
    for call in calls:
        if call.endswith(collective):
            made.setdefault(call.removesuffix(collective) + reduction, calls[call])
    for like, others in _LIKE_WAITS.items():
        for schedule in (collective, reduction):
            if like + schedule in made:
                for call in others:
                    made.setdefault(call + schedule, made[like + schedule])
    return made


class _Costs:
    """Of a call: of its intervals, and the mean of them for any other."""

    def __init__(self, intervals: Mapping[Interval, Cost]) -> None:
        self.intervals = intervals
        self.usual = _mean([cost for (start, end), cost in intervals.items() if not {start, end} <= LOOKS])

    def of(self, interval: Interval) -> Cost:
        start, end = interval
        # A long message that was not counted there is sent as an eager one is.
        return self.intervals.get(interval) or self.intervals.get((start, _NEXT.get(end, end))) or self.usual


def _of_unknown_call(calls: Mapping[str, Mapping[Interval, Cost]]) -> _Costs:
    of_interval: dict[Interval, list[Cost]] = {}
    for intervals in calls.values():
        for interval, cost in intervals.items():
            of_interval.setdefault(interval, []).append(cost)
    return _Costs({interval: _mean(costs) for interval, costs in of_interval.items()})


def _data_ps_per_kib(call: str, cost: Cost, prices: Prices, sums: float) -> int:
    """Of intervals that add up in some of a reduction's steps the table has the mean."""
    if cost.per_kib < LOOP_PER_KIB:
        return 0
    if not reduces(call) or sums == 0:
        return prices.loop_ps_per_kib(cost.per_kib)
    return round(prices.loop_ps_per_kib(sums) * min(cost.per_kib / sums, 1.0))


def reduces(call: str) -> bool:
    return "reduc" in call.lower() or "scan" in call.lower()


def _row(call: str, costs: _Costs, prices: Prices, sums: float) -> bytes:
    def numbers_of(cost: Cost) -> list[int]:
        ps = min(round(cost.instructions * prices.instruction_ps), _LARGEST)
        added_ps = prices.loop_ps_per_kib(sums) if call == _ADDS_UP and sums else 0
        return [ps | (_ASSUMED if cost.seen == 0 else 0), added_ps or _data_ps_per_kib(call, cost, prices, sums)]

    places = len(BOUNDARIES)
    to_any = numbers_of(costs.usual) * places + [0, 0] * (_SQUARE - places)
    numbers = to_any * places + [0] * len(to_any) * (_SQUARE - places)
    for start, end in {
        *costs.intervals,
        *((start, "send_long") for start, end in costs.intervals if end == "send_eager"),
    }:
        cost = costs.of((start, end))
        at = 2 * (_PLACES[start] * _SQUARE + _PLACES[end])
        numbers[at : at + 2] = numbers_of(cost)
    return struct.pack(f"=48s{len(numbers)}I", call.encode(), *numbers)


def _packing_row(cost: Packing, prices: Prices) -> bytes:
    per_block_ps = round(cost.per_block * prices.instruction_ps * _LOOP_TIME)
    per_kib_ps = prices.loop_ps_per_kib(cost.per_kib) if cost.per_kib >= LOOP_PER_KIB else 0  # else copied
    return struct.pack("=3I", round(cost.instructions * prices.instruction_ps), per_block_ps, per_kib_ps)


def _reduction_row(name: str, per_kib: float, prices: Prices, sums: float) -> bytes:
    datatype, operation = name.split(" ")
    scale = round(_REDUCTION_UNIT * prices.loop_ps_per_kib(per_kib) / prices.loop_ps_per_kib(sums))
    sizes = f"={_TYPE_NAME}s{_OPERATION_NAME}sI"
    return struct.pack(sizes, datatype.encode(), operation.encode(), scale)

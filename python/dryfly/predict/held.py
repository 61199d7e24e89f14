"""A skeleton held against a real program: messages and bytes of an iteration, by size.

The program is run by real ranks, without computing and with all messages through NICs, and recorded. An iteration of
it are so many calls of MPI_Allreduce as the workload's has, with what a rank sends from the first one on to the one
after the last; of all that there are in a run, those are taken that send most of its messages. So nothing need be known
of the program but that it iterates: setting up, tests and other solves are left aside.
"""

from __future__ import annotations

import resource
import shlex
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError, UserError
from dryfly.base.folder import RunFolder
from dryfly.base.grid import Grid
from dryfly.base.printer import Printer
from dryfly.base.signals import dying_with_parent
from dryfly.base.units import size_text
from dryfly.case import memory, program
from dryfly.case.bind import bind, library_of
from dryfly.case.case import Case
from dryfly.case.placement import RANKS_MAX
from dryfly.predict import skeleton
from dryfly.predict.question import Question
from dryfly.result import tables
from dryfly.run.runner import Runner, command_line, environment_of

SUMS = {"hpcg": 3, "nekbone": 3}  # calls of MPI_Allreduce in an iteration
BOUND = 0.1
_COUNTS = 0.02  # share of all messages, or of all bytes, from which on a class of sizes is held to the bound
_DESCRIPTORS_OF_RANK, _DESCRIPTORS = 4, 64  # that launch/starter.cpp takes

Sizes = Counter[int]  # how many messages there are of each


@dataclass(frozen=True, kw_only=True)
class Class:
    """Of sizes, with (messages, bytes)."""

    least: int
    most: int
    program: tuple[float, float]
    skeleton: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Held:
    command: str
    times: int  # that the iteration was seen on each rank, at least
    classes: Sequence[Class]

    @property
    def all(self) -> Class:
        return Class(
            least=0,
            most=self.classes[-1].most,
            program=_sum([each.program for each in self.classes]),
            skeleton=_sum([each.skeleton for each in self.classes]),
        )

    @property
    def outside(self) -> Sequence[Class]:
        """Classes that count, and all together, that are further apart than the bound."""
        every = self.all
        counts = [each for each in self.classes if _share(each, every) >= _COUNTS]
        return [each for each in (*counts, every) if any(abs(_apart(each, of)) > BOUND for of in (0, 1))]

    def content(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "iterations": self.times,
            "within": not self.outside,
            "classes": [
                {
                    "least_bytes": each.least,
                    "most_bytes": each.most,
                    **{f"program_{of}": each.program[at] for at, of in enumerate(("messages", "bytes"))},
                    **{f"skeleton_{of}": each.skeleton[at] for at, of in enumerate(("messages", "bytes"))},
                }
                for each in self.classes
            ],
        }


def check_workload(workload: str) -> None:
    """Raises UserError."""
    if workload not in SUMS:
        raise UserError(f"--program: accepted with {' and '.join(SUMS)}, whose iterations can be told from one another")


def check(question: Question, command: str) -> None:
    """Raises UserError."""
    check_workload(question.workload)
    words(command)
    for flag, given in (("--faults", question.faults is not None), ("--noise", question.noise != "none")):
        if given:
            raise UserError(f"{flag} with --program: messages are counted where all is well; leave it out")
    if question.ranks < 2:
        raise UserError("--program: one rank sends no messages; accepted are 2 ranks or more")
    if question.parameter("on_node") != "nic":
        raise UserError(
            f"on_node={question.parameter('on_node')} with --program: only what goes through NICs is recorded; "
            "accepted is nic"
        )
    _check_ranks(question.ranks)
    case = _case(question, command)
    try:
        bind(case)
        library = library_of(case, needed=program.family(case.program))
        with RunFolder() as folder:
            program.prepare(case.program[0], case.program[1:], mpi=library, build_folder=folder.path)
    except UserError as error:
        raise UserError(f"--program: {error}") from None


def _check_ranks(ranks: int) -> None:
    """Raises UserError for more than can be started."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most, why = RANKS_MAX, "which are real processes"
    if limit != resource.RLIM_INFINITY and ranks * _DESCRIPTORS_OF_RANK + _DESCRIPTORS > limit:
        fewer = max(0, limit - _DESCRIPTORS) // _DESCRIPTORS_OF_RANK
        if fewer < most:
            most, why = fewer, f"for each takes {_DESCRIPTORS_OF_RANK} file descriptors of {limit:,} (ulimit -Hn)"
    if ranks > most:
        raise UserError(f"--program: {ranks:,} ranks (--nodes times --ppn): accepted are up to {most:,}, {why}")


def warning(question: Question) -> str:
    """Where the ranks may take more memory than there is; else empty."""
    need = memory.estimate(question.loaded, ranks=question.ranks)
    if need.available is None or need.is_there:
        return ""
    return (
        f"--program: {question.ranks:,} ranks take about {size_text(need.needed)} and {size_text(need.available)} are "
        "there: the system may end some"
    )


def words(command: str) -> Sequence[str]:
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise UserError(f"--program {command!r}: {error}; accepted is a program with its arguments") from None
    if not found:
        raise UserError("--program: accepted is a program with its arguments, in quotes")
    return found


def hold(question: Question, command: str, *, timeout_s: float | None = None) -> Held:
    """Raises RunError where the program fails or does not iterate."""
    with RunFolder() as folder:
        _run(question, command, folder.path / "record", timeout_s)
        record = folder.path / "record"
        of_program, times = Counter[int](), 0
        if (record / "calls.parquet").exists():  # not of a program without MPI
            calls, messages = (tables.read(record, name) for name in ("calls", "messages"))
            of_program, times = iteration_of(calls, messages, SUMS[question.workload])
        if times < 2:
            raise RunError(
                f"--program {words(command)[0]}: {SUMS[question.workload]} calls of MPI_Allreduce with the same "
                "messages between them do not come twice on each rank: it makes no iterations as "
                f"{question.workload} does, or only one",
                exit_status=1,
            )
        listing = folder.path / "messages"
        skeleton.answer(question, timeout_s=timeout_s, listing=listing)
        with listing.open(encoding="utf-8") as lines:
            of_skeleton = Counter(int(line.split()[2]) for line in lines)
    iterations = int(question.parameter("iterations") or 1)
    return Held(command=command, times=times, classes=classes_of(of_program, of_skeleton, iterations))


def _case(question: Question, command: str) -> Case:
    return Case(
        program=tuple(words(command)),
        machine=question.machine,
        sets=question.sets,
        nodes=question.nodes,
        ppn=question.ppn,
        place=question.place,
        seed=question.seed,
        compute="none",
        software="none",
        on_node="provider",
    )


def _run(question: Question, command: str, record: Path, timeout_s: float | None) -> None:
    case = _case(question, command)
    done = subprocess.run(
        command_line(case, Runner(record=str(record), quiet=True, timeout_s=timeout_s)),
        env=environment_of(case), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        preexec_fn=dying_with_parent(),
    )  # fmt: skip
    if done.returncode == 0:
        return
    lines = [line.removeprefix("dryfly: ") for line in done.stderr.strip().splitlines()]
    of_end = [line for line in lines if not line.startswith("warning: ")]
    told = "; ".join(of_end[-3:]) or f"it ended with exit status {done.returncode}"
    sentence = f"--program {words(command)[0]}: {told}"
    raise UserError(sentence) if done.returncode == 2 else RunError(sentence, exit_status=1)


def iteration_of(calls: Mapping[str, Any], messages: Mapping[str, Any], sums: int) -> tuple[Sizes, int]:
    """Of all ranks together, and how often it was seen on the rank that did so least."""
    begun: dict[int, list[float]] = {}
    for rank, call, entered_s in zip(calls["rank"], calls["call"], calls["entered_s"], strict=True):
        if call == "MPI_Allreduce":
            begun.setdefault(rank, []).append(entered_s)
    parts = {rank: [Counter[int]() for _ in range(len(at) + 1)] for rank, at in begun.items()}
    for at in begun.values():
        at.sort()
    for source, called_s, size in zip(messages["source"], messages["called_s"], messages["bytes"], strict=True):
        if source in parts:
            parts[source][bisect_right(begun[source], called_s)][size] += 1
    found, times = Counter[int](), []
    for of_rank in parts.values():
        # What lies before the first call and after the last one belongs to no iteration.
        iteration, often = _most_sent(of_rank[1:-1], sums)
        found.update(iteration)
        times.append(often)
    return found, min(times, default=0)


def _most_sent(parts: Sequence[Sizes], sums: int) -> tuple[Sizes, int]:
    """So many parts in a row as together, wherever they come again, send most messages; and how often they come."""
    kinds = [_key(parts[first : first + sums]) for first in range(len(parts) - sums + 1)]
    if not kinds:
        return Counter(), 0
    often = Counter(kinds)
    most = max(often, key=lambda kind: often[kind] * sum(count for _, count in kind))
    times, first = 0, 0
    while first < len(kinds):
        is_one = kinds[first] == most
        times += is_one
        first += sums if is_one else 1
    return Counter(dict(most)), times


def _key(parts: Sequence[Sizes]) -> tuple[tuple[int, int], ...]:
    sizes: Sizes = sum(parts, Counter())
    return tuple(sorted(sizes.items()))


def classes_of(of_program: Sizes, of_skeleton: Sizes, iterations: int) -> Sequence[Class]:
    """By the power of two that a size has reached. `iterations`: that the skeleton made."""
    kinds = sorted({size.bit_length() for size in (*of_program, *of_skeleton)})
    return [
        Class(
            least=(1 << kind) >> 1,
            most=(1 << kind) - 1,
            program=_volume(of_program, kind, 1),
            skeleton=_volume(of_skeleton, kind, iterations),
        )
        for kind in kinds
    ]


def _volume(sizes: Sizes, kind: int, iterations: int) -> tuple[float, float]:
    among = {size: count for size, count in sizes.items() if size.bit_length() == kind}
    return sum(among.values()) / iterations, sum(size * count for size, count in among.items()) / iterations


def _sum(volumes: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(each[0] for each in volumes), sum(each[1] for each in volumes)


def _share(part: Class, every: Class) -> float:
    """The largest that it has, of messages or bytes, of the program's or the skeleton's."""
    pairs = zip((*part.program, *part.skeleton), (*every.program, *every.skeleton), strict=True)
    return max(one / all_of_it for one, all_of_it in pairs if all_of_it > 0)


def _apart(each: Class, of: int) -> float:
    """The skeleton's from the program's: 0 for messages, 1 for bytes."""
    if each.program[of] > 0:
        return each.skeleton[of] / each.program[of] - 1
    return 0.0 if each.skeleton[of] == 0 else float("inf")


def show(printer: Printer, held: Held) -> None:
    printer.line(f"  program   {held.command}: an iteration, as seen {held.times} times")
    rows = []
    for each in (*held.classes, held.all):
        cells = []
        for of in (0, 1):
            cells += [f"{each.program[of]:,.0f}", f"{each.skeleton[of]:,.0f}", f"{_apart(each, of):+.1%}"]
        rows.append([f"{each.least:,} to {each.most:,}" if each != held.all else "all", *cells])
    heads = ["bytes each", "messages", "skeleton", "", "bytes", "skeleton", ""]
    printer.show(Grid(heads=heads, rows=rows, left=frozenset({0}), indent="  "))
    if held.outside:
        printer.say(f"the skeleton lies more than {BOUND:.0%} from the program in {len(held.outside)} of these rows")
    else:
        printer.line(f"  held      within {BOUND:.0%} in each row that has {_COUNTS:.0%} of messages or bytes")

"""The microbenchmarks of programs/benchmark: what each measures, on which ranks, and how its table is read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dryfly.errors import UserError
from dryfly.paths import programs_folder

Table = dict[int, float]  # by size in bytes; 0: without a size

_ROW = re.compile(r"^(\d+)? *\s([\d.]+)((?:\s+[\d.]+)*)(?:\s+(?:Pass|Fail))?$")


# Options of the programs, and what their values look like; empty: no value.
_NUMBER = r"\d{1,10}[KMG]?"
_VALUES = {
    "-m": rf"(?:{_NUMBER}:)?{_NUMBER}", "-i": r"\d{1,10}", "-x": r"\d{1,10}", "-W": r"\d{1,10}", "-p": r"\d{1,10}",
    "-M": _NUMBER, "-c": "", "-f": "",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Kind:
    title: str
    unit: str
    calls: frozenset[str]  # the MPI calls that are timed
    more_is_better: bool = False
    collective: bool = False  # one call is timed, after a barrier; else all calls up to the next barrier
    one_pair: bool = False  # two ranks, on two nodes
    window: bool = False  # -W


def _collective(title: str, call: str) -> Kind:
    return Kind(title=title, unit="us", calls=frozenset({f"MPI_{call}"}), collective=True)


_WINDOW = frozenset({"MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Send", "MPI_Recv"})
_ROUND_TRIP = frozenset({"MPI_Send", "MPI_Recv"})

KINDS = {
    "latency": Kind(title="Latency", unit="us", calls=_ROUND_TRIP, one_pair=True),
    "bw": Kind(title="Bandwidth", unit="MB/s", calls=_WINDOW, more_is_better=True, one_pair=True, window=True),
    "bibw": Kind(
        title="Bidirectional bandwidth", unit="MB/s", calls=_WINDOW, more_is_better=True, one_pair=True, window=True
    ),
    "mbw_mr": Kind(title="Bandwidth of many pairs", unit="MB/s", calls=_WINDOW, more_is_better=True, window=True),
    "multi_lat": Kind(title="Latency of many pairs", unit="us", calls=_ROUND_TRIP),
    "gather": _collective("Gather", "Gather"),
    "scatter": _collective("Scatter", "Scatter"),
    "alltoall": _collective("Alltoall", "Alltoall"),
    "allgather": _collective("Allgather", "Allgather"),
    "allreduce": _collective("Allreduce", "Allreduce"),
    "bcast": _collective("Broadcast", "Bcast"),
    "barrier": _collective("Barrier", "Barrier"),
    "reduce_scatter": _collective("Reduce_scatter", "Reduce_scatter"),
}


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    name: str
    options: tuple[str, ...]  # of the program

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    @property
    def shown(self) -> str:
        return shlex.join((self.name, *self.options))

    @property
    def source(self) -> Path:
        return programs_folder() / "benchmark" / f"{self.name}.c"

    def command(self, *more: str) -> tuple[str, ...]:
        """Later options win, so `more` goes over the user's. Digits: a table of two would hide small differences."""
        return (str(self.source), *self.options, *more, "--digits", "6")


def parse(text: str, *, common: tuple[str, ...] = ()) -> Benchmark:
    """`alltoall -m 1:4096`; the options after the name win over the common ones."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"benchmark {text}: {error}") from None
    if not words or words[0] not in KINDS:
        raise UserError(f'benchmark "{text}": accepted are {", ".join(KINDS)}, each with options such as "-m 1:4096"')
    options = (*_accepted(words, common), *words[1:])
    check_options(words[0], options)
    return Benchmark(name=words[0], options=options)


def check_options(name: str, options: Sequence[str]) -> None:
    """What the program would refuse is refused before anything starts."""
    kind = KINDS[name]
    has = {"-W": kind.window, "-f": kind.collective, "-p": name in ("mbw_mr", "multi_lat"), "-m": name != "barrier"}
    words = iter(options)
    for word in words:
        accepted = _VALUES.get(word)
        if accepted is None or not has.get(word, True):
            there = " ".join(flag for flag in _VALUES if has.get(flag, True))
            raise UserError(f'benchmark {name}: there is no option "{word}"; it has {there}')
        value = next(words, "") if accepted else ""
        numbers = [number(part) for part in value.split(":")] if re.fullmatch(accepted, value) else []
        if accepted and (
            not numbers or numbers != sorted(numbers) or numbers[-1] > 2**30 or (word in "-i-W-p" and numbers[0] < 1)
        ):
            wanted = "MAX or MIN:MAX in bytes, such as 1:65536" if word == "-m" else "a whole number"
            raise UserError(f"benchmark {name}: {word} {value}: accepted is {wanted}, at most 2^30")


def number(text: str) -> int:
    return int(text.rstrip("KMG")) << (10 * " KMG".index(text[-1]) if text[-1] in "KMG" else 0)


def _accepted(words: list[str], common: tuple[str, ...]) -> list[str]:
    """Of the common options those that the benchmark has and does not set itself."""
    without = {word[:2] for word in words[1:]} | (set() if KINDS[words[0]].window else {"-W"})
    without |= {"-m"} if words[0] == "barrier" else set()
    pairs = list(zip(common[::2], common[1::2], strict=True))
    return [word for pair in pairs for word in pair if pair[0] not in without]


def read(output: str) -> Table:
    """The first figure of each row."""
    rows = (_ROW.match(line) for line in output.splitlines() if not line.startswith("#"))
    return {int(row[1] or 0): float(row[2]) for row in rows if row is not None}

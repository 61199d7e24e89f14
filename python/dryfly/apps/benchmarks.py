"""The microbenchmarks of programs/benchmark: what each measures, on which ranks, and how its table is read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.paths import programs_folder

Table = dict[int, float]  # by size in bytes; 0: without a size
Ranges = dict[int, tuple[float, float]]  # by size: of the fastest and of the slowest rank
Option = tuple[str, ...]  # of a program: the short name, and its value if it has one

_ROW = re.compile(r"^(\d+)? *\s([\d.]+)((?:\s+[\d.]+)*)(?:\s+(?:Pass|Fail))?$")

_EACH = re.compile(r"^# each (\d+)((?: [\d.]+)+)$")

# Options of the programs, and what their values look like; empty: no value. The long names are OSU's.
_NUMBER = r"\d{1,10}[KMG]?"
_VALUES = {
    "-m": rf"(?:{_NUMBER}:)?{_NUMBER}", "-i": r"\d{1,10}", "-x": r"\d{1,10}", "-W": r"\d{1,10}", "-p": r"\d{1,10}",
    "-M": _NUMBER, "-c": "", "-f": "", "-t": r"(?:\d{1,10}:)?\d{1,10}", "--fence-interval": r"\d{1,10}",
    "-w": "allocate|create|dynamic", "-s": "flush|flush_local|lock|lock_all|pscw|fence", "-d": "cuda|rocm|managed|sycl",
}  # fmt: skip
_WORDS = ("-w", "-s", "-d")
_ON_GPUS = ("latency", "bw", "bibw", "mbw_mr", "multi_lat")  # and the collectives
_PLACES = "HDM"  # of the buffers of sender and receiver, behind the options of these
_THREADS = 64  # of a rank
_LONG = {
    "--message-size": "-m", "--iterations": "-i", "--warmup": "-x", "--window-size": "-W", "--pairs": "-p",
    "--mem-limit": "-M", "--validation": "-c", "--full": "-f", "--num-threads": "-t", "--win-option": "-w",
    "--sync-option": "-s", "--fence-interval": "--fence-interval", "--accelerator": "-d",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Kind:
    title: str
    unit: str
    calls: frozenset[str]  # the MPI calls that are timed
    more_is_better: bool = False
    collective: bool = False  # one call is timed, after a barrier; else all calls up to the next barrier
    one_pair: bool = False  # two ranks, on two nodes or on the one there is
    window: bool = False  # -W
    repeats: bool = True  # it can say what each repetition took
    one_sided: bool = False  # -w, -s and --fence-interval
    barriers: int = 1  # of a size that is not a collective's and has no warm-up; what is counted follows the last


def _collective(title: str, call: str) -> Kind:
    return Kind(title=title, unit="us", calls=frozenset({f"MPI_{call}"}), collective=True)


def _nonblocking(title: str, call: str) -> Kind:
    calls = frozenset({f"MPI_{call}", "MPI_Wait"})
    return Kind(title=f"{title} beside work", unit="us", calls=calls, repeats=False, barriers=2)


_EPOCHS = frozenset(
    f"MPI_{name}"
    for name in (
        "Put", "Get", "Accumulate", "Win_flush", "Win_flush_local", "Win_lock", "Win_unlock", "Win_lock_all",
        "Win_unlock_all", "Win_post", "Win_start", "Win_complete", "Win_wait", "Win_fence",
    )
)  # fmt: skip


def _one_sided(title: str, *, rate: bool) -> Kind:
    return Kind(
        title=title,
        unit="MB/s" if rate else "us",
        calls=_EPOCHS,
        more_is_better=rate,
        one_pair=True,
        window=rate,
        repeats=False,
        one_sided=True,
    )


_WINDOW = frozenset({"MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Send", "MPI_Recv"})
_ROUND_TRIP = frozenset({"MPI_Send", "MPI_Recv"})

KINDS = {
    "latency": Kind(title="Latency", unit="us", calls=_ROUND_TRIP, one_pair=True),
    "bw": Kind(title="Bandwidth", unit="MB/s", calls=_WINDOW, more_is_better=True, one_pair=True, window=True),
    "bibw": Kind(
        title="Bidirectional bandwidth", unit="MB/s", calls=_WINDOW, more_is_better=True, one_pair=True, window=True
    ),
    "mbw_mr": Kind(
        title="Bandwidth of many pairs", unit="MB/s", calls=_WINDOW, more_is_better=True, window=True, repeats=False
    ),
    "multi_lat": Kind(title="Latency of many pairs", unit="us", calls=_ROUND_TRIP, repeats=False),
    "gather": _collective("Gather", "Gather"),
    "scatter": _collective("Scatter", "Scatter"),
    "alltoall": _collective("Alltoall", "Alltoall"),
    "allgather": _collective("Allgather", "Allgather"),
    "allreduce": _collective("Allreduce", "Allreduce"),
    "bcast": _collective("Broadcast", "Bcast"),
    "barrier": _collective("Barrier", "Barrier"),
    "reduce_scatter": _collective("Reduce_scatter", "Reduce_scatter"),
    "reduce_scatter_block": _collective("Reduce_scatter_block", "Reduce_scatter_block"),
    "gatherv": _collective("Gatherv", "Gatherv"),
    "alltoallv": _collective("Alltoallv", "Alltoallv"),
    "igather": _nonblocking("Igather", "Igather"),
    "igatherv": _nonblocking("Igatherv", "Igatherv"),
    "sync_pairs": Kind(
        title="Synchronous sends of many pairs",
        unit="us",
        calls=frozenset({"MPI_Issend", "MPI_Irecv", "MPI_Waitall"}),
        window=True,
        repeats=False,
    ),
    "latency_mt": Kind(title="Latency of threads", unit="us", calls=_ROUND_TRIP, one_pair=True, repeats=False),
    "put_latency": _one_sided("Put, latency", rate=False),
    "get_latency": _one_sided("Get, latency", rate=False),
    "acc_latency": _one_sided("Accumulate, latency", rate=False),
    "put_bw": _one_sided("Put, bandwidth", rate=True),
    "get_bw": _one_sided("Get, bandwidth", rate=True),
    "acc_bw": _one_sided("Accumulate, bandwidth", rate=True),
    "put_bibw": _one_sided("Put, bidirectional bandwidth", rate=True),
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
        """Later options win, so `more` goes over the user's. Digits: a table of two would hide small differences. Only
        what is timed is run: data is checked with -c."""
        return (str(self.source), *self.options, *more, "--check", "0", "--digits", "6")


def parse(text: str, *, common: tuple[str, ...] = ()) -> Benchmark:
    """`alltoall -m 1:4096`; the options after the name win over the common ones."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"benchmark {text}: {error}") from None
    if not words or words[0] not in KINDS:
        raise UserError(f'benchmark "{text}": accepted are {", ".join(KINDS)}, each with options such as "-m 1:4096"')
    name, own = words[0], check_options(words[0], words[1:])
    mine = {option[0] for option in own}
    usual = [word for option in _split(common) if option[0] not in mine and _has(name, option[0]) for word in option]
    options = [*check_options(name, usual), *own]
    return Benchmark(name=words[0], options=tuple(word for option in options for word in option))


def check_common(text: str) -> tuple[str, ...]:
    """Options for all benchmarks; each takes those that it has."""
    words = tuple(text.split())
    for flag, *_ in _split(words):
        if flag not in _VALUES:
            raise UserError(f'options = "{text}": there is no option "{flag}"; accepted are {" ".join(_VALUES)}')
    return words


def _split(words: Sequence[str]) -> list[Option]:
    """By option: -m1:8, --message-size=1:8 and --message-size 1:8 are -m 1:8."""
    options: list[Option] = []
    rest = iter(words)
    for word in rest:
        long, equals, value = word.partition("=")
        name = _LONG.get(long, word if word.startswith("--") else word[:2])
        value = value if equals and long in _LONG else word[2:] if name == word[:2] else ""
        if name not in _VALUES or (value and not _VALUES[name]):
            options.append((word,))  # check_options refuses it
        else:
            options.append((name, value or next(rest, "")) if _VALUES[name] else (name,))
    return options


def _has(name: str, flag: str) -> bool:
    kind = KINDS[name]
    only = {
        "-W": kind.window, "-f": kind.collective, "-p": name in ("mbw_mr", "multi_lat", "sync_pairs"),
        "-m": name != "barrier", "-t": name == "latency_mt", "-d": kind.collective or name in _ON_GPUS,
        **dict.fromkeys(("-w", "-s", "--fence-interval"), kind.one_sided),
    }  # fmt: skip
    return flag in _VALUES and only.get(flag, True)


def check_options(name: str, words: Sequence[str]) -> list[Option]:
    """What the program would refuse is refused before anything starts."""
    options = _split(words)
    places = [word for word, *values in options if not values and not word.startswith("-")]
    if places and name in _ON_GPUS and any(flag == "-d" for flag, *_ in options):
        if len(places) != 2 or not set(places) <= set(_PLACES) or options[-2:] != [(place,) for place in places]:
            raise UserError(f"benchmark {name}: {' '.join(places)}: accepted behind the options are two of H, D and M")
        return [*check_options(name, words[:-2]), *options[-2:]]
    for flag, *values in options:
        if not _has(name, flag):
            there = " ".join(option for option in _VALUES if _has(name, option))
            raise UserError(f'benchmark {name}: there is no option "{flag}"; it has {there}')
        for value in values:
            if not _is_accepted(flag, value):
                raise UserError(f"benchmark {name}: {flag} {value}: accepted is {_accepted(flag)}")
    return options


def _is_accepted(flag: str, value: str) -> bool:
    if not re.fullmatch(_VALUES[flag], value):
        return False
    if flag in _WORDS:
        return True
    numbers = [number(part) for part in value.split(":")]
    if flag == "-t":
        return 1 <= numbers[0] <= numbers[-1] <= _THREADS and numbers[-1] % numbers[0] == 0
    nothing = flag == "-m" and numbers[-1] == 0
    return numbers == sorted(numbers) and _least(flag) <= numbers[0] and numbers[-1] <= 2**30 and not nothing


def _least(flag: str) -> int:
    return 1 if flag in ("-i", "-W", "-p", "-M", "--fence-interval") else 0


def _accepted(flag: str) -> str:
    if flag in _WORDS:
        return _VALUES[flag].replace("|", ", ")
    if flag == "-t":
        return f"R or S:R, 1 to {_THREADS} threads, R a multiple of S"
    sizes = "MAX or MIN:MAX in bytes, such as 1:65536, MAX from 1 to"
    return f"{sizes if flag == '-m' else f'a whole number from {_least(flag)} to'} 2^30"


def number(text: str) -> int:
    return int(text.rstrip("KMG")) << (10 * " KMG".index(text[-1]) if text[-1] in "KMG" else 0)


def read(output: str) -> Table:
    """The first figure of each row."""
    return {size: columns[0] for size, columns in read_rows(output).items()}


def read_each(output: str) -> dict[int, list[float]]:
    """With --each: what every timed repetition took, or reached, in the order of time; by size."""
    rows = (_EACH.match(line) for line in output.splitlines())
    return {int(row[1]): [float(word) for word in row[2].split()] for row in rows if row is not None}


def read_ranges(output: str) -> Ranges:
    """With -f: the second and the third figure of each row."""
    return {size: (columns[1], columns[2]) for size, columns in read_rows(output).items() if len(columns) > 2}


def read_rows(output: str) -> dict[int, list[float]]:
    """All figures of each row, by the number in front of them; 0 where there is none."""
    rows = (_ROW.match(line) for line in output.splitlines() if not line.startswith("#"))
    return {int(row[1] or 0): [float(word) for word in (row[2], *row[3].split())] for row in rows if row is not None}

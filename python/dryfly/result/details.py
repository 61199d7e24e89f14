"""A result with types, for Python programs: what docs/reference/result-json.md says of its keys holds for these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

from dryfly.case.case import Case

_Row = TypeVar("_Row")


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Where time went, in seconds."""

    computing_s: float
    communicating_s: float
    waiting_s: float


@dataclass(frozen=True, kw_only=True)
class Call:
    """An MPI function, over all ranks."""

    call: str
    count: int
    bytes: int
    time_s: float


@dataclass(frozen=True, kw_only=True)
class SoftwareCall:
    """What an MPI function's own code was charged, over all ranks."""

    call: str
    count: int
    intervals: int
    instructions: float
    copied_bytes: int
    time_s: float
    assumed_s: float  # of that, by means of other intervals


@dataclass(frozen=True, kw_only=True)
class Software:
    """What the MPI library's own code was charged, over all ranks."""

    table: str
    charged_s: float
    assumed_s: float
    instructions: float
    calls: tuple[SoftwareCall, ...]  # the dearest first


@dataclass(frozen=True, kw_only=True)
class Protocol:
    protocol: str
    messages_by_hops: tuple[int, ...]  # by the switch-to-switch links crossed
    bytes_by_hops: tuple[int, ...]
    messages_on_node: int
    bytes_on_node: int

    @property
    def messages(self) -> int:
        return sum(self.messages_by_hops) + self.messages_on_node


@dataclass(frozen=True, kw_only=True)
class Nic:
    node: str
    index: int
    mac: str
    network_timeouts: int
    counters: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Rank:
    rank: int
    node: str
    nic: int
    virtual_time_s: float
    computing_s: float
    communicating_s: float
    waiting_s: float
    gpu_s: float  # of computing: in calls of a simulated GPU's runtime
    gpu_calls: int
    messages_sent: int
    bytes_sent: int
    mpi_calls: int


@dataclass(frozen=True, kw_only=True)
class Health:
    """Something that the user should know of the run."""

    name: str
    severity: str
    count: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run has found."""

    case: Case
    raw: Mapping[str, Any]  # all of it, with the keys of docs/reference/result-json.md
    output: str | None = None  # what the program printed; None: it went where this process prints

    @property
    def machine(self) -> str:
        return str(self.raw["machine"])

    @property
    def nodes(self) -> int:
        return int(self.raw["nodes"])

    @property
    def ranks(self) -> int:
        return int(self.raw["ranks"])

    @property
    def virtual_time_s(self) -> float:
        """The job's time on the simulated machine."""
        return float(self.raw["virtual_time_s"])

    @property
    def wall_time_s(self) -> float:
        """The time that simulating it took."""
        return float(self.raw["wall_time_s"])

    @property
    def messages(self) -> int:
        return int(self.raw["messages"])

    @property
    def bytes(self) -> int:
        """Of all messages."""
        return int(self.raw["bytes"])

    @property
    def packet_hops(self) -> int:
        return int(self.raw["packet_hops"])

    @property
    def network_timeouts(self) -> int:
        return int(self.raw["network_timeouts"])

    @property
    def fingerprint(self) -> str:
        """Equal for equal runs, where `repeatable`."""
        return str(self.raw["fingerprint"])

    @property
    def repeatable(self) -> bool:
        return bool(self.raw["repeatable"])

    @cached_property
    def mean(self) -> Parts:
        """Over the ranks."""
        return _read(Parts, self.raw["time"]["mean"])

    @cached_property
    def slowest(self) -> Parts:
        """Of the rank with most computing and communicating, for which the others wait."""
        return _read(Parts, self.raw["time"]["slowest"])

    @property
    def slowest_rank(self) -> int:
        return int(self.raw["time"]["slowest"]["rank"])

    @cached_property
    def profile(self) -> tuple[Call, ...]:
        return tuple(_read(Call, row) for row in self.raw["profile"])

    @cached_property
    def software(self) -> Software:
        row = self.raw["software"]
        return _read(Software, {**row, "calls": [_read(SoftwareCall, call) for call in row["calls"]]})

    @cached_property
    def protocols(self) -> tuple[Protocol, ...]:
        return tuple(_read(Protocol, row) for row in self.raw["protocols"])

    @cached_property
    def nics(self) -> tuple[Nic, ...]:
        return tuple(_read(Nic, row) for row in self.raw["nics"])

    @cached_property
    def each_rank(self) -> tuple[Rank, ...]:
        return tuple(_read(Rank, row) for row in self.raw["ranks_detail"])

    @cached_property
    def health(self) -> tuple[Health, ...]:
        return tuple(_read(Health, row) for row in self.raw["health"])


def _read(of: type[_Row], row: Mapping[str, Any]) -> _Row:
    names = (each.name for each in fields(of))  # type: ignore[arg-type]
    return of(**{name: tuple(value) if isinstance(value := row[name], list) else value for name in names})

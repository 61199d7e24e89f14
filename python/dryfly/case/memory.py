"""How much memory a run needs besides what the program itself computes with, and how much there is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dryfly.machine.machine import Machine
from dryfly.machine.topology import summarise

# Of one MPICH rank: 3.5 to 7.2 MB were seen on runs of 16 to 1,024 ranks.
_MPI_PER_RANK = 8 * 10**6
# A rank's page and its two rings of 64 KiB in the shared segment, were every page of them touched.
_SEGMENT_PER_RANK = 160 * 2**10
# The conductor at rest: 4 MB on the testbed, 37 MB on frontier (2,464 switches), 82 MB on aurora (5,600). Packets in
# flight and payloads come on top; the rest of this sum is room for them.
_SIMULATOR = 64 * 2**20
_PER_SWITCH = 16 * 2**10


@dataclass(frozen=True, kw_only=True)
class MemoryNeed:
    needed: int
    available: int | None  # None: cannot be told

    @property
    def is_there(self) -> bool:
        return self.available is None or self.needed <= self.available


def estimate(machine: Machine, *, ranks: int) -> MemoryNeed:
    simulator = _SIMULATOR + summarise(machine).switches * _PER_SWITCH
    needed = simulator + ranks * (_MPI_PER_RANK + _SEGMENT_PER_RANK)
    return MemoryNeed(needed=needed, available=available())


def available() -> int | None:
    """What the system reports as available, or what is left of the container's limit if that is less."""
    free = [value for value in (_system_available(), _container_available()) if value is not None]
    return min(free) if free else None


def _system_available() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return None
    return None


def _container_available() -> int | None:
    folder = Path("/sys/fs/cgroup")
    for limit_name, used_name in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            limit = (folder / limit_name).read_text(encoding="ascii").strip()
            used = (folder / used_name).read_text(encoding="ascii").strip()
            if limit != "max":
                return max(0, int(limit) - int(used))
        except (OSError, ValueError):
            continue
    return None

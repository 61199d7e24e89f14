"""Which ranks still run when the simulation is over: a program may hang, or compute, behind its MPI_Finalize."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Straggler:
    rank: str
    pid: str
    computes: bool  # or it sleeps


def of_launcher(launcher: int) -> list[Straggler]:
    """What descends from it and is a rank; none where another launcher has started them."""
    parents: dict[int, int] = {}
    states: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue  # it has just ended
        pid = int(folder.name)
        parents[pid], states[pid] = int(parent), state
    found: dict[str, Straggler] = {}
    for pid in sorted(pid for pid in parents if launcher in _ancestors(pid, parents)):
        rank = _rank_of(pid)
        if rank:
            found[rank] = Straggler(rank=rank, pid=str(pid), computes=states[pid] == "R")
    return sorted(found.values(), key=lambda each: int(each.rank))


def _ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    found: list[int] = []
    while pid in parents and len(found) < len(parents):
        pid = parents[pid]
        found.append(pid)
    return found


def _rank_of(pid: int) -> str:
    """Empty if it is none."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    value = next((each.partition(b"=")[2].decode() for each in variables if each.startswith(b"PMI_RANK=")), "")
    return value if value.isdecimal() else ""

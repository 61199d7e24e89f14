"""Runs schedules on a simulated machine, by dryfly-motif."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dryfly.base.folder import RunFolder
from dryfly.case.placement import node_blocks
from dryfly.case.resolve import resolve_machine
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.skeleton import motif
from dryfly.skeleton.schedule import Schedule, program_of, record

_PS_PER_S = 10**12


@dataclass(frozen=True, kw_only=True)
class Where:
    """What a schedule runs on. `ppn` ranks on each node, block by block; `level`, of the network: latency, links,
    packet or flow; `place`: packed, spread, random or a file, as for `dryfly run`; `on_node`: how ranks of a node talk,
    by `memory` or by `nic`."""

    machine: str = "aurora"
    sets: tuple[str, ...] = ()
    nodes: int = 1
    ppn: int = 1
    place: str = "packed"
    on_node: str = "memory"
    level: str = "links"
    seed: int = 1

    @property
    def ranks(self) -> int:
        return self.nodes * self.ppn

    def spec(self) -> str:
        """Of the machine; where the ranks are is said beside it, because there may be a million of them."""
        return resolve_machine(self._loaded(), seed=self.seed, ranks=self.ranks, network=motif.network_of(self.level))

    def words(self, on: Sequence[int] | None = None) -> list[str]:
        """As dryfly-motif is told. `on`: numbers of nodes, other ones than follow from `place`. Raises UserError: more
        nodes than the machine has."""
        if on is None:
            on = node_blocks(self._loaded(), nodes=self.nodes, ppn=self.ppn, policy=self.place, seed=self.seed)
        return [*motif.job(on=on, ppn=self.ppn, level=self.level), f"on_node={self.on_node}"]

    def _loaded(self) -> Machine:
        return load(self.machine, sets=self.sets)


@dataclass(frozen=True, kw_only=True)
class Played:
    """What came out. `phases`: seconds, the mean over ranks."""

    virtual_time_s: float
    messages: int
    bytes: int
    events: int
    phases: Mapping[str, float]
    figures: Mapping[str, float]
    fingerprint: str
    wall_s: float


def run_schedule(
    schedule: Schedule, where: Where, *, spec: str | None = None, on: Sequence[int] | None = None
) -> Played:
    """`spec`, `on`: another one, and other nodes, than those of `where`."""
    with RunFolder() as folder:
        path = folder.path / "schedule"
        schedule.write(path)
        return run_file(path, where, spec_text=spec, on=on)


def run_file(
    path: str | Path,
    where: Where,
    *,
    workload: str = "schedule",
    spec_text: str | None = None,
    on: Sequence[int] | None = None,
    **parameters: str,
) -> Played:
    """`workload`: schedule for one that was written by `Schedule.write`, goal for GOAL's text."""
    words = [*where.words(on), f"file={path}", *(f"{name}={value}" for name, value in parameters.items())]
    said = motif.ask(where.spec() if spec_text is None else spec_text, workload, words)
    return Played(
        virtual_time_s=said["virtual_ps"] / _PS_PER_S,
        messages=said["messages"],
        bytes=said["bytes"],
        events=said["events"],
        phases={name: took / _PS_PER_S for name, took in said["phases"].items()},
        figures=dict(said["figures"]),
        fingerprint=said["fingerprint"],
        wall_s=said["wall_s"],
    )


def run_skeleton(path: str | Path, where: Where) -> Played:
    """The function `program` of a Python file, on all ranks of `where`."""
    return run_schedule(record(program_of(path), ranks=where.ranks), where)

"""Runs steps with real ranks: programs/benchmark/probe.c, by an MPI library on the simulated machine."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunFailed
from dryfly.base.folder import RunFolder
from dryfly.base.paths import programs_folder
from dryfly.binding import advice, sets
from dryfly.case.case import Case
from dryfly.machine.machine import Machine
from dryfly.machine.node import most_nics, node_of
from dryfly.run.run import execute
from dryfly.run.runner import Runner
from dryfly.scenario.faults import Scenario
from dryfly.validate import probe
from dryfly.validate.plan import Step
from dryfly.validate.probe import Counters, Measured
from dryfly.validate.wiring import Wiring, nic_place

TIMEOUTS = "network time-outs"  # beside a NIC's counters
RANKS_MOST = 4096  # two processes for each NIC of a node: more are no measurement but a wait


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """How ranks are run: fields of Case that do not change from step to step, and the nodes' names."""

    case: Mapping[str, Any]
    machine: Machine
    family: str  # of the library
    shares: bool  # whether it has shared memory of its own here
    names: Mapping[int, str]  # of nodes, over the machine

    def run(
        self, scenario: Scenario, seed: int, wiring: Wiring, nodes: Sequence[int], steps: Sequence[Step], *, noisy: bool
    ) -> tuple[list[Measured], Counters]:  # fmt: skip
        """What was measured, and what each NIC counted meanwhile. `noisy`: with the case's noise. Raises UserError,
        RunFailed."""
        found: list[Measured] = []
        counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for on_node, some in groupby(steps, key=lambda step: step.on_node):
            measured, nics = self._run(scenario, seed, wiring, nodes, list(some), on_node, noisy)
            found += measured
            for place, counters in nics.items():
                counted[place].update(counters)
        return found, counted

    def _run(
        self, scenario: Scenario, seed: int, wiring: Wiring, nodes: Sequence[int], steps: Sequence[Step], on_node: str,
        noisy: bool,
    ) -> tuple[list[Measured], Counters]:  # fmt: skip
        ppn = probe.ranks_of_node(wiring, nodes, on_node)
        with RunFolder() as folder:
            file, out, hosts = folder.path / "steps", folder.path / "measured", folder.path / "hosts"
            seats = _seats(self.family, most_nics(self.machine), ppn)
            rank_of = probe.ranks_of(wiring, nodes, on_node) or [
                node * ppn + seat for node in range(len(nodes)) for seat in seats
            ]
            file.write_text(probe.text_of(steps, rank_of), encoding="ascii")
            hosts.write_text("".join(f"{self.names[node]} {ppn}\n" for node in nodes), encoding="utf-8")
            fixed = dict(self.case) if noisy else {**self.case, "noise": "none"}
            case = Case(
                **fixed,
                **_binding(self.machine, seats),
                program=(str(_program()), str(file), str(out)),
                ranks=ppn * len(nodes),
                place=str(hosts),
                seed=seed,
                compute="model",
                on_node="shared" if on_node == "memory" and self.shares else "provider",
            )
            ended = execute(case, Runner(quiet=True, progress=False), scenario=scenario)
            if ended.result is None or ended.exit_status != 0:
                raise RunFailed(ended.failure, exit_status=ended.exit_status or 1, details=ended.details)
            return probe.parse(out.read_text(encoding="ascii"), steps, rank_of), self._counters(ended.result, wiring)

    def _counters(self, result: Mapping[str, Any], wiring: Wiring) -> Counters:
        number = {name: node for node, name in self.names.items()}
        return {
            nic_place(wiring.nics_of_node[number[nic["node"]]][nic["index"]]): {
                **nic["counters"], TIMEOUTS: nic["network_timeouts"]
            }
            for nic in result["nics"]
        }  # fmt: skip


def digest() -> str:
    """Of the program, with the headers beside it."""
    files = (_program(), *sorted(_program().parent.glob("*.h")))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _seats(family: str, nics: int, ppn: int) -> list[int]:
    """The ranks of a node in the order of steps, which have those of a NIC next to each other: Open MPI deals a node's
    ranks over its NICs in turn, MPICH's are told their NICs."""
    each = ppn // nics
    return [place % each * nics + place // each for place in range(ppn)] if family == "openmpi" else list(range(ppn))


def _binding(machine: Machine, seats: Sequence[int]) -> dict[str, Any]:
    """The good one of `dryfly bind`, with a node's ranks at the NICs that they have by their seats."""
    nics, ppn = most_nics(machine), len(seats)
    found = advice.good(node_of(machine, nics=nics), ranks=ppn)
    by_nic = sorted(found.bindings, key=lambda each: each.nic or 0)
    ranks = [binding for _, binding in sorted(zip(seats, by_nic, strict=True), key=lambda row: row[0])]
    return {
        "cpu_bind": "list:" + ":".join(sets.text(each.processors or ()) for each in ranks),
        "mem_bind": "list:" + ":".join(sets.text(each.memories or ()) for each in ranks),
        "nic_bind": "list:" + ":".join(str(seats.index(rank) * nics // ppn) for rank in range(ppn)),
    }


def _program() -> Path:
    return programs_folder() / "benchmark/probe.c"

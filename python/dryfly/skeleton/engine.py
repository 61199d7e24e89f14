"""Runs schedules on a simulated machine, by dryfly-motif."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dryfly.base.errors import RunError, UserError
from dryfly.base.folder import RunFolder
from dryfly.base.paths import MOTIF, native
from dryfly.base.signals import dying_with_parent
from dryfly.case.placement import place
from dryfly.case.resolve import ComputeSpec, resolve
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.skeleton.schedule import Schedule, program_of, record

_PS_PER_S = 10**12
_BAD_INPUT = 2


@dataclass(frozen=True, kw_only=True)
class Where:
    """What a schedule runs on. `ppn` ranks on each node, block by block; `level`: latency, links or
    packet; `place`: packed,
    spread or random, as for `dryfly run`; `on_node`: how ranks of a node talk, by `memory` or by `nic`."""

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
        one = place(self._loaded(), nodes=1, ppn=1)
        return resolve(self._loaded(), one, seed=self.seed, compute=ComputeSpec(mode="none"))

    def words(self) -> list[str]:
        """As dryfly-motif is told. Raises UserError: more nodes than the machine has."""
        chosen = place(self._loaded(), nodes=self.nodes, ppn=1, policy=self.place, seed=self.seed)
        on = ",".join(str(node) for node in chosen.nodes)
        words = {"nodes": self.nodes, "ppn": self.ppn, "level": self.level, "on_node": self.on_node}
        return [*(f"{name}={value}" for name, value in words.items()), f"on={on}"]

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


def run_schedule(schedule: Schedule, where: Where, *, spec: str | None = None) -> Played:
    """`spec`: another one than that of `where`."""
    with RunFolder() as folder:
        path = folder.path / "schedule"
        schedule.write(path)
        return run_file(path, where, spec_text=spec)


def run_file(
    path: str | Path, where: Where, *, workload: str = "schedule", spec_text: str | None = None, **parameters: str
) -> Played:
    """`workload`: schedule for one that was written by `Schedule.write`, goal for GOAL's text."""
    with RunFolder() as folder:
        spec = folder.path / "spec"
        spec.write_text(where.spec() if spec_text is None else spec_text, encoding="utf-8")
        words = [f"{name}={value}" for name, value in parameters.items()]
        return _asked([str(native(MOTIF)), str(spec), workload, *where.words(), f"file={path}", *words])


def run_skeleton(path: str | Path, where: Where) -> Played:
    """The function `program` of a Python file, on all ranks of `where`."""
    return run_schedule(record(program_of(path), ranks=where.ranks), where)


def _asked(command: list[str]) -> Played:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, preexec_fn=dying_with_parent()
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        sentence = lines[-1] if lines else f"{MOTIF} ended with status {done.returncode}"
        sentence = sentence.removeprefix(f"{MOTIF}: ")
        if done.returncode == _BAD_INPUT:
            raise UserError(sentence)
        raise RunError(sentence, exit_status=1)
    said = json.loads(done.stdout)
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

"""What a validation has found, and what it says at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dryfly.validate.judge import Figures

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`kind`: the fault that the evidence names, else what is slow. `measured` and `limit` in `unit`; both None where
    something was counted or said and not measured."""

    kind: str
    place: str  # as scenario files name it
    spoken: str  # with the names that people know
    level: str
    measure: str
    measured: float | None
    limit: float | None
    unit: str
    nodes: tuple[str, ...]  # that are not to be used for it
    evidence: tuple[str, ...]
    places: tuple[str, ...] = ()  # all that it is about; none given: its place

    def __post_init__(self) -> None:
        if not self.places:
            object.__setattr__(self, "places", (self.place,))

    def content(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "place": self.place, "name": self.spoken, "level": self.level, "measure": self.measure,
            "measured": self.measured, "limit": self.limit, "unit": self.unit, "nodes": list(self.nodes),
            "evidence": list(self.evidence),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LevelDone:
    name: str
    nodes: int
    steps: int
    probes: int
    begin_s: float  # virtual, since the start
    virtual_s: float
    findings: int
    ratios: Mapping[str, Mapping[str, float]] = field(repr=False)  # by measure and place
    limits: Mapping[str, float]  # of the ratios, by measure

    def content(self) -> dict[str, Any]:
        return {
            "name": self.name, "nodes": self.nodes, "steps": self.steps, "pairs": self.probes,
            "begin_s": self.begin_s, "virtual_time_s": self.virtual_s,
            "result": "nothing to measure" if not self.steps else "fail" if self.findings else "pass",
            "findings": self.findings,
            "slower": {measure: dict(of) for measure, of in self.ratios.items()}, "limits": dict(self.limits),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Outcome:
    machine: str
    seed: int
    network: str
    sets: tuple[str, ...]
    mpi: str | None
    nodes: tuple[str, ...]
    levels: tuple[LevelDone, ...]
    findings: tuple[Finding, ...]
    exclude: tuple[str, ...]
    events: tuple[str, ...]
    not_checked: tuple[str, ...]
    uncovered: int  # cables of the nodes' groups without a NIC of theirs at both ends
    parts: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(repr=False)  # as parts.verdicts has them
    figures: Figures = field(repr=False)
    sizes: Mapping[str, int] = field(repr=False)
    wall_s: float = 0.0

    @property
    def use(self) -> list[str]:
        out = set(self.exclude)
        return [name for name in self.nodes if name not in out]

    def content(self) -> dict[str, Any]:
        from dryfly.validate import nodelist

        return {
            "validation": FORMAT,
            "machine": self.machine, "sets": list(self.sets), "mpi": self.mpi, "seed": self.seed,
            "network": self.network,
            "result": "fail" if self.findings else "pass",
            "findings": [finding.content() for finding in self.findings],
            "levels": [level.content() for level in self.levels],
            "parts": self.parts, "not_checked": list(self.not_checked),
            "use": {"nodes": self.use, "slurm": nodelist.slurm(self.use), "pbs": nodelist.pbs(self.use)},
            "exclude": {
                "nodes": list(self.exclude), "slurm": nodelist.slurm(self.exclude), "pbs": nodelist.pbs(self.exclude),
            },
            "cables_not_covered": self.uncovered, "sizes": dict(self.sizes), "events": list(self.events),
            "figures": [[measure, place, time_s] for (measure, place), time_s in self.figures.items()],
            "wall_s": self.wall_s,
        }  # fmt: skip


def merged(findings: Sequence[Finding]) -> list[Finding]:
    """One for each place and kind: the first, at the lowest level."""
    first: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        first.setdefault((finding.place, finding.kind), finding)
    return list(first.values())

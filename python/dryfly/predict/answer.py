"""An answer, whichever model gave it, and its JSON: docs/guide/predict.md has the keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dryfly.predict.question import Question

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`figures`: in base units, which their names end with. `phases`: seconds."""

    question: Question
    virtual_time_s: float
    phases: Mapping[str, float]
    figures: Mapping[str, float]
    values: Mapping[str, str]  # all parameters, in base units, with those that were chosen
    chosen: Sequence[str] = ()  # sentences: what was chosen, and why
    warnings: Sequence[str] = ()
    calibrated: str = ""  # what was set to meet which figure; empty: nothing
    assumed: str = ""  # what of it rests on nothing published; empty: the model's page says so, or nothing does
    messages: int | None = None  # None: the model counts none
    bytes: int | None = None
    events: int | None = None
    sampled: bool = False
    error_bound: float = 0.0  # of the virtual time, as a share of it
    fingerprint: str = ""
    wall_s: float = 0.0
    steps: Sequence[Mapping[str, Any]] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        asked = self.question
        return {
            "format": FORMAT,
            "kind": "prediction",
            "workload": asked.title,
            "model": asked.model,
            "level": asked.level,
            "machine": asked.machine,
            "sets": list(asked.sets),
            "nodes": asked.nodes,
            "ppn": asked.ppn,
            "ranks": asked.ranks,
            "placement": asked.place,
            "seed": asked.seed,
            "faults": asked.faults,
            "noise": asked.noise,
            "software": asked.software,
            "mpi": asked.mpi,
            "parameters": dict(self.values),
            "chosen": list(self.chosen),
            "virtual_time_s": self.virtual_time_s,
            "messages": self.messages,
            "bytes": self.bytes,
            "events": self.events,
            "phases_s": dict(self.phases),
            "figures": dict(self.figures),
            "sampled": self.sampled,
            "error_bound": self.error_bound,
            "calibrated": self.calibrated,
            "assumed": self.assumed,
            "warnings": list(self.warnings),
            "fingerprint": self.fingerprint,
            "wall_time_s": round(self.wall_s, 3),
            "steps": list(self.steps),
            "details": dict(self.details),
        }

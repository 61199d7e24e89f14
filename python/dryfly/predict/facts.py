"""What data/predict says: parameters of closed forms, and published results they are held against."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from dryfly.base import units
from dryfly.base.paths import data_folder


@dataclass(frozen=True, kw_only=True)
class PublishedRow:
    nodes: int
    rate: float  # operations a second
    efficiency: float


@dataclass(frozen=True, kw_only=True)
class PublishedHpl:
    machine: str
    node_rate: float  # that an efficiency refers to, operations a second
    calibrated: int  # the row that a parameter was set to, by its nodes
    ppn: int
    nb: int
    n: int  # of that row, as the grid
    grid: str
    rows: tuple[PublishedRow, ...]


@dataclass(frozen=True, kw_only=True)
class Solver:
    """What a machine's own HPL does otherwise: parameters as a user would write them."""

    name: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)


@cache
def _known(workload: str) -> dict[str, Any]:
    return tomllib.loads((data_folder() / "predict" / f"{workload}.toml").read_text(encoding="utf-8"))


def text(workload: str, name: str) -> str:
    """A parameter of the workload, in data/predict, as a user would write it."""
    return str(_known(workload)["parameter"][name]["value"])


def table(workload: str, name: str) -> dict[str, Any]:
    """Another table of that file: facts by name."""
    return dict(_known(workload)[name])


@cache
def hpl_solver(machine: str) -> Solver:
    """Without choices where none is known of it."""
    for raw in _known("hpl")["solver"]:
        if machine in raw["machines"]:
            return Solver(name=raw["name"], choices={name: str(fact["value"]) for name, fact in raw["choice"].items()})
    return Solver()


def hpl_listed(machine: str, nodes: int) -> float | None:
    """Operations a second, as a list has them of this machine with so many nodes."""
    for row in _known("hpl")["listed"]:
        if (row["machine"], row["nodes"]) == (machine, nodes):
            return float(units.parse(row["rate"], units.OPERATIONS))
    return None


def hpl_published() -> PublishedHpl:
    raw = _known("hpl")["published"]
    rows = tuple(
        PublishedRow(
            nodes=row["nodes"],
            rate=float(units.parse(row["rate"], units.OPERATIONS)),
            efficiency=units.parse(row["efficiency"], units.RATIO) / 10**6,
        )
        for row in raw["row"]
    )
    return PublishedHpl(
        machine=raw["machine"],
        node_rate=float(units.parse(raw["node_rate"]["value"], units.OPERATIONS)),
        calibrated=raw["calibrated"],
        ppn=raw["ppn"],
        nb=raw["nb"],
        n=raw["n"],
        grid=raw["grid"],
        rows=rows,
    )

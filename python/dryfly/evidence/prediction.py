"""Measurements without processes: what `dryfly predict` answers, and what a machine's file adds up to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dryfly.base.errors import UserError
from dryfly.evidence.published import Measurement
from dryfly.machine.load import load
from dryfly.machine.topology import summarise
from dryfly.predict import ask
from dryfly.predict.question import Question

MACHINE = "machine"  # in the place of a workload

# What may differ from the measurement: by the names of Case's fields, which Question has too, the flags. How many
# nodes and ranks there are is the row's: what was published is of those.
_TAKEN = {"machine": "--machine", "sets": "--set", "seed": "--seed", "noise": "--noise", "place": "--place"}
_OF_MACHINE = {"machine": "--machine", "sets": "--set"}


def check(measurement: Measurement, given: Mapping[str, Any]) -> None:
    """Raises UserError."""
    taken = _OF_MACHINE if measurement.predict == MACHINE else _TAKEN
    flags = {"ranks": "-n", "nodes": "-N"}
    for name in given:
        if name not in taken:
            flag = flags.get(name, "--" + name.replace("_", "-"))
            raise UserError(
                f"{flag}: measurement {measurement.name} is a prediction; accepted are {', '.join(taken.values())}"
            )
    if measurement.predict != MACHINE:
        ask.check(question_of(measurement, given))


def question_of(measurement: Measurement, given: Mapping[str, Any]) -> Question:
    """Raises UserError."""
    fields: dict[str, Any] = {
        "workload": measurement.predict,
        "machine": measurement.machine,
        "model": measurement.model,
        "nodes": measurement.nodes,
        "ppn": measurement.ppn,
        "noise": measurement.noise,
        "mpi": measurement.mpi,
        "software": "measured" if measurement.mpi else "none",
        "parameters": measurement.parameters,
    }
    return Question(**{**fields, **given, "sets": (*measurement.sets, *given.get("sets", ()))})


def figures_of(measurement: Measurement, given: Mapping[str, Any], timeout_s: float | None = None) -> dict[str, float]:
    """By name: an answer's figures and its time in s and us, or counts and rates of a machine."""
    if measurement.predict == MACHINE:
        name = given.get("machine", measurement.machine)
        counts = summarise(load(name, sets=(*measurement.sets, *given.get("sets", ()))))
        named = {**vars(counts), "fabric_ports": counts.fabric_ports}
        return {key: float(value) for key, value in named.items() if value is not None}
    answer = ask.ask(question_of(measurement, given), timeout_s=timeout_s)
    return {
        **answer.figures,
        "s": answer.virtual_time_s,
        "us": answer.virtual_time_s * 1e6,
        "bound": math.nan if answer.error_bound is None else answer.error_bound,
    }

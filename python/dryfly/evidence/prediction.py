"""Measurements without processes: what `dryfly predict` answers, and what a machine's file adds up to."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dryfly.base import toml
from dryfly.base.errors import UserError
from dryfly.base.folder import RunFolder
from dryfly.base.store import Store
from dryfly.evidence.published import Measurement
from dryfly.machine.load import load
from dryfly.machine.topology import summarise
from dryfly.predict import ask
from dryfly.predict.answer import Answer
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
        with RunFolder() as made:
            ask.check(question_of(measurement, given, made.path))


def question_of(measurement: Measurement, given: Mapping[str, Any], folder: Path) -> Question:
    """With its flaps in a file of that folder. Raises UserError."""
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
    if measurement.faults:
        faults = folder / "flaps.toml"
        faults.write_text(toml.text(_flaps(measurement)), encoding="utf-8")
        fields["faults"] = str(faults)
    return Question(**{**fields, **given, "sets": (*measurement.sets, *given.get("sets", ()))})


def figures_of(
    measurement: Measurement, given: Mapping[str, Any], timeout_s: float | None = None, answered: Store | None = None
) -> dict[str, float]:
    """By name: an answer's figures and its time in s and us, or counts and rates of a machine."""
    if measurement.predict == MACHINE:
        name = given.get("machine", measurement.machine)
        counts = summarise(load(name, sets=(*measurement.sets, *given.get("sets", ()))))
        named = {**vars(counts), "fabric_ports": counts.fabric_ports}
        return {key: float(value) for key, value in named.items() if value is not None}
    with RunFolder() as made:
        question = question_of(measurement, given, made.path)
        if answered is None:
            return _figures(ask.ask(question, timeout_s=timeout_s))
        key = _key(measurement, question)
        kept = answered.get(key)
        if kept is not None:
            return {name: math.nan if value is None else float(value) for name, value in kept.items()}
        found = _figures(ask.ask(question, timeout_s=timeout_s))
        answered.put(key, {name: None if math.isnan(value) else value for name, value in found.items()})
    return found


def _flaps(measurement: Measurement) -> dict[str, object]:
    return {"flap": list(measurement.faults)}


def _key(measurement: Measurement, question: Question) -> str:
    """Flaps count by what they are: the file's name is of this run alone."""
    key = ask.key(replace(question, faults=None))
    if not measurement.faults:
        return key
    return hashlib.sha256((key + toml.text(_flaps(measurement))).encode()).hexdigest()


def _figures(answer: Answer) -> dict[str, float]:
    return {
        **answer.figures,
        "s": answer.virtual_time_s,
        "us": answer.virtual_time_s * 1e6,
        "bound": math.nan if answer.error_bound is None else answer.error_bound,
    }

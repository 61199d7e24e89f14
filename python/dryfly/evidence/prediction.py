"""Measurements without processes: what `dryfly predict` answers, and what a machine's file adds up to."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from dryfly.predict.find import find
from dryfly.predict.question import Question
from dryfly.predict.workloads import CLOSED

MACHINE = "machine"  # in the place of a workload

# What may differ from the measurement: by the names of Case's fields, which Question has too, the flags. How many
# nodes and ranks there are is the row's: what was published is of those.
_TAKEN = {"machine": "--machine", "sets": "--set", "seed": "--seed", "noise": "--noise", "place": "--place"}
_DRAWING_NOTHING = {"machine": "--machine", "sets": "--set"}


@dataclass(frozen=True, kw_only=True)
class Found:
    """`figures`: by name. `warnings`: sentences of the model."""

    figures: dict[str, float]
    warnings: tuple[str, ...] = ()


def draws(measurement: Measurement) -> bool:
    """Whether a seed could change it: a closed form and sums of a machine's file are the same with each."""
    if measurement.predict in ("", MACHINE):
        return not measurement.predict
    return (measurement.model or find(measurement.predict).models[0]) != CLOSED


def check(measurement: Measurement, given: Mapping[str, Any]) -> None:
    """Raises UserError."""
    taken = _TAKEN if draws(measurement) else _DRAWING_NOTHING
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


def found(
    measurement: Measurement, given: Mapping[str, Any], timeout_s: float | None = None, answered: Store | None = None
) -> Found:
    """An answer's figures and its time in s and us, with its warnings, or counts and rates of a machine."""
    if measurement.predict == MACHINE:
        name = given.get("machine", measurement.machine)
        counts = summarise(load(name, sets=(*measurement.sets, *given.get("sets", ()))))
        named = {**vars(counts), "fabric_ports": counts.fabric_ports}
        return Found(figures={key: float(value) for key, value in named.items() if value is not None})
    with RunFolder() as made:
        question = question_of(measurement, given, made.path)
        if answered is None:
            return _of_answer(ask.ask(question, timeout_s=timeout_s))
        key = _key(measurement, question)
        kept = answered.get(key)
        if kept is not None:
            return _of_kept(kept)
        new = _of_answer(ask.ask(question, timeout_s=timeout_s))
        figures = {name: None if math.isnan(value) else value for name, value in new.figures.items()}
        answered.put(key, {**figures, _WARNINGS: list(new.warnings)})
    return new


_WARNINGS = "warnings"  # beside the figures, where an answer is kept


def _of_kept(kept: Mapping[str, Any]) -> Found:
    figures = {name: math.nan if value is None else float(value) for name, value in kept.items() if name != _WARNINGS}
    return Found(figures=figures, warnings=tuple(kept.get(_WARNINGS, ())))


def _flaps(measurement: Measurement) -> dict[str, object]:
    return {"flap": list(measurement.faults)}


def _key(measurement: Measurement, question: Question) -> str:
    """Flaps count by what they are: the file's name is of this run alone."""
    key = ask.key(replace(question, faults=None))
    if not measurement.faults:
        return key
    return hashlib.sha256((key + toml.text(_flaps(measurement))).encode()).hexdigest()


def _of_answer(answer: Answer) -> Found:
    figures = {
        **answer.figures,
        "s": answer.virtual_time_s,
        "us": answer.virtual_time_s * 1e6,
        "bound": answer.error_bound,
    }
    return Found(figures=figures, warnings=tuple(answer.warnings))

"""Carries out the measurements of a registry: real MPI programs under `dryfly run`, or patterns of commands given to
the NICs by dryfly-generator, or predictions (prediction.py). Each gives figures by key."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError, UserError
from dryfly.base.folder import RunFolder
from dryfly.base.paths import GENERATOR, native, programs_folder
from dryfly.base.store import Store
from dryfly.case.bind import BoundCase, bind, library_of, load_machine
from dryfly.case.case import Case
from dryfly.case.resolve import with_counted_software
from dryfly.evidence import prediction
from dryfly.evidence.prediction import Found
from dryfly.evidence.published import Measurement
from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames
from dryfly.mpi import software
from dryfly.mpi.libraries import installed
from dryfly.run.runner import Runner, command_line, environment_of, with_files
from dryfly.scenario import noise as noise_files
from dryfly.study.kept import Entry

_TABLE_ROW = re.compile(r"^(\d+)\s+([\d.]+)(?:\s+([\d.]+))?$", re.MULTILINE)

Figures = dict[str, float]


# What a measurement of a program takes, and a pattern of commands to NICs that it names has no use for.
_OF_RANKS = {"nodes": "-N", "ppn": "--ppn", "ranks": "-n", "place": "--place"}


def case_of(measurement: Measurement, given: Mapping[str, Any]) -> Case:
    """`given`: fields of Case that differ from the measurement's own; sets are added to them."""
    of_measurement = {
        "machine": measurement.machine,
        "compute": "none",
        "nodes": measurement.nodes,
        "ppn": measurement.ppn,
        "mpi": measurement.mpi,
        "software": _software(measurement),
        "noise": measurement.noise,
        "environment": tuple(measurement.environment.items()),
        **measurement.run,
    }
    if "ranks" in given:  # they take the nodes that they need
        del of_measurement["nodes"], of_measurement["ppn"]
    return Case(**{**of_measurement, **given, "sets": (*measurement.sets, *given.get("sets", ()))})


def _software(measurement: Measurement) -> str | None:
    """A library that few have is charged as it is counted, if somebody has counted it."""
    if not measurement.mpi:
        return "none"
    return None if measurement.needs else "measured"


def noise_of(measurement: Measurement, given: Mapping[str, Any]) -> str:
    """What there is of it in a measurement, as --noise has it; none."""
    if measurement.predict == prediction.MACHINE:
        return "none"
    case = case_of(measurement, given)
    noise = noise_files.load(case.noise, load_machine(case))
    return "none" if noise is None else noise.name


def check(measurement: Measurement, *, given: Mapping[str, Any], entry: Entry) -> None:
    """Before the first measurement. Raises UserError for what cannot be used, and for what only ranks have where there
    are none."""
    if measurement.predict:
        if entry != Entry():
            raise UserError(f"--record and --trace: measurement {measurement.name} is a prediction, and nothing runs")
        prediction.check(measurement, given)
        return
    case = case_of(measurement, given)
    if case.compute.startswith("replay:"):
        raise UserError(f"--compute {case.compute}: accepted is none, measured[:FACTOR] or model")
    if given:
        bind(case)
    if case.software == "measured":
        software.load(library_of(case))  # it is set up, and its table is of its build
    if measurement.program:
        return
    flags = [flag for name, flag in _OF_RANKS.items() if name in given]
    flags += [f"--{name}" for name in ("record", "trace") if getattr(entry, name) is not None]
    if flags:
        raise UserError(
            f"{flags[0]}: measurement {measurement.name} gives commands to NICs that it names and has no ranks; "
            "choose measurements of programs with --only"
        )


def measure(
    measurement: Measurement,
    *,
    given: Mapping[str, Any],
    entry: Entry,
    timeout_s: float | None = None,
    answered: Store | None = None,
) -> Found:
    """`given` and `entry` have been checked. `answered`: predictions that have been made already."""
    if measurement.predict:
        return prediction.found(measurement, given, timeout_s, answered)
    case = case_of(measurement, given)
    if measurement.program:
        try:
            return Found(figures=_run_program(measurement, case, entry, timeout_s))
        except RunError as error:
            if not measurement.may_fail:
                raise
            return Found(figures={"right": 0.0}, warnings=(str(error),))  # why it failed is for the reader to judge
    return Found(figures=_run_pattern(measurement, case, timeout_s))


def is_there(measurement: Measurement) -> bool:
    """Whether the library that few have is set up."""
    return not measurement.needs or measurement.mpi in {each.name for each in installed()}


def source_of(program: str) -> Path:
    """A program of programs/micro by its name, or of another folder as folder/name."""
    return programs_folder() / (f"{program}.c" if "/" in program else f"micro/{program}.c")


def _run_program(measurement: Measurement, case: Case, entry: Entry, timeout_s: float | None) -> Figures:
    program = str(source_of(measurement.program))
    case = replace(case, program=(program, *measurement.arguments))
    with RunFolder() as made:
        folder = made.path
        if measurement.own_json:
            case = replace(case, program=(*case.program, "--json", str(folder / "figures.json")))
        if measurement.faults:
            case = with_files(replace(case, faults={"flap": measurement.faults}), folder)
        record, trace = (None if path is None else str(path) for path in (entry.record, entry.trace))
        command = command_line(case, Runner(quiet=True, timeout_s=timeout_s, record=record, trace=trace))
        output = _output_of(command, measurement.name, environment_of(case))
        if measurement.own_json:
            return _numbers_of(json.loads((folder / "figures.json").read_text(encoding="utf-8")))
    figures: Figures = {}
    for size, first, second in _TABLE_ROW.findall(output):
        figures[size] = float(first)
        if second:
            figures[f"{size}.2"] = float(second)
    return figures


def _numbers_of(content: Mapping[str, Any]) -> Figures:
    return {name: float(value) for name, value in content.items() if isinstance(value, int | float)}


def _run_pattern(measurement: Measurement, case: Case, timeout_s: float | None) -> Figures:
    """Without processes: of the case its spec counts."""
    bound = bind(case)
    figures: Figures = {}
    with RunFolder() as made:
        folder = made.path
        spec = folder / "spec"
        library = library_of(case)
        table = software.charged(case.software, library)
        arguments = [*measurement.arguments, *_where(measurement, bound.machine, folder)]
        if measurement.operation:
            arguments.append(f"operation={measurement.operation}")
        for size in measurement.sizes:
            spec.write_text(_charged(bound, table, library.family, measurement.pattern, size), encoding="utf-8")
            command = [str(native(GENERATOR)), str(spec), measurement.pattern, f"bytes={size}", *arguments]
            answer = json.loads(_output_of(command, measurement.name, environment_of(case), timeout_s))
            figures |= {f"{size}.{key}": float(value) for key, value in answer.items()}
            main = answer["mean_ps"] * 1e-6 if "mean_ps" in answer else answer["bytes_per_s"] * 1e-6
            figures[str(size)] = main  # us, or MB/s
    return figures


def _charged(bound: BoundCase, table: software.SoftwareTable | None, family: str, pattern: str, size: int) -> str:
    """The spec, with the library's own code where the pattern stands for calls of one that has been counted."""
    if table is None:
        return bound.spec
    own_code = software.of_doubling(table) if pattern == "allreduce" else software.of_messages(table, size)
    return with_counted_software(bound.spec, bound.machine, family, own_code)


def _where(measurement: Measurement, machine: Machine, folder: Path) -> list[str]:
    names = NodeNames(machine)
    if measurement.ends is not None:
        ends = [end.split(".") for end in measurement.ends]
        return [f"{key}={names.number(int(node))}.{nic}" for key, (node, nic) in zip("ab", ends, strict=True)]
    assert measurement.crowd is not None
    wanted, of = measurement.crowd
    lines = [
        f"{names.number(node)}.{nic}\n"
        for node in (number * of // wanted for number in range(wanted))
        for nic in range(names.nics(node))
        for _ in range(measurement.ranks_per_nic)
    ]
    file = folder / "ranks"
    file.write_text("".join(lines), encoding="utf-8")
    return [f"ranks={file}"]


def _output_of(command: list[str], name: str, environment: Mapping[str, str], timeout_s: float | None = None) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment,
            timeout=timeout_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RunError(f"measurement {name} has not ended after {timeout_s:g} s", exit_status=1) from None
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        raise RunError(
            f"measurement {name} ended with status {done.returncode} (its messages are above)", exit_status=1
        )
    return done.stdout

"""`dryfly predict`: one question, or all those of a sweep."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dryfly.base.deadline import within
from dryfly.base.errors import UserError
from dryfly.base.grid import Grid
from dryfly.base.printer import Printer
from dryfly.base.units import time_text
from dryfly.predict import ask, figure, held, pool, recorded_run, standing, summary, sweep, workloads
from dryfly.predict.find import find, is_recording, reading
from dryfly.predict.question import Question
from dryfly.predict.sweep import Axis, Case, Folder
from dryfly.result import result
from dryfly.result.capture import check_target
from dryfly.result.tables import need_tables

_FIGURES_SHOWN = 2
_SEED = 1  # where none is given
_PS_PER_S = 10**12
_ROWS_SHOWN = 200


@dataclass(frozen=True, kw_only=True)
class How:
    """Nothing of it changes an answer. `program`: a command that the answer is held against. `written`: options of the
    question that the user gave, where others have their defaults."""

    sweeps: tuple[str, ...] = ()
    seeds: int | None = None
    jobs: int | None = None
    out: str | None = None
    dask: str | None = None
    json_file: str | None = None
    timeout_s: float | None = None
    quiet: bool = False
    program: str | None = None
    written: frozenset[str] = frozenset()


def predict(workload: str, words: Sequence[str], given: Mapping[str, Any], how: How) -> int:
    with within(how.timeout_s, reading(workload)):
        row = find(workload)
    base = {**given, "workload": workload, "parameters": pairs(words, row)}
    if is_recording(workload):
        base |= recorded_run.usual(workload, how.written)
    _check(how)
    printer = Printer(quiet=how.quiet, on_stdout=how.json_file != "-")
    axes = [sweep.axis(text, workload) for text in how.sweeps]
    sweep.check_given(axes, base, how.written)
    if how.seeds is not None:
        if any(each.name == "seed" for each in axes):
            raise UserError(f"--seeds {how.seeds} and --sweep seed: accepted is one of the two")
        axes.append(_seeds(how.seeds, int(base.get("seed", _SEED))))
    if how.program is not None:
        held.check_workload(workload)  # before a parameter is added that others may not have
        base["parameters"] = _through_nics(base["parameters"])
    if axes or how.out is not None:
        status, told = many(base, axes, how, printer)
        if how.json_file is not None:
            result.write(told, how.json_file)
        return status
    question = Question(**base)
    _check_without_ranks([question], how)
    with within(how.timeout_s, reading(workload)):
        ask.check(question)
    if how.program is not None:
        held.check(question, how.program)
        if warning := held.warning(question):
            printer.say(f"warning: {warning}")
    summary.before(printer, question)
    answer = ask.ask(question, timeout_s=how.timeout_s)
    summary.after(printer, answer)
    content = answer.content()
    if question.model == workloads.CLOSED and standing.is_known(question):
        rows = standing.standings(question)
        summary.standing(printer, rows)
        content["published"] = [
            {"nodes": each.nodes, "n": each.n, "grid": each.grid, "published_flop_per_s": each.published,
             "dryfly_flop_per_s": each.predicted, "error": each.error, "constant_error": each.constant_error,
             "kind": each.kind}
            for each in rows
        ]  # fmt: skip
    status = 0
    if how.program is not None:
        beside = held.hold(question, how.program, timeout_s=how.timeout_s)
        held.show(printer, beside)
        content["program"] = beside.content()
        status = int(bool(beside.outside))
    if how.json_file is not None:
        result.write(content, how.json_file)
    return status


def _through_nics(parameters: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What ranks of a node say to one another is recorded only there, so that it goes there if nothing else is said."""
    return (*parameters, *(() if "on_node" in dict(parameters) else (("on_node", "nic"),)))


def show_parameters(workload: str) -> int:
    summary.parameters(Printer(on_stdout=True), find(workload))
    return 0


def pairs(words: Sequence[str], row: workloads.Workload) -> tuple[tuple[str, str], ...]:
    """NAME=VALUE, --NAME VALUE and --NAME=VALUE; a switch may be named alone, --NAME."""
    switches = {each.name for each in row.parameters if each.is_switch}
    found: dict[str, str] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        is_flag = word.startswith("--")
        name, equals, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if not equals:
            if not is_flag:
                raise UserError(f'"{word}": accepted is NAME=VALUE or --NAME VALUE, for a parameter of {row.name}')
            if name in switches and (not left or left[0].startswith("--") or "=" in left[0]):
                value = "1"
            elif left:
                value = left.pop(0)
            else:
                raise UserError(f"{word}: its value is missing")
        if name in found:
            raise UserError(f"{row.name}: parameter {name} is given twice")
        found[name] = value
    return tuple(found.items())


def _check(how: How) -> None:
    """Raises UserError."""
    if how.jobs is not None and how.jobs < 1:
        raise UserError(f"--jobs {how.jobs}: accepted is 1 or more")
    if how.json_file not in (None, "-"):
        check_target("--json", str(how.json_file), folder=False)
    if how.dask is not None:
        pool.check_dask()
    if how.program is not None:
        if how.sweeps or how.seeds is not None or how.out is not None:
            raise UserError("--program: one case is held against it; leave --sweep, --seeds and --out out")
        need_tables("--program")


def _check_without_ranks(questions: Sequence[Question], how: How) -> None:
    """A closed form draws nothing; it and drawn histories are there before any time is up. Raises UserError."""
    models = {str(question.model) for question in questions}
    if how.seeds is not None and models == {workloads.CLOSED}:
        raise UserError("--seeds has no effect on --model closed: leave it out")
    other = next((question.seed for question in questions if question.seed != _SEED), None)
    if other is not None and models == {workloads.CLOSED}:
        raise UserError(f"--seed {other} has no effect on --model closed: leave it out")
    if how.timeout_s is not None and workloads.SKELETON not in models:
        raise UserError(f"--timeout has no effect on --model {' and '.join(sorted(models))}: leave it out")


def _seeds(count: int, first: int) -> Axis:
    if not 2 <= count <= 10_000:
        raise UserError(f"--seeds {count}: accepted is 2 to 10000")
    return Axis(name="seed", kind="option", values=tuple(str(first + number) for number in range(count)))


def many(base: Mapping[str, Any], axes: Sequence[Axis], how: How, printer: Printer) -> tuple[int, dict[str, Any]]:
    """All combinations: the exit status of the first that failed, and all answers as JSON has them. `base`: fields of
    Question."""
    made = sweep.cases(base, axes, timeout_s=how.timeout_s)
    _check_without_ranks([case.question for case in made], how)
    folder = Folder(how.out) if how.out is not None else None
    if folder is not None:
        folder.check()
        folder.begin(base, axes, made)
    summary.before(printer, made[0].question)
    shown = "; ".join(f"{each.name} = {', '.join(each.values)}" for each in axes)
    printer.line(f"  sweep     {len(made):,} cases, of which this is the first: {shown}")
    answers: dict[str, Mapping[str, Any]] = {}
    if folder is not None:
        answers = {case.key: kept for case in made if (kept := folder.answers.get(case.key)) is not None}
        if answers:
            printer.line(f"dryfly: {len(answers):,} of {len(made):,} are answered already")
    status = _ask_all([case for case in made if case.key not in answers], answers, folder, axes, how, printer)
    if folder is not None:
        folder.write_table(axes, made, answers)
    _show(printer, axes, made, answers)
    if how.seeds is not None:
        _show_seeds(printer, axes, made, answers)
    if folder is not None:
        printer.line(f'dryfly: {folder.path}: {sweep.TABLE}; "dryfly report {folder.path} -o FILE.html" draws it')
    return status, _content(axes, made, answers)


def _ask_all(
    left: Sequence[Case],
    answers: dict[str, Mapping[str, Any]],
    folder: Folder | None,
    axes: Sequence[Axis],
    how: How,
    printer: Printer,
) -> int:
    """Adds to `answers`; the exit status of the first one that failed. What is answered is kept at once."""
    once = list({case.key: case for case in left}.values())
    contents = [case.question.content() for case in once]
    jobs = how.jobs or len(os.sched_getaffinity(0))
    if how.dask is not None:
        outcomes = pool.by_dask(how.dask, contents, jobs=jobs, timeout_s=how.timeout_s)
    else:
        outcomes = pool.on_cores(contents, jobs=jobs, timeout_s=how.timeout_s)
    status = 0
    failures: dict[str, int] = {}
    for number, (at, told) in enumerate(outcomes, 1):
        case = once[at]
        name = _name(axes, case)
        if "failure" in told:
            status = status or int(told["status"])
            failures[told["failure"]] = failures.get(told["failure"], 0) + 1
            if failures[told["failure"]] == 1:
                printer.say(f"{name}: {told['failure']}")
            continue
        answers[case.key] = told["answer"]
        if folder is not None:
            folder.answers.put(case.key, told["answer"])
        time = figure.seconds_text(told["answer"]["virtual_time_s"])
        if len(once) <= _ROWS_SHOWN or number % (len(once) // 100) == 0:
            printer.line(f"dryfly: {number} of {len(once)}: {name}: {time}")
    for sentence, count in failures.items():
        if count > 1:
            printer.say(f"so for {count - 1:,} other cases of {len(once):,}: {sentence}" if len(failures) > 1 else
                        f"so for {count - 1:,} other cases of {len(once):,}")  # fmt: skip
    return status


def _name(axes: Sequence[Axis], case: Case) -> str:
    return ", ".join(f"{each.name}={value}" for each, value in zip(axes, case.values, strict=True)) or "the case"


def _show(
    printer: Printer, axes: Sequence[Axis], made: Sequence[Case], answers: Mapping[str, Mapping[str, Any]]
) -> None:
    rows = []
    known_of = [answers[case.key]["figures"] for case in made if case.key in answers]
    figures = figure.of_all(known_of)[:_FIGURES_SHOWN]
    for case in made[:_ROWS_SHOWN]:
        answer = answers.get(case.key)
        if answer is None:
            continue
        known = answer["figures"]
        cells = [figure.value_text(name, known[name]) if name in known else "" for name in figures]
        rows.append([*case.values, time_text(answer["virtual_time_s"] * _PS_PER_S), *cells])
    heads = [*(each.name for each in axes), "time", *map(figure.name_text, figures)]
    if rows:
        printer.show(Grid(heads=heads, rows=rows, indent="  "))
    if len(made) > _ROWS_SHOWN:
        printer.line(f"  the first {_ROWS_SHOWN} of {len(made):,}")


def _show_seeds(
    printer: Printer, axes: Sequence[Axis], made: Sequence[Case], answers: Mapping[str, Mapping[str, Any]]
) -> None:
    """Median, least and most over the seeds, which are the last axis."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for case in made:
        if case.key in answers:
            groups.setdefault(case.values[:-1], []).append(answers[case.key]["virtual_time_s"])
    rows = [
        [*values, *(figure.seconds_text(of(times)) for of in (statistics.median, min, max))]
        for values, times in groups.items()
    ]
    heads = [*(each.name for each in axes[:-1]), "median", "least", "most"]
    printer.show(Grid(heads=heads, rows=rows, indent="  "))


def _content(axes: Sequence[Axis], made: Sequence[Case], answers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "format": 1,
        "kind": "sweep",
        "axes": [{"name": each.name, "kind": each.kind, "values": list(each.values)} for each in axes],
        "cases": [
            {"key": case.key, "values": list(case.values), "answer": answers[case.key]}
            for case in made
            if case.key in answers
        ],
    }

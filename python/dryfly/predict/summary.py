"""What `dryfly predict` prints: first what will be simulated, then what came out."""

from __future__ import annotations

from collections.abc import Sequence

from dryfly.base.grid import Grid
from dryfly.base.printer import Printer
from dryfly.machine.topology import summarise
from dryfly.predict import figure
from dryfly.predict.answer import Answer
from dryfly.predict.question import Question
from dryfly.predict.standing import Standing
from dryfly.predict.workloads import CLOSED, DRAWN, Workload

_MOST_PHASES = 12


def parameters(printer: Printer, workload: Workload) -> None:
    """Those of a workload, with what is accepted."""
    printer.line(f"dryfly: {workload.name}: {workload.about}; --model {' or '.join(workload.models)}")
    rows = []
    for each in workload.parameters:
        only = (
            f" (--model {', '.join(each.models)})" if each.models and set(each.models) != set(workload.models) else ""
        )
        rows.append([each.name, each.default or "", each.accepted, each.field.meaning + only])
    printer.show(
        Grid(heads=["parameter", "default", "accepted", "meaning"], rows=rows, left=frozenset({0, 1, 2, 3}),
             prose=frozenset({3}), indent="  ")
    )  # fmt: skip


def before(printer: Printer, question: Question) -> None:
    machine = question.loaded
    counts = summarise(machine)
    printer.line(f"dryfly: {machine.name}: {machine.title}")
    printer.line(
        f"  network   {counts.groups} groups, {counts.switches:,} switches, {counts.nics:,} NICs, "
        f"{counts.local_links + counts.global_links:,} cables between switches"
    )
    printer.line(
        f"  job       {question.ranks:,} ranks on {question.nodes:,} of {machine.nodes_max:,} nodes, "
        f"{question.ppn} each, {question.place}; seed {question.seed}"
    )
    given = dict(question.parameters)
    known = {each.name: each for each in question.row.parameters}
    shown = [f"{name}={known[name].shown(value)}" for name, value in question.values if name in given]
    printer.line(f"  workload  {question.title}{': ' if shown else ''}{', '.join(shown)}")
    how = {
        CLOSED: "its closed form: no ranks, no queues",
        DRAWN: "histories, drawn at random: no ranks, no queues",
    }.get(str(question.model), f"skeletons; network: {question.level}")
    if question.software != "none":
        how += f"; the own code of {question.mpi or 'the newest MPICH'} as counted"
    printer.line(f"  model     {how}")
    if question.faults is not None:
        printer.line(f"  faults    {question.faults}")
    if question.noise != "none":
        printer.line(f"  noise     {question.noise}")


def after(printer: Printer, answer: Answer) -> None:
    asked = answer.question
    printer.line(f"dryfly: {asked.title}: virtual time {figure.seconds_text(answer.virtual_time_s)}{_bound(answer)}")
    for sentence in answer.chosen:
        printer.line(f"  chosen    {sentence}")
    rows = [
        [figure.name_text(name), figure.value_text(name, value)] for name, value in figure.main(answer.figures).items()
    ]
    if rows:
        printer.show(Grid(heads=["figure", ""], rows=rows, indent="  "))
    _phases(printer, answer)
    if answer.messages is not None:
        size = "" if answer.bytes is None else f", {figure.value_text('_bytes', answer.bytes)}"
        events = "" if answer.events is None else f"; {answer.events:,} events"
        part = " (of what was run)" if answer.sampled else ""
        printer.line(f"  messages  {answer.messages:,}{size}{events}{part}")
    if "closed_time_s" in answer.details:
        closed: float = answer.details["closed_time_s"]
        apart = closed / answer.virtual_time_s - 1 if answer.virtual_time_s else 0.0
        printer.line(f"  closed    {figure.seconds_text(closed)} by the closed form, {apart:+.1%}")
    if "recorded" in answer.details:
        _beside_recorded(printer, answer)
    printer.line(f"  kind      {_kind(answer)}")
    if answer.fingerprint:
        printer.line(f"  result    {answer.fingerprint}")
    printer.line(f"  wall      {answer.wall_s:.3g} s")
    for warning in answer.warnings:
        printer.say(f"warning: {warning}")


def _beside_recorded(printer: Printer, answer: Answer) -> None:
    recorded = answer.details["recorded"]
    took: float = recorded["virtual_time_s"]
    apart = f", {answer.virtual_time_s / took - 1:+.1%}" if took else ""
    printer.line(f"  recorded  {figure.seconds_text(took)} on {recorded['machine']}{apart}")


def _bound(answer: Answer) -> str:
    if not answer.sampled:
        return ""
    return f", sampled: within {answer.error_bound:.1%}"


def _kind(answer: Answer) -> str:
    kind = f"assumed: {answer.assumed}" if answer.assumed else "predicted"
    return f"{kind}; one parameter is calibrated: {answer.calibrated}" if answer.calibrated else kind


def _phases(printer: Printer, answer: Answer) -> None:
    shown = sorted(answer.phases.items(), key=lambda pair: -pair[1])[:_MOST_PHASES]
    total = answer.virtual_time_s or 1.0
    rows = [[name, figure.seconds_text(took), f"{took / total:.1%}"] for name, took in shown if took > 0]
    if rows:
        printer.show(Grid(heads=["phase", "time", "share"], rows=rows, indent="  "))


def standing(printer: Printer, rows: Sequence[Standing]) -> None:
    """Beside what was published."""
    cells = [
        [f"{row.nodes:,}", f"{row.n:,}", row.grid, f"{row.published / 1e15:.6g}", f"{row.predicted / 1e15:.6g}",
         f"{row.error:+.2%}", f"{row.constant_error:+.2%}", row.kind]
        for row in rows
    ]  # fmt: skip
    printer.line("dryfly: beside what was published, in PF/s; flat: had the calibrated row's efficiency been constant")
    heads = ["nodes", "N", "P x Q", "publ.", "dryfly", "error", "flat", "kind"]
    printer.show(Grid(heads=heads, rows=cells, left=frozenset({7})))
    predicted = [row for row in rows if row.kind != "calibrated"]
    worst = max(abs(row.error) for row in predicted)
    constant = max(abs(row.constant_error) for row in predicted)
    better = worst < constant
    printer.line(
        f"  rows that nothing was set to: within {worst:.2%}, flat within {constant:.2%}: "
        f"{'predictive' if better else 'consistent with them, not predictive'}"
    )

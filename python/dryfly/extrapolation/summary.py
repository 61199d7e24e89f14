"""What `dryfly extrapolate` prints: what is least certain, the fits by phase, the recordings again, the prediction."""

from __future__ import annotations

from typing import Any

from dryfly.base.grid import Grid
from dryfly.base.printer import Printer
from dryfly.extrapolation.outcome import Outcome
from dryfly.extrapolation.writing import Fitted
from dryfly.predict import figure

_KINDS = ("counts", "sizes", "work")
_SHOWN = 10.0  # as a share in per cent; above it as a factor


def show(outcome: Outcome, printer: Printer) -> None:
    played, where, last = outcome.played, outcome.where, outcome.recordings[-1]
    took = figure.seconds_text(played.virtual_time_s)
    sizes = ", ".join(f"{one.ranks:,}" for one in outcome.recordings)
    printer.line(f"dryfly: {last.program}: {took} on {outcome.ranks:,} ranks, extrapolated from {sizes}")
    printer.line(f"  doubt     {_doubt(outcome)}")
    printer.line(
        f"  job       {where.nodes:,} nodes of {where.machine}, {where.ppn} ranks each, {where.place}; "
        f"{outcome.ranks / last.ranks:.4g} times the largest recording; network: {where.level}"
    )
    printer.line(f"  messages  {played.messages:,}, {figure.value_text('_bytes', played.bytes)}")
    printer.line("  fits      their errors at a size that was left out, and the time that is predicted:")
    rows = []
    for phase in outcome.written.phases:
        seconds = played.phases.get(phase.name, 0.0)
        errors = [_error(phase.worst(kind)) for kind in _KINDS]
        rows.append(
            [phase.name, *errors, figure.seconds_text(seconds), f"{_share(seconds, played.virtual_time_s):.1%}"]
        )
    printer.show(Grid(heads=["phase", *_KINDS, "time", "share"], rows=rows, indent="  "))
    printer.line("  again     what the skeleton gives where there is a recording:")
    rows = [
        [f"{one.ranks:,}", _apart(got.messages, one.messages), _apart(got.bytes, one.bytes),
         _apart(got.virtual_time_s, one.virtual_time_s)]
        for one, got in zip(outcome.recordings, outcome.again, strict=True)
    ]  # fmt: skip
    printer.show(Grid(heads=["ranks", "messages", "bytes", "time"], rows=rows, indent="  "))


def content(outcome: Outcome) -> dict[str, Any]:
    where, played = outcome.where, outcome.played
    return {
        "program": outcome.recordings[-1].program,
        "ranks": outcome.ranks,
        "nodes": where.nodes,
        "ppn": where.ppn,
        "machine": where.machine,
        "place": where.place,
        "level": where.level,
        "seed": where.seed,
        "virtual_time_s": played.virtual_time_s,
        "messages": played.messages,
        "bytes": played.bytes,
        "fingerprint": played.fingerprint,
        "work_in_doubt_s": outcome.work_in_doubt_s,
        "phases": [
            {
                "name": phase.name,
                "time_s": played.phases.get(phase.name, 0.0),
                "fits": [
                    {"what": one.what, "of": one.of, "fit": one.fit.text(), "error": one.fit.error,
                     "value": one.at(outcome.ranks)}
                    for one in phase.fits
                ],
            }
            for phase in outcome.written.phases
        ],
        "recordings": [
            {"folder": one.folder, "ranks": one.ranks, "messages": one.messages, "bytes": one.bytes,
             "virtual_time_s": one.virtual_time_s, "messages_again": got.messages, "bytes_again": got.bytes,
             "virtual_time_again_s": got.virtual_time_s}
            for one, got in zip(outcome.recordings, outcome.again, strict=True)
        ],
    }  # fmt: skip


def _doubt(outcome: Outcome) -> str:
    """Counts and sizes before work: these are the program's, and ought to be met."""
    phases = outcome.written.phases
    for kind, exact in (("counts", ""), ("sizes", "counts are exact; "), ("work", "counts and sizes are exact; ")):
        found = [(one, phase) for phase in phases for one in phase.fits if one.what == kind and one.fit.error > 0]
        if not found:
            continue
        by_work = kind == "work"
        one, phase = max(found, key=lambda pair: pair[0].doubt(outcome.ranks) if by_work else pair[0].fit.error)
        share = _share(outcome.work_in_doubt_s, outcome.played.virtual_time_s)
        return (
            f"{exact}least certain is {one.of} in phase {phase.name.partition(' ')[0]}, {_error(one)} at a size that "
            f"was left out; all doubt about work is {share:.1%} of the time"
        )
    return "none: counts, sizes and work are exact at every size that was left out"


def _error(one: Fitted | None) -> str:
    if one is None:
        return "-"
    error = one.fit.error
    return "exact" if error == 0.0 else f"{error:.1%}" if error < _SHOWN else f"x {error:.2g}"


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _apart(got: float, recorded: float) -> str:
    return f"{got / recorded - 1:+.2%}" if recorded else f"{got:+g}"

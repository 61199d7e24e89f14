"""What `dryfly extrapolate` prints: what is least certain, the fits by phase, the recordings again, the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dryfly.base.grid import Grid
from dryfly.extrapolation.recording import Recording
from dryfly.extrapolation.writing import Fitted, Phase, Written
from dryfly.predict import figure
from dryfly.predict.summary import Printer
from dryfly.skeleton import Played, Where

_KINDS = ("counts", "sizes", "work")


def show(
    recordings: Sequence[Recording],
    written: Written,
    again: Sequence[Played],
    where: Where,
    ranks: int,
    played: Played,
    *,
    quiet: bool,
    errors: bool,
) -> None:
    printer = Printer(quiet=quiet, errors=errors)
    last = recordings[-1]
    sizes = ", ".join(f"{one.ranks:,}" for one in recordings)
    printer.line(
        f"dryfly: {last.program}: {figure.seconds_text(played.virtual_time_s)} on {ranks:,} ranks, extrapolated from {sizes}"
    )
    printer.line(f"  doubt     {_least_certain(written, ranks, played)}")
    printer.line(
        f"  job       {where.nodes:,} nodes of {where.machine}, {where.ppn} ranks each, {where.place}; "
        f"{ranks / last.ranks:.4g} times the largest recording; network: {where.level}"
    )
    printer.line(f"  messages  {played.messages:,}, {figure.value_text('_bytes', played.bytes)}")
    rows = [
        [phase.name, *(_error(phase.worst(kind)) for kind in _KINDS), figure.seconds_text(took), _share(took, played)]
        for phase in written.phases
        for took in [played.phases.get(phase.name, 0.0)]
    ]
    heads = ["phase", *_KINDS, "time", "share"]
    printer.line("  errors of the fits at a size that they are not given; the time is the prediction's")
    printer.show(Grid(heads=heads, rows=rows, indent="  "))
    rows = [
        [f"{one.ranks:,}", _apart(got.messages, one.messages), _apart(got.bytes, one.bytes),
         _apart(got.virtual_time_s, one.virtual_time_s)]
        for one, got in zip(recordings, again, strict=True)
    ]  # fmt: skip
    printer.line("  the skeleton beside the recordings")
    printer.show(Grid(heads=["ranks", "messages", "bytes", "time"], rows=rows, indent="  "))


def content(
    recordings: Sequence[Recording],
    written: Written,
    again: Sequence[Played],
    where: Where,
    ranks: int,
    played: Played,
) -> dict[str, Any]:
    return {
        "program": recordings[-1].program,
        "ranks": ranks,
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
        "time_in_doubt_s": _work_in_doubt_s(written.phases, ranks),
        "phases": [
            {
                "name": phase.name,
                "time_s": played.phases.get(phase.name, 0.0),
                "fits": [
                    {"what": one.what, "of": one.of, "fit": one.fit.text(), "error": one.fit.error, "at": one.at(ranks)}
                    for one in phase.fits
                ],
            }
            for phase in written.phases
        ],
        "recordings": [
            {"folder": one.folder, "ranks": one.ranks, "messages": one.messages, "bytes": one.bytes,
             "virtual_time_s": one.virtual_time_s, "messages_again": got.messages, "bytes_again": got.bytes,
             "virtual_time_again_s": got.virtual_time_s}
            for one, got in zip(recordings, again, strict=True)
        ],
    }  # fmt: skip


def _work_in_doubt_s(phases: Sequence[Phase], ranks: int) -> float:
    return sum(one.doubt(ranks) for phase in phases for one in phase.fits if one.what == "work")


def _least_certain(written: Written, ranks: int, played: Played) -> str:
    """Counts and sizes before work: these are the program's, and ought to be met."""
    for kind in _KINDS:
        found = [(one, phase) for phase in written.phases for one in [phase.worst(kind)] if one is not None]
        of_kind = [(one.doubt(ranks) if kind == "work" else one.fit.error, one, phase) for one, phase in found]
        if not of_kind:
            continue
        doubt, one, phase = max(of_kind, key=lambda each: each[0])
        if doubt > 0:
            whole = _work_in_doubt_s(written.phases, ranks) / played.virtual_time_s if played.virtual_time_s else 0.0
            exact = {"counts": "", "sizes": "counts are exact; ", "work": "counts and sizes are exact; "}[kind]
            return (
                f"{exact}least certain is {one.of} in phase {phase.name.partition(' ')[0]}, {_error(one)} at a size left "
                f"out; all doubt about work is {whole:.1%} of the time"
            )
    return "counts, sizes and work are exact at every size that was left out"


def _error(one: Fitted | None) -> str:
    if one is None:
        return "-"
    return "exact" if one.fit.error == 0.0 else f"{one.fit.error:.2g}" if one.fit.error > 10 else f"{one.fit.error:.2%}"


def _share(took: float, played: Played) -> str:
    return f"{took / played.virtual_time_s:.1%}" if played.virtual_time_s else "0.0%"


def _apart(got: float, recorded: float) -> str:
    return f"{got / recorded - 1:+.2%}" if recorded else "-" if got == recorded else f"+{got:g}"

"""`dryfly extrapolate`: recordings at several sizes, a skeleton, and what it says of another size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.base.files import write_whole
from dryfly.base.folder import RunFolder
from dryfly.base.printer import Printer
from dryfly.extrapolation import asking, summary
from dryfly.extrapolation.outcome import Outcome
from dryfly.extrapolation.playing import play_recorded, where_of
from dryfly.extrapolation.recording import Recording, read
from dryfly.extrapolation.structure import structure_of
from dryfly.extrapolation.writing import Written, write
from dryfly.machine.load import load
from dryfly.result import result
from dryfly.result.capture import check_target
from dryfly.skeleton import Where

LEVELS = ("latency", "links", "packet", "flow")
_LEAST = 3
_MOST_RANKS = 1 << 24


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is not given is as in the largest recording."""

    folders: tuple[str, ...]
    ranks: int
    machine: str | None = None
    nodes: int | None = None
    ppn: int | None = None
    place: str = "packed"
    level: str = "links"
    seed: int = 1
    sets: tuple[str, ...] = ()
    faults: str | None = None
    noise: str = "none"


def extrapolate(asked: Asked) -> Outcome:
    """Raises UserError: recordings or sizes that cannot be used. MisfitError: the program is none that can be
    extrapolated, and where it is not."""
    with RunFolder() as folder:
        return _play(_prepare(asked, folder))


@dataclass(frozen=True, kw_only=True)
class _Prepared:
    """The skeleton in a file of its own, and the fields of its question; nothing has been played."""

    asked: Asked
    recordings: Sequence[Recording]
    written: Written
    where: Where
    file: str
    fields: Mapping[str, Any]


def _prepare(asked: Asked, folder: RunFolder) -> _Prepared:
    _check(asked)
    recordings = sorted((read(folder) for folder in asked.folders), key=lambda one: one.ranks)
    _check_together(recordings)
    where = _where(asked, recordings[-1])
    written = write(structure_of(recordings), recordings)
    file = folder.path / "extrapolated.py"
    file.write_text(written.text, encoding="utf-8")
    fields = asking.base(str(file), asked.ranks, where, recordings[-1], faults=asked.faults, noise=asked.noise)
    fields["called"] = f"the skeleton of {', '.join(one.folder for one in recordings)}"
    return _Prepared(asked=asked, recordings=recordings, written=written, where=where, file=str(file), fields=fields)


def _play(prepared: _Prepared) -> Outcome:
    asked, recordings = prepared.asked, prepared.recordings
    return Outcome(
        recordings=recordings,
        written=prepared.written,
        played=asking.played(prepared.fields),
        again=[play_recorded(prepared.file, one, level=asked.level) for one in recordings],
        where=prepared.where,
        ranks=asked.ranks,
    )


def command(
    given: Mapping[str, Any],
    *,
    out: str | None,
    json_file: str | None,
    quiet: bool,
    sweeps: tuple[str, ...] = (),
    written: frozenset[str] = frozenset(),
) -> int:
    """`given`: fields of Asked; without `ranks` it is the first that is swept. `written`: options that the user gave,
    by name."""
    for flag, target in (("--out", out), ("--json", json_file)):
        if target not in (None, "-"):
            check_target(flag, str(target), folder=False)
    axes = asking.axes_of(sweeps, given, written)
    asked = Asked(**{**given, "ranks": asking.ranks_of(given["ranks"], axes)})
    printer = Printer(quiet=quiet, on_stdout="-" not in (out, json_file))
    with RunFolder() as folder:
        prepared = _prepare(asked, folder)
        asking.check(prepared.fields, axes, written)
        found = _play(prepared)
        if out is not None:
            if out == "-":
                print(found.written.text, end="")
            else:
                write_whole(Path(out), found.written.text.encode())
        summary.show(found, printer)
        content, status = summary.content(found), 0
        if axes:
            status, content["sweep"] = asking.swept(prepared.fields, axes, written, printer)
    if json_file is not None:
        result.write(content, json_file)
    return status


def _check(asked: Asked) -> None:
    if len(asked.folders) < _LEAST:
        raise UserError(f"recordings = {len(asked.folders)}: accepted are three and more, of as many sizes")
    if not 1 <= asked.ranks <= _MOST_RANKS:
        raise UserError(f"--ranks {asked.ranks}: accepted is 1 to {_MOST_RANKS}")
    if asked.level not in LEVELS:
        raise UserError(f"--level {asked.level}: accepted is one of {', '.join(LEVELS)}")
    for flag, value in (("--nodes", asked.nodes), ("--ppn", asked.ppn)):
        if value is not None and value < 1:
            raise UserError(f"{flag} {value}: accepted is 1 or more")


def _check_together(recordings: Sequence[Recording]) -> None:
    first = recordings[0]
    if first.ranks == 1:
        raise UserError(f"{first.folder}: it has 1 rank, which sends nothing; accepted are recordings of two or more")
    for before, one in pairwise(recordings):
        if before.ranks == one.ranks:
            raise UserError(
                f"{before.folder} and {one.folder}: both have {one.ranks} ranks; accepted are different sizes"
            )
        for what, mine, its in (
            ("programs", first.program, one.program),
            ("machines", first.machine, one.machine),
            ("MPI libraries", first.library, one.library),
            ("ways of --compute", first.compute, one.compute),
        ):
            if mine != its:
                raise UserError(
                    f"{first.folder} and {one.folder}: different {what}, {mine} and {its}; accepted is one for all "
                    "recordings"
                )


def _where(asked: Asked, largest: Recording) -> Where:
    recorded = where_of(largest, largest.ranks)
    ppn = asked.ppn or recorded.ppn
    nodes = asked.nodes or -(-asked.ranks // ppn)
    if nodes * ppn < asked.ranks:
        raise UserError(f"--ranks {asked.ranks}: accepted is at most {nodes * ppn}, {ppn} on each of {nodes} nodes")
    machine = load(asked.machine or recorded.machine, sets=asked.sets)
    if nodes > machine.nodes_max:
        raise UserError(
            f"--ranks {asked.ranks}: accepted is at most {machine.nodes_max * ppn:,}, {ppn} on each of the "
            f"{machine.nodes_max:,} nodes of {machine.name}"
        )
    return Where(
        machine=asked.machine or recorded.machine,
        sets=asked.sets,
        nodes=nodes,
        ppn=ppn,
        place=asked.place,
        on_node=recorded.on_node,
        level=asked.level,
        seed=asked.seed,
    )

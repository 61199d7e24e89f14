"""`dryfly extrapolate`: recordings at several sizes, a skeleton, and what it says of another size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
from dryfly.extrapolation.writing import write
from dryfly.machine.load import load
from dryfly.predict.sweep import Axis
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
    ranks: int | None = None  # None: the first that is swept
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
    _check(asked)
    recordings = sorted((read(folder) for folder in asked.folders), key=lambda one: one.ranks)
    _check_together(recordings)
    where = _where(asked, recordings[-1])
    written = write(structure_of(recordings), recordings)
    with RunFolder() as folder:
        file = _file(folder, written.text)
        played = asking.played(_question(asked, file, where, recordings))
        again = [play_recorded(file, one, level=asked.level) for one in recordings]
    return Outcome(recordings=recordings, written=written, again=again, where=where, ranks=asked.ranks, played=played)


def _file(folder: RunFolder, text: str) -> str:
    file = folder.path / "extrapolated.py"
    file.write_text(text, encoding="utf-8")
    return str(file)


def _question(asked: Asked, file: str, where: Where, recordings: Sequence[Recording]) -> dict[str, Any]:
    return asking.base(file, asked.ranks, where, recordings[-1], faults=asked.faults, noise=asked.noise)


def _swept(
    asked: Asked, found: Outcome, axes: Sequence[Axis], written: frozenset[str], printer: Printer
) -> tuple[int, dict[str, Any]]:
    with RunFolder() as folder:
        file = _file(folder, found.written.text)
        question = _question(asked, file, found.where, found.recordings)
        return asking.swept(question, axes, written, printer)


def command(
    asked: Asked,
    *,
    out: str | None,
    json_file: str | None,
    quiet: bool,
    sweeps: tuple[str, ...] = (),
    written: frozenset[str] = frozenset(),
) -> int:
    """`written`: options that the user gave, by name."""
    for flag, target in (("--out", out), ("--json", json_file)):
        if target not in (None, "-"):
            check_target(flag, str(target), folder=False)
    axes = asking.axes_of(sweeps, asdict(asked), written)
    found = extrapolate(asked)
    if out is not None:
        if out == "-":
            print(found.written.text, end="")
        else:
            write_whole(Path(out), found.written.text.encode())
    printer = Printer(quiet=quiet, on_stdout="-" not in (out, json_file))
    summary.show(found, printer)
    content, status = summary.content(found), 0
    if axes:
        status, content["sweep"] = _swept(asked, found, axes, written, printer)
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

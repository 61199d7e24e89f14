"""A recorded run (`dryfly run --record FOLDER`) as a workload: its replay, on the first ranks.

What is not said of machine, nodes, placement and seed is as it was recorded. What calls cost is in the recorded times,
so that the machine's costs of calls have no effect.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.predict.workloads import RECORDING, Workload
from dryfly.result import tables
from dryfly.skeleton import replay
from dryfly.skeleton.engine import Where
from dryfly.skeleton.replay import CALL_COSTS, Recording

_Version = tuple[int, ...]
# By the names of the command's options.
_USUAL = ("machine", "place", "seed")
_OF_NETWORK = ("fabric.", "nic.", "topology.")
_MOST_NAMED = 3


def is_one(name: str) -> bool:
    return Path(name).is_dir()


def row_of(folder: str) -> Workload:
    """With what was recorded as its defaults. Raises UserError for a folder without a recording."""
    return _row_of(folder, _version(folder))


def ranks_of(folder: str) -> int:
    """Raises UserError."""
    return _where(folder, _version(folder)).ranks


def recording(folder: str) -> Recording:
    """Raises UserError for one that no replay can be made of."""
    return _recording(folder, _version(folder))


def digest(folder: str) -> str:
    """Of what is replayed. Raises UserError."""
    return _digest(folder, _version(folder))


def usual(folder: str, written: Collection[str]) -> dict[str, Any]:
    """Options that the user has not written, as they were for the recorded run. Raises UserError."""
    where = _where(folder, _version(folder))
    return {name: getattr(where, name) for name in _USUAL if name not in written}


def check_fields(folder: str, sets: Collection[str]) -> None:
    """Raises UserError for fields of the machine without effect."""
    for text in sets:
        name = text.partition("=")[0].strip()
        if name in CALL_COSTS:
            raise UserError(f"{name} has no effect on {folder}: what calls cost is in the recorded times; leave it out")


def warnings(folder: str, machine: str) -> list[str]:
    """What the replay leaves out, what of the recorded run it has only if it is given, and on another machine whose
    computing it has."""
    made = recording(folder)
    said = made.warnings()
    given = _settings(made)
    if given:
        said.append(f"recorded with {', '.join(given)}, of which this answer has what --set, --faults and --noise say")
    if machine != made.where.machine:
        said.append(f"computing and the MPI library's own code take what they took on {made.where.machine}")
    return said


def _settings(made: Recording) -> list[str]:
    """Fields of the network and its NICs that were others than the machine's, faults and noise."""
    recorded, usual = (
        dict(line.split(" ", 1) for line in text.splitlines()) for text in (made.spec, _usual_spec(made))
    )
    found = [name for name in usual if name.startswith(_OF_NETWORK) and recorded.get(name, usual[name]) != usual[name]]
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    said = [f"another {', '.join(found[:_MOST_NAMED])}{more}"] if found else []
    said += ["faults"] if recorded.get("faults.count", "0") != "0" else []
    return said + (["noise"] if "noise.sources" in recorded else [])


def _usual_spec(made: Recording) -> str:
    """Empty where the machine was a file that is no longer there."""
    try:
        return replace(made.where, level="flow" if "fabric.model flow\n" in made.spec else "packet").spec()
    except UserError:
        return ""


def _version(folder: str) -> _Version:
    """Which recording it is, and of when; a folder is written as a whole."""
    try:
        about = (Path(folder) / tables.RESULT).stat()
    except OSError:
        return ()
    return about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size


@cache
def _where(folder: str, _version: _Version) -> Where:
    tables.need_tables(folder)
    return replay.where_of(folder)


@cache
def _row_of(folder: str, version: _Version) -> Workload:
    where = _where(folder, version)
    parameters = tuple(
        replace(each, default=where.on_node) if each.name == "on_node" else each for each in RECORDING.parameters
    )
    return replace(RECORDING, ppn=str(where.ppn), parameters=parameters)


@lru_cache(maxsize=1)  # it may be large
def _recording(folder: str, _version: _Version) -> Recording:
    tables.need_tables(folder)
    return replay.replay(folder)


@cache
def _digest(folder: str, version: _Version) -> str:
    made = _recording(folder, version)
    return made.schedule.digest()

"""Which workload a name is."""

from __future__ import annotations

from collections.abc import Mapping

from dryfly.base.errors import UserError
from dryfly.predict import python_file, recorded_run
from dryfly.predict.workloads import GOAL, RECORDING, ROWS, Workload
from dryfly.skeleton import goal

_FILES = (".goal", ".py")


def find(name: str) -> Workload:
    """By its name, of a file by the ending of that, or a folder. Raises UserError."""
    for row in ROWS:
        if row.name == name:
            return row
    if name.endswith(".goal"):
        return GOAL
    if name.endswith(".py"):
        return python_file.row_of(name)
    if recorded_run.is_one(name):
        return recorded_run.row_of(name)
    files = " and ".join(f"files in {ending}" for ending in _FILES)
    raise UserError(
        f'"{name}" is no workload; there are {", ".join(row.name for row in ROWS)}, {files}, and folders of '
        "dryfly run --record"
    )


def reading(name: str) -> str:
    """What takes the time before the engine starts, in words."""
    return f"{name}: writing down what its ranks do"


def is_recording(name: str) -> bool:
    return find(name).name == RECORDING.name


def ranks_of(name: str, values: Mapping[str, str]) -> int | None:
    """How many a file or a recording has, whatever the nodes have places for. None: as many as those. Raises
    UserError."""
    row = find(name)
    if row is GOAL:
        return goal.ranks_of(name)
    if row.is_file and name.endswith(".py"):
        return python_file.ranks_given(name, values)
    return recorded_run.ranks_of(name) if is_recording(name) else None

"""Which workload a name is."""

from __future__ import annotations

from dryfly.base.errors import UserError
from dryfly.predict import python_file
from dryfly.predict.workloads import GOAL, ROWS, Workload

_FILES = (".goal", ".py")


def find(name: str) -> Workload:
    """By its name, or of a file by the ending of that. Raises UserError."""
    for row in ROWS:
        if row.name == name:
            return row
    if name.endswith(".goal"):
        return GOAL
    if name.endswith(".py"):
        return python_file.row_of(name)
    files = " and ".join(f"files in {ending}" for ending in _FILES)
    raise UserError(f'"{name}" is no workload; there are {", ".join(row.name for row in ROWS)}, and {files}')

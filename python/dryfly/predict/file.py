"""Workloads that are files: GOAL's text, and skeletons in Python, which are written down for the ranks of the question.

What a Python file prints while it is written down goes to standard error: standard output is for the result.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import cache, lru_cache
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.predict.question import Question
from dryfly.predict.workloads import GOAL, PYTHON
from dryfly.skeleton import goal
from dryfly.skeleton.schedule import Schedule, program_of, record

_PS_PER_NS = 1000


def check(question: Question) -> None:
    """Raises UserError: a file that cannot be read, a program that cannot be written down, too few ranks."""
    if question.row is GOAL:
        ranks = goal.ranks_of(question.workload)
        if ranks > question.ranks:
            raise UserError(
                f"{question.workload} has {ranks:,} ranks, and {question.nodes:,} nodes with {question.ppn} ranks are "
                f"{question.ranks:,}; accepted are at least as many"
            )
    digest(question)


def digest(question: Question) -> str:
    """Of what is run; empty where it is no file. Raises UserError."""
    if question.row is GOAL:
        return goal.digest(question.workload)
    if question.row is PYTHON:
        return _digest(question.workload, question.ranks, _modified(question.workload))
    return ""


def arguments(question: Question, folder: Path) -> list[str]:
    """For the engine, with a file in that folder."""
    if question.row is GOAL:
        return [f"file={question.workload}", f"calc_ns={int(question.parameter('calc') or 0) / _PS_PER_NS}"]
    if question.row is PYTHON:
        file = folder / "schedule"
        _recorded(question.workload, question.ranks, _modified(question.workload)).write(file)
        return [f"file={file}"]
    return []


def _modified(path: str) -> int:
    """0: it is not there, as whoever reads it says."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=1)  # it may be large
def _recorded(path: str, ranks: int, _modified: int) -> Schedule:
    with redirect_stdout(sys.stderr):
        return record(program_of(path), ranks=ranks)


@cache
def _digest(path: str, ranks: int, modified: int) -> str:
    return _recorded(path, ranks, modified).digest()

"""Workloads that are files: GOAL's text, and skeletons in Python, which are written down for a question's ranks."""

from __future__ import annotations

from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.predict import python_file
from dryfly.predict.question import Question
from dryfly.predict.workloads import GOAL, PYTHON
from dryfly.skeleton import goal

_PS_PER_NS = 1000


def check(question: Question) -> None:
    """Raises UserError: a file that cannot be read, a program that cannot be written down, too few ranks."""
    if question.row.engine == GOAL.engine:
        ranks = goal.ranks_of(question.workload)
        if ranks > question.ranks:
            raise UserError(
                f"{question.workload} has {ranks:,} ranks, and {question.nodes:,} nodes with {question.ppn} ranks are "
                f"{question.ranks:,}; accepted are at least as many"
            )
    digest(question)


def digest(question: Question) -> str:
    """Of what is run; empty where it is no file. Raises UserError."""
    if question.row.engine == GOAL.engine:
        return goal.digest(question.workload)
    if question.row.engine == PYTHON.engine:
        return python_file.digest(question.workload, question.ranks, dict(question.values))
    return ""


def arguments(question: Question, folder: Path) -> list[str]:
    """For the engine, with a file in that folder."""
    if question.row.engine == GOAL.engine:
        return [f"file={question.workload}", f"calc_ns={int(question.parameter('calc') or 0) / _PS_PER_NS}"]
    if question.row.engine == PYTHON.engine:
        file = folder / "schedule"
        python_file.recorded(question.workload, question.ranks, dict(question.values)).write(file)
        return [f"file={file}"]
    return []

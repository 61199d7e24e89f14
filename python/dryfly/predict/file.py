"""Workloads that are files: GOAL's text, skeletons in Python, which are written down for a question's ranks, and
recordings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.predict import python_file, recorded_run
from dryfly.predict.answer import Answer
from dryfly.predict.find import is_recording, ranks_of
from dryfly.predict.question import Question
from dryfly.predict.workloads import GOAL
from dryfly.skeleton import goal
from dryfly.skeleton.schedule import Schedule

_PS_PER_NS = 1000


def check(question: Question) -> None:
    """Raises UserError: a file that cannot be read, a program that cannot be written down, too few ranks."""
    if not question.row.is_file:
        return
    ranks = ranks_of(question.workload, dict(question.values))
    if ranks is not None and ranks > question.ranks:
        raise UserError(
            f"{question.title} has {ranks:,} ranks, and {question.nodes:,} nodes with {question.ppn} ranks are "
            f"{question.ranks:,}; accepted are at least as many"
        )
    if is_recording(question.workload):
        recorded_run.check_fields(question.workload, question.sets)
    digest(question)


def digest(question: Question) -> str:
    """Of what is run; empty where it is no file. Raises UserError."""
    if not question.row.is_file:
        return ""
    if question.row.engine == GOAL.engine:
        return goal.digest(question.workload)
    if is_recording(question.workload):
        return recorded_run.digest(question.workload)
    return python_file.digest(question.workload, ranks_in(question), dict(question.values))


def arguments(question: Question, folder: Path) -> list[str]:
    """For the engine, with a file in that folder."""
    if not question.row.is_file:
        return []
    if question.row.engine == GOAL.engine:
        return [f"file={question.workload}", f"calc_ns={int(question.parameter('calc') or 0) / _PS_PER_NS}"]
    file = folder / "schedule"
    _schedule(question).write(file)
    return [f"file={file}"]


def _schedule(question: Question) -> Schedule:
    if is_recording(question.workload):
        return recorded_run.recording(question.workload).schedule
    return python_file.recorded(question.workload, ranks_in(question), dict(question.values))


def ranks_in(question: Question) -> int:
    """That take part: the first places of the nodes."""
    given = ranks_of(question.workload, dict(question.values))
    return question.ranks if given is None else given


def completed(answer: Answer) -> Answer:
    """Of a recording with what its replay leaves out, and what the recorded run took."""
    folder = answer.question.workload
    if not is_recording(folder):
        return answer
    made = recorded_run.recording(folder)
    return replace(
        answer,
        warnings=(*answer.warnings, *recorded_run.warnings(folder, answer.question.machine)),
        details={
            **answer.details,
            "recorded": {"virtual_time_s": made.virtual_time_s, "machine": made.where.machine},
        },
    )

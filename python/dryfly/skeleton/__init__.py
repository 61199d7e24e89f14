"""Skeletons of programs, written in Python or taken from recordings: docs/guide/skeletons.md."""

from __future__ import annotations

from dryfly.base.errors import UserError
from dryfly.skeleton.engine import Played, Where, run_file, run_schedule, run_skeleton
from dryfly.skeleton.rank import ANY, Group, Rank, Request
from dryfly.skeleton.schedule import Schedule, program_of, record

__all__ = [
    "ANY",
    "Group",
    "Played",
    "Rank",
    "Request",
    "Schedule",
    "UserError",
    "Where",
    "program_of",
    "record",
    "run_file",
    "run_schedule",
    "run_skeleton",
]

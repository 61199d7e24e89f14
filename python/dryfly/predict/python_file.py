"""A skeleton in Python as a workload: what its program(me, ...) takes beside the rank are the workload's parameters.

What the file prints goes to standard error: standard output is for the result.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from dryfly.base import units
from dryfly.base.errors import UserError
from dryfly.machine.field import Field
from dryfly.predict.parameter import Parameter
from dryfly.predict.workloads import OPTIONS, OTHER_OPTIONS, PYTHON, Workload
from dryfly.skeleton.schedule import Program, Schedule, program_of, record

Value = int | float | str
_Version = tuple[int, ...]
_ACCEPTED = {int: "a whole number, or a size such as 8 KiB", float: "a number", str: "text"}


@dataclass(frozen=True, kw_only=True)
class ProgramParameter(Parameter):
    """`kind`: of its default in the file, as which the program is given it."""

    kind: type[Value]

    def value(self, text: str) -> str:
        try:
            if self.kind is int:
                return str(_whole(text))
            if self.kind is float and not math.isfinite(float(text)):
                raise ValueError
            return repr(float(text)) if self.kind is float else text
        except (ValueError, UserError):
            raise self._refused(text, "") from None

    def arguments(self, _value: str) -> list[str]:
        """None: the engine is given what the program does with it."""
        return []


def row_of(path: str) -> Workload:
    """Raises UserError for a file that cannot be run, or whose program takes what nobody can give."""
    return _row_of(path, _version(path))


def ranks_given(path: str, values: Mapping[str, str]) -> int | None:
    """`ranks`, unless that is what the program takes under this name."""
    is_ours = any(each.name == "ranks" and not isinstance(each, ProgramParameter) for each in row_of(path).parameters)
    return int(values["ranks"]) if is_ours and "ranks" in values else None


def recorded(path: str, ranks: int, values: Mapping[str, str]) -> Schedule:
    """What the ranks of the program do. Raises UserError."""
    known = {each.name: each.kind for each in row_of(path).parameters if isinstance(each, ProgramParameter)}
    given = tuple((name, kind(values[name])) for name, kind in known.items())
    return _recorded(path, _version(path), ranks, given)


def digest(path: str, ranks: int, values: Mapping[str, str]) -> str:
    """Of that. Raises UserError."""
    return _digest(path, _version(path), ranks, tuple(values.items()))


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return units.parse(text, units.SIZE)


def _version(path: str) -> _Version:
    """Which file it is, and of when; empty: it is not there, as whoever reads it says."""
    try:
        about = Path(path).stat()
    except OSError:
        return ()
    return about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size


@lru_cache(maxsize=1)
def _program(path: str, _version: _Version) -> Program:
    with redirect_stdout(sys.stderr):
        return program_of(path)


@cache
def _row_of(path: str, version: _Version) -> Workload:
    taken = list(inspect.signature(_program(path, version)).parameters.values())[1:]
    own = {each.name for each in taken}
    others = [each for each in PYTHON.parameters if each.name not in own]
    return replace(PYTHON, parameters=(*(_parameter(path, each) for each in taken), *others))


def _parameter(path: str, taken: inspect.Parameter) -> ProgramParameter:
    where = f"{path}: parameter {taken.name} of program"
    if taken.name in {*OPTIONS, *OTHER_OPTIONS, "on_node"}:
        raise UserError(f"{where}: the name is taken; accepted is any but {taken.name}")
    if taken.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        raise UserError(f"{where} has no default; accepted are parameters by name with a default")
    if type(taken.default) not in _ACCEPTED:
        none = taken.default is inspect.Parameter.empty
        shown = "no default" if none else f"the default {taken.default!r}"
        raise UserError(f"{where} has {shown}; accepted is one that is a whole number, a number or text")
    kind: type[Value] = type(taken.default)
    field = Field(meaning="of program() in the file", such_as=_ACCEPTED[kind])
    return ProgramParameter(name=taken.name, field=field, default=str(taken.default), kind=kind)


@lru_cache(maxsize=1)  # it may be large
def _recorded(path: str, version: _Version, ranks: int, given: tuple[tuple[str, Value], ...]) -> Schedule:
    with redirect_stdout(sys.stderr):
        return record(_program(path, version), ranks=ranks, parameters=dict(given))


@cache
def _digest(path: str, _version: _Version, ranks: int, values: tuple[tuple[str, str], ...]) -> str:
    return recorded(path, ranks, dict(values)).digest()

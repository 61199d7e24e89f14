"""A schedule: what all ranks of a program call, and the file of it that `dryfly-motif SPEC schedule file=` runs.

The file is described in core/motif/schedule/schedule.hpp.
"""

from __future__ import annotations

import hashlib
import os
import runpy
import sys
import traceback
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from dryfly.base.errors import UserError
from dryfly.skeleton.rank import Rank, Recorder

_FORMAT = b"dfsched1"
_WORDS = 3  # of an instruction
_MOST_RANKS = 1 << 24

Program = Callable[..., None]  # of a Rank, and of what else it takes


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """`lists`: instructions, and how many requests are open at once. `list_of`: each rank's."""

    program: str
    ranks: int
    phases: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    list_of: array[int]
    lists: tuple[tuple[bytes, int], ...]

    @property
    def operations(self) -> int:
        """Of all ranks."""
        lengths = [len(words) // (8 * _WORDS) for words, _ in self.lists]
        return sum(lengths[number] for number in self.list_of)

    def write(self, path: str | Path) -> None:
        """Raises UserError."""
        try:
            with Path(path).open("wb") as file:
                file.writelines(self._parts())
        except OSError as error:
            raise UserError(f"{path}: the schedule cannot be written: {error.strerror}") from None

    def digest(self) -> str:
        """Of what is run, wherever the program's file lies."""
        found = hashlib.sha256()
        for part in replace(self, program="")._parts():
            found.update(part)
        return found.hexdigest()

    def _parts(self) -> Iterator[bytes]:
        text = b"".join(name.encode() + b"\0" for name in (self.program, *self.phases))
        head = array("I", [self.ranks, len(self.lists), len(self.groups), len(self.phases), len(text)])
        tail = array("I")
        for group in self.groups:
            tail.append(len(group))
            tail.extend(group)
        tail.extend(self.list_of)
        for words, slots in self.lists:
            tail.extend((len(words) // (8 * _WORDS), slots))
        yield _FORMAT + _little(head) + text + _little(tail)
        yield from (words for words, _ in self.lists)


class Lists:
    """Collects the lists of ranks; equal ones are kept once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[bytes, int], int] = {}
        self.list_of = array("I")

    def add(self, words: array[int], slots: int) -> None:
        key = (_little(words), slots)
        self.list_of.append(self._numbers.setdefault(key, len(self._numbers)))

    def schedule(self, recorder: Recorder) -> Schedule:
        return Schedule(
            program=recorder.file,
            ranks=recorder.ranks,
            phases=tuple(recorder.phases),
            groups=tuple(recorder.groups),
            list_of=self.list_of,
            lists=tuple(self._numbers),
        )


def record(program: Program, *, ranks: int, parameters: Mapping[str, Any] | None = None) -> Schedule:
    """Calls `program` for each rank, one after the other, and writes down what each does.

    It may look at `me.rank` and `me.size`, and must do the same each time it is called.
    """
    if not 1 <= ranks <= _MOST_RANKS:
        raise UserError(f"ranks = {ranks}: accepted is 1 to {_MOST_RANKS}")
    code = getattr(program, "__code__", None)
    recorder = Recorder(ranks=ranks, file="" if code is None else code.co_filename)
    lists = Lists()
    with _without_exit():
        for number in range(ranks):
            me = Rank(rank=number, recorder=recorder)
            try:
                program(me, **(parameters or {}))
            except UserError:
                raise
            except (Exception, SystemExit) as error:
                raise UserError(_sentence(error, recorder.file, number)) from error
            lists.add(me.words, me.slots)
    return lists.schedule(recorder)


@contextmanager
def _without_exit() -> Iterator[None]:
    """A call of os._exit in the user's code is an error of it as any other; a child that the code forks may end so."""
    ours, exits = os.getpid(), os._exit

    def exit_here(status: int) -> NoReturn:
        if os.getpid() != ours:
            exits(status)
        raise SystemExit(f"os._exit({status})")

    os._exit = exit_here
    try:
        yield
    finally:
        os._exit = exits


def _sentence(error: BaseException, file: str, rank: int) -> str:
    lines = [step.lineno for step in traceback.extract_tb(error.__traceback__) if step.filename == file]
    where = f"{file}, line {lines[-1]}, " if lines else ""
    return f"{where}rank {rank}: {type(error).__name__}: {error}"


def program_of(path: str | Path) -> Program:
    """The function `program` of a user's Python file."""
    if not Path(path).is_file():
        raise UserError(f"{path}: there is no such file; accepted is a Python file that has a function program(me)")
    try:
        with _without_exit():
            names = runpy.run_path(str(path), run_name="skeleton")
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{path}: it cannot be run: {type(error).__name__}: {error}") from None
    program = names.get("program")
    if not callable(program):
        raise UserError(f"{path}: there is no function program(me) in it")
    made: Program = program
    return made


def _little(words: array[int]) -> bytes:
    if sys.byteorder == "little":
        return words.tobytes()
    turned = words[:]
    turned.byteswap()
    return turned.tobytes()

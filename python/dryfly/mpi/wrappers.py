"""Which program of MPI's a wrapper will start: `env X=1 pw.x`, `bash -c "pw.x ..."`, a script of a shell's that names
it, or one of Python's that starts it, imports a module linked against MPI or opens a library by its name, which may be
an argument.

Nothing is run for that and everything that is named is looked at, so it is a guess. It decides which library is taken
where none was asked for; ranks find out for themselves when they load MPI. Two guesses that differ are none.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from dryfly.mpi import elf, loading, system

_DEEP = 4  # env in a script in a script
_BYTES = 1 << 16  # of a script
_WORDS = 400
_FILES = 64  # that are looked at, of all
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)=(\S*)", re.MULTILINE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_IMPORTED = re.compile(r"^\s*(?:import|from)\s+([A-Za-z_]\w*)", re.MULTILINE)
_QUOTED = re.compile(r"[\"']([^\"'\n]+)[\"']")
_OPENED = re.compile(r"[\"'](?:[\w./-]*/)?(lib(?:mpi|mpich)\.so\.\d+)[\"']")


def family(program: Path, arguments: Sequence[str]) -> str:
    """Empty where nothing tells, or two families are named."""
    found = _Search()
    found.look_at(program, arguments, 0)
    return next(iter(found.families), "") if len(found.families) == 1 else ""


def files(program: Path, arguments: Sequence[str]) -> list[Path]:
    """What may call MPI of the program and all that was looked at for its family, which it may start or be a script
    of: scripts, and executables that are linked against MPI."""
    found = _Search()
    found.look_at(program, arguments, 0)
    return sorted(found.callers)


class _Search:
    def __init__(self) -> None:
        self.families: set[str] = set()
        self.seen: set[Path] = set()
        self.callers: set[Path] = set()

    def look_at(self, program: Path, arguments: Sequence[str], depth: int) -> None:
        """What it is linked against, or else what it and its arguments name."""
        if depth > _DEEP or program in self.seen or len(self.seen) >= _FILES:
            return
        self.seen.add(program)
        try:
            text = "" if elf.is_elf(program) else _text(program)
        except OSError:
            return
        is_linked = not text and self._note_mpi_of(program)
        if text or is_linked:
            self.callers.add(program)
        if is_linked:
            return
        for argument in arguments:
            self.families |= {system.family_of(Path(argument).name)} - {""}
            self._look_at_words(argument, depth)
        if program.suffix == ".py" or re.match(r"#!.*python", text):
            self._look_at_python(program, text, depth)
        elif text.startswith("#!"):
            self._look_at_words(_without_comments(text), depth)

    def _look_at_words(self, text: str, depth: int) -> None:
        variables = {**os.environ, **dict(_ASSIGNED.findall(text))}
        for word in list(dict.fromkeys(_words(text)))[:_WORDS]:
            plain = _VARIABLE.sub(lambda name: variables.get(name[1] or name[2], ""), word).strip("\"'")
            named = Path(shutil.which(plain) or plain)  # a shell's own argument is looked for as any file is
            if plain and named.is_file():
                self.look_at(named.absolute(), (), depth + 1)

    def _look_at_python(self, program: Path, text: str, depth: int) -> None:
        for soname in _OPENED.findall(text):
            self.families |= {system.family_of(soname)} - {""}
        self._look_at_words("\n".join(_QUOTED.findall(text)), depth)
        places = [program.parent, *loading.folders_of(os.environ.get("PYTHONPATH"))]
        places += [Path(place) for place in sys.path if place.endswith(("site-packages", "dist-packages"))]
        for name in dict.fromkeys(_IMPORTED.findall(text)):
            for place in places:
                modules = [*place.glob(f"{name}*.so"), *place.glob(f"{name}/*.so")]
                for module in modules[:_FILES]:
                    self._note_mpi_of(module)
                if modules or (place / name).is_dir():
                    break

    def _note_mpi_of(self, file: Path) -> bool:
        """Of it or a library of it; False where there is none."""
        inherited = loading.folders_of(os.environ.get("LD_LIBRARY_PATH"))
        queue, seen = [file], {file}
        for each in queue:
            facts = elf.read(each)
            if facts is None:
                continue
            parts = [name for name in facts.needed if system.is_part_of_mpi(name)]
            if parts:
                self.families |= {system.family_of(name) for name in parts} - {""}
                return True
            found = (loading.find(name, (*facts.search_path, *inherited)) for name in facts.needed)
            fresh = {path for path in found if path is not None} - seen
            seen |= fresh
            queue += sorted(fresh)
        return False


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_BYTES).decode(errors="replace")


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def _words(text: str) -> Iterator[str]:
    """Of a shell's, as far as they may name a program; quotes that do not close are no matter."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        for word in lexer:
            yield from (word.split() if " " in word or "\n" in word else [word])
    except ValueError:
        yield from text.split()

"""What PROGRAM is, and how each rank starts it; everything that cannot work is refused here, before the start."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dryfly.apps import solver
from dryfly.base.errors import UserError
from dryfly.base.paths import include_folder
from dryfly.case import compiled
from dryfly.mpi import elf, preloaded, system, wrappers
from dryfly.mpi.libraries import MpiLibrary

_LAUNCHER = re.compile(r"(mpirun|mpiexec)([._-]\w+)*|orterun|prterun|srun|aprun|jsrun|ibrun")
_NOT_LINKED = "not linked against MPI: one that is loaded later is checked then"


@dataclass(frozen=True, kw_only=True)
class Program:
    shown: str  # as the user called it
    command: tuple[str, ...]
    kind: str  # for the preflight print
    additions: system.Additions = system.NONE


def prepare(name: str, arguments: tuple[str, ...], *, mpi: MpiLibrary, build_folder: Path) -> Program:
    preloaded.check(mpi, os.environ)
    if name in solver.NAMES and shutil.which(name) is None:
        built = solver.build(name, mpi=mpi)
        return Program(shown=name, command=(str(built), *arguments), kind=f"dryfly's own, built with {mpi.name}")
    path = find(name, tools=Path(mpi.prefix) / "bin")
    if _LAUNCHER.fullmatch(path.name):
        raise UserError(
            f"{name} starts ranks itself, as dryfly run does: give it the program, and -n (dryfly run -n 4 -- "
            "PROGRAM); another launcher of the ranks is chosen by --launcher"
        )
    if path.suffix in compiled.SOURCES:
        built = compiled.build(path, mpi=mpi, folder=build_folder)
        return Program(shown=name, command=(str(built), *arguments), kind=f"built with {compiled.SOURCES[path.suffix]}")
    if path.suffix == ".py" and not _names_its_interpreter(path):
        return Program(
            shown=name,
            command=(sys.executable, str(path), *arguments),
            kind=f"run by {sys.executable}",
            additions=system.additions(None, None, mpi),
        )
    if not os.access(path, os.X_OK):
        raise UserError(f'{path} is not executable; "chmod +x" makes it so')
    _check_privileges(path)
    kind, additions = _check_elf(path, mpi) if elf.is_elf(path) else (_check_script(path), None)
    if additions is None:
        additions = system.additions(None, None, mpi)
    return Program(shown=name, command=(str(path), *arguments), kind=kind, additions=additions)


def find(name: str, *, tools: Path | None = None) -> Path:
    """`tools`: where those of the MPI library are, such as ompi_info, which need not be on PATH."""
    if "/" in name or Path(name).suffix in (*compiled.SOURCES, ".py"):
        path = Path(name)
        if path.is_file():
            return path.absolute()
        if "/" in name:
            raise UserError(f"{name} is a folder, not a program" if path.is_dir() else f"program {name} does not exist")
    found = shutil.which(name) or (shutil.which(name, path=str(tools)) if tools is not None else None)
    if found is None:
        here = f' (the file is here: say "./{name}")' if Path(name).is_file() else ""
        raise UserError(f'program "{name}" is not found on PATH{here}')
    return Path(found).absolute()


def _check_privileges(path: Path) -> None:
    mode = path.stat().st_mode
    if mode & (stat.S_ISUID | stat.S_ISGID):
        raise UserError(
            f"{path} is a setuid or setgid program: the system refuses to load libraries into it, "
            "so it cannot run on the simulated network; use a copy without that bit"
        )
    try:
        os.getxattr(path, "security.capability")
    except OSError:
        return
    raise UserError(f"{path} has file capabilities, so no library can be loaded into it; use a copy without them")


def _check_elf(path: Path, mpi: MpiLibrary) -> tuple[str, system.Additions]:
    facts = elf.read(path)
    if facts is None:
        raise UserError(f"{path} is a damaged ELF file")
    if not facts.runs_here:
        raise UserError(f"{path} is built for another kind of processor")
    if facts.is_go:
        raise UserError(f"{path} is a Go program: it makes system calls without libc, so its clocks cannot be virtual")
    if facts.is_static:
        raise UserError(
            f"{path} is statically linked: neither MPI's libraries nor the clock can be exchanged; link it dynamically"
        )
    linked = system.linked(path)
    if not linked.names and elf.has_function(path, "MPI_Init"):
        raise UserError(
            f"{path} has an MPI of its own in it (MPI_Init is linked statically), which would run in real time: link "
            "it dynamically"
        )
    additions = system.additions(path, linked, mpi)
    return ("linked against " + ", ".join(linked.names) if linked.names else _NOT_LINKED), additions


def file_of(name: str) -> Path | None:
    """None: it is not there, or it is one of dryfly's solvers, which are built when it is prepared."""
    try:
        return find(name)
    except UserError:
        return None


def files_of(command: Sequence[str]) -> list[Path]:
    """The program's, and of what it may start; none where there is no program."""
    path = file_of(command[0]) if command else None
    if path is None:
        return []
    return [path] if path.suffix in compiled.SOURCES else wrappers.files(path, command[1:])


def linked_family(command: Sequence[str]) -> str:
    """The family of MPI libraries that the program is linked against, itself or by a library of it; empty where there
    is none. Raises UserError where there are two."""
    path = file_of(command[0])  # what is not there is said when the program is prepared
    return "" if path is None or path.suffix in compiled.SOURCES or not elf.is_elf(path) else system.linked(path).family


def family(command: Sequence[str]) -> str:
    """That family, or that of what the program will start by all that it names; empty where neither tells. Raises
    UserError where it is linked against two."""
    path = file_of(command[0])
    if path is None or path.suffix in compiled.SOURCES:
        return ""
    return linked_family(command) or wrappers.family(path, command[1:])


def _names_its_interpreter(path: Path) -> bool:
    """And is started by it where it is called as it is: another Python has other modules, of another MPI."""
    return os.access(path, os.X_OK) and _first_line(path).startswith(b"#!")


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(256)


def _check_script(path: Path) -> str:
    first = _first_line(path)
    if not first.startswith(b"#!"):
        raise UserError(f'{path} is neither an ELF program nor a script that begins with "#!"')
    if first.rstrip(b"\n").endswith(b"\r"):
        raise UserError(f"{path}: its first line ends with a carriage return, which belongs to no name: give it Unix's")
    words = first[2:].decode(errors="replace").split()  # as the kernel does: quotes mean nothing
    if not words:
        raise UserError(f"{path}: its first line names no interpreter")
    if not Path(words[0]).is_file():
        raise UserError(f"{path}: its interpreter {words[0]} does not exist")
    asked = _asked_of_env(words) if Path(words[0]).name == "env" else ""
    if asked and shutil.which(asked) is None:
        raise UserError(f"{path}: its interpreter {asked} is not on PATH")
    return f"a script for {words[0]}: its MPI is checked when it is loaded"


def _asked_of_env(words: Sequence[str]) -> str:
    """What `env` of such a line would start, options and assignments left out; empty where it would start nothing."""
    return next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")


def included(source: Path, *, mpi: MpiLibrary) -> list[Path]:
    """The headers that a source file includes, but the system's; none for Fortran, or where the compiler cannot say."""
    name = compiled.SOURCES.get(source.suffix)
    wrapper = mpi.wrapper(name) if name is not None and name != "mpifort" else None
    if wrapper is None:
        return []
    command = [str(wrapper), "-MM", f"-I{include_folder()}", str(source)]
    listed = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        return []
    words = listed.stdout.replace("\\\n", " ").partition(":")[2].split()
    return sorted(Path(word) for word in words if Path(word) != source)

"""What can be known of a program from its file: how it is linked, and against which MPI."""

from __future__ import annotations

import functools
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

_MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
_MPI_LIBRARY = re.compile(r"lib(mpi|mpich|mpichfort|mpichcxx|mpi_abi|mpi_[a-z0-9_]+|pmpi|mpi_cxx|mpifort)\.so(\.\d+)*")


@dataclass(frozen=True, kw_only=True)
class ElfFacts:
    is_library: bool
    runs_here: bool  # built for this computer's processor
    is_static: bool
    is_go: bool
    needed: tuple[str, ...]
    search_path: tuple[Path, ...]  # its RPATH or RUNPATH, $ORIGIN replaced


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def read(path: Path) -> ElfFacts | None:
    """None if the file is no well-formed ELF."""
    try:
        about = path.stat()
        return _read_once(path, about.st_ino, about.st_mtime_ns, about.st_size)
    except (ELFError, OSError):
        return None


@functools.cache
def _read_once(path: Path, *_: int) -> ElfFacts:
    """The same file is asked about several times before a run starts, and reading it takes milliseconds."""
    with path.open("rb") as file:
        return _read(ELFFile(file), path)


def _read(elf: ELFFile, path: Path) -> ElfFacts:
    interpreter = False
    needed: list[str] = []
    search: list[Path] = []
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_INTERP":
            interpreter = True
        if isinstance(segment, DynamicSegment):
            for entry in segment.iter_tags():
                tag: Any = entry  # its attributes depend on d_tag
                if tag.entry.d_tag == "DT_NEEDED":
                    needed.append(tag.needed)
                elif tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
                    text = tag.rpath if tag.entry.d_tag == "DT_RPATH" else tag.runpath
                    search += _folders(text, path.resolve().parent)
    go = any(section.name in (".note.go.buildid", ".go.buildinfo") for section in elf.iter_sections())
    return ElfFacts(
        is_library=elf["e_type"] == "ET_DYN" and not interpreter,
        runs_here=elf["e_machine"] == _MACHINES.get(platform.machine(), elf["e_machine"]),
        is_static=not interpreter and not needed,
        is_go=go,
        needed=tuple(needed),
        search_path=tuple(search),
    )


def _folders(text: str, origin: Path) -> list[Path]:
    return [
        Path(folder.replace("${ORIGIN}", str(origin)).replace("$ORIGIN", str(origin)))
        for folder in text.split(":")
        if folder
    ]


def mpi_libraries(path: Path) -> list[str]:
    """Names of the MPI libraries that the program, or a library it brings along, is linked against.

    Follows only what RPATH, RUNPATH and LD_LIBRARY_PATH lead to: system libraries do not link MPI.
    """
    extra = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    found: dict[str, None] = {}
    inherited: tuple[Path, ...] = ()
    queue, seen = [path], {path.resolve()}
    while queue:
        facts = read(queue.pop())
        if facts is None:
            continue
        inherited = (*facts.search_path, *inherited)
        for name in facts.needed:
            if _MPI_LIBRARY.fullmatch(name):
                found[name] = None
                continue
            for folder in (*inherited, *extra):
                candidate = folder / name
                if candidate.is_file() and candidate.resolve() not in seen:
                    seen.add(candidate.resolve())
                    queue.append(candidate)
                    break
    return list(found)

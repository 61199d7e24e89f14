"""A source file as PROGRAM: compiled by the wrapper of its MPI library, and kept in the user's cache.

A kept program is found by all that makes it: the preprocessed text, with the headers in it, what the compiler says of
itself and of its options, the wrappers' variables and the library. Fortran's modules are not in such a text, so Fortran
is compiled each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.paths import cache_folder, include_folder
from dryfly.mpi import fortran
from dryfly.mpi.libraries import MpiLibrary

_FORTRAN = (".f", ".for", ".f77", ".f90", ".f95", ".f03", ".f08", ".F", ".F90", ".F95", ".F03", ".F08")
SOURCES = {
    ".c": "mpicc",
    ".cc": "mpicxx",
    ".cpp": "mpicxx",
    ".cxx": "mpicxx",
    **dict.fromkeys(_FORTRAN, "mpifort"),
}
_KEPT = 256  # programs; those that were not started for the longest time are removed


def build(source: Path, *, mpi: MpiLibrary, folder: Path) -> Path:
    """The program; in `folder` where none can be kept."""
    name = SOURCES[source.suffix]
    wrapper = mpi.wrapper(name)
    if wrapper is None and name == "mpifort":
        raise UserError(f"{source.name} cannot be compiled: {fortran.advice(mpi)}")
    if wrapper is None:
        raise UserError(f"MPI library {mpi.name} has no {name}, so {source.name} cannot be compiled with it")
    command = [str(wrapper), "-O2", "-g", f"-I{include_folder()}", str(source), "-lm", *mpi.link_options]
    kept = _place(command, mpi) if name != "mpifort" else None
    if kept is None:
        return _compiled(command, folder / source.stem, f"{name} of {mpi.name}", source)
    program = kept / source.stem
    if program.is_file():
        with contextlib.suppress(OSError):
            os.utime(kept)
        return program
    built = _compiled(command, folder / source.stem, f"{name} of {mpi.name}", source)
    return program if _keep(built, kept) else built


def _compiled(command: list[str], target: Path, by: str, source: Path) -> Path:
    done = subprocess.run(
        [*command, "-o", str(target)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        raise UserError(f"{source.name} does not compile with {by} (its messages are above)")
    return target


def _place(command: list[str], mpi: MpiLibrary) -> Path | None:
    """The folder for what this command makes; None where the text does not tell."""
    # Without -g, as with it the text would name the folder where the command is given: all paths here are absolute.
    asked = [*command, "-g0", "-E", "-v"]
    text = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if text.returncode != 0 or b".incbin" in text.stdout:
        return None
    digest = hashlib.sha256("\0".join((*command, *_wishes(), mpi.libmpi, _state(mpi.libmpi))).encode())
    for part in (text.stderr, text.stdout):
        digest.update(b"\0" + part)
    return cache_folder() / "compiled" / digest.hexdigest()[:32]


def _wishes() -> list[str]:
    """What the wrappers read of the environment: options to compile and to link by are not in what they preprocess."""
    ours = (name for name in os.environ if name.startswith(("OMPI_", "MPICH_", "I_MPI_")))
    return [f"{name}={os.environ[name]}" for name in sorted(ours) if not name.startswith("OMPI_MCA_")]


def _state(library: str) -> str:
    """Built anew in its place, a library may be linked with otherwise."""
    try:
        about = Path(library or "/nonexistent").stat()
    except OSError:
        return ""
    return f"{about.st_mtime_ns} {about.st_size}"


def _keep(program: Path, place: Path) -> bool:
    """Whether it is there afterwards: a cache that cannot be written is none."""
    work = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=place.parent, prefix=".new-"))
        shutil.copy(program, work)
        with contextlib.suppress(OSError):  # another run may have been quicker
            os.replace(work, place)  # complete, or not there
        _remove_oldest(place.parent)
    except OSError:
        pass
    finally:
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)
    return (place / program.name).is_file()


def _remove_oldest(folder: Path) -> None:
    kept = sorted(folder.glob("[!.]*"), key=lambda each: each.stat().st_mtime)
    for each in kept[:-_KEPT]:
        shutil.rmtree(each, ignore_errors=True)

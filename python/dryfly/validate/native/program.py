"""programs/benchmark/probe.c, compiled by the compiler wrapper of the MPI library whose launcher starts it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.paths import include_folder, programs_folder
from dryfly.mpi import libraries as mpi
from dryfly.validate.native import launchers
from dryfly.validate.native.launchers import Launcher


def library(name: str | None) -> mpi.MpiLibrary | None:
    """One that dryfly knows; None: none was asked for. Raises UserError."""
    return None if name is None else mpi.select(name)


def compile_probe(
    launcher: Launcher, chosen: mpi.MpiLibrary | None, folder: Path, environment: Mapping[str, str] = os.environ
) -> Path:
    """Raises UserError."""
    command = _compiler(launcher, chosen, environment)
    if chosen is not None:
        if launchers.family(launcher) not in (None, chosen.family):
            raise UserError(
                f"--mpi {chosen.name}: {launcher.name} does not start its ranks; accepted is its own mpiexec"
            )
        command += [*chosen.link_options, *(f"-Wl,-rpath,{place}" for place in chosen.library_folders)]
    target = folder / "probe"
    command += ["-O2", f"-I{include_folder()}", str(programs_folder() / "benchmark/probe.c"), "-o", str(target), "-lm"]
    try:
        built = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        raise UserError(f"--native: {command[0]} cannot be run: {error.strerror}") from None
    if built.returncode != 0:
        lines = built.stderr.strip().splitlines() or [f"exit status {built.returncode}, without a word"]
        reason = next((line for line in lines if "error" in line), lines[-1])
        raise UserError(f"--native: the probe does not compile with {command[0]}: {reason}")
    return target


def _compiler(launcher: Launcher, chosen: mpi.MpiLibrary | None, environment: Mapping[str, str]) -> list[str]:
    """MPICC, else the one beside the launcher, or on PATH; on a Cray that is cc."""
    if chosen is not None:
        wrapper = chosen.wrapper("mpicc")
        if wrapper is None:
            raise UserError(f"--mpi {chosen.name}: it has no mpicc")
        return [str(wrapper)]
    if environment.get("MPICC"):
        return shlex.split(environment["MPICC"])
    beside = Path(launcher.path).parent / "mpicc"
    if launchers.family(launcher) is not None and beside.is_file():
        return [str(beside)]
    names = ("cc", "mpicc") if "CRAYPE_VERSION" in environment else ("mpicc",)
    path = next((found for name in names if (found := shutil.which(name)) is not None), None)
    if path is None:
        raise UserError(
            f"--native: there is no mpicc beside {launcher.path} or on PATH; name one in MPICC, or say --mpi"
        )
    return [path]

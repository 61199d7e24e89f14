"""An MPI that the user has preloaded (LD_PRELOAD): its functions come before dryfly's in every rank, so that nothing of
it is seen, even of the run's own library; of another one there are two in a process. It is refused before the start.

Left to the rank: what `env` or a script of the job preloads (refuse_preloaded_mpi in preload/mpi), and libraries that a
preloaded one brings in itself. A tool that only has wrappers of MPI's functions is no MPI, whatever it is called: it
does not define PMPI_Init.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.preloads import users_preloads
from dryfly.mpi import elf, loading, others, system
from dryfly.mpi.libraries import MpiLibrary


def check(mpi: MpiLibrary, inherited: Mapping[str, str]) -> None:
    """Raises UserError. `mpi`: the run's."""
    folders = loading.folders_of(inherited.get("LD_LIBRARY_PATH"))
    for each in users_preloads(inherited):
        path = loading.find(each, folders)
        if path is None and "/" in each:
            continue  # as the loader does, which says so
        soname = _soname(each, path)
        if _is_an_mpi(soname, path):
            family = system.family_of(soname)
            whose = f", which is {system.TITLES[family]}'s" if family else ""
            raise UserError(
                f"LD_PRELOAD has {each} ({soname}{whose}), an MPI library in front of {mpi.name}, on which the ranks "
                "run: leave it out; accepted are tools and other libraries, and --mpi chooses the MPI"
            )


def _soname(name: str, path: Path | None) -> str:
    facts = elf.read(path) if path is not None else None
    return (facts.soname if facts is not None else "") or Path(name).name


def _is_an_mpi(soname: str, path: Path | None) -> bool:
    """A name alone is one where there is no file to look into."""
    if system.family_of(soname):
        return True
    if path is None or not elf.is_elf(path):
        return others.whose(soname) != ""
    return "PMPI_Init" in elf.symbols(path).defined

"""What Open MPI needs to run on the simulated provider: its settings, and where the PMIx server is that starts it.

Its MCA parameters are environment variables OMPI_MCA_NAME; one that the user has set stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.mpi.libraries import MpiLibrary

# Open MPI 5 brings OpenPMIx as a library of its own; 4.1 has it inside its libopen-pal.
_PMIX_4 = "libopen-pal.so.40"
_PMIX_SERVERS = ("libpmix.so.2", _PMIX_4)
_FOLDERS = ("", "pmix2/lib", "openmpi")


def pmix_server(mpi: MpiLibrary) -> Path:
    for folder in mpi.library_folders:
        for name in _PMIX_SERVERS:
            for below in _FOLDERS:
                path = Path(folder) / below / name
                if path.is_file():
                    return path
    raise UserError(
        f"MPI library {mpi.name}: there is neither {' nor '.join(_PMIX_SERVERS)} beside {mpi.libmpi}, "
        "and Open MPI programs are started by the PMIx server in it"
    )


def is_release_4(mpi: MpiLibrary) -> bool:
    """By the library that 5 has under another number; distributions build 4.1 with a PMIx of its own, too."""
    return any((Path(folder) / _PMIX_4).is_file() for folder in mpi.library_folders)


def settings(
    mpi: MpiLibrary, *, folder: Path, inherited: Mapping[str, str], shares_memory: bool = False, alone: bool = False
) -> dict[str, str]:
    """`folder` is for the files that Open MPI makes while it runs. `alone`: each node has one rank."""
    parameters = {
        # Two-sided: matching is the NIC's, through the ofi MTL. One-sided: the ofi BTL.
        "pml": "cm",
        "mtl": "ofi",
        "mtl_ofi_provider_include": "cxi",
        "btl": "ofi,self",
        "btl_ofi_provider_include": "cxi",
        "osc": "rdma",
        # Collectives through shared memory would take no virtual time.
        "coll": "^sm,han",
        # Where a thread may rest (preload/clock/progress_rest.hpp).
        "mpi_yield_when_idle": "1",
    }
    if shares_memory:
        # Windows and collectives of a node through its memory; messages stay with the MTL.
        parameters["coll"] = "^ucc"
    if shares_memory or alone:
        # MPI_Win_allocate_shared fails without it. It takes all windows of one node, through memory.
        parameters["osc"] += ",sm"
    if is_release_4(mpi):
        # Its ofi BTL lacks FI_MR_ENDPOINT, which the provider wants; it has one-sided communication over two-sided.
        parameters |= {"btl": "self", "osc": "pt2pt,sm" if alone else "pt2pt"}
        # It takes itself for the only rank unless a daemon of its own has started it; its name is enough.
        parameters["orte_local_daemon_uri"] = "1.0;tcp://127.0.0.1:1"
    if inherited.get("OMPI_MCA_pml") == "ob1":
        parameters["btl_ofi_mode"] = "2"  # one-sided and two-sided; without it only one-sided, and ob1 crashes
    # Shared memory is in files, which go with the run's folder however its ranks end.
    for name in ("btl_sm", "btl_vader", "osc_sm", "osc_rdma"):
        parameters[f"{name}_backing_directory"] = str(folder)
    parameters["shmem_mmap_backing_file_base_dir"] = str(folder)
    values = {
        "OPAL_PREFIX": mpi.prefix,
        "DRYFLY_MODEX": str(folder / "modex"),
        # Open MPI deals the ranks of a node over its NICs itself, in the order in which it is told of them.
        "DRYFLY_NICS_IN_ORDER": "1",
    }
    if "rdma" in parameters["osc"].split(","):
        values["DRYFLY_WATCH_WINDOWS"] = "1"  # osc/rdma looks at the memory of windows by itself
    if "MPI4PY_MPIABI" not in inherited:
        values["MPI4PY_MPIABI"] = "openmpi"  # mpi4py's wheel serves several libraries, and finds MPICH first
    for name, value in parameters.items():
        if f"OMPI_MCA_{name}" not in inherited:
            values[f"OMPI_MCA_{name}"] = value
    return values


def told_of_command(command: Sequence[str]) -> dict[str, str]:
    """What its own mpiexec tells ranks, without which MPI_Init puts the program's arguments together anew, up to a null
    that the arguments of other languages' bindings lack."""
    return {"OMPI_COMMAND": command[0], "OMPI_ARGV": " ".join(command[1:])}

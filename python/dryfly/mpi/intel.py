"""What Intel MPI needs to run on the simulated provider. What the user has set stays as it is."""

from __future__ import annotations

from collections.abc import Mapping

from dryfly.base.errors import UserError
from dryfly.mpi.libraries import MpiLibrary

# Without the second, ranks of a node wait for one another there also where their messages go by the NIC.
_WITHOUT_SHARED_MEMORY = {"I_MPI_FABRICS": "ofi", "I_MPI_COLL_INTRANODE": "pt2pt"}
_PROGRESS_THREADS = ("I_MPI_ASYNC_PROGRESS", "MPIR_CVAR_ASYNC_PROGRESS")


def settings(mpi: MpiLibrary, *, inherited: Mapping[str, str]) -> dict[str, str]:
    # Not to be chosen: where its files are, and the simulated network.
    values = {"I_MPI_ROOT": mpi.prefix, "I_MPI_OFI_LIBRARY": mpi.libfabric, "I_MPI_OFI_LIBRARY_INTERNAL": "0"}
    defaults = {
        **_WITHOUT_SHARED_MEMORY,
        "I_MPI_OFI_PROVIDER": "cxi",
        # dryfly binds ranks (--cpu-bind).
        "I_MPI_PIN": "0",
        # With atomics it asks for FI_ORDER_ATOMIC_RAW and _WAR, which the simulated provider does not promise.
        "MPIR_CVAR_CH4_OFI_ENABLE_ATOMICS": "0",
    }
    return values | {name: value for name, value in defaults.items() if name not in inherited}


def settings_for_gpus(*, inherited: Mapping[str, str]) -> dict[str, str]:
    """Read with I_MPI_OFFLOAD=1 only, which is the user's to set as on the machine."""
    defaults = {
        # Else short messages go by the processor's own accesses to memory of devices, which nothing here sees.
        "I_MPI_OFFLOAD_FAST_MEMCPY": "0",
        # Else ranks of a node reduce by kernels, which are not run here: reductions are made on copies on the host.
        # A release doubles the number in 31 bits.
        "I_MPI_OFFLOAD_COPY_COLL_MAX_SIZE": str(10**9),
    }
    return {name: value for name, value in defaults.items() if name not in inherited}


def takes_gpu_buffers(environment: Mapping[str, str]) -> bool:
    """As Intel MPI reads I_MPI_OFFLOAD: 1 or more, for what it finds, is on."""
    return environment.get("I_MPI_OFFLOAD", "0").strip().lower() not in ("", "0", "disable", "no", "off", "false")


def check(mpi: MpiLibrary, environment: Mapping[str, str]) -> None:
    """Raises UserError for what the user has set and virtual time cannot follow."""
    if mpi.family != "impi":
        return
    for name, accepted in _WITHOUT_SHARED_MEMORY.items():
        if environment.get(name, accepted) != accepted:
            raise UserError(
                f"{name}={environment[name]}: accepted is {accepted}, for what ranks of a node say to one another in "
                "Intel MPI's own shared memory would take no virtual time"
            )
    for name in _PROGRESS_THREADS:
        if environment.get(name, "").lower() in ("1", "yes", "true", "on", "enable"):
            raise UserError(
                f"{name}={environment[name]}: a progress thread polls as this computer happens to run it, which "
                "virtual time cannot follow; accepted is 0, and a program that tests or waits makes progress by itself"
            )

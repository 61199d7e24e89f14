"""The plan for dryfly-launch: where each rank runs and what its environment says (launch/plan.hpp has the format)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.paths import PROVIDER, native
from dryfly.base.preloads import users_preloads
from dryfly.binding.ranks import RankBinding
from dryfly.case import gpus, nics, traffic_class
from dryfly.case.on_node import OnNode
from dryfly.case.placement import Placement
from dryfly.case.resolve import ComputeSpec
from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames
from dryfly.mpi import intel, linkx, mpich, openmpi, preload, system
from dryfly.mpi.libraries import MpiLibrary
from dryfly.mpi.starter import Starter

# Read by preload/node in each process of the job.
BINDING_VARIABLE = "DRYFLY_BINDING"

_MPICH = {
    # Its wheels prefer UCX, and score cxi low where all ranks are on one host.
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "MPIR_CVAR_SINGLE_HOST_ENABLED": "0",
}
# Each rank counts as alone on a node: on-node messages go through the provider, and what MPICH keeps for its shared
# memory, 64 cells of 16 KiB a rank, is hardly wanted: 1 GiB in a run of 1,024 ranks.
_MPICH_ALONE = {"MPIR_CVAR_NOLOCAL": "1"}
# Its collectives through shared memory look at a flag 1,000 times before they let anything else happen. Where it finds
# that two ranks are on different NUMA domains it writes to its cells past the caches, without calling memcpy, and a
# copy that nobody sees takes no time (docs/model/on-node.md).
_MPICH_SHARED = {"MPIR_CVAR_NOLOCAL": "0", "MPIR_CVAR_POSIX_POLL_FREQUENCY": "1"}
_TOPOLOGY = "MPIR_CVAR_CH4_SHM_POSIX_TOPO_ENABLE"
_CELLS = "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_NUM_CELLS"

# Of variables that MPI libraries, libfabric and the launchers of theirs look at.
_OF_LIBRARIES = ("FI_", "I_MPI_", "MPIR_", "MPICH_", "OMPI_", "PMIX_", "PRTE_")
_PROGRESS_THREADS = tuple(f"{prefix}_ASYNC_PROGRESS" for prefix in ("MPIR_CVAR", "MPIR_PARAM", "MPICH"))


@contextmanager
def applied(variables: Iterable[tuple[str, str]]) -> Iterator[None]:
    """Meanwhile this process has them, and so has what it starts."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def of_libraries(inherited: Mapping[str, str]) -> dict[str, str]:
    """Of the caller's variables those that libraries look at, by name."""
    return {name: value for name, value in sorted(inherited.items()) if name.startswith(_OF_LIBRARIES)}


def check_settings_of(mpi: MpiLibrary) -> None:
    """What the user has told the library that virtual time cannot follow: progress threads, by MPICH's names, as it
    reads them (Open MPI's releases have no such thread, and in a rank the preload asks again), and Intel MPI's own."""
    intel.check(mpi, os.environ)
    for name in _PROGRESS_THREADS if mpi.family == "mpich" else ():
        if os.environ.get(name, "").lower() in ("yes", "true", "on", "1"):
            raise UserError(
                f"{name}={os.environ[name]}: a progress thread polls as this computer happens to run it, which virtual "
                "time cannot follow; accepted is 0, and a program that tests or waits makes progress by itself"
            )


def check_provider_settings() -> None:
    """Ranks inherit this process's FI_CXI_* settings: asks the provider itself whether it would take them."""
    check = ctypes.CDLL(str(native(PROVIDER))).dryfly_refused_setting
    check.restype = ctypes.c_char_p
    refused = check()
    if refused is not None:
        raise UserError(refused.decode(errors="replace"))


def variables(
    *,
    channel: str,
    mpi: MpiLibrary,
    compute: ComputeSpec,
    folder: Path,
    inherited: Mapping[str, str],
    record_folder: Path | None = None,
    records_operations: bool = False,
    provider: str = "cxi",
    on_node: OnNode = OnNode.PROVIDER,
    alone: bool = False,
    seed: int = 1,
    additions: system.Additions = system.NONE,
) -> dict[str, str]:
    """What every rank gets on top of the caller's environment. Recordings go into `folder`/compute. `alone`: each node
    has one rank."""
    own_folders = [*_texts(additions.folder), *mpi.library_folders]
    values = {
        "DRYFLY_CHANNEL": channel,
        "DRYFLY_MPI": f"{mpi.interface} {mpi.name}",
        "DRYFLY_LIBMPI": mpi.libmpi,
        # The user's own in front: a tool of theirs finds dryfly's MPI functions as the next ones.
        "LD_PRELOAD": ":".join(
            [*users_preloads(inherited), str(preload.for_library(Path(mpi.libmpi))), *_texts(additions.stand_ins)]
        ),
        "LD_LIBRARY_PATH": _joined(own_folders, inherited.get("LD_LIBRARY_PATH")),
        "DRYFLY_LIBRARY_PATH": _joined(own_folders, None),
        "PATH": _joined([str(Path(mpi.prefix) / "bin")], inherited.get("PATH", os.defpath)),
        # The only provider libfabric sees: this path replaces its own folder of plug-ins.
        "FI_PROVIDER_PATH": str(native(PROVIDER).parent),
        "FI_PROVIDER": "cxi",
    }
    if mpi.family == "openmpi":
        shares = on_node is OnNode.SHARED
        values |= openmpi.settings(mpi, folder=folder, inherited=inherited, shares_memory=shares, alone=alone)
    elif mpi.family == "impi":
        values |= intel.settings(mpi, inherited=inherited)
    else:
        values |= _MPICH | (_MPICH_SHARED if on_node is OnNode.SHARED else _MPICH_ALONE)
        values |= mpich.settings(mpi, inherited)
        if on_node is OnNode.PROVIDER and _CELLS not in inherited:
            values[_CELLS] = "4"
        if on_node is OnNode.SHARED and _TOPOLOGY not in inherited:
            values[_TOPOLOGY] = "0"
    if provider == "linkx":
        values |= linkx.settings(mpi, provider_path=values["FI_PROVIDER_PATH"], inherited=inherited, seed=seed)
    if additions.of_old_mpich:
        values["DRYFLY_OLD_MPICH"] = "1"
    if on_node is OnNode.SHARED:
        segments = folder / "segments"
        segments.mkdir(exist_ok=True)
        values["DRYFLY_SEGMENTS"] = str(segments)
    if "PYTHONHASHSEED" not in inherited:
        values["PYTHONHASHSEED"] = "0"  # a Python program sends in the same order each time
    if "OPENBLAS_NUM_THREADS" not in inherited:
        # numpy starts a thread for each processor when it is loaded. In every rank that is too many, and MPI in a
        # process with several threads is not repeatable.
        values["OPENBLAS_NUM_THREADS"] = "1"
    if record_folder is not None:
        values["DRYFLY_CALL_RECORD"] = str(record_folder)
        if records_operations:
            values["DRYFLY_OPERATION_RECORD"] = str(record_folder)
    if compute.record_file is not None:
        values["DRYFLY_COMPUTE_RECORD"] = str(folder / "compute")
    if compute.replay_file is not None:
        values["DRYFLY_COMPUTE_REPLAY"] = str(folder / "compute")
    return values


def plan(
    machine: Machine,
    placement: Placement,
    values: Mapping[str, str],
    *,
    mpi: MpiLibrary,
    folder: Path,
    stdin_rank: int = 0,
    starter: Starter | None = None,
    bindings: Sequence[RankBinding] = (),
) -> str:
    names = NodeNames(machine)
    lines = [f"rank {p.rank} node {names.number(p.node)} local {p.local}" for p in placement.ranks]
    lines.append(f"stdin-rank {stdin_rank}")
    lines += [f"node {names.number(node)} {names.name(node)}" for node in sorted({p.node for p in placement.ranks})]
    if mpi.family == "openmpi":
        lines += [f"pmix {openmpi.pmix_server(mpi)}", f"pmix-folder {folder}"]
    lines += starter.plan_lines() if starter is not None else []
    told = nics.rank_variables(machine, placement, bindings)
    lines += [f"rankenv {rank} {nics.NODE_VARIABLE}={text}" for rank, text in enumerate(told)]
    if mpi.family == "openmpi":
        lines += [f"rankenv {rank} {each}" for rank, each in enumerate(nics.only_devices(bindings)) if each]
    lines += [f"rankenv {rank} {BINDING_VARIABLE}={each.words()}" for rank, each in enumerate(bindings) if each.words()]
    lines += [f"rankenv {rank} {mask}" for rank, each in enumerate(bindings) if (mask := gpus.mask(machine, each))]
    lines.append(f"env {traffic_class.variable(machine)}")
    for name, value in values.items():
        if "\n" in value:
            raise UserError(f"the environment variable {name} contains a line break, which dryfly cannot pass on")
        lines.append(f"env {name}={value}")
    return "\n".join(lines) + "\n"


def _joined(first: list[str], rest: str | None) -> str:
    return ":".join([*first, *([rest] if rest else [])])


def _texts(path: Path | None) -> list[str]:
    return [] if path is None else [str(path)]

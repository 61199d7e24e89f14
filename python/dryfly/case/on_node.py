"""How the ranks of a node talk to one another, and what decides it where the user does not
(docs/decision/0005-node-aware-mpi.md)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from dryfly.apps.benchmarks import KINDS
from dryfly.base.errors import UserError
from dryfly.mpi import elf, loading, mpich, system
from dryfly.mpi.libraries import MpiLibrary

# Before, one that waits for room in shared memory takes its own attempts for progress, and never looks at the network
# where it would let the others go on.
_MPICH_THAT_SHARES = (4, 3)

# Who calls one of these wants to know who is on its node. Fortran's names have an underscore behind them, Python's no
# MPI_ before.
_QUESTIONS = ("MPI_Comm_split_type", "MPI_Win_allocate_shared")
_SYMBOLS = {name.lower(): name for name in _QUESTIONS}
_IN_TEXT = re.compile(rb"(?i)\b(?:mpi_)?(comm_split_type|win_allocate_shared|split_type|allocate_shared)\b")
# Of Cray MPICH, and of MPICH where it is built for XPMEM; what runs here copies in its own way.
WITHOUT_EFFECT = (
    "MPICH_SMP_SINGLE_COPY_MODE",
    "MPICH_SMP_SINGLE_COPY_SIZE",
    "MPICH_SHM_PROGRESS_MAX_BATCH_SIZE",
    "MPIR_CVAR_CH4_XPMEM_ENABLE",
)
# By which a user tells MPICH to take each rank for alone on its node; the last is Cray's name.
_ALONE = (*(f"{prefix}_NOLOCAL" for prefix in ("MPIR_CVAR", "MPIR_PARAM", "MPICH")), "MPICH_NO_LOCAL")
_SYSTEM = (Path("/lib"), Path("/usr/lib"), Path("/lib64"), Path("/usr/lib64"))
_MICROBENCHMARK = "it is a microbenchmark"
_TRUE = ("1", "yes", "true", "on")
_TEXT_MOST = 4 << 20  # bytes of a source or script that are looked through


class OnNode(Enum):
    AUTO = "auto"
    PROVIDER = "provider"
    SHARED = "shared"

    @classmethod
    def parse(cls, text: str) -> OnNode:
        try:
            return cls(text)
        except ValueError:
            raise UserError(f'--on-node "{text}": accepted is {" or ".join(each.value for each in cls)}') from None


@dataclass(frozen=True, kw_only=True)
class Choice:
    on_node: OnNode
    reason: str = ""  # why it is not what it is for others; empty: the user's word, or the usual


def check(mpi: MpiLibrary, on_node: OnNode) -> None:
    if on_node is OnNode.SHARED and mpi.family == "impi":
        raise UserError(f"--on-node shared: Intel MPI's own shared memory ({mpi.name}) is not followed; use provider")
    if on_node is OnNode.SHARED and not can_share(mpi):
        raise UserError(f"--on-node shared: accepted is MPICH 4.3 or newer, and {mpi.name} is older; or use provider")


def alone_by_user(mpi: MpiLibrary) -> str:
    """The setting of the environment that says so; empty: none does, or the library reads none."""
    values = {name: os.environ.get(name, "") for name in _ALONE} if mpi.family == "mpich" else {}
    return next((f"{name}={value}" for name, value in values.items() if value.lower() in _TRUE), "")


def check_settings(mpi: MpiLibrary, on_node: OnNode) -> None:
    """Against what the user has told the library. Raises UserError."""
    said = alone_by_user(mpi)
    if on_node is OnNode.SHARED and said:
        raise UserError(
            f"{said} and --on-node shared: the one has each rank alone on its node, the other has them share memory; "
            "accepted is one of the two"
        )


def can_share(mpi: MpiLibrary) -> bool:
    version = mpich.release(mpi)
    return mpi.family == "openmpi" or (mpi.family == "mpich" and (not version or version >= _MPICH_THAT_SHARES))


def choose(asked: str, *, files: Sequence[Path], mpi: MpiLibrary, provider: str, several_ranks: bool) -> Choice:
    """`files`: the program and what it may start. `several_ranks`: some node has more than one.

    With LINKx messages have a memory of their own, and windows have not."""
    on_node = OnNode.parse(asked)
    if on_node is not OnNode.AUTO:
        return Choice(on_node=on_node)
    if not several_ranks or not can_share(mpi) or alone_by_user(mpi):
        return Choice(on_node=OnNode.PROVIDER)
    reason = next((reason for file in files if (reason := question(file))), "")
    if provider == "linkx" and reason == _MICROBENCHMARK:
        reason = ""
    return Choice(on_node=OnNode.SHARED if reason else OnNode.PROVIDER, reason=reason)


def question(program: Path) -> str:
    """Why the program counts on its nodes: what it asks MPI for, or that it is a microbenchmark; empty: it does not.

    Of an executable its symbols tell, and those of libraries of its own; of a source or a script its text."""
    if program.suffix == ".c" and program.stem in KINDS and (program.parent / "benchmark.h").is_file():
        return _MICROBENCHMARK
    try:
        if not elf.is_elf(program):
            with program.open("rb") as file:
                asked = _IN_TEXT.search(file.read(_TEXT_MOST))
            return f"it has {asked[0].decode()}" if asked else ""
        found = loading.closure(program, loading.folders_of(os.environ.get("LD_LIBRARY_PATH")))
        own = [
            each.path
            for each in found
            if each.path is not None and not system.is_part_of_mpi(each.name) and not _is_systems(each.path)
        ]
        wanted = {name.lower().removeprefix("p").rstrip("_") for path in own for name in elf.symbols(path).wanted}
    except OSError:
        return ""
    return next((f"it calls {name}" for symbol, name in _SYMBOLS.items() if symbol in wanted), "")


def _is_systems(path: Path) -> bool:
    return any(path.resolve().is_relative_to(folder) for folder in _SYSTEM)

"""MPICH's releases: what those before 4.1 have to be told to run on Slingshot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dryfly.mpi.libraries import MpiLibrary

# By default it asks for tags of 63 bits and more, and Slingshot's NIC matches 48. What is long it stripes over a node's
# NICs by RMA, out of memory that it binds to no end-point, as it does for windows; cxi refuses that.
_BEFORE_4_1 = {
    "MPIR_CVAR_CH4_OFI_CONTEXT_ID_BITS": "16",
    "MPIR_CVAR_CH4_OFI_RANK_BITS": "0",
    "MPIR_CVAR_CH4_OFI_TAG_BITS": "26",
    "MPIR_CVAR_CH4_OFI_ENABLE_MULTI_NIC_STRIPING": "0",
}


def settings(mpi: MpiLibrary, inherited: Mapping[str, str]) -> dict[str, str]:
    """What its release needs, where the user has not said otherwise."""
    numbers = release(mpi)
    if not numbers or numbers >= (4, 1):
        return {}
    return {name: value for name, value in _BEFORE_4_1.items() if name not in inherited}


def release(mpi: MpiLibrary) -> tuple[int, ...]:
    """The first two numbers of it; empty: not known."""
    version = mpi.version or _of_prefix(Path(mpi.libmpi).parent)
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _of_prefix(folder: Path) -> str:
    """Of a library that the user has built, by the note for pkg-config beside it; empty: it has none."""
    note = folder / "pkgconfig/mpich.pc"
    found = re.search(r"^Version: *(\S+)", note.read_text(encoding="utf-8"), re.M) if note.is_file() else None
    return "" if found is None else found[1]

"""MPIs that dryfly does not run, by the names of their libraries, with what would run a program of theirs.

A name that is in no list is no reason to guess: it is told as one that is not known.
"""

from __future__ import annotations

import re

_COMPILERS = "cray|crayclang|gnu|intel|amd|aocc|nvidia|pgi"
_ACCEPTED = "Open MPI 4 or 5, or with MPICH"

_NAMES = (
    # On an XC its libraries are libmpich_gnu_82.so.3 and libmpichf90_gnu_82.so.3.
    (
        rf"libmpi(fort|ch|chf90|chcxx|chfort)?_({_COMPILERS})(_\d+)*(_m[pt])?\.so[.\d]*",
        "HPE Cray MPICH: linked with the module cray-mpich-abi it asks for libmpi.so.12, which MPICH is",
    ),
    (
        r"libmpi_gtl_\w+\.so[.\d]*",
        "HPE Cray MPICH: its GPU transport library (GTL), which works with no other; linked with the module "
        "cray-mpich-abi and without craype-accel-... the program asks for libmpi.so.12 alone, which MPICH is",
    ),
    (
        r"libmpi\.so\.(0|1|2|10|20)|libmpi_(cxx|f77|f90|mpifh|usempi\w*)\.so\.[123]?\d",
        f"an Open MPI before 4: build it with {_ACCEPTED}",
    ),
    (r"libmpi_ibm\w*\.so[.\d]*", f"IBM Spectrum MPI: build it with {_ACCEPTED}"),
    (
        r"libmpi(\+\+)?\.so",
        f"HPE MPT, or of another MPI whose library's name has no number: build it with {_ACCEPTED}",
    ),
    (
        r"libmpi_ilp64\.so\.4",
        "Intel MPI alone, for integers of 64 bits in Fortran: build it with those of 32, or with MPICH",
    ),
    (r"libmpi(_mt|gf)?\.so\.4", "an Intel MPI before 5.0: build it with a newer one, or with MPICH"),
    (r"libmpich\w*\.so\.(1|2|3|8|10)", "MPICH before 3.1, or MVAPICH2 before 2.0: build it with a newer one"),
    (r"liboshmem\.so[.\d]*", "OpenSHMEM, and dryfly runs MPI: build it without"),
    (r"libmpi_java\.so[.\d]*", "Open MPI's Java bindings, and dryfly has none for them"),
)
_OTHERS = tuple((re.compile(names), text) for names, text in _NAMES)


def whose(soname: str) -> str:
    """Whose it is and what would run a program that asks for it; empty where that is not known."""
    return next((text for names, text in _OTHERS if names.fullmatch(soname)), "")

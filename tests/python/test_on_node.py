"""`--on-node`: what each choice means for the MPI libraries."""

from __future__ import annotations

import pytest

from dryfly.base.errors import UserError
from dryfly.case import environment
from dryfly.case.resolve import OnNode
from dryfly.mpi.libraries import MpiLibrary


def mpich(version: str) -> MpiLibrary:
    return MpiLibrary(name=f"mpich-{version}", family="mpich", version=version, prefix="", libmpi="", libfabric="")


def test_mpich_before_4_3_is_refused_for_shared_memory_only() -> None:
    with pytest.raises(UserError, match=r"accepted is MPICH 4\.3 or newer, and mpich-4\.1\.3 is older"):
        environment.check_on_node(mpich("4.1.3"), OnNode.SHARED)
    environment.check_on_node(mpich("4.1.3"), OnNode.PROVIDER)
    environment.check_on_node(mpich("4.3.2"), OnNode.SHARED)
    environment.check_on_node(mpich(""), OnNode.SHARED)  # an existing prefix, whose version is not known

"""LINKx: libfabric's lnx joins cxi with the node's shared memory below Open MPI 5, and matches in software."""

from __future__ import annotations

import pytest
from conftest import Dryfly, Programs

from dryfly import mpi

_LINKX = ("--provider", "linkx", "--compute", "none")
_NODES = ("-N", "2", "--ppn", "2")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("linkx"), mpi.select("openmpi"))


# Wildcards of matching.c meet messages of ranks on this node and of the other; LINKx cannot cancel a receive.
# Windows go over cxi itself (rma_contended.c).
@pytest.mark.parametrize(
    "program", [("p2p.c",), ("matching.c", "without-cancel"), ("reductions.c",), ("rma_contended.c",)]
)
def test_program_finds_every_value_right(program: tuple[str, ...], dryfly: Dryfly, built: Programs) -> None:
    name, *arguments = program
    run = dryfly("run", *_NODES, *_LINKX, "--", built.check(name), *arguments, limit_s=120).succeeded()
    assert f"ok {name.removesuffix('.c')}\n" in run.stdout
    rows = run.results["protocols"]
    assert sum(row["messages_on_node"] for row in rows) > 0
    assert sum(sum(row["messages_by_hops"]) for row in rows) > 0


def test_the_same_run_gives_the_same_fingerprint(dryfly: Dryfly, built: Programs) -> None:
    command = ("run", "--machine", "aurora", *_NODES, *_LINKX, "--", built.check("collectives.c"))
    runs = [dryfly(*command, limit_s=120).succeeded() for _ in range(2)]
    assert runs[0].fingerprint == runs[1].fingerprint


def test_matching_in_software_costs_latency(dryfly: Dryfly, built: Programs) -> None:
    program = ("-n", "2", "--compute", "none", "--", built.micro("pingpong.c"), "count=100")
    hardware = dryfly("run", *program).succeeded().results["virtual_time_s"]
    software = dryfly("run", "--provider", "linkx", *program).succeeded().results["virtual_time_s"]
    assert 1.1 < software / hardware < 3


def test_only_open_mpi_5_can_use_it(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly("run", *_LINKX, "--", programs.check("p2p.c"))
    assert run.exit_status == 2
    assert "--provider linkx: MPI library mpich-5.0.2 does not use it; accepted are Open MPI 5 libraries" in run.stderr

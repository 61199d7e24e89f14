"""LINKx: libfabric's lnx joins cxi with the node's shared memory below Open MPI 5, and matches in software."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import ROOT

from dryfly.apps import benchmarks
from dryfly.case import near
from dryfly.case.placement import Placement
from dryfly.machine.load import load
from dryfly.mpi import libraries as mpi

_LINKX = ("--provider", "linkx", "--compute", "none")
_NODES = ("-N", "2", "--ppn", "2")

_INTER = """
#include <mpi.h>
#include <stdio.h>
int main(void) {
  int rank, mine, sum;
  MPI_Comm half, between, all;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 5, &between);
  MPI_Intercomm_merge(between, rank >= 2, &all);
  mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, all);
  printf("%d of 10\\n", sum);
  MPI_Finalize();
  return 0;
}
"""


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


# With places, long messages come to a rank by the NIC and by memory at about the same time.
@pytest.mark.parametrize("places", ["off", "on"])
def test_the_same_run_gives_the_same_fingerprint(places: str, dryfly: Dryfly, built: Programs) -> None:
    aurora = ("--machine", "aurora", "--set", f"node.near.places={places}")
    command = ("run", *aurora, *_NODES, *_LINKX, "--", built.check("collectives.c"))
    runs = [dryfly(*command, limit_s=120).succeeded() for _ in range(2)]
    assert runs[0].fingerprint == runs[1].fingerprint


# lnx draws one of a peer's NICs by the clock, here one that the run's seed sets.
def test_two_links_repeat_and_follow_the_seed(dryfly: Dryfly, built: Programs) -> None:
    two = {"FI_LNX_PROV_LINKS": "shm+cxi:cxi0,cxi1"}
    command = ("run", "--machine", "aurora", "-N", "3", *_LINKX)
    program = ("--", built.check("collectives.c"))
    runs = [dryfly(*command, "--seed", seed, *program, environment=two).succeeded() for seed in ("1", "1", "2")]
    assert runs[0].fingerprint == runs[1].fingerprint != runs[2].fingerprint
    assert runs[0].results["repeatable"] is True
    assert {row["index"] for row in runs[0].results["nics"]} == {0, 1}


# Open MPI would take all of the computer's memory, and not end.
@pytest.mark.parametrize("program", [("groups.c",), ("sessions.c", "oc")])
def test_communicators_from_groups_are_refused(program: tuple[str, ...], dryfly: Dryfly, built: Programs) -> None:
    name, *arguments = program
    run = dryfly("run", "-N", "1", "--ppn", "2", *_LINKX, "--", built.check(name), *arguments)
    assert run.exit_status == 2
    assert run.stderr.count("makes a communicator from a group") == 1
    assert "leave out --provider linkx" in run.stderr


def test_an_intercommunicator_on_one_node_works(dryfly: Dryfly, tmp_path: Path) -> None:
    source = tmp_path / "inter.c"
    source.write_text(_INTER)
    run = dryfly("run", "--mpi", "openmpi", *_LINKX, "-N", "1", "--ppn", "4", "--", source).succeeded()
    assert run.stdout.splitlines().count("10 of 10") == 4


def test_matching_in_software_costs_latency(dryfly: Dryfly, built: Programs) -> None:
    program = ("-n", "2", "--compute", "none", "--", built.micro("pingpong.c"), "count=100")
    hardware = dryfly("run", *program).succeeded().results["virtual_time_s"]
    software = dryfly("run", "--provider", "linkx", *program).succeeded().results["virtual_time_s"]
    assert 1.1 < software / hardware < 3


def test_only_open_mpi_5_can_use_it(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly("run", *_LINKX, "--", programs.check("p2p.c"))
    assert run.exit_status == 2
    assert "--provider linkx: MPI library mpich-5.0.2 does not use it; accepted are Open MPI 5 libraries" in run.stderr


# Orderings of "Open MPI for HPE Cray EX Systems" that do not depend on what is assumed of a core's copies.
@pytest.mark.slow
def test_linkx_beside_plain_cxi_on_a_node_and_between_two(dryfly: Dryfly) -> None:
    def table(name: str, nodes: int, *how: str, more: tuple[str, ...] = ()) -> benchmarks.Table:
        source = ROOT / "programs" / "benchmark" / f"{name}.c"
        job = ("run", "--machine", "crusher", "-N", str(nodes), "--ppn", str(2 // nodes), "--mpi", "openmpi")
        run = dryfly(*job, "--compute", "none", *how, "--", source, "-m", "8:1048576", "-i", "5", *more).succeeded()
        return benchmarks.read(run.stdout)

    cxi, linkx = ("--on-node", "provider"), ("--provider", "linkx")
    latency = {(nodes, how): table("latency", nodes, *how) for nodes in (1, 2) for how in (cxi, linkx)}
    # A message within a node leaves it and comes back, so it is no quicker than one to another node.
    assert latency[1, cxi][8] >= 0.98 * latency[2, cxi][8]
    assert latency[1, linkx][8] < 0.9 * latency[1, cxi][8]
    # lnx matches in software, which costs small messages between nodes, and no bandwidth.
    assert latency[2, linkx][8] > 1.2 * latency[2, cxi][8]
    bandwidth = {(nodes, how): table("bw", nodes, *how) for nodes in (1, 2) for how in (cxi, linkx)}
    assert bandwidth[2, linkx][1 << 20] == pytest.approx(bandwidth[2, cxi][1 << 20], rel=0.01)
    by_nics = [bandwidth[where] for where in bandwidth if where != (1, linkx)]
    assert max(figure for each in by_nics for figure in each.values()) < 24_250  # a NIC's link
    # One copy by the receiver and a call of the kernel for each: out of its own caches where nothing has changed, and
    # what has been written anew out of caches of another region of its socket.
    rows = dict(near.spec_lines(load("crusher"), Placement(policy="packed", ranks=())))
    anew = table("bw", 1, *linkx, more=("-c",))
    for found, row in ((bandwidth[1, linkx], "node.near.0"), (anew, "node.near.1")):
        copied_s = (1 << 20) / float(rows[f"{row}.cached_bytes_per_s"]) + 1e-12 * float(rows["node.cross_copy_ps"])
        assert found[1 << 20] == pytest.approx((1 << 20) / copied_s / 1e6, rel=0.01)


def test_a_nic_that_loops_gives_no_more_than_its_loopback(dryfly: Dryfly) -> None:
    source = ROOT / "programs" / "benchmark" / "bw.c"
    job = ("run", "--machine", "perlmutter-cpu", "-N", "1", "--ppn", "2", "--compute", "none", "--on-node", "provider")
    run = dryfly(*job, "--", source, "-m", "4194304:4194304", "-i", "5").succeeded()
    assert benchmarks.read(run.stdout)[4194304] * 8 == pytest.approx(184_500, rel=0.01)  # Mb/s
    assert run.results["packet_hops"] == 0

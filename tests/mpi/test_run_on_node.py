"""`--on-node shared`: MPI sees the simulated nodes, its shared memory takes virtual time, and every run is the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import CHECK, ROOT, Ended

from dryfly.apps import benchmarks

# 2 nodes of 4 ranks; the program checks all of its data and the size of a node.
_COMMAND = ("run", "--machine", "testbed", "-N", "2", "--ppn", "4", "--compute", "none")


def node_aware(dryfly: Dryfly, programs: Programs, *options: str, ranks_on_node: int) -> Ended:
    program = programs.check("node_aware.c")
    run = dryfly(*_COMMAND, *options, "--", program, str(ranks_on_node), environment={"NODE_AWARE_PRINT": "1"})
    return run.succeeded()


def everything_virtual(run: Ended) -> tuple[object, ...]:
    """All that a run gives, but what belongs to the host."""
    results = run.results
    parts = ("fingerprint", "virtual_time_s", "time", "profile", "protocols", "nics")
    # Which rank got which number from the shared counter is part of the output.
    return (*(results[part] for part in parts), sorted(run.stdout.splitlines()))


def test_shared_memory_of_a_node_gives_the_same_run_each_time(dryfly: Dryfly, programs: Programs) -> None:
    runs = [node_aware(dryfly, programs, "--on-node", "shared", ranks_on_node=4) for _ in range(3)]
    assert everything_virtual(runs[0]) == everything_virtual(runs[1]) == everything_virtual(runs[2])
    # No message to a rank of the same node went over the simulated network.
    assert [row["messages_on_node"] for row in runs[0].results["protocols"] if row["messages_on_node"]] == []


def test_other_load_does_not_change_what_shared_memory_gives(
    dryfly: Dryfly, programs: Programs, request: pytest.FixtureRequest
) -> None:
    alone = node_aware(dryfly, programs, "--on-node", "shared", ranks_on_node=4)
    request.getfixturevalue("hogs")
    beside_hogs = node_aware(dryfly, programs, "--on-node", "shared", ranks_on_node=4)
    assert everything_virtual(beside_hogs) == everything_virtual(alone)


def test_over_the_provider_each_rank_counts_as_alone(dryfly: Dryfly, programs: Programs) -> None:
    run = node_aware(dryfly, programs, "--on-node", "provider", ranks_on_node=1)
    assert "through NICs, as cxi does" in run.stderr


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_a_program_that_asks_for_its_node_finds_the_machines(dryfly: Dryfly, programs: Programs, family: str) -> None:
    source = ROOT / "programs" / "check" / "node_aware.c"
    for program in (source, *([programs.check("node_aware.c")] if family == "mpich" else [])):
        run = dryfly(*_COMMAND, "--mpi", family, "--", program, "4").succeeded()
        what = "" if family == "mpich" else "messages through NICs, as cxi does; windows and collectives "
        assert f"on a node {what}by MPI's own shared memory, as it " in run.stderr
        assert "node size 4, failures 0" in run.stdout


# MB/s of pairs of one node by message size: mbw_mr of 8 ranks, each copy of which reads and writes the node's memory.
@pytest.mark.parametrize(
    "how", [("--on-node", "shared", "--mpi", "mpich"), ("--provider", "linkx", "--mpi", "openmpi")]
)
def test_all_copies_of_a_node_share_its_memory(dryfly: Dryfly, how: tuple[str, ...]) -> None:
    source = ROOT / "programs" / "benchmark" / "mbw_mr.c"
    slow = ("--set", "compute.cpu.memory_rate=10 GB/s", "--set", "compute.cpu.count=2", "--set", "node.cached=0 B")
    job = ("run", "--machine", "testbed", "-N", "1", "--ppn", "8", "--compute", "none", *how)
    run = dryfly(*job, *slow, "--", source, "-m", "1048576:1048576", "-i", "10").succeeded()
    reached = benchmarks.read(run.stdout)[1048576]
    assert 9_000 <= reached <= 10_050
    unlimited = dryfly(*job, "--", source, "-m", "1048576:1048576", "-i", "10").succeeded()
    assert benchmarks.read(unlimited.stdout)[1048576] == pytest.approx(4 * 12_000, rel=0.05)


def test_one_sided_and_matching_are_right_over_shared_memory(dryfly: Dryfly, programs: Programs) -> None:
    for name in ("rma_contended.c", "p2p.c"):
        dryfly(*_COMMAND, "--on-node", "shared", "--", programs.check(name)).succeeded()


_END = """
#include <mpi.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int mine = 0, sum;
  for (int round = 0; round < 3; ++round) {
    MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
}
"""


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_a_rank_that_is_alone_shares_memory_with_itself(dryfly: Dryfly, family: str) -> None:
    run = dryfly("run", "-N", "3", "--mpi", family, "--compute", "none", "--", CHECK / "node_aware.c").succeeded()
    assert "node size 1, failures 0" in run.stdout


def test_a_shared_window_without_shared_memory_is_refused(dryfly: Dryfly) -> None:
    options = ("-N", "1", "--ppn", "2", "--mpi", "openmpi", "--on-node", "provider", "--compute", "none")
    run = dryfly("run", *options, "--", CHECK / "node_aware.c")
    assert run.exit_status == 2
    assert "for which Open MPI lacks its component sm (OMPI_MCA_osc=rdma): say --on-node shared" in run.stderr


@pytest.mark.usefixtures("hogs")
@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_ranks_that_end_do_not_disturb_those_of_their_node(dryfly: Dryfly, family: str, tmp_path: Path) -> None:
    # Half of the runs differed: whoever came to MPI_Finalize looked for what the others had written before, or did
    # not, as the computer ran them.
    source = tmp_path / "end.c"
    source.write_text(_END)
    job = ("run", "-N", "1", "--ppn", "4", "--compute", "none", "--mpi", family, "--on-node", "shared", "--", source)
    assert len({dryfly(*job).succeeded().fingerprint for _ in range(6)}) == 1


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_windows_of_each_kind_are_right_over_shared_memory(dryfly: Dryfly, family: str) -> None:
    # It stood still with Open MPI: in MPI_Win_attach, which waits for its NIC, a rank kept its node's turn.
    options = ("-N", "1", "--ppn", "2", "--compute", "none", "--mpi", family, "--on-node", "shared")
    run = dryfly("run", "--machine", "testbed", *options, "--", CHECK / "rma.c").succeeded()
    assert "ok rma\n" in run.stdout
    calls = {row["call"] for row in run.results["profile"]}
    assert {"MPI_Win_attach", "MPI_Win_detach"} <= calls


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_what_a_nic_writes_is_seen_by_ranks_that_wait_for_it_in_memory(dryfly: Dryfly, family: str) -> None:
    # It stood still with Open MPI: nobody told ranks that were in MPI_Win_start or MPI_Win_wait while others slept.
    options = ("-N", "2", "--ppn", "2", "--compute", "none", "--timeout", "60s", "--mpi", family, "--on-node", "shared")
    source = str(ROOT / "programs" / "check" / "exposed.c")
    runs = [dryfly("run", "--machine", "testbed", *options, "--", source).succeeded() for _ in range(2)]
    assert "ok exposed\n" in runs[0].stdout
    assert everything_virtual(runs[0]) == everything_virtual(runs[1])


@pytest.mark.parametrize(("family", "nodes"), [("mpich", 2), ("openmpi", 1)])
def test_several_threads_of_each_rank_exchange_at_once(dryfly: Dryfly, family: str, nodes: int) -> None:
    # It stood still: a thread that asked what was visible kept its node's turn from the rank that it waited for.
    options = ("-N", str(nodes), "--ppn", "2", "--compute", "none", "--timeout", "120s", "--mpi", family)
    source = str(ROOT / "programs" / "check" / "threads.c")
    run = dryfly("run", "--machine", "testbed", *options, "--on-node", "shared", "--", source).succeeded()
    assert "ok threads\n" in run.stdout
    assert run.results["repeatable"] is False


@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_more_events_than_a_ring_holds_are_taken_by_a_rank_that_looks_late(dryfly: Dryfly, library: str) -> None:
    source = str(ROOT / "programs" / "check" / "late_flood.c")
    options = ("run", "--machine", "testbed", "-N", "2", "--ppn", "2", "--compute", "none", "--timeout", "60s")
    runs = [
        dryfly(*options, "--mpi", library, "--on-node", where, "--", source).succeeded()
        for where in ("shared", "shared", "provider")
    ]
    assert everything_virtual(runs[0]) == everything_virtual(runs[1])
    assert all("2000 messages each: all arrived" in run.stdout for run in runs)
    assert runs[0].results["messages"] >= 4 * 2000


def test_another_word_is_refused(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly(*_COMMAND, "--on-node", "magic", "--", programs.check("node_aware.c"))
    assert run.exit_status == 2
    assert '--on-node "magic": accepted is auto or provider or shared' in run.stderr

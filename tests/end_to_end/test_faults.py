"""Whatever goes wrong: the message says why, the exit status is not 0, and nothing stays."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from launched import PROGRAMS, Run

Start = Callable[..., Run]
MISBEHAVE = str(PROGRAMS / "misbehave.c")


@pytest.mark.parametrize(
    ("how", "status", "says"),
    [
        ("segv", 128 + signal.SIGSEGV, "rank 1 on t1 (pid {pid}) was killed by signal 11 (Segmentation fault)"),
        ("exit", 7, "rank 1 on t1 (pid {pid}) exited with status 7"),
        ("abort", 42, "rank 1 on t1 called MPI_Abort with code 42"),
        ("deadlock", 3, "deadlock"),
    ],
)
def test_a_failing_rank_is_named_with_node_and_cause(start: Start, how: str, status: int, says: str) -> None:
    run = start("-N", "3", "--compute", "none", "--", MISBEHAVE, how)
    ended, _, errors = run.end()
    assert ended == status, errors
    for part in says.split("{pid}"):
        assert part in errors
    assert "Traceback" not in errors
    assert run.is_gone_within(5)
    assert not run.json_file.exists()
    assert list(run.temporary.iterdir()) == []


@pytest.mark.parametrize("on_node", ["provider", "shared"])
@pytest.mark.parametrize(("where", "nodes"), [(("-N", "3"), (0, 1, 2)), (("-N", "2", "--ppn", "2"), (0, 0, 1, 1))])
def test_a_deadlock_names_each_ranks_call(
    start: Start, where: tuple[str, ...], nodes: tuple[int, ...], on_node: str
) -> None:
    run = start(*where, "--on-node", on_node, "--compute", "none", "--", MISBEHAVE, "deadlock")
    status, _, errors = run.end(timeout=15)  # where ranks of a node take turns it was minutes
    assert status == 3
    for rank, node in enumerate(nodes):
        assert f"rank {rank} on t{node}: MPI_Recv" in errors


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
@pytest.mark.parametrize("on_node", ["provider", "shared"])
def test_a_rank_that_has_come_to_its_end_hides_no_deadlock(start: Start, on_node: str, mpi: str) -> None:
    where = ("-N", "2", "--ppn", "2", "--on-node", on_node, "--mpi", mpi)
    run = start(*where, "--compute", "none", "--", MISBEHAVE, "end")
    status, _, errors = run.end(timeout=30)
    assert status == 3, errors
    assert "rank 1 on t0: MPI_Finalize" in errors
    assert "rank 2 on t1: MPI_Recv" in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_dryfly_ends_everything(start: Start, number: signal.Signals) -> None:
    run = start("-N", "3", "--compute", "none", "--", MISBEHAVE, "hang")
    run.wait_for("misbehave", 3)
    run.process.send_signal(number)
    status, _, errors = run.end(timeout=10)
    assert status == 128 + number
    assert f"interrupted by signal {int(number)}" in errors
    assert run.is_gone_within(5)
    assert list(run.temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("victim", "says"),
    [
        ("dryfly-conductor", "the simulator (dryfly-conductor) was killed by signal 9"),
        ("dryfly-launch", "dryfly-launch was killed by signal 9"),
        ("misbehave", "was killed by signal 9"),
    ],
)
def test_killing_any_part_ends_the_job_and_says_which(start: Start, victim: str, says: str) -> None:
    run = start("-N", "3", "--compute", "none", "--", MISBEHAVE, "hang")
    run.wait_for("misbehave", 3)
    os.kill(run.wait_for(victim, 1)[-1], signal.SIGKILL)
    status, _, errors = run.end(timeout=10)
    assert status != 0
    assert says in errors
    assert run.is_gone_within(5)
    assert list(run.temporary.iterdir()) == []


def test_killing_dryfly_itself_leaves_no_process(start: Start) -> None:
    run = start("-N", "3", "--compute", "none", "--", MISBEHAVE, "hang")
    run.wait_for("misbehave", 3)
    run.process.kill()
    run.process.wait()
    assert run.is_gone_within(5)


def test_a_time_limit_ends_the_job(start: Start) -> None:
    run = start("-N", "2", "--timeout", "2", "--compute", "none", "--", MISBEHAVE, "hang")
    status, _, errors = run.end(timeout=30)
    assert status == 124
    assert "--timeout 2 s" in errors
    assert run.is_gone_within(5)

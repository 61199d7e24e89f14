"""Unmodified MPI programs compute under dryfly what MPI promises: the programs of programs/check at many rank counts.

Each program compares every value it receives and says `ok NAME` at the end (programs/check/check.h).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import CHECK, MICRO

from dryfly.mpi import libraries as mpi

# Every count catches something of its own: 2 and 3 the edge cases, 5 odd, 8 a power of two, 16 several switches of the
# testbed, 64 two ranks a node over all its groups. RMA's locks at 64 ranks are left to the contended program.
_SMALL = (2, 3, 5, 8)
_FEW = (2, 3, 8)  # all that are quick for every program, and 16 for those on which the others build
_QUICK = {"p2p.c": (*_FEW, 16), "collectives.c": (*_FEW, 16), "groups.c": (5,)}
_COUNTS = {
    "p2p.c": (*_SMALL, 16, 64),
    "matching.c": (*_SMALL, 16, 64),
    "collectives.c": (*_SMALL, 13, 16, 64),
    "collectives_v.c": (*_SMALL, 13, 16, 64),
    "reductions.c": (*_SMALL, 13, 16, 64),
    "communicators.c": (*_SMALL, 16, 64),
    "groups.c": (5,),
    "datatypes.c": (*_SMALL, 16),
    "rma.c": (*_SMALL, 16),
    "rma_contended.c": (*_SMALL, 16, 64),
}


def _cases() -> list[object]:
    return [
        pytest.param(name, ranks, marks=[] if ranks in _QUICK.get(name, _FEW) else [pytest.mark.slow])
        for name, counts in _COUNTS.items()
        for ranks in counts
    ]


@pytest.mark.parametrize(("name", "ranks"), _cases())
def test_program_finds_every_value_right(name: str, ranks: int, dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly(
        "run", "--machine", "testbed", "-n", str(ranks), "--compute", "none", "--", programs.check(name), limit_s=120
    ).succeeded()
    assert f"ok {Path(name).stem}\n" in run.stdout
    assert run.results["ranks"] == ranks
    assert len(run.results["ranks_detail"]) == ranks
    assert run.results["messages"] > 0


@pytest.mark.parametrize("ranks", [2, 4])
def test_threads_of_a_rank_exchange_at_once(ranks: int, dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly("run", "--machine", "testbed", "-n", str(ranks), "--", programs.check("threads.c")).succeeded()
    assert "ok threads\n" in run.stdout


def test_a_node_may_hold_many_ranks(dryfly: Dryfly, programs: Programs) -> None:
    program = programs.check("collectives.c")
    run = dryfly("run", "--machine", "aurora", "-N", "2", "--ppn", "8", "--compute", "none", "--", program).succeeded()
    assert "ok collectives\n" in run.stdout
    assert run.results["nodes"] == 2


@pytest.mark.parametrize("placement", ["packed", "spread", "random"])
def test_every_placement_gives_the_same_values(placement: str, dryfly: Dryfly, programs: Programs) -> None:
    program = programs.check("reductions.c")
    run = dryfly(
        "run", "--machine", "aurora", "-n", "8", "--place", placement, "--compute", "none", "--", program
    ).succeeded()
    assert "ok reductions\n" in run.stdout


def test_c_source_is_compiled_and_run(dryfly: Dryfly) -> None:
    run = dryfly("run", "--machine", "testbed", "-n", "3", "--", CHECK / "communicators.c").succeeded()
    assert "ok communicators\n" in run.stdout


def test_arguments_and_standard_error_reach_the_program(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly("run", "--machine", "testbed", "-n", "2", "--", programs.micro("pingpong.c"), "count=many")
    assert run.exit_status == 2
    assert "count=many: a whole number from 1 to 2^30 is needed" in run.stderr


def test_results_say_what_was_run(dryfly: Dryfly) -> None:
    run = dryfly(
        "run", "--machine", "testbed", "-N", "2", "--compute", "none", "--", MICRO / "pingpong.c", "count=1000"
    ).succeeded()
    keys = "machine nodes ranks virtual_time_s wall_time_s messages bytes packet_hops network_timeouts seed fingerprint"
    for key in [*keys.split(), "mpi", "profile", "ranks_detail"]:
        assert key in run.results, f"--json lacks {key}"
    assert run.results["nodes"] == run.results["ranks"] == 2
    # 1,000 round trips and 10 to warm up are 2 x 1,010 messages of 8 B; the barriers and the reduction add some.
    assert run.results["messages"] >= 2020
    assert run.results["bytes"] >= 2020 * 8
    assert run.results["network_timeouts"] == 0
    assert run.results["virtual_time_s"] > 0


def test_a_rank_may_fork_and_its_children_live_in_real_time(dryfly: Dryfly) -> None:
    run = dryfly("run", "--machine", "testbed", "-n", "3", "--compute", "none", "--", CHECK / "forks.py").succeeded()
    assert "ok forks\n" in run.stdout


# Open MPI's threads with --on-node shared are left out: docs/guide/mpi-releases.md, Progress threads.
@pytest.mark.parametrize(("family", "on_node"), [("mpich", "provider"), ("mpich", "shared"), ("openmpi", "provider")])
def test_threads_that_all_wait_at_once_each_go_on(family: str, on_node: str, dryfly: Dryfly, tmp_path: Path) -> None:
    built = Programs(tmp_path, mpi.select(family))
    job = ("--mpi", family, "-N", "2", "--ppn", "2", "--on-node", on_node, "--compute", "none", "--timeout", "100")
    assert dryfly("run", *job, "--", built(CHECK / "threads_rma.c")).succeeded().stdout == "ok\n"


# MPICH asks a NIC what a probe finds without giving its lock up: each waited a second for threads that wait for that.
# Tests went on by 0.2 us each beside a thread that sleeps for seconds.
@pytest.mark.parametrize("family", ["mpich", "openmpi"])
@pytest.mark.parametrize("program", ["threads_probe", "threads_test"])
def test_threads_that_probe_or_test_get_on(program: str, family: str, dryfly: Dryfly) -> None:
    job = ("--mpi", family, "-N", "2", "--compute", "none", "--timeout", "20")
    run = dryfly("run", "--machine", "testbed", *job, "--", CHECK / f"{program}.c").succeeded()
    assert f"ok {program}\n" in run.stdout


# Computing of other threads took no time at all.
@pytest.mark.parametrize("family", ["mpich", "openmpi"])
@pytest.mark.parametrize(
    ("way", "level"),
    [
        ("join", "funneled"), ("join", "multiple"), ("condition", "funneled"), ("semaphore", "multiple"),
        ("barrier", "funneled"), ("calls", "multiple"), ("clock", "funneled"), ("clock", "multiple"),
        ("beside", "funneled"), ("beside", "multiple"), ("turns", "funneled"), ("turns", "multiple"),
    ],
)  # fmt: skip
def test_what_another_thread_computes_takes_its_time(way: str, level: str, family: str, dryfly: Dryfly) -> None:
    job = ("--mpi", family, "-N", "2", "--compute", "measured", "--timeout", "50")
    run = dryfly("run", "--machine", "testbed", *job, "--", CHECK / "workers.c", way, level).succeeded()
    assert "ok workers\n" in run.stdout


# The rank's clock ran ahead with the main thread, by up to milliseconds a message; a loop of long sleeps never ended.
@pytest.mark.parametrize("family", ["mpich", "openmpi"])
@pytest.mark.parametrize(
    ("way", "level", "on_node", "compute"),
    [
        ("short_sleeps", "multiple", "provider", "none"),
        ("long_sleeps", "multiple", "shared", "none"),
        ("timed_waits", "multiple", "provider", "none"),
        ("readings", "multiple", "shared", "none"),
        ("readings", "serialized", "shared", "none"),  # MPICH: was called a deadlock
        ("computing", "multiple", "provider", "measured"),
        ("tiny_sleeps", "multiple", "provider", "measured"),  # each waited for itself, a second long
        ("cancelled_sleeps", "multiple", "shared", "none"),  # ended with a lock of the preload's
    ],
)
def test_messages_of_one_thread_take_their_time_whatever_the_main_thread_does(
    way: str, level: str, on_node: str, compute: str, family: str, dryfly: Dryfly
) -> None:
    job = ("--mpi", family, "-N", "2", "--ppn", "2", "--on-node", on_node, "--compute", compute, "--timeout", "30")
    run = dryfly("run", "--machine", "testbed", *job, "--", CHECK / "beside.c", way, level).succeeded()
    assert "ok beside\n" in run.stdout

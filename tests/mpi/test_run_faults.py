"""Jobs that go wrong end within 5 s, say which rank, where and why, and leave nothing behind."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
from conftest import Dryfly, Programs, Start
from harness import ROOT

_COMMAND = ("run", "--machine", "testbed", "-N", "4", "--compute", "none", "--")

# (way, rank) -> exit status or None for any but 0, and what standard error must say. Rank R is on node tR.
_FAULTS = [
    ("segfault", 1, 128 + signal.SIGSEGV, r"rank 1 on t1 .*signal 11"),
    ("segfault", 3, 128 + signal.SIGSEGV, r"rank 3 on t3 .*signal 11"),
    ("exit3", 1, 3, r"rank 1 on t1 .*status 3"),
    ("exit0", 2, None, r"rank 2 on t2 .*without calling MPI_Finalize"),
    ("abort", 0, 128 + signal.SIGABRT, r"rank 0 on t0 .*signal 6"),
    ("mpi_abort", 1, 7, r"rank 1 on t1 .*MPI_Abort with code 7"),
    ("kill", 2, 128 + signal.SIGKILL, r"rank 2 on t2 .*signal 9"),
]


@pytest.mark.parametrize(("way", "rank", "status", "says"), _FAULTS)
def test_a_failed_rank_ends_the_job_and_is_named(
    way: str, rank: int, status: int | None, says: str, start: Start, programs: Programs
) -> None:
    run = start(*_COMMAND, programs.check("fault.c"), way, str(rank))
    run.wait_for_line(f"fault {way} begins")
    ended = run.wait(limit_s=5)
    run.require_nothing_left(within_s=0.5)
    assert ended.exit_status == status if status is not None else ended.exit_status != 0
    assert re.search(says, ended.stderr), ended.stderr


# MPICH takes its leave of the process manager as the process exits, which these ways pass by.
@pytest.mark.parametrize("library", ["mpich", "openmpi"])
@pytest.mark.parametrize("way", ["_exit", "quick_exit", "exec", "closed"])
def test_behind_finalize_a_rank_may_leave_as_it_likes(way: str, library: str, dryfly: Dryfly) -> None:
    source = ROOT / "programs" / "check" / "ends.c"
    run = dryfly("run", "--machine", "testbed", "-N", "2", "--mpi", library, "--compute", "none", "--", source, way)
    assert "ok ends\n" in run.succeeded().stdout


def test_a_status_behind_finalize_is_the_run_s(dryfly: Dryfly, programs: Programs) -> None:
    ended = dryfly(*_COMMAND, programs.check("ends.c"), "status3")
    assert ended.exit_status == 3
    assert re.search(r"rank \d on t\d \(pid \d+\) exited with status 3", ended.stderr), ended.stderr


def test_a_rank_that_dies_behind_a_wrapper_script_is_seen(start: Start, programs: Programs, tmp_path: Path) -> None:
    script = tmp_path / "wrapped"
    script.write_text(f'#!/bin/sh\n"{programs.check("fault.c")}" "$@"\nsleep 60\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    run = start(*_COMMAND, script, "segfault", "1")
    run.wait_for_line("fault segfault begins")
    ended = run.wait(limit_s=5)
    run.require_nothing_left(within_s=0.5)
    assert ended.exit_status != 0
    assert re.search(r"rank 1 on t1 .*signal 11", ended.stderr), ended.stderr


def test_a_deadlock_is_reported_at_once_with_every_ranks_last_call(start: Start, programs: Programs) -> None:
    run = start(*_COMMAND, programs.check("fault.c"), "deadlock")
    run.wait_for_line("fault deadlock begins")
    ended = run.wait(limit_s=3)
    run.require_nothing_left(within_s=0.5)
    assert ended.exit_status != 0
    assert "deadlock" in ended.stderr
    for rank in range(4):
        assert re.search(rf"rank {rank} on t{rank}: MPI_Recv", ended.stderr), ended.stderr


# A library that waits in MPI_Probe asks its NIC again and again, so that such a job never came to rest.
@pytest.mark.parametrize("on_node", ["provider", "shared"])
@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_ranks_that_probe_for_what_nobody_sends_are_a_deadlock(library: str, on_node: str, dryfly: Dryfly) -> None:
    options = ("-N", "2", "--ppn", "2", "--mpi", library, "--on-node", on_node, "--compute", "none", "--timeout", "40")
    source = ROOT / "programs" / "check" / "fault.c"
    ended = dryfly("run", "--machine", "testbed", *options, "--", source, "probe")
    assert ended.exit_status == 3, ended.stderr
    assert "deadlock: nothing is in flight and every rank waits" in ended.stderr
    for rank, call in enumerate(("MPI_Probe", "MPI_Recv", "MPI_Probe", "MPI_Recv")):
        assert re.search(rf"rank {rank} on t{rank // 2}: {call}", ended.stderr), ended.stderr


# The other ranks' ways of waiting: with a receive, a probe, and two in which they never stand still.
@pytest.mark.parametrize("way", ["receive", "probe", "iprobe", "test"])
def test_a_large_accumulate_to_oneself_ends_however_the_others_wait(way: str, dryfly: Dryfly) -> None:
    source = ROOT / "programs" / "check" / "own_window.c"
    options = ("-n", "2", "--compute", "none", "--timeout", "40")
    ended = dryfly("run", "--machine", "testbed", *options, "--", source, way).succeeded()
    assert "ok own_window\n" in ended.stdout


# With MPICH it took 5 ms, for the library was left to itself as long as it copied; with Open MPI, which takes three
# operations of the NIC, virtual time stood still.
@pytest.mark.parametrize("look", ["get", "fetch"])
@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_what_arrives_does_not_wait_for_looks_into_ones_own_window(library: str, look: str, dryfly: Dryfly) -> None:
    source = ROOT / "programs" / "check" / "own_polls.c"
    options = ("-N", "2", "--mpi", library, "--compute", "none", "--timeout", "40")
    runs = [dryfly("run", "--machine", "testbed", *options, "--", source, look).succeeded() for _ in range(2)]
    assert "ok own_polls\n" in runs[0].stdout
    longest = re.search(r"longest (\S+) us", runs[0].stdout)
    assert longest is not None
    assert float(longest[1]) < 25
    assert runs[0].fingerprint == runs[1].fingerprint


@pytest.mark.slow
def test_a_rank_that_spins_is_named_and_goes_on(dryfly: Dryfly, programs: Programs) -> None:
    ended = dryfly(*_COMMAND, programs.check("fault.c"), "spin", "2").succeeded()  # spins for 12 s
    assert "ok fault\n" in ended.stdout
    assert re.search(r"rank 2 on t2 .*without entering MPI", ended.stderr), ended.stderr


# The others are in MPI_Finalize, and no message is on its way.
@pytest.mark.slow
@pytest.mark.parametrize("way", ["iprobe", "test"])
@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_a_rank_that_looks_for_what_cannot_come_is_named_and_goes_on(library: str, way: str, dryfly: Dryfly) -> None:
    source = ROOT / "programs" / "check" / "fault.c"
    ended = dryfly("run", "-n", "3", "--mpi", library, "--compute", "none", "--", source, way, "2").succeeded()
    call = {"iprobe": "MPI_Iprobe", "test": "MPI_Test"}[way]
    assert re.search(rf"warning: rank 2 on t2 \(pid \d+\) has called {call} for 10 s, and finds", ended.stderr)
    assert [row["name"] for row in ended.results["health"]].count("looking") == 1


def test_a_run_over_its_time_limit_is_ended(start: Start, programs: Programs) -> None:
    run = start("run", "--machine", "testbed", "-N", "4", "--timeout", "2", "--", programs.check("fault.c"), "talk")
    ended = run.wait(limit_s=2 + 5)
    run.require_nothing_left(within_s=0.5)
    assert ended.exit_status == 124
    assert "--timeout 2" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_with_all_its_processes(
    number: signal.Signals, start: Start, programs: Programs
) -> None:
    run = start(*_COMMAND, programs.check("fault.c"), "talk")
    run.wait_for_line("fault talk begins")
    os.kill(run.process.pid, number)
    ended = run.wait(limit_s=5)
    run.require_nothing_left(within_s=0.5)
    assert ended.exit_status == 128 + number
    assert f"signal {number}" in ended.stderr


@pytest.mark.parametrize("moment", [0.05, 0.15, 0.3])
def test_an_interrupt_during_the_start_leaves_nothing(moment: float, start: Start, programs: Programs) -> None:
    run = start("run", "--machine", "testbed", "-n", "32", "--", programs.check("fault.c"), "talk")
    time.sleep(moment)
    os.kill(run.process.pid, signal.SIGINT)
    ended = run.wait(limit_s=8)
    run.require_nothing_left(within_s=0.5)
    assert ended.exit_status != 0


@pytest.mark.parametrize(
    ("victim", "says"),
    [
        ("dryfly-conductor", r"dryfly-conductor.*signal 9"),
        ("dryfly-launch", r"dryfly-launch.*signal 9"),
        ("fault", r"rank \d on t\d .*signal 9"),
    ],
)
def test_a_run_that_loses_a_process_ends_and_says_which(
    victim: str, says: str, start: Start, programs: Programs
) -> None:
    run = start(*_COMMAND, programs.check("fault.c"), "talk")
    run.wait_for_line("fault talk begins")
    os.kill(run.pid_of(victim), signal.SIGKILL)
    ended = run.wait(limit_s=5)
    run.require_nothing_left(within_s=0.5)
    assert ended.exit_status != 0
    assert re.search(says, ended.stderr), ended.stderr


def test_a_launcher_that_is_asked_to_end_says_so(start: Start, programs: Programs) -> None:
    run = start(*_COMMAND, programs.check("fault.c"), "talk")
    run.wait_for_line("fault talk begins")
    os.kill(run.pid_of("dryfly-launch"), signal.SIGTERM)
    ended = run.wait(limit_s=5)
    run.require_nothing_left(within_s=0.5)
    assert ended.exit_status == 128 + signal.SIGTERM
    assert "dryfly-launch was asked to end by signal 15" in ended.stderr


_STOMPS = """
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
// A rank that reads what is written over may crash before it is noticed: it stays where it is.
static void stay(int number) {
  (void)number;
  for (;;) syscall(SYS_pause);
}
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char line[512];
  unsigned long begin = 0, end = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (begin == 0 && fgets(line, sizeof line, maps))
    if (strstr(line, "memfd:dryfly-run")) sscanf(line, "%lx-%lx", &begin, &end);
  MPI_Barrier(MPI_COMM_WORLD);
  signal(SIGSEGV, stay);
  signal(SIGBUS, stay);
  // Real time: only the simulator is to read what is written over.
  struct timespec until_all_have_left = {0, 300000000};
  while (rank != 1) syscall(SYS_pause);
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &until_all_have_left, NULL);
  for (unsigned long at = begin + 8192; at < begin + (1 << 20) && at < end; at += 8) *(unsigned long*)at = 0x4141;
  MPI_Request request;
  MPI_Isend(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
  for (;;) syscall(SYS_pause);
}
"""


def test_a_rank_that_writes_over_the_simulators_memory_is_named(start: Start, tmp_path: Path) -> None:
    source = tmp_path / "stomps.c"
    source.write_text(_STOMPS)
    run = start("run", "-N", "4", "--compute", "none", "--", source)
    ended = run.wait(limit_s=20)
    run.require_nothing_left(within_s=0.5)
    assert ended.exit_status == 70
    assert re.search(r"rank \d on t\d .*has damaged the memory it shares with the simulator", ended.stderr), (
        ended.stderr
    )


def test_a_run_whose_dryfly_is_killed_goes_with_it(start: Start, programs: Programs) -> None:
    run = start(*_COMMAND, programs.check("fault.c"), "talk")
    run.wait_for_line("fault talk begins")
    assert {"dryfly-conductor", "dryfly-launch", "fault"} <= {process.name for process in run.processes()}
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    run.require_nothing_left(within_s=5)


def test_a_full_disk_is_named(dryfly: Dryfly, programs: Programs) -> None:
    ended = dryfly("run", "--json", "/dev/full", "--machine", "testbed", "--", programs.micro("pingpong.c"), "count=1")
    assert ended.exit_status != 0
    assert re.search(r"/dev/full.*No space left", ended.stderr), ended.stderr


# MPICH gives its segments names, and removes them in MPI_Finalize at the earliest.
def test_a_killed_job_leaves_no_shared_memory_of_mpich(start: Start, programs: Programs) -> None:
    run = start(*_COMMAND, programs.check("fault.c"), "talk")
    run.wait_for_line("fault talk begins")
    mapped = [Path(f"/proc/{process.pid}/maps").read_text() for process in run.processes() if process.name == "fault"]
    assert len(mapped) == 4
    assert not [maps for maps in mapped if "/dev/shm/" in maps]
    assert all("/memfd:mpich_shm_" in maps for maps in mapped)
    os.kill(run.process.pid, signal.SIGKILL)
    run.require_nothing_left()


_LEAVES = """
#include <fcntl.h>
#include <mpi.h>
#include <stddef.h>
int main(void) {
  MPI_Init(NULL, NULL);
  creat("/dev/shm/left-by-a-rank", 0600);
  MPI_Finalize();
}
"""


def test_shared_memory_of_other_programs_is_not_taken_for_the_runs_own(
    start: Start, programs: Programs, tmp_path: Path
) -> None:
    probe = ["unshare", "--mount", "true"]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user has no mount namespaces")
    command = ("run", "-n", "2", "--compute", "none", "--")
    foreign = Path("/dev/shm") / f"foreign-{os.getpid()}"
    run = start(*command, programs.micro("pingpong.c"), "count=10")
    foreign.touch()
    try:
        run.wait(limit_s=60).succeeded()
        run.require_nothing_left()
    finally:
        foreign.unlink()
    source = tmp_path / "leaves.c"
    source.write_text(_LEAVES, encoding="utf-8")
    run = start(*command, source)
    run.wait(limit_s=60).succeeded()
    with pytest.raises(AssertionError, match="left-by-a-rank"):
        run.require_nothing_left()

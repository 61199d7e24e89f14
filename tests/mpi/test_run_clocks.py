"""All clocks that a program reads are virtual, agree, and are moved by every way to wait; wall time is not spent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import CHECK

# (program, its waits: each takes 10 virtual seconds on every rank at once)
_PROGRAMS = [("clocks.c", 9), ("clocks_cpp.cpp", 4), ("clocks_py.py", 5)]


@pytest.mark.parametrize(("name", "waits"), _PROGRAMS)
def test_clocks_agree_and_sleeping_costs_no_wall_time(
    name: str, waits: int, dryfly: Dryfly, programs: Programs
) -> None:
    program = CHECK / name if name.endswith(".py") else programs.check(name)
    run = dryfly("run", "--machine", "testbed", "-n", "4", "--", program, "10", limit_s=60).succeeded()
    assert f"ok {name.partition('.')[0]}\n" in run.stdout
    assert run.results["virtual_time_s"] >= 10 * waits
    assert run.wall_time_s < 10  # natively it would be over 40


# Before, the thread that waited took virtual time along as fast as this computer let it: 13.7 s here with MPICH.
@pytest.mark.parametrize("who", [(), ("another",)])
@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_a_thread_that_waits_does_not_outrun_one_that_computes(
    library: str, who: tuple[str, ...], dryfly: Dryfly
) -> None:
    options = ("--machine", "testbed", "-n", "2", "--mpi", library, "--compute", "measured")
    run = dryfly("run", *options, "--", CHECK / "listener.c", *who).succeeded()
    least = 0.1 if who else 0.2  # of a thread that is not the main one it counts from when the other began to wait
    assert least <= run.results["virtual_time_s"] < 0.25


_LOOPS = """
#include <mpi.h>
int main(int argc, char** argv) {
  int reads = argc > 1, sum = 0, one = 1, going = 1, rounds = 0;
  MPI_Init(&argc, &argv);
  const double end = MPI_Wtime() + 0.1;
  while (going) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ++rounds;
    going = reads ? MPI_Wtime() < end : rounds < 1000;
    MPI_Bcast(&going, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
"""


def test_the_summary_says_when_most_of_a_run_was_a_loop_that_reads_the_clock(dryfly: Dryfly, tmp_path: Path) -> None:
    source = tmp_path / "loops.c"
    source.write_text(_LOOPS)
    job = ("run", "--machine", "testbed", "-N", "2", "--compute", "none", "--", source)
    by_clock, counted = dryfly(*job, "by the clock").succeeded(), dryfly(*job).succeeded()
    assert [row["name"] for row in by_clock.results["health"]] == ["clock_loop"]
    assert re.search(r"note \(clock_loop\): rank \d spent (9\d|100)% of the run in loops that read", by_clock.stderr)
    assert counted.results["health"] == []


# The kernel's file shows real time.
_LASTS_13_REAL_SECONDS = """
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, going = 1, uptime = open("/proc/uptime", O_RDONLY);
  double first = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  while (going) {
    char text[64] = "";
    if (pread(uptime, text, sizeof text - 1, 0) <= 0) return 1;
    if (first == 0) first = atof(text);
    if (rank == 0) going = atof(text) - first < 13;
    MPI_Bcast(&going, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.slow
def test_a_long_run_says_how_far_it_is(dryfly: Dryfly, tmp_path: Path) -> None:
    source = tmp_path / "lasts.c"
    source.write_text(_LASTS_13_REAL_SECONDS)
    command = ("run", "--machine", "testbed", "-n", "2", "--quiet", "--compute", "none")
    ended = dryfly(*command, "--progress", "--", source, limit_s=60).succeeded()
    line = r"dryfly: [0-9.]+ [mun]?s of virtual time in 1[0-2] s, now [0-9.]+ [mun]?s per second\n"
    assert re.fullmatch(line, ended.stderr), ended.stderr

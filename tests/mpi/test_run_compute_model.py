"""`--compute model`: announced work takes the machine's time, the same in every run; nothing else takes any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Dryfly, Programs

from dryfly.apps import solver
from dryfly.mpi import libraries as mpi

WORK = Path(__file__).resolve().parents[2] / "include" / "dryfly" / "work.h"
ANNOUNCING = """
#include <mpi.h>
#include <stdio.h>
#include "{header}"

int main(int argc, char** argv) {{
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  volatile double sum = 0;
  const double begin = MPI_Wtime();
  dryfly_work_announce(DRYFLY_GEMM, DRYFLY_FP64, 1000, 1000, 1000);
  for (int i = 0; i < 3000000; ++i) sum += i;
  const double end = MPI_Wtime();
  if (rank == 0) printf("mode %d took %.9f s\\n", dryfly_work_mode_now(), end - begin);
  MPI_Finalize();
  return 0;
}}
"""


ON_PROCESSOR = """
#include <mpi.h>
#include <stdio.h>
#include "{header}"

int main(int argc, char** argv) {{
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double begin = MPI_Wtime();
  dryfly_work_announce(DRYFLY_GEMM, DRYFLY_FP64, 1000, 1000, 1000);
  const double middle = MPI_Wtime();
  dryfly_work_announce_on_processor(DRYFLY_GEMM, DRYFLY_FP64, 1000, 1000, 1000);
  if (rank == 0) printf("%.9f %.9f", middle - begin, MPI_Wtime() - middle);
  MPI_Finalize();
  return 0;
}}
"""


@pytest.fixture(scope="module", autouse=True)
def solvers(library: mpi.MpiLibrary) -> None:
    """Compiled before the first run is timed."""
    for name in solver.NAMES:
        solver.build(name, mpi=library)


def solved(dryfly: Dryfly, file: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, the solver's own result and its output, of a run on two nodes of Aurora."""
    ended = dryfly("run", "--machine", "aurora", "-N", "2", "--ppn", "3", "--compute", "model", *arguments,
                   "--progress", "none", "--json", str(file), limit_s=240.0)  # fmt: skip
    return ended.exit_status, json.loads(file.read_text(encoding="utf-8"))["runs"][0], ended.stdout


@pytest.mark.parametrize(
    "command", [("dryfly-hpl", "-N", "900", "--grid", "2x3"), ("dryfly-mxp", "-N", "900", "--grid", "2x3")]
)
def test_a_solver_passes_in_times_that_repeat_and_without_numerics_says_that_nothing_is_solved(
    dryfly: Dryfly, tmp_path: Path, command: tuple[str, ...]
) -> None:
    status, first, output = solved(dryfly, tmp_path / "1", "--", *command)
    assert status == 0
    assert "...... PASSED" in output
    assert "times: of dryfly's model of the machine" in output
    _, second, _ = solved(dryfly, tmp_path / "2", "--", *command)
    assert (first["time_s"], first["steps_max_s"]) == (second["time_s"], second["steps_max_s"])
    # The processors' rate is taken up a thousand times: what is announced must be what took the time.
    slow = ("--set", "compute.gpu.latency=1 ms", "--set", "compute.cpu.fp64=1 GF/s", "--set", "compute.cpu.fp32=1 GF/s")
    _, slowed, _ = solved(dryfly, tmp_path / "3", *slow, "--", *command)
    assert slowed["time_s"] > 2 * first["time_s"]
    status, skipped, output = solved(dryfly, tmp_path / "4", "--skip-numerics", "--", *command)
    assert status == solver.NOT_SOLVED
    assert "NOT SOLVED" in output
    assert "PASSED" not in output
    assert (skipped["solved"], skipped["passed"], skipped["residual"]) == (False, False, None)
    # The same messages and work but for the rows that pivots exchange and the number of corrections.
    assert skipped["time_s"] == pytest.approx(first["time_s"], rel=0.15)


def test_announced_work_takes_the_roof_line_and_a_program_that_announces_nothing_is_told_so(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    source = tmp_path / "announcing.c"
    source.write_text(ANNOUNCING.format(header=WORK), encoding="utf-8")
    program = programs(source)
    rate = ("--set", "compute.cpu.fp64=1 TF/s", "--set", "compute.cpu.memory_rate=1 TB/s")
    model = ("--compute", "model", *rate, "--set", "host.clock_read=1 ns", "--ppn", "4", "-N", "1")
    # 2 x 1000^3 operations by a quarter of two processors of 1 TF/s: 4 ms, and a reading of the clock.
    assert dryfly("run", *model, "--", program).succeeded().stdout == "mode 1 took 0.004000001 s\n"
    assert dryfly("run", *model, "--skip-numerics", "--", program).succeeded().stdout.startswith("mode 2 took 0.004")
    assert (
        dryfly("run", "--compute", "none", "-n", "4", "--", program)
        .succeeded()
        .stdout.startswith("mode 0 took 0.00000")
    )
    ended = dryfly("run", *model, "--", programs.micro("pingpong.c")).succeeded()
    assert [row["name"] for row in ended.results["health"]] == ["nothing_announced"]
    assert ended.results["repeatable"]


def test_work_of_the_processors_takes_their_rate_where_gpus_are_faster(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    source = tmp_path / "on_processor.c"
    source.write_text(ON_PROCESSOR.format(header=WORK), encoding="utf-8")
    command = ("run", "--machine", "perlmutter-gpu", "--compute", "model", "--ppn", "4", "-N", "1")
    times = dryfly(*command, "--", programs(source)).succeeded().stdout.split()
    # 2 x 1000^3 operations by one of four GPUs of 16.57 TF/s, with its latency; by a quarter of 2.51 TF/s.
    assert float(times[0]) == pytest.approx(2e9 / 16.57e12 + 5e-6, rel=1e-3)
    assert float(times[1]) == pytest.approx(4 * 2e9 / 2.51e12, rel=1e-3)

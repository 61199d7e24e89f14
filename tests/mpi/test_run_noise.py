"""Runs with noise: they repeat exactly, and lose what closed forms say."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Dryfly
from harness import MICRO

# Works for a fixed number of clock readings, each of which costs host.clock_read, and then meets the others.
_PROGRAM = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double mine = 1, all = 0, sum = 0;
  for (int round = 0; round < atoi(argv[1]); ++round) {
    for (int i = 0; i < atoi(argv[2]); ++i) sum += MPI_Wtime();
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return sum < 0;
}
"""
_READING_S = 50e-9
_RUN = ("--compute", "none", "--set", "host.clock_read=50 ns")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "rounds.c"
    file.write_text(_PROGRAM)
    return file


def test_a_run_with_noise_repeats_and_another_seed_is_another_run(dryfly: Dryfly, program: Path) -> None:
    def once(*options: str) -> tuple[str, float, dict[str, object]]:
        run = dryfly("run", "-N", "4", "--ppn", "2", *_RUN, *options, "--", program, "20", "2000").succeeded()
        return run.fingerprint, run.results["virtual_time_s"], run.results["noise"]

    first = once("--noise", "machine")
    assert once("--noise", "machine") == first
    assert first[2]["detours"]
    assert once("--noise", "machine", "--seed", "2")[:2] != first[:2]
    silent = once()
    assert silent[1] < first[1]
    assert silent[2] == {"of": "none", "detours": 0, "interrupted_s": 0.0, "delayed_s": 0.0}


def test_all_wait_for_the_one_node_that_has_a_tenth_of_its_time_taken(
    dryfly: Dryfly, program: Path, tmp_path: Path
) -> None:
    noise = tmp_path / "noise.toml"
    noise.write_text('[[detour]]\nevery = "1 ms"\nlength = "100 us"\nnode = "t1"\n')
    times = {}
    for given in ("none", str(noise)):
        command = ("run", "-N", "2", *_RUN, "--noise", given, "--", program, "5", "200000")
        run = dryfly(*command).succeeded()
        times[given] = run.results["virtual_time_s"]
        taken = [row["interrupted_s"] + row["delayed_s"] for row in run.results["ranks_detail"]]
    # Each round is 10 ms of work, of which every millisecond of the node's leaves 900 us: W / 0.9, give or take the
    # detour that the run's end may lie before or behind.
    work_s = 5 * 200_000 * _READING_S
    assert times[str(noise)] - times["none"] == pytest.approx(work_s / 9, abs=110e-6)
    assert taken[0] == 0
    assert taken[1] == pytest.approx(work_s / 9, abs=110e-6)


def test_an_allreduce_of_many_ranks_loses_more_than_one_ranks_share(
    dryfly: Dryfly, program: Path, tmp_path: Path
) -> None:
    noise = tmp_path / "noise.toml"
    noise.write_text('[[detour]]\nevery = "2 ms"\nlength = "50 us"\ninstants = "random"\n')
    runs = {
        given: dryfly("run", "-N", "16", *_RUN, "--noise", given, "--", program, "60", "2000").succeeded().results
        for given in ("none", str(noise))
    }
    lost = runs[str(noise)]["virtual_time_s"] - runs["none"]["virtual_time_s"]
    own = [row["interrupted_s"] + row["delayed_s"] for row in runs[str(noise)]["ranks_detail"]]
    # A round is some 100 us, in which each of 16 ranks has a detour with a chance of 5 %, and any of them with one of
    # 1 - 0.95^16 = 56 %: 11 times what a rank meets itself. Half of that is asked for.
    assert lost > 5 * sum(own) / len(own)
    assert lost > max(own)


def test_with_shared_memory_noise_repeats_too(dryfly: Dryfly, program: Path) -> None:
    command = ("run", "-N", "2", "--ppn", "4", "--on-node", "shared", *_RUN, "--noise", "machine", "--", program)
    first, second = (dryfly(*command, "10", "2000").succeeded() for _ in range(2))
    assert first.fingerprint == second.fingerprint
    assert first.results["virtual_time_s"] == second.results["virtual_time_s"]


def test_several_seeds_give_medians_and_intervals(dryfly: Dryfly) -> None:
    command = ("run", "-N", "2", "--compute", "none", "--noise", "machine", "--seeds", "6", "--")
    run = dryfly(*command, MICRO / "pingpong.c", "count=200").succeeded()
    assert run.results["seeds"] == [1, 2, 3, 4, 5, 6]
    assert run.results["confidence"] == 0.95  # of six values all but 2/64 have the median between them
    time = run.results["figures"]["virtual time"]
    values = [each["result"]["virtual_time_s"] for each in run.results["runs"]]
    assert time["values"] == values
    assert time["interval"] == [min(values), max(values)]
    assert len(set(values)) > 1
    assert run.results["without_noise"]["result"]["noise"]["of"] == "none"
    assert "6 seeds, 1 to 6" in run.stderr


def test_what_cannot_be_used_is_said_before_the_start(dryfly: Dryfly, tmp_path: Path) -> None:
    for words, message in (
        (("--noise", "nothing"), "--noise nothing cannot be read"),
        (("--seeds", "1"), "--seeds 1: accepted is 2 to 10000"),
        (("--seeds", "2", "--trace", str(tmp_path / "t")), "--trace is of one run, and --seeds 2 makes several"),
    ):
        run = dryfly("run", *words, "--", MICRO / "pingpong.c")
        assert run.exit_status == 2, words
        assert message in run.stderr

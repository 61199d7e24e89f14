"""The fingerprint: the same command gives the same one, whatever else the box does; a nanosecond on a used link does
not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly, Programs, Start
from harness import Ended

_COLLECTIVES = ("run", "--machine", "testbed", "-n", "16", "--compute", "none", "--")
_PINGPONG = ("run", "--machine", "testbed", "-N", "4", "--compute", "none")


def _collectives(dryfly: Dryfly, programs: Programs) -> Ended:
    return dryfly(*_COLLECTIVES, programs.check("collectives.c"), limit_s=180).succeeded()


@pytest.mark.parametrize("name", ["collectives.c", "matching.c", "rma_contended.c"])
def test_repeated_runs_are_equal(name: str, dryfly: Dryfly, programs: Programs) -> None:
    command = ("run", "--machine", "testbed", "-n", "12", "--compute", "none", "--", programs.check(name))
    runs = [dryfly(*command, limit_s=120).succeeded() for _ in range(3)]
    assert len({run.fingerprint for run in runs}) == 1
    assert len({run.results["virtual_time_s"] for run in runs}) == 1


# Each has something under way when the last rank comes to its end: credits on the links, or peers in shared memory.
@pytest.mark.parametrize(
    ("nodes", "ppn", "on_node", "program"),
    [(16, 1, "provider", ("alltoall.c", "bytes=65536")), (2, 2, "shared", ("p2p.c",))],
)
def test_repeated_runs_record_the_same_to_the_byte(
    nodes: int,
    ppn: int,
    on_node: str,
    program: tuple[str, ...],
    dryfly: Dryfly,
    programs: Programs,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    source, *arguments = program
    path = programs.micro(source) if arguments else programs.check(source)
    recorded = []
    for number in range(4):
        if number == 2:
            request.getfixturevalue("hogs")
        folder = tmp_path / str(number)
        placement = ("-N", str(nodes), "--ppn", str(ppn), "--on-node", on_node)
        command = ("run", "--machine", "testbed", *placement, "--compute", "none", "--record", folder)
        dryfly(*command, "--", path, *arguments, limit_s=120).succeeded()
        tables = {table.name: table.read_bytes() for table in folder.glob("*.parquet")}
        del tables["rank_waits.parquet"]  # docs/guide/recording.md says why
        recorded.append(tables)
    assert {"links.parquet", "calls.parquet"} <= recorded[0].keys()
    for tables in recorded[1:]:
        assert tables.keys() == recorded[0].keys()
        assert [name for name, table in tables.items() if table != recorded[0][name]] == []


def test_other_load_on_the_box_changes_nothing(
    dryfly: Dryfly, programs: Programs, request: pytest.FixtureRequest
) -> None:
    alone = _collectives(dryfly, programs)
    request.getfixturevalue("hogs")
    beside_hogs = _collectives(dryfly, programs)
    assert beside_hogs.fingerprint == alone.fingerprint
    assert beside_hogs.results["virtual_time_s"] == alone.results["virtual_time_s"]


def test_two_runs_at_once_do_not_disturb_each_other(dryfly: Dryfly, start: Start, programs: Programs) -> None:
    alone = _collectives(dryfly, programs)
    together = [start(*_COLLECTIVES, programs.check("collectives.c")) for _ in range(2)]
    for run in together:
        assert run.wait(limit_s=180).succeeded().fingerprint == alone.fingerprint
        run.require_nothing_left()


# With -N 4 on the testbed ranks 0 and 1 are on nodes n0 and n1 of switch s0, ranks 2 and 3 on n2 and n3 of s1. Between
# ranks 0 and 3 messages pass n0 -> s0 -> s1 -> n3 and back; an empty network takes no detour.
@pytest.mark.parametrize(
    ("link", "used"),
    [("n0>s0", True), ("s0>s1", True), ("s1>s0", True), ("s1>n3", True), ("s12>s13", False), ("n9>s4", False)],
)
def test_a_nanosecond_on_a_link_shows_if_the_link_is_used(
    link: str, used: bool, dryfly: Dryfly, programs: Programs
) -> None:
    program = (programs.micro("pingpong.c"), "count=50")
    plain = dryfly(*_PINGPONG, "--", *program).succeeded()
    slower = dryfly(*_PINGPONG, "--set", f'fabric.extra_flight="{link} 1 ns"', "--", *program).succeeded()
    assert (slower.fingerprint != plain.fingerprint) is used


def test_a_nanosecond_each_way_is_what_a_round_trip_gains(dryfly: Dryfly, programs: Programs) -> None:
    program = (programs.micro("pingpong.c"), "count=1000")
    plain = dryfly(*_PINGPONG, "--", *program).succeeded()
    slower = dryfly(*_PINGPONG, "--set", 'fabric.extra_flight="s0>s1 1 us, s1>s0 1 us"', "--", *program).succeeded()
    gained_s = slower.results["virtual_time_s"] - plain.results["virtual_time_s"]
    # 1,010 round trips gain 2 us each; the few collectives around them gain some us more.
    assert 1010 * 2e-6 <= gained_s < 1010 * 2e-6 + 100e-6


@pytest.mark.slow
def test_a_recorded_measurement_replays_the_same_each_time(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    program = programs.check("reductions.c")
    command = ("run", "--machine", "testbed", "-n", "6")
    recorded = dryfly(*command, "--compute-record", recording, "--", program).succeeded()
    replays = [dryfly(*command, "--compute", f"replay:{recording}", "--", program).succeeded() for _ in range(3)]
    assert len({run.fingerprint for run in replays}) == 1
    none = dryfly(*command, "--compute", "none", "--", program).succeeded()
    assert replays[0].fingerprint != none.fingerprint
    assert replays[0].results["virtual_time_s"] == pytest.approx(recorded.results["virtual_time_s"], rel=0.05)


_POLLING = """
#include <mpi.h>
#include <stdlib.h>
static void compute(void) { for (volatile int i = 0; i < 500000; ++i) {} }
int main(int argc, char** argv) {
  static char data[1 << 18];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < atoi(argv[1]); ++round) {
    if (rank == 0) {
      compute();
      MPI_Send(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    } else {
      MPI_Request request;
      int arrived = 0;
      MPI_Irecv(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
      while (!arrived) MPI_Test(&request, &arrived, MPI_STATUS_IGNORE);
      compute();
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
}
"""


def test_a_recording_fits_however_often_the_program_polls(dryfly: Dryfly, tmp_path: Path) -> None:
    rounds, recording, source = 10, tmp_path / "recording", tmp_path / "polling.c"
    source.write_text(_POLLING)
    command = ("run", "--machine", "testbed", "-n", "2", "--ppn", "1")
    dryfly(*command, "--compute-record", recording, "--", source, str(rounds)).succeeded()
    replayed = (*command, "--compute", f"replay:{recording}")

    def polls(run: Ended) -> int:
        return int(next(row["count"] for row in run.results["profile"] if row["call"] == "MPI_Test"))

    plain, slower = (
        dryfly(*replayed, "--set", f"fabric.link.rate={rate} Gb/s", "--", source, str(rounds)).succeeded()
        for rate in (200, 25)
    )
    assert polls(slower) != polls(plain)
    assert not plain.results["health"]
    assert not slower.results["health"]
    assert slower.results["time"]["mean"]["computing_s"] == plain.results["time"]["mean"]["computing_s"]
    # A round is the two ranks' computing, one behind the other, and a message of 256 KiB, 11 and 84 us.
    more_s = slower.results["virtual_time_s"] - plain.results["virtual_time_s"]
    assert more_s == pytest.approx(rounds * 73e-6, rel=0.2)
    fewer = dryfly(*replayed, "--", source, str(rounds - 1)).succeeded()
    assert [row["name"] for row in fewer.results["health"]] == ["replay_mismatch"]


def test_memory_lies_at_the_same_addresses_in_each_rank_and_each_run(dryfly: Dryfly, tmp_path: Path) -> None:
    if subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this container does not let a process switch the kernel's address randomisation off")
    source = tmp_path / "addresses.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "int main(int argc, char** argv) {\n"
        "  MPI_Init(&argc, &argv);\n"
        '  printf("at %p %p %p\\n", (void*)main, malloc(100), malloc(1 << 20));\n'
        "  MPI_Finalize();\n}\n"
    )
    command = ("run", "--machine", "testbed", "-n", "3", "--compute", "none", "--", source)
    runs = [dryfly(*command).succeeded() for _ in range(2)]
    lines = [line for run in runs for line in run.stdout.splitlines() if line.startswith("at ")]
    assert len(lines) == 6
    assert len({line.split()[1] for line in lines}) == 1
    assert len({line.split()[3] for line in lines}) == 1

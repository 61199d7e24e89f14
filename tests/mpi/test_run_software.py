"""The MPI library's own code: counted by single steps, and charged in runs."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Dryfly, Start
from harness import CHECK, MICRO, ROOT

from dryfly.base.paths import COUNTER, cache_folder, native
from dryfly.case.case import Case
from dryfly.mpi import software
from dryfly.mpi.libraries import select
from dryfly.result import tables
from dryfly.study.trial import Trial

_PINGPONG = ("--machine", "lumi-g", "-N", "2", "--compute", "none")
_CHARGED = (*_PINGPONG, "--software", "measured")
_INSTRUCTION_S = 0.157e-9  # host.instruction of data/hardware/slingshot11.toml


def test_a_latency_is_longer_by_what_the_library_executes(dryfly: Dryfly) -> None:
    program = ("--", MICRO / "pingpong.c", "count=100")
    charged = dryfly("run", *_CHARGED, *program).succeeded()
    assert charged.results["software"]["table"] == "mpich-5.0.2"
    assert 0 < charged.results["software"]["charged_s"] < charged.results["virtual_time_s"] * 2
    assert "in mpich-5.0.2's own code" in charged.stderr
    # A send up to its injection and a receive from its completion on: some 1,000 instructions a message, and
    # the provider's 1,800. An instruction twice as long costs each of 200 messages that much more.
    slower = dryfly("run", *_CHARGED, "--set", "host.instruction=0.314 ns", *program).succeeded()
    more_s = slower.results["virtual_time_s"] - charged.results["virtual_time_s"]
    assert 200 * 2300 * _INSTRUCTION_S < more_s < 200 * 4000 * _INSTRUCTION_S


def test_without_it_calls_cost_what_the_machine_says(dryfly: Dryfly) -> None:
    program = ("--", MICRO / "pingpong.c", "count=10")
    run = dryfly("run", *_PINGPONG, "--software", "none", *program).succeeded()
    spent = run.results["software"]
    assert (spent["table"], spent["charged_s"], spent["instructions"], spent["kinds"]) == ("", 0.0, 0, [])
    assert "own code" not in run.stderr


def test_whoever_waits_for_a_message_pays_for_waking_and_nobody_else(dryfly: Dryfly) -> None:
    def took_s(program: tuple[str | Path, ...], wake: str) -> float:
        command = ("run", *_CHARGED, "--set", f"host.wake={wake}", "--", *program)
        return float(dryfly(*command).succeeded().results["virtual_time_s"])

    pingpong = (MICRO / "pingpong.c", "count=100")
    more_s = took_s(pingpong, "390 ns") - took_s(pingpong, "290 ns")
    assert more_s == pytest.approx(100e-9 * 200, rel=0.15)  # and of the barriers around
    # In a window of 64 messages the receiver is behind all the time.
    windows = (MICRO / "bandwidth.c", "largest=4", "count=10")
    more_s = took_s(windows, "390 ns") - took_s(windows, "290 ns")
    assert more_s < 100e-9 * 3 * 11 * 6


@pytest.mark.parametrize(("mpi", "lookups"), [("mpich", 1), ("openmpi", 3)])
def test_a_library_for_gpus_looks_up_the_buffer_of_each_send_and_each_receive(
    mpi: str, lookups: int, dryfly: Dryfly
) -> None:
    def last(program: str, *options: str) -> float:
        where = ("--quiet", "--machine", "alps", "--mpi", mpi, "-N", "2", "--compute", "none")
        return float(
            dryfly("run", *where, *options, "--", MICRO / program, "largest=8", "count=10")
            .succeeded()
            .stdout.split()[-1]
        )

    free = ("--set", "node.gpu_lookup_host=0 ns")
    # The receiver takes longest.
    more_us = 8 / last("bandwidth.c") - 8 / last("bandwidth.c", *free)
    assert more_us == pytest.approx(0.210 * lookups, rel=0.05)
    # A receive is posted while its message is on the way, and what waits for that one is the next send.
    more_us = last("latency.c") - last("latency.c", *free)
    assert more_us == pytest.approx(0.210 * lookups, abs=0.02)


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_who_tests_in_a_loop_sees_a_message_no_sooner_than_who_waits(mpi: str, dryfly: Dryfly) -> None:
    command = ("run", *_CHARGED, "--mpi", mpi, "--", CHECK / "tested_pingpong.c")
    times = dict(line.split() for line in dryfly(*command).succeeded().stdout.splitlines())
    waited_us = float(times["wait"])
    for call in ("test", "testall", "testany"):
        assert waited_us - 0.02 < float(times[call]) < waited_us + 0.3  # its own code is another
    # Who has looked in vain long before pays nothing for it.
    assert float(times["late"]) == pytest.approx(float(times["late_first"]), abs=0.001)


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_adding_up_takes_time_however_it_is_asked_for(mpi: str, dryfly: Dryfly) -> None:
    command = ("run", *_CHARGED, "-N", "4", "--mpi", mpi, "--", CHECK / "added_up.c")
    lines = [line.split() for line in dryfly(*command).succeeded().stdout.splitlines()]
    more_us = {call: float(sums) - float(free) for call, sums, free in lines}
    # 32 MiB once at 12 GB/s; of 4 MiB three quarters, which a library does in some steps of several of the same kind.
    assert more_us["MPI_Reduce_local"] == pytest.approx(32 * 2**20 / 12e3, rel=0.01)
    for call in more_us:
        assert more_us[call] > 0.2 * 4 * 2**20 / 12e3, call
    assert more_us["MPI_Iallreduce"] == pytest.approx(more_us["MPI_Allreduce"], rel=0.5)


def test_libraries_differ_by_what_they_execute(dryfly: Dryfly) -> None:
    program = ("--", MICRO / "pingpong.c", "count=50")
    times = {
        mpi: dryfly("run", *_CHARGED, "--mpi", mpi, *program).succeeded().results["virtual_time_s"]
        for mpi in ("mpich", "openmpi")
    }
    assert times["mpich"] != times["openmpi"]


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_counting_gives_the_same_numbers_each_time(mpi: str, dryfly: Dryfly, tmp_path: Path) -> None:
    wrapper = select(mpi).wrapper("mpicc")
    assert wrapper is not None
    compiled = tmp_path / "pingpong"
    subprocess.run([wrapper, "-O2", MICRO / "pingpong.c", "-o", compiled], check=True)
    medians = [_counted(dryfly, mpi, compiled, tmp_path / name) for name in ("first", "second")]
    assert medians[0] == medians[1]
    sends = [instructions for (call, start, end), instructions in medians[0].items() if call == "MPI_Send"]
    assert sends
    assert all(20 < instructions < 3000 for instructions in sends)


Kind = tuple[str, int, int]


def _counted(dryfly: Dryfly, mpi: str, program: Path, folder: Path) -> dict[Kind, int]:
    """The most frequent number of instructions of each kind of interval."""
    folder.mkdir()
    environment = {"DRYFLY_SOFTWARE_RECORD": str(folder), "LD_BIND_NOW": "1"}
    dryfly(
        "run", *_PINGPONG, "--mpi", mpi, "--", native(COUNTER), program, "count=5",
        environment=environment, limit_s=300,
    ).succeeded()  # fmt: skip
    seen: dict[Kind, list[int]] = {}
    for file in folder.glob("intervals-*.bin"):
        head, _, intervals = file.read_bytes().partition(b"\n\n")
        names = head.decode().split()
        for call, start, end, executed, _, _, _ in struct.iter_unpack("=HBBIQII", intervals):
            seen.setdefault((names[call], start, end), []).append(executed)
    return {kind: max(set(values), key=values.count) for kind, values in seen.items() if len(values) > 4}


@pytest.mark.parametrize("item", ["host.instruction=1 ns", "host.provider.send=200"])
def test_a_kept_result_is_of_one_cost_of_the_software(item: str) -> None:
    def key(*sets: str, software: str) -> str:
        return Trial(case=Case(program=("true",), nodes=2, mpi="mpich", software=software, sets=sets)).key()

    assert key(item, software="measured") != key(software="measured")
    assert key(item, software="none") == key(software="none")


def test_runs_that_are_charged_repeat_to_the_picosecond(dryfly: Dryfly, request: pytest.FixtureRequest) -> None:
    program = ("--", CHECK / "collectives.c")
    where = ("--machine", "testbed", "-N", "5", "--compute", "none", "--software", "measured")
    runs = [dryfly("run", *where, *program, limit_s=180).succeeded()]
    request.getfixturevalue("hogs")
    runs += [dryfly("run", *where, *program, limit_s=180).succeeded() for _ in range(2)]
    assert len({run.fingerprint for run in runs}) == 1
    assert len({str(run.results["software"]) for run in runs}) == 1


def test_a_library_without_a_table_is_run_without_and_the_summary_says_so(
    dryfly: Dryfly, older_wheels: dict[str, str]
) -> None:
    dryfly("mpi", "add", "mpich==4.3.2", environment=older_wheels, limit_s=300).succeeded()
    command = ("--", MICRO / "pingpong.c", "count=5")
    refused = dryfly("run", *_CHARGED, *command, environment=older_wheels)
    assert refused.exit_status == 2
    assert 'measured: the instructions of mpich-4.3.2 have not been counted; "dryfly mpi measure' in refused.stderr
    run = dryfly("run", *_PINGPONG, *command, environment=older_wheels).succeeded()
    assert run.results["software"]["table"] == ""
    assert "note (uncounted_software): the instructions of mpich-4.3.2 have not been counted" in run.stderr


def _rows(results: dict[str, Any], call: str) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["from"], row["to"]): row for row in results["software"]["kinds"] if row["call"] == call}


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_what_an_isend_is_charged_is_what_was_counted_for_it(mpi: str, dryfly: Dryfly, tmp_path: Path) -> None:
    """The numbers are the table's; the times are those that the clocks were moved by."""
    record = ("--record", tmp_path / "record")
    run = dryfly("run", *_CHARGED, "--mpi", mpi, *record, "--", MICRO / "message_rate.c", "count=2").succeeded()
    counted = software.read(ROOT / "data" / "mpi" / "software" / f"{select(mpi).name}.toml").calls["MPI_Isend"]
    rows = _rows(run.results, "MPI_Isend")
    # 64 under way, twice and once to warm up, of 1 to 128 B injected (8 sizes) and 256 to 4,096 B eager (5).
    sends = {("call", "inject"): 8, ("call", "send_eager"): 5, ("inject", "call"): 8, ("send_eager", "call"): 5}
    for interval, sizes in sends.items():
        row = rows[interval]
        assert (row["how"], row["intervals"]) == ("counted", 3 * 64 * sizes)
        assert row["instructions"] == row["intervals"] * counted[interval].instructions
        assert row["time_s"] == pytest.approx(row["instructions"] * _INSTRUCTION_S, rel=1e-6)
    spent = run.results["software"]
    assert sum(row["time_s"] for row in spent["kinds"]) == pytest.approx(spent["charged_s"], rel=1e-9)
    assert sum(row["time_s"] for row in spent["calls"]) == pytest.approx(spent["charged_s"], rel=1e-9)
    assert sum(row["time_s"] for row in spent["slowest"]["kinds"]) == pytest.approx(
        run.results["ranks_detail"][spent["slowest"]["rank"]]["software_s"], rel=1e-9
    )
    columns = tables.read(tmp_path / "record", "software")
    for rank in run.results["ranks_detail"]:
        of_rank = [t for t, number in zip(columns["time_s"], columns["rank"], strict=True) if number == rank["rank"]]
        assert sum(of_rank) == pytest.approx(rank["software_s"], rel=1e-9)
    dryfly("report", tmp_path / "record", "-o", tmp_path / "page.html").succeeded()
    assert "Where the software&#x27;s time goes" in (tmp_path / "page.html").read_text()


def test_copies_are_told_apart_by_their_call(dryfly: Dryfly) -> None:
    run = dryfly("run", *_CHARGED, "--", CHECK / "p2p.c").succeeded()
    (bsend,) = (row for row in run.results["software"]["calls"] if row["call"] == "MPI_Bsend")
    (copied,) = (
        row for row in run.results["software"]["kinds"] if (row["call"], row["how"]) == ("MPI_Bsend", "copied")
    )
    assert copied["bytes"] == bsend["copied_bytes"] > 0
    assert copied["instructions"] == 0


_STRIDED = """
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, block = atoi(argv[1]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* data = calloc(1, 65536);
  MPI_Datatype made, type;
  MPI_Type_vector(8192 / block, block, argc > 2 ? block : 2 * block, MPI_CHAR, &made);
  MPI_Type_dup(made, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&made);
  for (int i = 0; i < 10; ++i) {
    if (rank == 0) MPI_Send(data, 1, type, 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(data, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Type_free(&type);
  MPI_Type_contiguous(8192, MPI_CHAR, &type);  // may have the same handle
  MPI_Type_commit(&type);
  if (rank == 0) MPI_Send(data, 1, type, 1, 0, MPI_COMM_WORLD);
  else MPI_Recv(data, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_messages_in_blocks_are_charged_for_their_blocks_and_contiguous_ones_are_not(
    mpi: str, dryfly: Dryfly, tmp_path: Path
) -> None:
    (tmp_path / "strided.c").write_text(_STRIDED)

    def packed_s(*arguments: str) -> dict[str, float]:
        run = dryfly("run", *_CHARGED, "--mpi", mpi, "--", tmp_path / "strided.c", *arguments).succeeded()
        rows = [row for row in run.results["software"]["kinds"] if row["how"] == "packed"]
        assert all(row["bytes"] == 10 * 8192 for row in rows)
        return {row["call"]: row["time_s"] for row in rows}

    table = software.read(ROOT / "data" / "mpi" / "software" / f"{select(mpi).name}.toml")
    prices = software.Prices(instruction_ps=round(_INSTRUCTION_S * 1e12), data_ps_per_kib=round(1024 / 12e9 * 1e12))
    costs = struct.unpack_from("=6I", software.encoded(table, prices), 24)
    small, large = packed_s("8"), packed_s("64")
    for call, (once, per_block, per_kib) in (("MPI_Send", costs[:3]), ("MPI_Recv", costs[3:])):
        assert once > 0
        assert per_block + per_kib > 0
        assert small[call] == pytest.approx(10 * (once + 1024 * per_block + 8 * per_kib) * 1e-12)
        assert large[call] == pytest.approx(10 * (once + 128 * per_block + 8 * per_kib) * 1e-12)
    assert packed_s("8", "contiguous") == {}


_REDUCE = """
#include <mpi.h>
#include <stdlib.h>
static void nothing(void* in, void* inout, int* count, MPI_Datatype* type) {}
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  void *in = calloc(1, 65536), *out = calloc(1, 65536);
  MPI_Op own;
  MPI_Op_create(nothing, 1, &own);
  switch (argv[1][0]) {
    case 'd': MPI_Allreduce(in, out, 8192, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
    case 'c': MPI_Allreduce(in, out, 65536, MPI_SIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD); break;
    case 'o': MPI_Allreduce(in, out, 8192, MPI_DOUBLE, own, MPI_COMM_WORLD); break;
  }
  MPI_Finalize();
  return 0;
}
"""


def test_a_reduction_costs_what_its_operation_does_on_its_type_and_a_programs_own_nothing(
    dryfly: Dryfly, tmp_path: Path
) -> None:
    (tmp_path / "reduce.c").write_text(_REDUCE)

    table = software.read(ROOT / "data" / "mpi" / "software" / "mpich-5.0.2.toml")
    counted = table.calls["MPI_Allreduce"]
    sums = table.reductions[software.SUMS]

    def kinds(what: str) -> dict[tuple[str, str], dict[str, Any]]:
        run = dryfly("run", *_CHARGED, "--", tmp_path / "reduce.c", what).succeeded()
        return {kind: row for kind, row in _rows(run.results, "MPI_Allreduce").items() if kind in counted}

    def time_s(rows: dict[tuple[str, str], dict[str, Any]], kib_s: float) -> float:
        """With so much time for each KiB that is added up."""
        once = sum(row["intervals"] * counted[kind].instructions for kind, row in rows.items()) * _INSTRUCTION_S
        adds = {kind: min(counted[kind].per_kib / sums, 1.0) for kind in rows if counted[kind].per_kib >= 64}
        assert adds
        return once + kib_s * sum(share * rows[kind]["bytes"] / 1024 for kind, share in adds.items())

    chars_s = table.reductions["MPI_SIGNED_CHAR MPI_MAX"] * _INSTRUCTION_S / 5
    for what, kib_s in (("d", 1024 / 12e9), ("c", chars_s)):  # doubles wait for memory: node.local_rate
        rows = kinds(what)
        assert sum(row["time_s"] for row in rows.values()) == pytest.approx(time_s(rows, kib_s), rel=0.01)
    own = kinds("o")
    instructions = sum(row["intervals"] * counted[kind].instructions for kind, row in own.items())
    assert sum(row["time_s"] for row in own.values()) == pytest.approx(instructions * _INSTRUCTION_S, rel=0.001)


def test_two_libraries_are_set_beside_each_other_by_what_they_execute(dryfly: Dryfly, tmp_path: Path) -> None:
    command = ("compare", "--with", "mpich", "--with", "openmpi", "--software", "measured", "--no-counts")
    where = ("-m", "8:8", "-i", "200", "-o", tmp_path / "kept", "--json", tmp_path / "out.json", "latency")
    said = dryfly(*command, *where, limit_s=120).succeeded().stdout
    (latency,) = json.loads((tmp_path / "out.json").read_text())["benchmarks"]
    costs = [line["software"] for line in latency["lines"]]
    assert [cost["library"] for cost in costs] == ["mpich-5.0.2", "openmpi-5.0.11"]
    of_send = [row for cost in costs for row in cost["calls"] if row["call"] == "MPI_Send"]
    assert all(0.9 < row["calls_per_message"] < 1 for row in of_send)  # barriers have messages too
    assert of_send[0]["instructions_per_message"] > 1.2 * of_send[1]["instructions_per_message"]
    assert all(cost["time_per_message_s"] > 0 for cost in costs)
    assert "all calls" in said
    page = (tmp_path / "kept" / "compare.html").read_text()
    assert f"{of_send[0]['instructions_per_message']:,.1f}" in page
    again = dryfly(*command, *where).succeeded()
    assert again.stderr.count("kept from before") == 2
    assert json.loads((tmp_path / "out.json").read_text())["benchmarks"] == [latency]


def test_a_release_without_a_table_is_refused_before_anything_runs(dryfly: Dryfly, tmp_path: Path) -> None:
    series = ("--over", "mpich==5.0.2,5.0.99", "--figure", "instructions", "--state", tmp_path / "state.json")
    ended = dryfly("bisect", *series, "--", "latency", "-m", "8:8")
    assert ended.exit_status == 2
    assert '"dryfly mpi add mpich==5.0.99 && dryfly mpi measure mpich-5.0.99" counts them' in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.fixture
def own_tables(tmp_path: Path) -> dict[str, str]:
    """The environment with a cache folder that has the user's libraries, and no tables."""
    folder = tmp_path / "cache" / "dryfly" / "mpi"
    folder.mkdir(parents=True)
    for name in ("mpich-5.0.2", "openmpi-5.0.11"):
        (folder / name).symlink_to(cache_folder() / "mpi" / name)
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"build": "0123456789abcdef"}, "counted for build 0123456789abcdef, and this is"),
        ({"architecture": "aarch64"}, "counted for processor architecture aarch64, and this is x86_64"),
        ({"library": "mpich-4.3.2"}, "counted for library mpich-4.3.2, and this is mpich-5.0.2"),
    ],
)
def test_a_table_of_something_else_is_refused_with_the_command_that_counts_it_anew(
    change: dict[str, str], said: str, dryfly: Dryfly, own_tables: dict[str, str]
) -> None:
    table = software.read(ROOT / "data" / "mpi" / "software" / "mpich-5.0.2.toml")
    folder = Path(own_tables["XDG_CACHE_HOME"]) / "dryfly" / "mpi" / "software"
    folder.mkdir()
    program = ("--", MICRO / "pingpong.c", "count=5")
    software.write(table, folder / "mpich-5.0.2.toml")
    dryfly("run", *_CHARGED, *program, environment=own_tables).succeeded()
    software.write(replace(table, **change), folder / "mpich-5.0.2.toml")
    ended = dryfly("run", *_CHARGED, *program, environment=own_tables)
    assert ended.exit_status == 2
    assert said in ended.stderr
    assert '"dryfly mpi measure mpich-5.0.2" counts it anew' in ended.stderr


def _forbid_ptrace() -> None:
    """As a container may: a filter of system calls under which ptrace, 101, gives EPERM."""
    steps = ((0x20, 0, 0, 0), (0x15, 0, 1, 101), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP, by a filter


def test_a_library_whose_ranks_cannot_be_traced_is_named_with_the_reason(tmp_path: Path) -> None:
    table = tmp_path / "table.toml"
    table.write_text("the old one")
    command = [sys.executable, "-m", "dryfly", "mpi", "measure", "mpich-5.0.2", "-o", str(table)]
    ended = subprocess.run(
        command, preexec_fn=_forbid_ptrace, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    reason = "instructions cannot be counted: ptrace: Operation not permitted"
    begun, said = ended.stderr.splitlines()
    assert begun == "dryfly: mpich-5.0.2: step 1 of 3: 8 ranks on a node each"
    assert said == f"dryfly: mpich-5.0.2 cannot be measured: {reason}"
    assert ended.returncode == 2
    assert table.read_text() == "the old one"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_measurement_leaves_the_old_table_and_no_process(
    number: signal.Signals, start: Start, own_tables: dict[str, str]
) -> None:
    table = Path(own_tables["XDG_CACHE_HOME"]) / "dryfly" / "mpi" / "software" / "mpich-5.0.2.toml"
    table.parent.mkdir()
    table.write_text("the old one")
    run = start("mpi", "measure", "mpich-5.0.2", environment=own_tables)
    deadline = time.monotonic() + 60
    while not any(process.name == "dryfly-count" for process in run.processes()):
        assert time.monotonic() < deadline, "nothing is counted"
        assert run.process.poll() is None
        time.sleep(0.1)
    os.kill(run.process.pid, number)
    ended = run.wait(limit_s=30)
    assert ended.exit_status == (130 if number is signal.SIGINT else -signal.SIGKILL)
    run.require_nothing_left(within_s=20)
    assert [path.name for path in table.parent.iterdir()] == [table.name]
    assert table.read_text() == "the old one"

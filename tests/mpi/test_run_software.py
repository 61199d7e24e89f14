"""The MPI library's own code: counted by single steps, and charged in runs."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly
from harness import CHECK, MICRO

from dryfly.base.paths import COUNTER, native
from dryfly.case.case import Case
from dryfly.mpi.libraries import select
from dryfly.study.trial import Trial

_PINGPONG = ("--machine", "lumi-g", "-N", "2", "--compute", "none")
_CHARGED = (*_PINGPONG, "--software", "measured")
_NOT_CHARGED = (*_PINGPONG, "--software", "none")


def test_a_latency_is_longer_by_what_the_library_executes(dryfly: Dryfly) -> None:
    program = ("--", MICRO / "pingpong.c", "count=100")
    charged = dryfly("run", *_CHARGED, *program).succeeded()
    assert charged.results["software"]["table"] == "mpich-5.0.2"
    assert 0 < charged.results["software"]["charged_s"] < charged.results["virtual_time_s"] * 2
    assert "in mpich-5.0.2's own code" in charged.stderr
    # A send up to its injection and a receive from its completion on: some 800 instructions of 0.595 ns a message, the
    # provider's 600 come out of host.*. An instruction twice as long costs each of 200 messages that much more.
    slower = dryfly("run", *_CHARGED, "--set", "host.instruction=1.19 ns", *program).succeeded()
    more_s = slower.results["virtual_time_s"] - charged.results["virtual_time_s"]
    assert 200 * 1200 * 0.595e-9 < more_s < 200 * 2400 * 0.595e-9


def test_without_it_calls_cost_what_the_machine_says(dryfly: Dryfly) -> None:
    program = ("--", MICRO / "pingpong.c", "count=10")
    run = dryfly("run", *_NOT_CHARGED, *program).succeeded()
    assert run.results["software"] == {"table": "", "charged_s": 0.0, "assumed_s": 0.0}
    assert "own code" not in run.stderr


def test_a_library_that_has_been_counted_is_charged_without_a_word(dryfly: Dryfly) -> None:
    program = ("--", MICRO / "pingpong.c", "count=10")
    fingerprints = {dryfly("run", *how, *program).succeeded().fingerprint for how in (_PINGPONG, _CHARGED)}
    assert len(fingerprints) == 1
    assert fingerprints != {dryfly("run", *_NOT_CHARGED, *program).succeeded().fingerprint}


def test_whoever_waits_for_a_message_pays_for_waking_and_nobody_else(dryfly: Dryfly) -> None:
    def took_s(program: tuple[str | Path, ...], wake: str) -> float:
        command = ("run", *_PINGPONG, "--set", f"host.wake={wake}", "--", *program)
        return float(dryfly(*command).succeeded().results["virtual_time_s"])

    pingpong = (MICRO / "pingpong.c", "count=100")
    more_s = took_s(pingpong, "390 ns") - took_s(pingpong, "290 ns")
    assert more_s == pytest.approx(100e-9 * 200, rel=0.15)  # and of the barriers around
    # In a window of 64 messages the receiver is behind all the time.
    windows = (MICRO / "bandwidth.c", "largest=4", "count=10")
    more_s = took_s(windows, "390 ns") - took_s(windows, "290 ns")
    assert more_s < 100e-9 * 3 * 11 * 6


def test_a_library_for_gpus_looks_each_receives_buffer_up(dryfly: Dryfly) -> None:
    def rate(*options: str) -> float:
        command = ("run", *_PINGPONG, *options, "--", MICRO / "bandwidth.c", "largest=8", "count=10")
        return float(dryfly(*command).succeeded().stdout.split()[-1])

    # The receiver takes longest.
    without, with_look_up = rate(), rate("--set", "host.buffer_lookup=340 ns")
    assert 8 / with_look_up - 8 / without == pytest.approx(0.340, rel=0.05)


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
        for call, start, end, executed, _ in struct.iter_unpack("=HBBIQ", intervals):
            seen.setdefault((names[call], start, end), []).append(executed)
    return {kind: max(set(values), key=values.count) for kind, values in seen.items() if len(values) > 4}


@pytest.mark.parametrize("item", ["host.instruction=1 ns", "host.provider_instructions=200"])
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
    run = dryfly("run", *_CHARGED, "--", MICRO / "pingpong.c", "count=5", environment=older_wheels).succeeded()
    assert run.results["software"]["table"] == ""
    assert (
        "note (uncounted_software): the instructions of this build of mpich-4.3.2 have not been counted" in run.stderr
    )

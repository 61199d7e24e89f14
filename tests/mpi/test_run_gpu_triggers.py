"""Communication that streams of GPUs trigger and wait for, on counters of the NIC: provider/conformance/stream_*.c."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly
from harness import ROOT, Ended

from dryfly.mpi.libraries import MpiLibrary

_SOURCES = ROOT / "provider" / "conformance"
_MACHINES = pytest.mark.parametrize("machine", ["perlmutter-gpu", "frontier"])
# Of data/hardware/: microseconds. What a stream begins waits for its call's latency, and a copy within a device takes a
# step and its bytes.
_TO_NIC_US = _FROM_NIC_US = 0.3
_LOCAL_LATENCY_US, _LOCAL_STEP_US, _WORD_US = 4, 4.2, 1.9


class Streams:
    """The programs, built against the MPI's own libfabric."""

    def __init__(self, library: MpiLibrary, folder: Path) -> None:
        self._library = library
        self._folder = folder

    def __call__(self, name: str) -> Path:
        target = self._folder / name
        if target.exists():
            return target
        wrapper = self._library.wrapper("mpicc")
        assert wrapper is not None
        libfabric = Path(self._library.libfabric)
        command = [wrapper, "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Wno-unused-function", "-o", target]
        command += [_SOURCES / f"{name}.c", libfabric, f"-Wl,-rpath,{libfabric.parent}"]
        built = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
        return target


@pytest.fixture(scope="session")
def streams(library: MpiLibrary, tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return Streams(library, tmp_path_factory.mktemp("streams"))


def _on(machine: str, nodes: int, *options: str) -> tuple[str, ...]:
    return ("run", "--machine", machine, "-N", str(nodes), "--ppn", "1", "--compute", "none", *options, "--")


def _each_us(run: Ended, how: str) -> tuple[float, float]:
    """Of a step, in microseconds: what it takes, and what the host waits in it."""
    found = re.search(rf"^{how}: ([\d.]+) us each, .* waits ([\d.]+)$", run.succeeded().stdout, re.MULTILINE)
    assert found is not None, run.stdout
    return float(found[1]), float(found[2])


@_MACHINES
def test_a_write_to_a_doorbell_and_what_is_written_back_take_their_closed_form_whatever_the_host_does(
    machine: str, dryfly: Dryfly, streams: Streams
) -> None:
    numbers = (_TO_NIC_US, _FROM_NIC_US, _LOCAL_STEP_US, _LOCAL_LATENCY_US, _WORD_US)
    run = dryfly(*_on(machine, 2), streams("stream_waits"), *map(str, numbers), limit_s=120).succeeded()
    assert "ok stream_waits\n" in run.stdout


@_MACHINES
def test_a_ping_pong_of_streams_is_right_repeats_and_leaves_its_host_free(
    machine: str, dryfly: Dryfly, streams: Streams
) -> None:
    command = (*_on(machine, 2), streams("stream_pingpong"), "4096", "40")
    runs = [dryfly(*command, limit_s=120).succeeded() for _ in range(2)]
    assert "ok stream_pingpong\n" in runs[0].stdout
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].fingerprint == runs[1].fingerprint
    assert runs[0].results["virtual_time_s"] == runs[1].results["virtual_time_s"]
    by_hosts, waited_us = _each_us(runs[0], "hosts")
    by_streams, never_us = _each_us(runs[0], "streams")
    assert by_streams < by_hosts
    assert waited_us > by_hosts / 2
    assert never_us == 0


# A round trip has two copies, two writes to doorbells, and two flags that a NIC writes: each latency counts twice, and
# neither the processor's calls nor its polls do, nor how long a device is at the waits, which are for longer.
@pytest.mark.parametrize(
    ("setting", "added_us"),
    [
        ("nic.command_latency=400 ns", 2 * 0.1),
        ("nic.completion_latency=500 ns", 2 * 0.2),
        ("node.gpu_local_step=5.2 us", 2 * 1.0),
        ("node.gpu_word=2.4 us", 2 * 0.5),
        ("node.gpu_call=2.5 us", 0),
        ("node.gpu_short_call=1.5 us", 0),
        ("host.poll=1 us", 0),
    ],
)
def test_a_round_trip_of_streams_is_made_of_what_the_gpu_and_the_nic_take(
    setting: str, added_us: float, dryfly: Dryfly, streams: Streams
) -> None:
    def each_us(*options: str) -> float:
        command = (*_on("perlmutter-gpu", 2, *options), streams("stream_pingpong"), "1024", "100", "streams")
        return _each_us(dryfly(*command, limit_s=120), "streams")[0]

    # The first message waits for its host, and all of them share that.
    assert each_us("--set", setting) - each_us() == pytest.approx(added_us, abs=0.03)


@pytest.mark.parametrize(("machine", "nodes"), [("perlmutter-gpu", 2), ("perlmutter-gpu", 5), ("frontier", 4)])
def test_a_halo_exchange_of_streams_is_right_and_takes_its_host_less(
    machine: str, nodes: int, dryfly: Dryfly, streams: Streams
) -> None:
    run = dryfly(*_on(machine, nodes), streams("stream_halo"), "65536", "30", limit_s=120).succeeded()
    assert "ok stream_halo\n" in run.stdout
    by_hosts, waited_us = _each_us(run, "hosts")
    by_streams, never_us = _each_us(run, "streams")
    assert by_streams < by_hosts
    assert waited_us > 0
    assert never_us == 0


def test_long_messages_are_right_and_more_work_than_the_nic_has_entries_waits_its_turn(
    dryfly: Dryfly, streams: Streams
) -> None:
    command = (*_on("perlmutter-gpu", 2), streams("stream_pingpong"), "2097152", "3", "streams")
    assert "ok stream_pingpong\n" in dryfly(*command, limit_s=120).succeeded().stdout
    command = (*_on("perlmutter-gpu", 2), streams("stream_pingpong"), "64", "400", "streams")
    assert "ok stream_pingpong\n" in dryfly(*command, limit_s=120).succeeded().stdout


def test_a_stream_that_waits_for_what_never_comes_ends_the_run_with_a_sentence(
    dryfly: Dryfly, streams: Streams
) -> None:
    run = dryfly(*_on("perlmutter-gpu", 2), streams("stream_pingpong"), "1024", "3", "lost", limit_s=60)
    assert run.exit_status != 0
    assert "deadlock: nothing is in flight and every rank waits" in run.stderr
    for rank in range(2):
        said = rf"rank {rank} on \S+: a stream of its GPU waits for a value that nobody will write"
        assert re.search(said, run.stderr), run.stderr


def test_where_ranks_of_a_node_talk_through_memory_that_is_said(dryfly: Dryfly, streams: Streams) -> None:
    options = ("run", "--machine", "perlmutter-gpu", "-N", "1", "--ppn", "2", "--compute", "none")
    command = (*options, "--on-node", "shared", "--", streams("stream_pingpong"), "1024", "3", "streams")
    run = dryfly(*command, limit_s=60)
    assert run.exit_status != 0
    assert "a GPU's stream waits for memory that no NIC tells of" in run.stderr

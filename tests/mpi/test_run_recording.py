"""--trace, --record and dryfly report: they change nothing, and what they write agrees with the result."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from conftest import Dryfly, Programs

from dryfly.result import tables

_JOB = ("run", "--machine", "testbed", "-n", "12", "--compute", "none")


@pytest.mark.parametrize("name", ["rma_contended.c", "reductions.c"])
def test_recording_changes_no_instant(name: str, dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    program = programs.check(name)
    plain = dryfly(*_JOB, "--", program).succeeded()
    flags = ("--trace", tmp_path / "trace", "--record", tmp_path / "run")
    recorded = dryfly(*_JOB, *flags, "--", program).succeeded()
    assert recorded.fingerprint == plain.fingerprint
    assert recorded.results["virtual_time_s"] == plain.results["virtual_time_s"]
    assert recorded.results["nics"] == plain.results["nics"]
    assert recorded.results["profile"] == plain.results["profile"]


def _slices(file: Path) -> tuple[dict[int, Any], dict[int, list[tuple[int, int, str]]], int]:
    """By Perfetto's own definitions: tracks, slices by track (begin, end, name), and the number of counter values."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    trace = Trace()
    trace.ParseFromString(file.read_bytes())
    tracks: dict[int, Any] = {}
    slices: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    open_: dict[int, list[tuple[int, str]]] = defaultdict(list)
    values = 0
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            continue
        event = packet.track_event
        assert event.track_uuid in tracks
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            open_[event.track_uuid].append((packet.timestamp, event.name))
        elif event.type == TrackEvent.TYPE_SLICE_END:
            begin, name = open_[event.track_uuid].pop()
            assert begin <= packet.timestamp
            slices[event.track_uuid].append((begin, packet.timestamp, name))
        else:
            assert 0 <= event.double_counter_value <= 100
            values += 1
    assert not any(open_.values())
    return tracks, slices, values


def test_what_is_written_agrees_with_the_result(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    trace, folder = tmp_path / "trace", tmp_path / "run"
    program = (programs.micro("alltoall.c"), "count=2", "bytes=30000")
    results = dryfly(*_JOB, "--trace", trace, "--record", folder, "--", *program).succeeded().results

    tracks, slices, values = _slices(trace)
    names = {uuid: track.name for uuid, track in tracks.items()}
    calls = [name for uuid, rows in slices.items() if names[uuid].startswith("rank") for _, _, name in rows]
    assert calls.count("MPI_Alltoall") == 12 * 2
    assert "waiting" in calls
    messages = sum(len(rows) for uuid, rows in slices.items() if names[uuid].startswith("NIC"))
    assert messages == results["messages"]
    assert values > 0

    table = tables.read(folder, "messages")
    assert len(table["bytes"]) == results["messages"]
    assert sum(table["bytes"]) == results["bytes"]
    assert min(table["latency_s"]) > 0
    by_call: dict[str, float] = defaultdict(float)
    recorded_calls = tables.read(folder, "calls")
    for call, begin, end in zip(
        recorded_calls["call"], recorded_calls["entered_s"], recorded_calls["left_s"], strict=True
    ):
        by_call[call] += end - begin
    profile = {row["call"]: row["time_s"] for row in results["profile"]}
    assert by_call["MPI_Alltoall"] == pytest.approx(profile["MPI_Alltoall"])

    links = tables.read(folder, "links")
    carried: dict[str, int] = defaultdict(int)
    for kind, size in zip(links["kind"], links["data_bytes"], strict=True):
        carried[kind] += size
    # Every frame enters and leaves the network once, with 64 bytes of header; Gets and dones have no payload.
    assert carried["injection"] == carried["ejection"]
    assert carried["injection"] == results["bytes"] + 64 * results["packets"]
    assert max(links["utilisation"]) <= 1
    assert sum(tables.read(folder, "latency")["messages"]) == results["messages"]

    dryfly("report", folder, "-o", tmp_path / "page.html").succeeded()
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 6
    assert results["fingerprint"] in page
    assert not re.search(r'(src|href)="(?!#|data:)', page)  # nothing beside it is needed


def test_a_full_disk_is_said(dryfly: Dryfly, programs: Programs) -> None:
    ended = dryfly(*_JOB, "--trace", "/dev/full", "--", programs.micro("init_finalize.c"))
    assert ended.exit_status == 1
    assert "the trace cannot be written to /dev/full: No space left on device" in ended.stderr


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--trace", "/nowhere/trace"), "--trace /nowhere/trace: the folder /nowhere does not exist"),
        (("--trace", "/tmp"), "--trace /tmp: that is a folder; a file is written"),
        (("--record", "/usr"), "that folder has other files in it"),
        (("--record", "/etc/passwd"), "a folder is needed"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_before_the_start(
    flags: tuple[str, str], sentence: str, dryfly: Dryfly
) -> None:
    ended = dryfly(*_JOB, *flags, "--", "/bin/true")
    assert ended.exit_status == 2
    assert sentence in ended.stderr


def test_a_report_needs_a_recorded_run(dryfly: Dryfly, tmp_path: Path) -> None:
    ended = dryfly("report", tmp_path, "-o", tmp_path / "page.html")
    assert ended.exit_status == 2
    assert "is no recorded run" in ended.stderr


def test_two_recorded_runs_are_compared(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    """A nanosecond more on one NIC's link delays its first message so much later: the first difference."""
    program = (programs.micro("pingpong.c"), "count=3", "bytes=8")
    job = ("run", "--machine", "testbed", "-n", "2", "--compute", "none")
    for name, flags in (("a", ()), ("again", ()), ("b", ("--set", 'fabric.extra_flight="n0>s0 1 ns"'))):
        dryfly(*job, *flags, "--record", tmp_path / name, "--", *program).succeeded()
    same = dryfly("diff", tmp_path / "a", tmp_path / "again").succeeded()
    assert same.stdout.startswith("the runs are equal: ")

    different = dryfly("diff", tmp_path / "a", tmp_path / "b")
    assert different.exit_status == 1
    assert "the spec differs in fabric.extra_flight.count" in different.stderr
    # MPI_Init's messages come first, so which one it is is left to the library; it goes out of NIC 0, rank 0's.
    found = re.match(r"The runs differ first at (\d+\.\d{6}) us, in a message from rank 0 to rank 1", different.stdout)
    assert found is not None, different.stdout
    delivered = re.search(r"^\* delivered +(\S+) us +(\S+) us$", different.stdout, re.MULTILINE)
    assert delivered is not None
    assert delivered[1] == found[1]
    assert float(delivered[2]) - float(delivered[1]) == pytest.approx(0.001)

    refused = dryfly("diff", tmp_path / "a", tmp_path)
    assert refused.exit_status == 2
    assert "is no recorded run" in refused.stderr

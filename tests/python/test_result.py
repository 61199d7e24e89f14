from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dryfly.base.errors import RunError
from dryfly.base.folder import RunFolder
from dryfly.case.bind import BoundCase, bind
from dryfly.case.case import Case
from dryfly.mpi.libraries import MpiLibrary
from dryfly.result import result
from dryfly.result.finding import Finding

MPI = MpiLibrary(name="mpich-5.0.2", family="mpich", version="5.0.2", prefix="/p", libmpi="/p/m", libfabric="/p/f")


def bound(compute: str = "none") -> BoundCase:
    return bind(Case(program=("prog",), nodes=2, compute=compute, software="none"))


def rank(number: int, computing: int, waiting: int, unsure_ns: int = 0) -> dict[str, Any]:
    total = {"computing_ps": computing, "communicating_ps": 10**9, "waiting_ps": waiting}
    return {
        "rank": number,
        "node": number,
        "virtual_time_ps": sum(total.values()),
        **total,
        "looked_unsure_ns": unsure_ns,
    }


def test_the_slowest_rank_is_the_one_that_the_others_wait_for() -> None:
    counted = {"virtual_time_ps": 10**10, "ranks": [rank(0, 10**9, 8 * 10**9), rank(1, 7 * 10**9, 2 * 10**9)]}
    built = result.build(bound(), counted, mpi=MPI, wall_time_s=2.0, findings=[])
    assert built["time"]["slowest"]["rank"] == 1
    assert built["time"]["mean"]["computing_s"] == pytest.approx(0.004)  # (1 + 7) / 2 ms
    assert built["ranks_detail"][1]["node"] == "t1"
    assert built["repeatable"]


def test_a_warning_appears_when_short_gaps_are_not_sure_to_two_percent() -> None:
    # Two ranks of 10 ms: 0.4 ms are 2 % of the job's 20 ms.
    for unsure_ns, warned in ((200_000, False), (210_000, True)):
        counted = {"virtual_time_ps": 10**10, "ranks": [rank(n, 10**9, 8 * 10**9, unsure_ns) for n in (0, 1)]}
        built = result.build(bound("measured"), counted, mpi=MPI, wall_time_s=2.0, findings=[])
        assert any(row["name"] == "short_gaps" for row in built["health"]) == warned
        assert not built["repeatable"]


def test_what_the_conductor_does_not_say_is_zero() -> None:
    built = result.build(bound(), {}, mpi=MPI, wall_time_s=0.0, findings=[])
    assert (built["messages"], built["virtual_time_s"], built["ranks_detail"]) == (0, 0.0, [])
    assert built["health"] == []


def test_packets_behind_refused_ones_are_counted_in_one_row() -> None:
    trackers = {"target_refusals": 3, "result_refusals": 2, "later_refusals": 7, "longest_pause_ps": 0}
    for counted, texts in ((trackers, 2), (trackers | {"target_refusals": 0}, 1)):
        built = result.build(bound(), {"trackers": counted}, mpi=MPI, wall_time_s=0.0, findings=[])
        rows = [row for row in built["health"] if row["name"].startswith("trackers")]
        assert len(rows) == texts
        assert ["(and 7 that came behind any refused for a tracker)" in row["text"] for row in rows] == [
            True, *([False] * (texts - 1))
        ]  # fmt: skip


def test_findings_of_one_name_are_one_row_with_their_number() -> None:
    findings = [Finding(name="spinning", text=f"rank {number} computes") for number in range(3)]
    built = result.build(
        bound(), {}, mpi=MPI, wall_time_s=1.0, findings=[*findings, Finding(name="other", text="careful")]
    )
    assert [(row["name"], row["severity"], row["count"]) for row in built["health"]] == [
        ("spinning", "warning", 3),
        ("other", "warning", 1),
    ]
    assert built["health"][0]["text"] == "rank 0 computes (and 2 more like this)"
    assert built["health"][1]["text"] == "careful"
    assert built["repeatable"]


def test_a_rank_that_was_let_go_or_used_several_threads_makes_the_run_not_repeatable() -> None:
    let_go = result.build(
        bound(), {}, mpi=MPI, wall_time_s=1.0, findings=[Finding(name="let_go", text="rank 0 sleeps")]
    )
    threads = {"ranks": [{**rank(0, 1, 1), "several_threads": 1}, rank(1, 1, 1)]}
    threaded = result.build(bound(), threads, mpi=MPI, wall_time_s=1.0, findings=[])
    assert not let_go["repeatable"]
    assert not threaded["repeatable"]
    assert [(row["name"], row["count"]) for row in threaded["health"]] == [("several_threads", 1)]


def test_a_note_says_when_most_of_the_run_was_a_loop_that_reads_the_clock() -> None:
    for readings, looped_ps, noted in (
        (10_000, 6 * 10**9, True),
        (9_999, 6 * 10**9, False),
        (10_000, 5 * 10**9, False),
    ):
        reader = {**rank(1, 1, 1), "clock_readings": readings, "in_clock_loops_ps": looped_ps}
        counted = {"virtual_time_ps": 10**10, "ranks": [rank(0, 1, 1), reader]}
        built = result.build(bound(), counted, mpi=MPI, wall_time_s=1.0, findings=[])
        assert [(row["name"], row["severity"]) for row in built["health"]] == [("clock_loop", "note")] * noted
        assert all("rank 1 spent 60% of the run" in row["text"] for row in built["health"])
        assert built["repeatable"]


def test_a_recording_that_did_not_fit_is_in_the_health_table() -> None:
    counted = {"ranks": [{**rank(0, 1, 1), "replay_mismatches": 5}, rank(1, 1, 1)]}
    built = result.build(bound(), counted, mpi=MPI, wall_time_s=1.0, findings=[])
    assert [(row["name"], row["count"]) for row in built["health"]] == [("replay_mismatch", 1)]


def test_a_full_disk_leaves_the_old_file_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "result.json"
    result.write({"a": 1}, str(target))

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left on device"):
        result.write({"a": 2}, str(target))
    assert json.loads(target.read_text(encoding="utf-8")) == {"a": 1}
    assert list(tmp_path.iterdir()) == [target]


def test_a_device_is_written_to_and_not_replaced() -> None:
    with pytest.raises(RunError, match="No space left on device"):
        result.write({"a": 1}, "/dev/full")
    assert Path("/dev/full").is_char_device()


def test_a_run_folder_is_removed_and_so_is_one_whose_run_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    abandoned = tmp_path / f"dryfly-{os.getuid()}-killed"
    abandoned.mkdir()
    with RunFolder() as first:
        assert not abandoned.exists()
        with RunFolder() as second:
            assert first.path.is_dir()  # its lock is held: the second one leaves it alone
            assert second.path != first.path
    assert list(tmp_path.iterdir()) == []

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dryfly.base.errors import RunError
from dryfly.result import tables
from dryfly.result.capture import Capture, Link

RESULT = {"virtual_time_s": 4e-6, "ranks_detail": []}


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    """Two links between two groups, one inside; steps of a microsecond."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    for name in ("messages.bin", "waits.bin"):
        (folder / name).touch()

    def link(name: str, source: int, target: int, busy_us: tuple[float, ...]) -> Link:
        return Link(
            name=name, kind="local" if source == target else "global", from_group=source, to_group=target,
            busy_ps=tuple(round(us * 10**6) for us in busy_us), data_bytes=tuple(1000 for _ in busy_us),
            waiting_byte_ps=(2000 * 10**6, *(0 for _ in busy_us[1:])), waits=(3, 0, 1), longest_wait_ps=3,
        )  # fmt: skip

    links = (link("a", 0, 1, (1.0, 0.5)), link("b", 0, 1, (0.5,)), link("c", 0, 0, (0.25, 0.0, 0.25)))
    return Capture(folder=folder, start_ps=0, step_ps=10**6, call_names=(), links=links)


def test_utilisation_is_of_the_whole_run_and_of_each_step(capture: Capture, tmp_path: Path) -> None:
    tables.write(capture, RESULT, str(tmp_path / "run"))
    links = tables.read(tmp_path / "run", "links")
    assert links["utilisation"] == pytest.approx([1.5 / 4, 0.5 / 4, 0.5 / 4])
    assert links["mean_queue_bytes"] == pytest.approx([500, 500, 500])  # 2,000 bytes for one of four microseconds
    groups = tables.read(tmp_path / "run", "groups")
    assert (groups["from_group"], groups["to_group"]) == ([0, 0], [0, 1])
    assert groups["data_bytes"] == [3000, 3000]
    assert groups["utilisation"] == pytest.approx([0.125, 0.25])  # of two links: 1.5 and 0.5 of 4 us
    steps = tables.read(tmp_path / "run", "group_steps")
    between = [share for target, share in zip(steps["to_group"], steps["utilisation"], strict=True) if target == 1]
    assert between == pytest.approx([0.75, 0.25])


def test_waits_are_summed_over_links_of_a_kind(capture: Capture, tmp_path: Path) -> None:
    tables.write(capture, RESULT, str(tmp_path / "run"))
    waits = tables.read(tmp_path / "run", "waits")
    rows = list(zip(waits["kind"], waits["from_s"], waits["frames"], strict=True))
    assert rows == [("global", 0, 6), ("global", pytest.approx(2e-12), 2), ("local", 0, 3), ("local", 2e-12, 1)]


def test_a_percentile_is_a_latency_that_occurred() -> None:
    ordered = [float(n) for n in range(1, 11)]
    assert [tables.percentile(ordered, percent) for percent in (50, 90, 99, 100)] == [5, 9, 10, 10]
    assert tables.percentile([7.0], 50) == 7


def test_a_full_disk_leaves_the_old_tables(capture: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "run"
    tables.write(capture, RESULT, str(target))
    before = sorted((path.name, path.stat().st_mtime_ns) for path in target.iterdir())

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(RunError, match=r"the tables cannot be written to .*: No space left on device"):
        tables.write(capture, RESULT, str(target))
    assert sorted((path.name, path.stat().st_mtime_ns) for path in target.iterdir()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["recorded", "run"]

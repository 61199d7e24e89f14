"""`dryfly reproduce` measures with real programs and with commands given to the NICs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Dryfly
from harness import ROOT

from dryfly.evidence.measure import measure
from dryfly.evidence.published import Measurement
from dryfly.study.kept import Entry


def test_one_row_of_each_kind_is_measured(dryfly: Dryfly, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    chosen = ("--only", "cxi_send_lat 8 B", "--only", "latency flat*", "--only", "loopback*")
    ended = dryfly("reproduce", "fabric", *chosen, "--json", file).succeeded()
    rows = {row["quantity"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]}
    assert len(rows) == 7  # mean, least, most and deviation; the loopback of host and of GPU buffers
    # The sum in data/hardware/slingshot11.toml; the mean of 20,000 drawn latencies is off by 0.2 ns (29 ns / 141).
    assert abs(rows["cxi_send_lat 8 B"]["dryfly"] - 1.64) < 0.001
    assert 1.59 <= rows["cxi_send_lat 8 B, least"]["dryfly"] < 1.60
    assert rows["latency flat up to 64 B: 64 B over 1 B"]["error"] == 0
    assert rows["loopback of one NIC"]["dryfly"] is None
    assert "predicted rows: median absolute error" in ended.stdout
    assert rows["cxi_send_lat 8 B"]["noise"] == "none"
    assert rows["cxi_send_lat 8 B"]["seeds"] is None
    most = rows["cxi_send_lat 8 B, most"]
    assert most["noise"] == "machine (linux)"
    assert most["seeds"]["count"] == 9
    assert most["seeds"]["least"] <= most["dryfly"] <= most["seeds"]["most"]
    assert "predicted, noise" in ended.stdout
    assert "2 rows measured with noise of the operating system (machine (linux))" in ended.stdout


def test_a_tail_is_the_same_however_many_seeds_are_measured_at_a_time(dryfly: Dryfly, tmp_path: Path) -> None:
    rows = []
    for flags in (("--seeds", "4", "-j", "1"), ("--seeds", "4", "-j", "3"), ("--noise", "none")):
        file = tmp_path / "rows.json"
        dryfly("reproduce", "fabric", "--only", "cxi_send_lat 8 B, most", *flags, "--json", file).succeeded()
        rows.append(json.loads(file.read_text(encoding="utf-8"))["rows"])
    assert rows[0] == rows[1]
    assert rows[0][0]["seeds"]["count"] == 4
    assert rows[2][0]["noise"] == "none"
    for flags, message in ((("--seeds", "0"), "--seeds 0: accepted is 1 to"), (("-j", "0"), "--jobs 0: accepted is 1")):
        ended = dryfly("reproduce", "fabric", "--only", "cxi_send_lat 8 B, most", *flags)
        assert ended.exit_status == 2
        assert message in ended.stderr


def test_a_measurement_is_made_under_other_conditions(dryfly: Dryfly, tmp_path: Path) -> None:
    """300 ns more in each switch: a program and commands given to the NICs, one switch or more apart, both feel it."""
    chosen = ("--only", "cxi-send-latency", "--only", "osu_latency, host buffers, 8 B", "--quiet")
    flags = ("--set", "fabric.switch.latency=650 ns", "--seed", "1")
    figures = []
    for name, changed in (("as-published", ()), ("slower", flags)):
        file = tmp_path / f"{name}.json"
        ended = dryfly("reproduce", "fabric", *chosen, *changed, "--json", file).succeeded()
        assert "measuring" not in ended.stderr
        content = json.loads(file.read_text(encoding="utf-8"))
        figures.append({row["quantity"]: row["dryfly"] for row in content["rows"]})
    assert content["given"] == {"sets": ["fabric.switch.latency=650 ns"], "seed": 1}
    before, after = figures
    assert len(before) >= 2
    for quantity, figure in before.items():
        assert after[quantity] > figure + 0.29, quantity


def test_a_measurement_is_made_with_other_ranks_and_recorded(dryfly: Dryfly, tmp_path: Path) -> None:
    """Placed on other groups the same program needs longer; commands to NICs that are named have no ranks to place."""
    by_program, by_nics = ("--only", "osu_latency, host buffers, 8 B"), ("--only", "cxi_send_lat 8 B")
    figures = []
    for place in ("packed", "spread"):
        file, runs = tmp_path / "rows.json", tmp_path / place
        dryfly("reproduce", "fabric", *by_program, "--place", place, "--record", runs, "--json", file).succeeded()
        figures.append([row["dryfly"] for row in json.loads(file.read_text(encoding="utf-8"))["rows"]])
        assert all((run / "messages.parquet").is_file() for run in runs.iterdir())
        assert len(list(runs.iterdir())) >= 1
    assert all(packed < spread for packed, spread in zip(*figures, strict=True))
    for flags in (("-N", "4"), ("--record", tmp_path / "none")):
        ended = dryfly("reproduce", "fabric", *by_nics, *flags)
        assert ended.exit_status == 2
        assert "has no ranks; choose measurements of programs with --only" in ended.stderr
        assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_many_pairs_without_processes_have_what_ranks_have(dryfly: Dryfly) -> None:
    """16 pairs, one on each NIC. At 2 KiB the ranks' software decides, at 64 KiB the link; in between which ways
    ordered flows find, and so the slowest pair of one run or the other."""
    sizes = {2048: 0.01, 16384: 0.15, 65536: 0.01}
    pairs = Measurement(
        name="pairs", machine="aurora", pattern="windows", crowd=(4, 4), ranks_per_nic=1, sizes=tuple(sizes),
        arguments=("count=10",),
    )  # fmt: skip
    without = measure(pairs, given={}, entry=Entry()).figures
    flags = ("--machine", "aurora", "-N", "4", "--ppn", "8", "--compute", "none", "--software", "none")
    ended = dryfly("run", *flags, "--", ROOT / "programs" / "benchmark" / "mbw_mr.c", "-m", "2048:65536").succeeded()
    ranks = {int(row.split()[0]): float(row.split()[1]) for row in ended.stdout.splitlines() if row[:1].isdigit()}
    for size, tolerance in sizes.items():
        assert abs(without[str(size)] / ranks[size] - 1) < tolerance, size

"""The skeleton of osu_mbw_mr against the program: rates of all pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Dryfly, Programs

PROGRAM = Path(__file__).parents[2] / "programs" / "benchmark" / "mbw_mr.c"
AURORA = ("--machine", "aurora")


def test_the_skeleton_has_the_rates_of_the_program(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    sizes = (8, 4096, 65536, 1 << 20)
    where = (*AURORA, "-N", "4", "--ppn", "4", "--compute", "none", "--software", "none")
    for size in sizes:
        program = programs(PROGRAM)
        options = ("-m", f"{size}:{size}", "-i", "3", "-x", "1", "--check", "0", "--json", file)
        dryfly("run", *where, "--", program, *options).succeeded()
        (row,) = json.loads(file.read_text(encoding="utf-8"))["rows"]
        asked = ("mbw_mr", *AURORA, "-N", "4", "--ppn", "4", f"bytes={size}", "iterations=3")
        dryfly("predict", *asked, "--json", file).succeeded()
        figures = json.loads(file.read_text(encoding="utf-8"))["figures"]
        assert figures["messages_per_s"] == pytest.approx(row["messages_per_s"], rel=0.05), size
        assert figures["bytes_per_s"] == pytest.approx(figures["messages_per_s"] * size), size


@pytest.mark.parametrize("size", ["48 KiB", "128 KiB"])
def test_flows_have_nearly_the_rate_of_packets_where_windows_of_many_pairs_cross_groups(
    dryfly: Dryfly, tmp_path: Path, size: str
) -> None:
    file = tmp_path / "out.json"
    times = {}
    for level in ("packet", "flow"):
        asked = ("mbw_mr", *AURORA, "-N", "16", "--ppn", "8", "--place", "spread", f"bytes={size}", "--level", level)
        dryfly("predict", *asked, "--json", file).succeeded()
        times[level] = json.loads(file.read_text(encoding="utf-8"))["virtual_time_s"]
    assert times["flow"] == pytest.approx(times["packet"], rel=0.2)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-N", "3", "--ppn", "1"), "ranks = 3: accepted is an even number, in pairs"),
        (("-N", "1024", "--ppn", "8", "window=1000000"), "window = 1000000: accepted are up to 32768 messages of each"),
    ],
)
def test_what_cannot_be_run_is_refused(dryfly: Dryfly, words: tuple[str, ...], sentence: str) -> None:
    refused = dryfly("predict", "mbw_mr", *words)
    assert refused.exit_status == 2
    assert sentence in refused.stderr

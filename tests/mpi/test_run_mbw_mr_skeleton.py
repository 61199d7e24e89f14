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


def test_ranks_that_are_no_pairs_are_refused(dryfly: Dryfly) -> None:
    refused = dryfly("predict", "mbw_mr", "-N", "3", "--ppn", "1")
    assert refused.exit_status == 2
    assert "ranks = 3: accepted is an even number, in pairs" in refused.stderr

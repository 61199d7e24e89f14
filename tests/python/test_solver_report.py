"""The picture of a solver's steps: what it is made of, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dryfly.base.errors import UserError
from dryfly.report import solver_report
from dryfly.report.report import report


def result(**changes: Any) -> dict[str, Any]:
    """Eight steps: products fall from 8 to 1, panel and broadcast are 2 together, the swap is 4.5 in the tail only."""
    gemm = [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    steps = {"gemm": gemm, "swap": [0.5] * 3 + [4.5] * 5, "panel": [1.2] * 8, "broadcast": [1.0] * 8, "trsm": [0.1] * 8}
    steps["wall"] = [sum(values) for values in zip(*steps.values(), strict=True)]
    run = {"order": 1000, "block": 125, "grid": [1, 2], "time_s": 63.0, "gflops": 1.0, "passed": True,
           "steps_mean_s": steps, **changes}  # fmt: skip
    return {"program": "dryfly-hpl", "ranks": 2, "blas": "some", "runs": [run]}


def test_the_crossover_is_where_the_rival_stays_above_to_the_end() -> None:
    gemm = [5.0, 4.0, 3.0, 2.0, 1.0]
    assert solver_report.crossover(gemm, [6.0, 1.0, 1.0, 2.5, 2.0]) == 3  # not step 0, where it is above once
    assert solver_report.crossover(gemm, [1.0, 1.0, 1.0, 1.0, 1.0]) == 5
    assert solver_report.crossover(gemm, [9.0] * 5) == 0
    assert solver_report.crossover([5.0, 4.0, 0.0], [1.0, 6.0, 0.0]) == 1


def test_the_picture_names_both_crossovers_and_stacks_up_to_the_wall_time() -> None:
    pytest.importorskip("matplotlib")
    upper, lower = solver_report.figure("dryfly-hpl", result()["runs"][0]).axes
    assert [text.get_text().strip() for text in upper.texts] == [
        "swap above gemm from here: step 4 of 8",
        "panel + broadcast above gemm from here: step 6 of 8",
    ]
    tops = {bar.get_x(): bar.get_y() + bar.get_height() for bars in upper.containers for bar in bars}
    assert list(tops.values()) == pytest.approx(result()["runs"][0]["steps_mean_s"]["wall"])
    assert len(lower.lines) == 3 + 2


def test_copies_of_a_matrix_on_gpus_are_phases_and_no_part_bounds_such_a_run() -> None:
    pytest.importorskip("matplotlib")
    run = result()["runs"][0]
    run["steps_mean_s"] |= {"to_host": [0.2] * 8, "to_gpu": [0.3] * 8}
    upper, _ = solver_report.figure("dryfly-hpl", run).axes
    assert not upper.texts
    assert {"to_host", "to_gpu"} <= {text.get_text() for text in upper.get_legend().get_texts()}


@pytest.mark.parametrize(("changes", "ending"), [({}, "PASSED"), ({"passed": False, "solved": False}, "NOT SOLVED")])
def test_a_page_has_the_picture_of_every_run_and_how_it_ended(
    tmp_path: Path, changes: dict[str, Any], ending: str
) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pyarrow")
    source, target = tmp_path / "result.json", tmp_path / "page.html"
    source.write_text(json.dumps(result(**changes)), encoding="utf-8")
    assert report(str(source), str(target)) == 0
    assert "<svg" in target.read_text(encoding="utf-8")
    assert f"1 GF/s, {ending}</h2>" in target.read_text(encoding="utf-8")
    assert report(str(source), str(tmp_path / "picture.png")) == 0
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UserError, match=r"\.html, \.png, \.svg"):
        report(str(source), str(tmp_path / "picture.pdf"))


@pytest.mark.parametrize("content", ["", "{}", '{"program": "dryfly-hpl", "runs": []}', '{"format": 1}'])
def test_a_file_that_is_no_result_of_a_solver_is_refused(tmp_path: Path, content: str) -> None:
    pytest.importorskip("matplotlib")
    source = tmp_path / "result.json"
    source.write_text(content, encoding="utf-8")
    with pytest.raises(
        UserError, match="neither a recorded run nor a --json of dryfly run --seeds, dryfly-hpl or dryfly-mxp"
    ):
        report(str(source), str(tmp_path / "page.html"))

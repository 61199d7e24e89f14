"""The closed form of HPL-MxP: its sum, its terms by hand, what each choice does, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dryfly.base.errors import UserError
from dryfly.oracle.hpl import stretches
from dryfly.oracle.hplmxp import Problem, Process, local_bytes, outcome, step
from dryfly.predict import ask, closed_hplmxp
from dryfly.predict.question import Question

PROBLEM = Problem(order=9_700, block=100, rows=3, columns=5)
PROCESS = Process(
    half_rate=1e13,
    gemm_memory=1e11,
    gemm_exposed=0.0,
    gemm_tile=10,
    gemm_tiles=1,
    gpus=3,
    call=0.0,
    triangle_rate=1e12,
    panel_rate=1e11,
    message=1e-6,
    nic_rate=2e9,
    copy_in=1e10,
    copy_out=2e10,
)
AURORA = (("n", "57693696"), ("grid", "152x125"))


def asked(**given: Any) -> Question:
    return Question(**{"workload": "hplmxp", "nodes": 9500, "parameters": AURORA, **given})


@pytest.mark.parametrize("rows", [1, 3, 7])
@pytest.mark.parametrize("order", [100, 9_700, 9_750])
def test_stretches_are_all_panels_once_and_alike(order: int, rows: int) -> None:
    problem = replace(PROBLEM, order=order, rows=rows)
    seen: list[int] = []
    for first, count in stretches(problem.panels, problem.rows, problem.columns):
        assert count > 0
        alike = step(problem, PROCESS, first)
        assert all(step(problem, PROCESS, first + more) == alike for more in range(count))
        seen += range(first, first + count)
    assert seen == list(range(problem.panels))


def test_the_first_step_is_what_its_terms_give_by_hand() -> None:
    """97 panels: 96 blocks are left, 32 rows of blocks of a process and, rounded up, 20 columns: 3,200 x 2,000."""
    found = step(PROBLEM, PROCESS, 0)
    assert found.gemm == pytest.approx(2 * 3_200 * 2_000 * 100 / 1e13)
    assert found.factor == pytest.approx(2 / 3 * 100**3 / 1e11)
    assert found.triangle == pytest.approx(100 * 100 * (3_200 + 2_000) / 1e12)
    trees = (2 + 3) * (1e-6 + 4 * 100 * 100 / 2e9)  # log2 of 3 and 5, rounded up
    left, upper = 2 * 100 * 3_200, 2 * 100 * 2_000
    copies = (left + upper) / 2e10 + (3 * left + upper) / 1e10
    assert found.broadcast == pytest.approx(trees + (left + upper) / 2e9 + 2e-6 + copies)
    assert found.took == max(found.gemm, found.panel)
    assert found.bound == "panel"


def test_without_look_ahead_parts_add_up() -> None:
    found = step(replace(PROBLEM, look_ahead=False), PROCESS, 0)
    assert found.took == pytest.approx(found.gemm + found.panel)


def test_all_is_the_sum_of_steps_the_first_panel_and_refinement() -> None:
    found = outcome(PROBLEM, PROCESS)
    steps = sum(step(PROBLEM, PROCESS, number).took for number in range(PROBLEM.panels))
    assert found.time == pytest.approx(steps + found.first + found.refinement)
    assert sum(found.bound.values()) == pytest.approx(steps)
    assert step(PROBLEM, PROCESS, PROBLEM.panels - 1).took == 0


def test_each_correction_takes_as_long() -> None:
    times = [outcome(replace(PROBLEM, corrections=often), PROCESS).refinement for often in (0, 1, 2)]
    assert times[2] - times[1] == pytest.approx(times[1] - times[0])
    assert times[1] > times[0] > 0


def test_one_process_sends_nothing_along_a_row_or_column() -> None:
    alone = replace(PROBLEM, rows=1, columns=1)
    assert step(alone, replace(PROCESS, nic_rate=1.0, copy_in=1e30, copy_out=1e30), 0).broadcast == pytest.approx(2e-6)


def test_memory_is_two_bytes_an_element_and_the_panels() -> None:
    assert local_bytes(PROBLEM) == 2 * (3_300 * 2_000 + 100 * (2 * 3_300 + 2_000))


def test_aurora_has_what_was_published_of_its_run_and_says_what_is_calibrated() -> None:
    answer = closed_hplmxp.answer(asked())
    assert answer.values["nb"] == "1536"
    assert answer.figures["panels"] == 37_561
    assert answer.question.ppn == 2
    assert answer.calibrated == "gemm_exposed, on HPL's result (see hpl)"
    assert not answer.warnings
    assert not closed_hplmxp.answer(asked(parameters=(*AURORA, ("gemm_exposed", "0 %")))).calibrated
    assert answer.virtual_time_s == pytest.approx(sum(answer.phases.values()))


def test_products_in_fp16_are_slower_by_what_was_measured() -> None:
    rates = [closed_hplmxp.process_of(asked(parameters=(("precision", each),))).half_rate for each in ("bf16", "fp16")]
    assert rates[0] == pytest.approx(3 * 414.5e12)
    assert rates[1] / rates[0] == pytest.approx(0.985)


def test_order_and_grid_follow_from_memory_and_ranks_where_nobody_gives_them() -> None:
    problem = closed_hplmxp.problem_of(asked(parameters=()))
    assert (problem.rows, problem.columns) == (152, 125)
    assert problem.order % problem.block == 0
    assert 0.99 < problem.order / 57_693_696 < 1.01


def test_a_matrix_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UserError, match=r"n=80000000: a node needs 1.2\d* TiB; accepted is what fits 768 GiB"):
        closed_hplmxp.check(asked(parameters=(("n", "80000000"), ("grid", "152x125"))))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"machine": "perlmutter-cpu"}, "hplmxp needs GPUs, and machine perlmutter-cpu says nothing of them"),
        ({"parameters": (("grid", "3x3"),)}, "grid=3x3 has 9 processes"),
        ({"parameters": (("precision", "fp8"),)}, "precision=fp8: accepted is bf16 or fp16"),
        ({"model": "drawn"}, "--model drawn: hplmxp has closed and skeleton"),
        ({"model": "skeleton"}, "hplmxp: --model skeleton runs every panel: n is missing; accepted is one such as"),
        ({"model": "skeleton", "parameters": (("amx", "on"),)}, "hplmxp: parameter amx is none of --model skeleton"),
        ({"level": "links"}, "--level has no effect on --model closed"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        ask.check(asked(**{"nodes": 64, "parameters": (), **given}))


def test_an_answer_has_a_key_of_its_own() -> None:
    assert len({ask.key(asked()), ask.key(asked(nodes=9499, parameters=())), ask.key(asked(parameters=()))}) == 3

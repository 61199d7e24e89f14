"""The closed form of HPL: its sum, its terms by hand, and what each of its choices does."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from dryfly.oracle.hpl import Problem, Process, local_bytes, outcome, step, stretches

PROBLEM = Problem(order=9_700, block=100, rows=3, columns=5)
PROCESS = Process(
    gemm_rate=1e12,
    gemm_memory=1e11,
    gemm_exposed=0.0,
    gemm_tile=10,
    gemm_tiles=1,
    call=0.0,
    triangle_share=0.5,
    panel_rate=1e11,
    panel_memory=1e11,
    host_memory=1e11,
    panel_base=100,
    panel_call=0.0,
    message=1e-6,
    swap_rate=1e9,
    swap_off_node=1.0,
    broadcast_rate=2e9,
    nic_rate=0.0,
)


@pytest.mark.parametrize("rows", [1, 3, 7])
@pytest.mark.parametrize("order", [100, 9_700, 9_750])
def test_stretches_are_all_panels_once_and_alike(order: int, rows: int) -> None:
    problem = replace(PROBLEM, order=order, rows=rows)
    seen = []
    for first, count in stretches(problem.panels, problem.rows, problem.columns):
        assert count > 0
        alike = step(problem, PROCESS, first)
        assert all(step(problem, PROCESS, first + more) == alike for more in range(count))
        seen += range(first, first + count)
    assert seen == list(range(problem.panels))


def test_the_first_step_is_what_its_terms_give_by_hand() -> None:
    """97 panels: 96 blocks are left, 32 rows of blocks of a process and, rounded up, 20 columns: 3,200 x 2,000."""
    found = step(PROBLEM, PROCESS, 0)
    product = 2 * 3_200 * 2_000 * 100 / 1e12
    triangle = 100 * 100 * 2_000 / 0.5e12
    assert found.gemm == pytest.approx(product + triangle)
    pivots = 100 * 2 * (1e-6 + 8 * 204 / 1e9)  # log2 of 3, rounded up
    panel = 3_200 * 100 * 100 / 1e11 + 16 * 3_200 * 100 / 1e11
    assert found.factor == pytest.approx(panel + pivots)
    assert found.broadcast == pytest.approx(8 * (3_200 * 100 + 100 * 101) / 2e9 + 1e-6)
    assert found.swap == pytest.approx(2.4 * 8 * 100 * 2_000 / 1e9 + (2 + 2) * 1e-6)
    assert found.took == max(found.gemm, found.factor + found.broadcast, found.swap)


def test_columns_that_fit_the_last_caches_take_no_level_of_the_recursion() -> None:
    """Of 3,200 rows 25 columns are 640 kB; a block of 100 has two levels above them, each a pass of the panel."""
    first = step(PROBLEM, replace(PROCESS, panel_base=10, panel_cache=640e3), 0).factor
    without = step(PROBLEM, replace(PROCESS, panel_base=10), 0).factor
    whole = 16 * 3_200 * 100 / 1e11
    assert first - step(PROBLEM, PROCESS, 0).factor == pytest.approx(2 * whole)
    assert without - first == pytest.approx((math.log2(10) - 2) * whole)


def test_large_and_unbound_it_is_the_operations_at_the_rate() -> None:
    """2/3 N^3 and nothing else: blocks of one process grid cost under 1 %, the rest is without cost."""
    free = replace(PROCESS, panel_rate=math.inf, panel_memory=math.inf, message=0.0, swap_rate=math.inf,
                   broadcast_rate=math.inf, gemm_memory=math.inf, triangle_share=1e9)  # fmt: skip
    problem = Problem(order=200_000, block=200, rows=2, columns=2)
    assert outcome(problem, free).time == pytest.approx(2 / 3 * 200_000**3 / 4 / 1e12, rel=0.01)


def test_the_time_is_that_of_all_its_panels() -> None:
    found = outcome(PROBLEM, PROCESS)
    steps = sum(step(PROBLEM, PROCESS, number).took for number in range(PROBLEM.panels))
    assert found.time == pytest.approx(steps + found.first + found.solve)
    assert sum(found.bound.values()) == pytest.approx(steps)


def test_without_look_ahead_the_parts_add_up() -> None:
    found = step(replace(PROBLEM, look_ahead=False), PROCESS, 0)
    assert found.took == pytest.approx(found.gemm + found.factor + found.broadcast + found.swap)


def test_from_the_crossover_on_swapping_takes_longer_than_multiplying() -> None:
    slow = replace(PROCESS, swap_rate=5e9, broadcast_rate=5e9)
    found = outcome(PROBLEM, slow)
    assert 0 < found.swap_from < PROBLEM.panels
    before, after = (step(PROBLEM, slow, number) for number in (found.swap_from - 1, found.swap_from))
    assert before.swap <= before.gemm
    assert after.swap > after.gemm


def test_half_a_wave_of_tiles_takes_as_long_as_a_whole_one() -> None:
    """3,200 x 2,000 in tiles of 400: 8 x 5 = 40, one wave of 64 or two of 20."""
    times = [step(PROBLEM, replace(PROCESS, gemm_tile=400, gemm_tiles=tiles), 0).gemm for tiles in (64, 40, 20)]
    triangle = 100 * 100 * 2_000 / 0.5e12
    assert times[0] - triangle == pytest.approx((times[1] - triangle) * 64 / 40)
    assert times[1] == pytest.approx(times[2])


def test_what_products_do_not_hide_counts_less_with_larger_blocks() -> None:
    exposed = replace(PROCESS, gemm_exposed=1.0)
    shares = []
    for block in (50, 100, 200):
        problem = replace(PROBLEM, block=block, order=9_600)
        shares.append(step(problem, exposed, 0).gemm / step(problem, PROCESS, 0).gemm)
    assert shares[0] > shares[1] > shares[2] > 1


def test_nics_that_phases_share_carry_the_bytes_of_all() -> None:
    found = step(PROBLEM, replace(PROCESS, nic_rate=1e9), 0)
    sent = 8 * (3_200 * 100 + 100 * 101) + 2.4 * 8 * 100 * 2_000
    assert found.nics == pytest.approx(sent / 1e9)
    assert found.took == found.nics
    assert found.bound == "nics"


def test_a_matrix_on_the_host_streams_through_the_copies() -> None:
    gpu = replace(PROCESS, copy_in=2e9, copy_out=1e9)
    found = step(replace(PROBLEM, on_host=True), gpu, 0)
    assert found.copies == pytest.approx(8 * 3_200 * 2_000 / 1e9)
    assert step(PROBLEM, gpu, 0).copies == 0


@pytest.mark.parametrize(
    ("choice", "factor"),
    [
        ({"swap": "binary"}, 2 / 2.4),
        ({"swap": "mix", "swap_threshold": 2_000}, 2 / 2.4),
        ({"swap": "mix"}, 1.0),
        ({"swap": "spread"}, 1.0),
    ],
)
def test_the_exchange_moves_its_algorithms_bytes(choice: dict[str, Any], factor: float) -> None:
    """Of three rows of processes: two rounds, or 2.4 times the bytes."""
    free = replace(PROCESS, message=0.0)
    assert step(replace(PROBLEM, **choice), free, 0).swap == pytest.approx(factor * 2.4 * 8 * 100 * 2_000 / 1e9)


def test_one_process_neither_sends_nor_swaps() -> None:
    found = step(replace(PROBLEM, rows=1, columns=1), PROCESS, 0)
    assert (found.broadcast, found.swap) == (0.0, 0.0)


def test_memory_is_the_matrix_two_panels_and_two_sets_of_rows() -> None:
    """97 blocks: 33 rows of them at most, 20 columns."""
    assert local_bytes(PROBLEM) == 8 * (3_300 * 2_000 + 2 * 100 * (3_300 + 2_000))

"""What several seeds have in common: medians and their intervals."""

from __future__ import annotations

import pytest

from dryfly.study.seeds import Spread, figures, noise_cost, outside


@pytest.mark.parametrize(("count", "place"), [(5, 0), (6, 1), (8, 1), (9, 2), (20, 6), (100, 40)])
def test_the_place_is_that_of_the_tables_of_order_statistics(count: int, place: int) -> None:
    """As in tables of the sign test, two-sided at 5 %."""
    assert outside(count) == place


def test_an_interval_leaves_out_as_many_values_on_both_sides() -> None:
    spread = Spread(values=tuple(float(value) for value in range(20, 0, -1)))
    assert (spread.median, spread.interval) == (10.5, (6.0, 15.0))
    assert Spread(values=(3.0, 1.0, 2.0)).interval == (1.0, 3.0)
    assert not Spread(values=(3.0, 1.0, 2.0)).has_interval


def test_figures_are_those_that_every_run_has() -> None:
    outputs = ["# OSU\n1  2.0  3.0\n8  4.0  5.0\n", "# OSU\n1  2.5  3.5\n"]
    found = figures([{"output": text, "virtual_time_s": 1.0 + at} for at, text in enumerate(outputs)])
    assert {name: spread.values for name, spread in found.items()} == {
        "1": (2.0, 2.5), "1, figure 2": (3.0, 3.5), "virtual time": (1.0, 2.0)
    }  # fmt: skip


def test_noise_costs_what_the_median_run_has_lost() -> None:
    noise = {"interrupted_s": 0.02, "delayed_s": 0.02}
    runs = [{"virtual_time_s": time, "result": {"noise": noise, "ranks": 4}} for time in (1.1, 1.3, 1.2)]
    cost = noise_cost(runs, {"virtual_time_s": 1.0})
    assert cost["lost_s"] == pytest.approx(0.2)
    assert cost["from_a_rank_s"] == pytest.approx(0.01)
    assert cost["text"] == "noise took 10 ms from a rank itself and 200 ms (20.00%) from the run, 20.0 times as much"


def test_what_a_run_has_lost_by_its_start_skew_is_not_amplified() -> None:
    def cost(last: float) -> dict[str, object]:
        noise = {"interrupted_s": 0.02, "delayed_s": 0.02, "start_skew_s": 0.4, "last_start_s": last}
        return noise_cost([{"virtual_time_s": 1.2, "result": {"noise": noise, "ranks": 4}}], {"virtual_time_s": 1.0})

    part, all_of_it = cost(0.05), cost(0.3)
    assert part["amplified"] == pytest.approx(15)
    assert str(part["text"]).endswith(
        "200 ms (20.00%) from the run, 150 ms of it beyond the 50 ms by which the last rank left MPI_Init late: 15.0 "
        "times as much"
    )
    assert all_of_it["amplified"] is None
    assert str(all_of_it["text"]).endswith(
        "(20.00%) from the run, no more than the 300 ms by which the last rank left MPI_Init late"
    )

"""What the resolved spec says of where ranks of a node are to each other (docs/model/on-node.md#places)."""

from __future__ import annotations

import pytest

from dryfly.base.errors import UserError
from dryfly.case.near import longest_cached, spec_lines
from dryfly.case.placement import Placement
from dryfly.machine.load import load

KIB, MIB = 2**10, 2**20
_NONE = Placement(policy="packed", ranks=())


def near_of(machine: str, *overrides: str) -> dict[str, int | str]:
    return dict(spec_lines(load(machine, sets=overrides), _NONE))


def test_a_core_sees_two_lines_later_by_where_the_other_is() -> None:
    lines = near_of("crusher")
    assert [lines[f"node.near.{distance}.latency_ps"] for distance in range(3)] == [46_000, 214_000, 394_000]
    assert lines["node.near.regions"] == 8


def test_what_comes_from_afar_comes_as_slowly_as_its_lines() -> None:
    lines = near_of("crusher")
    # 22.4 GB/s with 88 ns to memory, and 107 or 197 ns to the other core.
    assert lines["node.near.0.cached_bytes_per_s"] == 44 * 10**9
    assert lines["node.near.1.cached_bytes_per_s"] == 22_400_000_000 * 88 // 107
    assert lines["node.near.1.memory_bytes_per_s"] == 22_400_000_000
    assert lines["node.near.2.cached_bytes_per_s"] == 22_400_000_000 * 88 // 197
    assert lines["node.near.2.memory_bytes_per_s"] == lines["node.near.2.cached_bytes_per_s"]


def test_nothing_from_afar_is_faster_than_memory() -> None:
    # 176 ns to Grace's memory, 139 ns to another Grace.
    lines = near_of("alps")
    assert lines["node.near.2.cached_bytes_per_s"] == 12 * 10**9


def test_places_count_where_there_are_rows_and_can_be_turned_off() -> None:
    assert near_of("crusher", "node.near.places=on") == near_of("crusher")
    off = "node.near.places=off"
    assert near_of("crusher", off) == {}
    assert longest_cached(load("crusher", sets=(off,)), 8) == 0


def test_all_cores_are_alike_where_there_are_no_rows() -> None:
    assert near_of("testbed") == {}
    assert longest_cached(load("testbed"), 8) == 0
    with pytest.raises(UserError, match=r"machine testbed: node\.near\.places = on: accepted is off"):
        near_of("testbed", "node.near.places=on")


@pytest.mark.parametrize(
    ("ranks", "longest"), [(8, (512 * KIB + 32 * MIB) // 2), (56, (512 * KIB + 32 * MIB // 7) // 2)]
)
def test_a_copy_stays_in_the_caches_that_a_rank_has(ranks: int, longest: int) -> None:
    assert longest_cached(load("crusher"), ranks) == longest


def test_rows_come_together() -> None:
    with pytest.raises(UserError, match=r"node\.near\.l3_line is not given"):
        near_of("testbed", "node.near.l3_rate=12 GB/s")


def test_a_way_into_a_region_comes_with_one_out_of_it() -> None:
    lines = near_of("crusher")
    assert (lines["node.near.into_region_bytes_per_s"], lines["node.near.out_of_region_bytes_per_s"]) == (
        51_200_000_000,
        25_600_000_000,
    )
    assert "node.near.into_region_bytes_per_s" not in near_of("aurora")
    with pytest.raises(UserError, match=r"into_region and node\.near\.out_of_region: accepted are both or none"):
        near_of("aurora", "node.near.into_region=50 GB/s")
    with pytest.raises(UserError, match=r"node\.l3 = 128: accepted are up to 64 L3 regions"):
        near_of("perlmutter-cpu", "node.near.places=on", "node.l3=128")


def test_a_line_from_farther_away_is_no_quicker() -> None:
    with pytest.raises(UserError, match=r"accepted are times, none shorter than the one before it"):
        near_of("aurora", "node.near.l3_line=150 ns")


def test_xpmem_that_is_off_costs_nothing_because_it_is_not_there() -> None:
    assert near_of("crusher")["node.xpmem_attach_ps"] == 2_000_000
    assert "node.xpmem_attach_ps" not in near_of("crusher", "node.xpmem=off")

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.case.placement import Placement, place
from dryfly.machine.load import load
from dryfly.machine.names import NodeNames


def nodes_of(placement: Placement) -> list[int]:
    return [each.node for each in placement.ranks]


def test_packed_fills_the_first_nodes_in_blocks() -> None:
    placement = place(load("testbed"), nodes=2, ppn=3)
    assert nodes_of(placement) == [0, 0, 0, 1, 1, 1]
    assert [each.local for each in placement.ranks] == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("asked", "per_node"),
    [
        ({"nodes": 3}, [1, 1, 1]),
        ({"ppn": 4}, [4]),
        ({"ranks": 5}, [1, 1, 1, 1, 1]),
        ({"ranks": 5, "ppn": 2}, [2, 2, 1]),
        ({"ranks": 10, "nodes": 4}, [3, 3, 2, 2]),
        ({"ranks": 5, "nodes": 3, "ppn": 2}, [2, 2, 1]),
        ({"ranks": 40}, [2] * 8 + [1] * 24),  # the testbed has 32 nodes
        ({}, [1, 1]),
    ],
)
def test_ranks_are_counted_from_any_two_of_the_three_flags(asked: dict[str, int], per_node: list[int]) -> None:
    assert list(Counter(nodes_of(place(load("testbed"), **asked))).values()) == per_node


def test_spread_deals_the_nodes_over_the_groups() -> None:
    names = NodeNames(load("testbed"))
    nodes = nodes_of(place(load("testbed"), nodes=8, policy="spread"))
    # 4 groups of 8 nodes: two nodes of each group, and those half a group apart.
    assert nodes == [0, 8, 16, 24, 4, 12, 20, 28]
    assert Counter(names.group(node)[0] for node in nodes) == {0: 2, 1: 2, 2: 2, 3: 2}
    assert sorted(nodes_of(place(load("testbed"), nodes=32, policy="spread"))) == list(range(32))


def test_random_placement_depends_on_the_seed_alone() -> None:
    machine = load("aurora")
    first = nodes_of(place(machine, nodes=16, policy="random", seed=1))
    assert first == nodes_of(place(machine, nodes=16, policy="random", seed=1))
    assert first != nodes_of(place(machine, nodes=16, policy="random", seed=2))
    assert len(set(first)) == 16
    # A larger job keeps the nodes of the smaller one: each node's draw is its own.
    assert nodes_of(place(machine, nodes=32, policy="random", seed=1))[:16] == first
    assert sorted(nodes_of(place(load("testbed"), nodes=32, policy="random", seed=9))) == list(range(32))


def test_ranks_take_the_nics_in_blocks_or_apart() -> None:
    machine = load("aurora")  # 8 NICs a node
    assert [each.nic for each in place(machine, nodes=1, ppn=16).ranks] == [n for n in range(8) for _ in (0, 1)]
    assert [each.nic for each in place(machine, nodes=1, ppn=2).ranks] == [0, 4]
    assert [each.nic for each in place(load("testbed"), nodes=1, ppn=3).ranks] == [0, 0, 0]


def test_a_file_places_each_rank_by_name_or_x_name(tmp_path: Path) -> None:
    file = tmp_path / "nodes"
    file.write_text("frontier00003  # first\nx2000c0s0b0n0 2\n\nfrontier00003\n", encoding="utf-8")
    placement = place(load("frontier"), policy=str(file))
    assert nodes_of(placement) == [2, 0, 0, 2]
    assert [each.local for each in placement.ranks] == [0, 0, 1, 1]
    with pytest.raises(UserError, match="-n 5 contradicts"):
        place(load("frontier"), policy=str(file), ranks=5)


@pytest.mark.parametrize(
    "line", ["t32", "t01", "x1000c0s0b0n1", "x1000c8s0b0n0", "x1004c0s0b0n0", "nid1", "t1 0", "t1 2 3"]
)
def test_a_wrong_line_of_a_file_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "nodes"
    file.write_text(f"t0\n{line}\n", encoding="utf-8")
    with pytest.raises(UserError, match="line 2"):
        place(load("testbed"), policy=str(file))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"nodes": 33}, "testbed has 32 nodes, 33 are asked for"),
        ({"ranks": 32 * 128 + 1}, "holds 4096 ranks"),
        ({"nodes": 1, "ppn": 129}, "128 cores"),
        ({"nodes": 0}, "-N 0: accepted is 1 or more"),
        ({"ppn": -1}, "--ppn -1"),
        ({"ranks": 9, "nodes": 2, "ppn": 4}, "hold 8"),
        ({"ranks": 2, "nodes": 3}, "more nodes than ranks"),
        ({"policy": "scattered"}, "neither packed, spread or random, nor a file"),
    ],
)
def test_what_does_not_fit_the_machine_is_refused(asked: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says):
        place(load("testbed"), **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("machine", "first", "last"),
    [
        ("aurora", "x4000c0s0b0n0", "x4718c7s7b0n0"),  # 166 = 7 rows x 21 + 19
        ("frontier", "frontier00001", "frontier09408"),
        ("crusher", "crusher001", "crusher192"),
        ("lumi-g", "nid005000", "nid007977"),
        ("testbed", "t0", "t31"),
    ],
)
def test_nodes_are_called_as_on_the_machine(machine: str, first: str, last: str) -> None:
    loaded = load(machine)
    names = NodeNames(loaded)
    assert (names.name(0), names.name(loaded.nodes_max - 1)) == (first, last)


@pytest.mark.parametrize("machine", ["aurora", "frontier", "lumi-g", "alps", "crusher", "perlmutter-cpu", "testbed"])
def test_both_kinds_of_names_lead_back_to_the_node(machine: str) -> None:
    loaded = load(machine)
    names = NodeNames(loaded)
    every = range(0, loaded.nodes_max, 7)
    assert [names.index(names.name(node)) for node in every] == list(every)
    assert [names.index(names.xname(node)) for node in every] == list(every)


def test_nodes_are_numbered_over_every_kind_of_group() -> None:
    # Perlmutter's 14 x 128 GPU nodes come first, so its first CPU node has the number 1,792.
    assert NodeNames(load("perlmutter-cpu")).number(0) == 1_792
    assert NodeNames(load("lumi-g")).number(2_977) == 2_977

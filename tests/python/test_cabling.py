"""Machines from a list of their cables (docs/guide/cabling.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.case.placement import place
from dryfly.case.resolve import ComputeSpec, resolve
from dryfly.machine.listing import description
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.scenario import faults

_DOC = Path(__file__).parents[2] / "docs" / "guide" / "cabling.md"


def machine_of(folder: Path, cables: str, **more: str) -> Machine:
    (folder / "cables.csv").write_text(cables, encoding="utf-8")
    lines = ['include = ["slingshot11"]', "[topology]", 'cabling = "cables.csv"', "[job]", "cores_per_node = 4"]
    (folder / "mine.toml").write_text("\n".join(lines), encoding="utf-8")
    return load(str(folder / "mine.toml"), sets=[f"{path}={value}" for path, value in more.items()])


def example() -> str:
    return re.findall(r"```\n(# cables.csv.*?)```", _DOC.read_text(encoding="utf-8"), re.DOTALL)[0]


def test_the_example_of_the_page_becomes_a_machine(tmp_path: Path) -> None:
    machine = machine_of(tmp_path, example())
    assert [(kind.groups, kind.switches, kind.nodes) for kind in machine.kinds] == [(1, 2, 2), (1, 1, 1)]
    assert machine.cabling is not None
    assert machine.cabling.switches == ("x1000c0r3", "x1000c1r3", "x1001c0r3")
    assert machine.cabling.nic_switches == ((0,), (1,), (2,))
    assert machine.cabling.cables == ((0, 2), (1, 2))
    spec = resolve(machine, place(machine, nodes=2), seed=1, compute=ComputeSpec(mode="none"))
    assert "topology.cables 2\ntopology.cable.0 0 2\ntopology.cable.1 1 2\n" in spec
    assert "topology.node.1.switches 1\n" in spec
    # The second node is down; the first of the cables between the cabinets is.
    assert [line.split()[1] for line in spec.splitlines() if ".where " in line] == ["s0-s2.0", "n1"]
    assert place(machine, nodes=2).nodes == [0, 2]
    assert "x1001c0s0b0n0" in spec
    assert "2 (cables)" in description(str(tmp_path / "mine.toml")).replace("global links    ", "")
    with pytest.raises(UserError, match="3 nodes, of which 1 are down; 3 are asked for"):
        place(machine, nodes=3)


def test_nodes_that_are_cut_off_get_no_ranks_and_missing_links_are_absent(tmp_path: Path) -> None:
    lines = [f"x1c0r{a}j{a}p{b},x1c0r{b}j{a}p{b}" for a, b in ((0, 1), (0, 1), (0, 2))]
    lines[1] = "x1c0r0j9p1,x1c0r1j9p1,down"
    lines += [f"x1c0s{node}b0n0h{nic},x1c0r{node % 3}j2{node}p{nic}" for node in range(4) for nic in range(2)]
    lines.remove("x1c0s0b0n0h1,x1c0r0j20p1")
    machine = machine_of(tmp_path, "\n".join([*lines, "x1c0r2,,down"]))
    assert faults.down_nodes(machine) == {0, 2}  # a NIC without cable; a switch that is down
    assert place(machine, nodes=2).nodes == [1, 3]
    # Two parallel links are usual here: one of s0-s1 is down, s0-s2 has one, s1-s2 none; s2 is down; n1 has no cable.
    assert [place for fault in faults.absent(machine) for place in fault.places] == [
        "s2", "s0-s1.1", "s0-s2.1", "s1-s2", "n1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("x1000c0r3j1p0,x1000c0r9j1p0", r"line \d+: port x1000c0r3j1p0 has a cable already \(line 3\)"),
        ("x1000c0r3,x1000c0r9j1p0", '"x1000c0r3": accepted are ports of switches'),
        ("here,there", '"here": accepted are ports of switches'),
        ("x1000c0s7b0n0h0,x1000c0s8b0n0h0", "are both NICs"),
        ("x1000c0s7b0n0h0,x1001c0r3j9p0", "different cabinets"),
        ("x1000c0r3j8p0,x1000c0r3j9p0", "both ends are on switch x1000c0r3"),
        ("x1000c0r3j8p0,x1000c1r3j9p0,broken", "state of up or down"),
        ("x1000c0r9,,down", "x1000c0r9 is said to be down but has no cable"),
        ("x1000c0r3,,up", "a switch or node that is down"),
        ("x1002c0s0b0n0h0,x1002c0r3j5p0", "cabinet x1000 cannot reach those of x1002"),
    ],
)
def test_a_list_that_cannot_be_is_refused_in_one_sentence(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        machine_of(tmp_path, example() + line + "\n")


def test_what_contradicts_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"switch x1000c0r3 has 3 cables; topology\.ports_per_switch is 2"):
        machine_of(tmp_path, example(), **{"topology.ports_per_switch": "2"})
    (tmp_path / "both.toml").write_text('include = ["testbed"]\n[topology]\ncabling = "x"\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"stands in place of topology\.group"):
        load(str(tmp_path / "both.toml"))
    with pytest.raises(UserError, match="no node has a cable"):
        machine_of(tmp_path, "x1c0r0j1p0,x1c0r1j1p0")
    (tmp_path / "mine.toml").write_text('include = ["slingshot11"]\ntopology.cabling = "no"\n', encoding="utf-8")
    with pytest.raises(UserError, match="no file that can be read"):
        load(str(tmp_path / "mine.toml"))

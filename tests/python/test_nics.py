"""What is checked of the settings for NICs before a run starts, and what ranks and hwloc are told of the node."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.case import hwloc, nics
from dryfly.case.placement import place
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.machine.node import node_of

_MACHINE = """
include = ["testbed"]
[topology.group.compute]
nics_per_node = 4
[node]
numa = 4
sockets = 2
nic_numa = "3, 1, 0, 2"
[job]
cores_per_node = 130
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    file = tmp_path / "nics.toml"
    file.write_text(_MACHINE)
    return load(str(file))


def test_what_can_be_used_is_accepted(machine: Machine) -> None:
    placement = place(machine, nodes=2, ppn=4)
    for policy in ("BLOCK", "ROUND-ROBIN", "NUMA", "numa"):
        nics.check({"MPICH_OFI_NIC_POLICY": policy, "MPICH_OFI_NUM_NICS": "2:1,3"}, machine, placement)
    mapping = {"MPICH_OFI_NIC_POLICY": "USER", "MPICH_OFI_NIC_MAPPING": '"0:0-1; 3:2,3"'}
    nics.check(mapping, machine, placement)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"MPICH_OFI_NIC_POLICY": "NEAREST"},
            "MPICH_OFI_NIC_POLICY=NEAREST: accepted is BLOCK, ROUND-ROBIN, NUMA, GPU",
        ),
        ({"MPICH_OFI_NIC_POLICY": "GPU"}, "machine nics says nothing of GPUs"),
        ({"MPICH_OFI_NIC_POLICY": "USER"}, "MPICH_OFI_NIC_POLICY=USER needs MPICH_OFI_NIC_MAPPING"),
        ({"MPICH_OFI_NIC_MAPPING": "4:0-3"}, "there is no NIC 4; accepted is 0 to 3"),
        ({"MPICH_OFI_NIC_MAPPING": "0:0,2,3"}, "local rank 1 is not mapped; a node has 4 ranks"),
        ({"MPICH_OFI_NIC_MAPPING": "0:0-3;1:1"}, "local rank 1 is mapped twice"),
        ({"MPICH_OFI_NIC_MAPPING": "0:3-0"}, '"3-0" is neither a local rank nor a range of them'),
        ({"MPICH_OFI_NIC_MAPPING": "all"}, '"all" is not NIC:RANKS'),
        ({"FI_CXI_DEVICE_NAME": "cxi9"}, "FI_CXI_DEVICE_NAME=cxi9: it names no NIC of the job's nodes"),
        ({"MPICH_OFI_NUM_NICS": "5"}, "MPICH_OFI_NUM_NICS=5: accepted is 1 to 4"),
        ({"MPICH_OFI_NUM_NICS": "2:1"}, "2 NICs are announced and 1 listed"),
        ({"MPICH_OFI_NIC_VERBOSE": "yes"}, "MPICH_OFI_NIC_VERBOSE=yes: accepted is 0, 1 or 2"),
    ],
)
def test_what_names_no_nic_is_refused(settings: dict[str, str], sentence: str, machine: Machine) -> None:
    if "MPICH_OFI_NIC_MAPPING" in settings:
        settings = {**settings, "MPICH_OFI_NIC_POLICY": "USER"}
    with pytest.raises(UserError) as raised:
        nics.check(settings, machine, place(machine, nodes=2, ppn=4))
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("sets", "sentence"),
    [
        ("node.nic_numa=0,1", "node.nic_numa lists 2 NUMA domains, but a node has 4 NICs"),
        ("node.nic_numa=0,1,2,4", "each 0 to 3"),
        ("node.sockets=3", "node.numa = 4: accepted is a multiple of node.sockets"),
        ("node.coreless.domains=3", "node.coreless.domains = 3: accepted is a multiple of node.sockets"),
        ("node.l3=6", "node.l3 = 6: accepted is a multiple of node.numa"),
        ("node.reserved=0,130", "each 0 to 129"),
    ],
)
def test_a_node_that_does_not_fit_together_is_refused(sets: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "nics.toml"
    file.write_text(_MACHINE)
    with pytest.raises(UserError) as raised:
        node_of(load(str(file), sets=[sets]), nics=4)
    assert sentence in str(raised.value)


def test_each_rank_is_told_of_its_node(machine: Machine) -> None:
    told = nics.rank_variables(machine, place(machine, nodes=2, ppn=3))
    assert told[4] == "nics=4 local=1 ranks=3 domains=4 sockets=2 at=3,1,0,2"


def test_hwloc_finds_every_nic_in_its_domain(machine: Machine) -> None:
    tree = ElementTree.fromstring(hwloc.xml(machine))
    packages = tree.findall("./object[@type='Machine']/object[@type='Package']")
    assert [package.get("nodeset") for package in packages] == ["0x00000003", "0x0000000c"]
    assert len(tree.findall(".//object[@type='PU']")) == 130
    groups = tree.findall(".//object[@type='Group']")
    addresses = [[device.get("pci_busid") for device in group.iter() if device.get("pci_busid")] for group in groups]
    assert addresses == [["1000:03:00.0"], ["1000:02:00.0"], ["1000:04:00.0"], ["1000:01:00.0"]]
    # 130 cores are 32, 33, 32 and 33; the last domain's cores are bits 97 to 129.
    assert groups[3].get("cpuset") == "0x00000003,0xfffffffe,0x00000000,0x00000000,0x00000000"

"""The file that hwloc reads of a simulated node, read by hwloc itself where the computer has it."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.case import hwloc
from dryfly.machine.load import load, shipped_machines

CORE, PACKAGE, NUMA, PCI = 2, 1, 13, 15  # hwloc_obj_type_t of hwloc 2
KEEP_ALL = 0


def elements(machine: str, kind: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(hwloc.xml(load(machine)).split("\n", 1)[1])
    return [each for each in root.iter("object") if each.get("type") == kind]


def test_aurora_has_two_sockets_of_52_cores_and_four_nics_on_each() -> None:
    packages = elements("aurora", "Package")
    assert [len([o for o in p.iter("object") if o.get("type") == "Core"]) for p in packages] == [52, 52]
    assert [[o.get("name") for o in p.iter("object") if o.get("type") == "OSDev"] for p in packages] == [
        ["hsn0", "hsn1", "hsn2", "hsn3"],
        ["hsn4", "hsn5", "hsn6", "hsn7"],
    ]
    # Cores 0 to 51: 52 bits, the upper word first.
    assert packages[0].get("cpuset") == "0x000fffff,0xffffffff"


def test_frontier_has_four_numa_domains_of_16_cores_in_one_socket() -> None:
    assert len(elements("frontier", "Package")) == 1
    assert [o.get("cpuset") for o in elements("frontier", "NUMANode")] == [
        "0x0000ffff",
        "0xffff0000",
        "0x0000ffff,0x00000000",
        "0xffff0000,0x00000000",
    ]


def test_the_pci_addresses_are_those_that_the_provider_reports() -> None:
    assert sorted(str(o.get("pci_busid")) for o in elements("frontier", "PCIDev")) == [
        f"1000:0{n}:00.0" for n in (1, 2, 3, 4)
    ]


def test_a_file_of_the_users_own_stays() -> None:
    assert hwloc.settings(load("testbed"), folder=Path("/none"), inherited={"HWLOC_XMLFILE": "mine.xml"}) == {}


def test_more_numa_domains_than_cores_are_refused() -> None:
    with pytest.raises(UserError, match=r"job\.cores_per_node = 3: accepted is at least a core for each of the 4 NUMA"):
        load("frontier", sets=["job.cores_per_node=3"])


@pytest.mark.parametrize("name", shipped_machines())
def test_hwloc_reads_the_file_of_each_machine(name: str, tmp_path: Path) -> None:
    found = ctypes.util.find_library("hwloc")
    if found is None:
        pytest.skip("this computer has no libhwloc")
    library = ctypes.CDLL(found)
    machine = load(name)
    path = Path(hwloc.settings(machine, folder=tmp_path, inherited={})["HWLOC_XMLFILE"])
    topology = ctypes.c_void_p()
    assert library.hwloc_topology_init(ctypes.byref(topology)) == 0
    library.hwloc_topology_set_xml.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    assert library.hwloc_topology_set_xml(topology, os.fsencode(path)) == 0
    assert library.hwloc_topology_set_io_types_filter(topology, KEEP_ALL) == 0
    assert library.hwloc_topology_load(topology) == 0
    library.hwloc_topology_check(topology)  # ends the process if something does not fit together
    domains = int(machine.optional("node.numa") or 1)
    wanted = {
        PACKAGE: machine.optional("node.sockets") or 1,
        NUMA: domains,
        CORE: machine.cores_per_node,
        PCI: machine.kinds[machine.job_kinds[0]].nics_per_node,
    }
    for kind, number in wanted.items():
        depth = library.hwloc_get_type_depth(topology, kind)
        assert library.hwloc_get_nbobjs_by_depth(topology, depth) == number
    library.hwloc_topology_destroy(topology)

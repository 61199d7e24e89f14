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
from dryfly.case.node_files import distance
from dryfly.machine.load import load, shipped_machines
from dryfly.machine.node import most_nics, node_of

PACKAGE, CORE, PU, NUMA, PCI = 1, 2, 3, 13, 15  # hwloc_obj_type_t of hwloc 2
KEEP_ALL = 0


def elements(machine: str, kind: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(hwloc.xml(load(machine)).split("\n", 1)[1])
    return [each for each in root.iter("object") if each.get("type") == kind]


def test_aurora_has_two_sockets_of_52_cores_and_four_nics_on_each() -> None:
    packages = elements("aurora", "Package")
    assert [len([o for o in p.iter("object") if o.get("type") == "Core"]) for p in packages] == [52, 52]
    nics = [o for p in packages for o in [[str(d.get("name")) for d in p.iter("object") if d.get("osdev_type") == "2"]]]
    assert nics == [
        ["hsn0", "hsn1", "hsn2", "hsn3"],
        ["hsn4", "hsn5", "hsn6", "hsn7"],
    ]
    # Hardware threads 0 to 51 and 104 to 155, the upper words first.
    assert packages[0].get("cpuset") == "0x0fffffff,0xffffff00,0x00000000,0x000fffff,0xffffffff"
    assert len(elements("aurora", "PU")) == 208


def test_each_processor_of_aurora_has_two_memories() -> None:
    found = [(o.get("os_index"), o.get("subtype"), int(o.get("local_memory", 0)) >> 30) for p in
             elements("aurora", "Package") for o in p.iter("object") if o.get("type") == "NUMANode"]  # fmt: skip
    assert found == [("0", "DDR5", 512), ("2", "HBM2e", 64), ("1", "DDR5", 512), ("3", "HBM2e", 64)]


def test_frontier_has_four_numa_domains_of_16_cores_in_one_socket() -> None:
    assert len(elements("frontier", "Package")) == 1
    assert [o.get("cpuset") for o in elements("frontier", "NUMANode")] == [
        "0x0000ffff,0x00000000,0x0000ffff",
        "0xffff0000,0x00000000,0xffff0000",
        "0x0000ffff,0x00000000,0x0000ffff,0x00000000",
        "0xffff0000,0x00000000,0xffff0000,0x00000000",
    ]


def test_each_l3_region_of_frontier_has_eight_cores_and_the_gpu_of_the_user_guide() -> None:
    regions = elements("frontier", "L3Cache")
    assert [len([o for o in r.iter("object") if o.get("type") == "Core"]) for r in regions] == [8] * 8
    gpus = [[o.get("name") for o in r.iter("object") if o.get("type") == "OSDev"] for r in regions]
    assert gpus == [[f"gpu{n}"] for n in (4, 5, 2, 3, 6, 7, 0, 1)]


def test_the_pci_addresses_are_those_that_the_provider_reports() -> None:
    found = sorted(str(o.get("pci_busid")) for o in elements("frontier", "PCIDev"))
    assert found[:4] == [f"1000:0{n}:00.0" for n in (1, 2, 3, 4)]
    assert found[4:] == [f"2000:0{n}:00.0" for n in range(1, 9)]  # GPUs


def test_a_file_of_the_users_own_stays() -> None:
    assert hwloc.settings(load("testbed"), folder=Path("/none"), inherited={"HWLOC_XMLFILE": "mine.xml"}) == {}


def test_more_numa_domains_than_cores_are_refused() -> None:
    with pytest.raises(UserError, match=r"job\.cores_per_node = 3: accepted is at least a core for each of the 4 NUMA"):
        load("frontier", sets=["job.cores_per_node=3"])


class Distances(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_uint), ("objects", ctypes.c_void_p), ("kind", ctypes.c_ulong),
        ("values", ctypes.POINTER(ctypes.c_uint64)),
    )  # fmt: skip


def _distances(library: ctypes.CDLL, topology: ctypes.c_void_p) -> list[int]:
    """Latencies between NUMA domains, row by row, as GROMACS asks for them; it then uses the answer unseen."""
    number, found = ctypes.c_uint(1), ctypes.POINTER(Distances)()
    latencies = ctypes.c_ulong(4)
    asked = (ctypes.byref(number), ctypes.byref(found), latencies, ctypes.c_ulong(0))
    assert library.hwloc_distances_get(topology, *asked) == 0
    return found[0].values[: found[0].count ** 2] if number.value else []


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
    node = node_of(machine, nics=most_nics(machine))
    wanted = {
        PACKAGE: node.sockets,
        NUMA: len(node.domains),
        CORE: node.cores - len(node.reserved),  # hwloc leaves out what a job does not get
        PU: len(node.allowed),
        PCI: len(node.nic_domains) + len(node.gpu_domains),
    }
    for kind, number in wanted.items():
        depth = library.hwloc_get_type_depth(topology, kind)
        assert library.hwloc_get_nbobjs_by_depth(topology, depth) == number
    assert _distances(library, topology) == (
        [distance(one, other) for one in node.domains for other in node.domains] if len(node.domains) > 1 else []
    )
    library.hwloc_topology_destroy(topology)

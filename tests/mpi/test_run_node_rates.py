"""What the ranks of a node share carries what it carries, and no more: its memory, each NUMA domain's, and the link
between its sockets, by MPI's own shared memory and by LINKx (docs/model/on-node.md#memory-of-a-node)."""

from __future__ import annotations

import pytest
from conftest import Dryfly
from harness import ROOT

from dryfly.apps import benchmarks
from dryfly.machine.load import load

SHARED = ("--mpi", "mpich", "--on-node", "shared")
LINKX = ("--mpi", "openmpi", "--provider", "linkx")
WAYS = pytest.mark.parametrize("how", [SHARED, LINKX], ids=["shared", "linkx"])
# Two sockets of 64 cores, in L3 regions of 8.
_NODE = ("run", "--machine", "perlmutter-cpu", "--set", "node.near.places=on", "--compute", "none", "--quiet")


def table(dryfly: Dryfly, name: str, cores: str, *options: str, sizes: str, more: tuple[str, ...]) -> benchmarks.Table:
    source = ROOT / "programs" / "benchmark" / f"{name}.c"
    ranks = str(cores.count(":"))
    job = (*_NODE, "-N", "1", "--ppn", ranks, "--cpu-bind", cores, *options)
    return benchmarks.read(dryfly(*job, "--", source, "-m", sizes, *more).succeeded().stdout)


@pytest.mark.parametrize(
    "how", [pytest.param(SHARED, id="shared"), pytest.param(LINKX, id="linkx", marks=pytest.mark.slow)]
)
def test_pairs_across_sockets_share_the_link(dryfly: Dryfly, how: tuple[str, ...]) -> None:
    """MPICH's copies were held to it in the mean over the ranks of a node: pairs that all cross had 18 of 10 GB/s."""
    cores = "list:" + ":".join(str(core) for core in (*range(8), *range(64, 72)))
    # Cores that would have 4 GB/s each across, of what is written anew each time.
    rates = ("--set", "node.socket_rate=10 GB/s", "--set", "node.near.memory_rate=8.9 GB/s")
    found = table(dryfly, "mbw_mr", cores, *how, *rates, sizes="65536:2097152", more=("-c", "-i", "2", "-W", "16"))
    for size, rate in found.items():
        assert 9_000 <= rate <= 10_000, f"{size} B: {rate} MB/s"


def test_the_farther_the_slower(dryfly: Dryfly) -> None:
    """Each two within a socket, and across, are taken at their own distance: a message of 4 KiB, copied in and out."""
    latency = [
        table(dryfly, "latency", cores, *SHARED, sizes="4096:4096", more=("-i", "20"))[4096]
        for cores in ("list:0:1", "list:0:8", "list:0:64")
    ]
    assert latency[0] < 0.8 * latency[1]
    assert latency[1] < 0.8 * latency[2]
    # Pairs within regions are as quick beside others: who has written what a rank copies is known.
    beside = table(dryfly, "multi_lat", "list:0:64:1:65", *SHARED, sizes="4096:4096", more=("-i", "20"))[4096]
    assert beside == pytest.approx(latency[0], rel=0.05)


@pytest.mark.parametrize("size", [1024, 2048, 4096])
def test_no_message_is_quicker_for_being_bound_or_across_sockets(size: int, dryfly: Dryfly) -> None:
    """MPICH writes past the caches where it sees two NUMA domains, by no call: half of a message was for nothing."""
    where = ("run", "--machine", "aurora", "-N", "1", "--ppn", "2", "--compute", "none", "--quiet", *SHARED)
    program = ("--", ROOT / "programs" / "benchmark" / "latency.c", "-m", f"{size}:{size}", "-i", "20")
    near, far, free = (
        benchmarks.read(dryfly(*where, *bound, *program).succeeded().stdout)[size]
        for bound in (("--cpu-bind", "list:1:2"), ("--cpu-bind", "list:1:53"), ())
    )
    assert near < far
    assert far == pytest.approx(free, rel=0.02)


@pytest.mark.parametrize("how", [SHARED, LINKX], ids=["shared", "linkx"])
def test_ranks_of_one_region_share_its_cache(how: tuple[str, ...], dryfly: Dryfly) -> None:
    """Six with 32 MiB between them had as much each: copies of 4 MiB came out of caches, at 83 GB/s. Three
    cores get less than each could have, for what they write goes out of one region, to one NUMA domain."""
    machine = load("perlmutter-cpu")
    cores, domains = 3 * machine.number("node.near.memory_rate"), machine.number("node.numa") // 2
    rate = min(cores, machine.number("compute.cpu.memory_rate") // domains // 2) / 1e6
    crowded = table(dryfly, "mbw_mr", "list:0:1:2:3:4:5", *how, sizes="4194304:4194304", more=("-i", "1", "-W", "2"))
    assert 0.9 * rate < crowded[4194304] < rate


@WAYS
def test_what_does_not_change_comes_out_of_the_readers_own_caches(how: tuple[str, ...], dryfly: Dryfly) -> None:
    """osu_bw sends one buffer again and again: LUMI-G has 38 GB/s of 1 MiB wherever the two ranks are, and came out at
    7.3. With -c each message has other bytes than the one before."""
    machine = load("perlmutter-cpu")
    rate, latency, line, own = (
        machine.number(f"node.near.{row}") / 1e6 for row in ("memory_rate", "memory_latency", "node_line", "l3_rate")
    )
    for option, expected in (("--check=0", own), ("-c", rate * latency / line)):
        found = table(dryfly, "bw", "list:0:64", *how, sizes="1048576:1048576", more=("-i", "2", "-W", "4", option))
        assert 0.9 * expected < found[1048576] < expected


@WAYS
def test_a_buffer_that_comes_back_is_not_what_it_was(how: tuple[str, ...], dryfly: Dryfly) -> None:
    """The same bytes to and fro in one buffer: each receive writes it, and the other core has it no more."""
    machine = load("perlmutter-cpu")
    rate, latency, line = (machine.number(f"node.near.{row}") for row in ("memory_rate", "memory_latency", "node_line"))
    job = (*_NODE, "-N", "1", "--ppn", "2", "--cpu-bind", "list:0:64", *how)
    run = dryfly(*job, "--", ROOT / "programs" / "micro" / "pingpong.c", "bytes=1048576", "count=10").succeeded()
    found_us = float(run.stdout.split("latency ")[1].split()[0])
    assert found_us == pytest.approx((1 << 20) / (rate * latency / line) * 1e6, rel=0.05)


def test_short_messages_come_out_of_the_second_level_cache(dryfly: Dryfly) -> None:
    """Of Sapphire Rapids, where that is 3.6 times as fast as the next: up to 1 MiB and its copy in 2 MiB."""
    machine = load("aurora")
    own, region = (machine.number(f"node.near.{row}") / 1e6 for row in ("l2_rate", "l3_rate"))
    job = ("run", "--machine", "aurora", "--compute", "none", "--quiet", "-N", "1", "--ppn", "2", *SHARED)
    program = ("--", ROOT / "programs" / "benchmark" / "bw.c", "-m", "1048576:2097152", "-i", "2", "-W", "4")
    found = benchmarks.read(dryfly(*job, "--cpu-bind", "list:1:2", *program).succeeded().stdout)
    assert 0.9 * own < found[1048576] < own
    assert 0.9 * region < found[2097152] < region


@pytest.mark.parametrize(("memories", "crosses"), [("list:0:0", False), ("list:4:0", True), ("list:0:4", True)])
def test_bound_memory_on_the_other_socket_slows_copies(dryfly: Dryfly, memories: str, crosses: bool) -> None:
    """Of 32 MiB, which no cache holds: at what a core copies out of memory, or so many lines at a time from afar."""
    machine = load("perlmutter-cpu")
    rate, latency, line = (machine.number(f"node.near.{row}") for row in ("memory_rate", "memory_latency", "node_line"))
    found = table(dryfly, "bw", "list:0:1", *LINKX, "--mem-bind", memories, sizes="33554432:33554432",
                  more=("-i", "1", "-W", "2"))[33554432]  # fmt: skip
    expected = rate * latency / line if crosses else rate
    assert found == pytest.approx(expected / 1e6, rel=0.01)


@WAYS
def test_copies_and_payloads_of_nics_share_the_memory(dryfly: Dryfly, how: tuple[str, ...]) -> None:
    """2 x 35 GB/s: four ranks copy, which could take 72 alone, while four others have their NIC move 48."""
    source = ROOT / "programs" / "check" / "node_traffic.c"
    job = (*_NODE, "-N", "2", "--ppn", "8", *how)
    memory = ("--set", "compute.cpu.memory_rate=35 GB/s", "--set", "node.l3_size=1 KiB")
    run = dryfly(*job, *memory, "--", source, "4194304", "8").succeeded()
    copied, by_nic = ([float(word) for word in line.split()] for line in run.stdout.splitlines()[:2])
    assert by_nic[0] / by_nic[1] > 45e9  # which comes first
    assert by_nic[1] < copied[1]
    assert 0.9 * 70e9 <= (copied[0] + by_nic[0]) / copied[1] <= 70e9


@WAYS
@pytest.mark.parametrize("second", ["list:8:9:10:11:12:13:14:15", "list:64:65:66:67:68:69:70:71"], ids=["near", "far"])
def test_one_long_message_each_has_all_that_is_shared(dryfly: Dryfly, how: tuple[str, ...], second: str) -> None:
    """First come, first served, the last of equal copies went on alone, and a node had four fifths of its rate."""
    cores = f"list:{':'.join(str(core) for core in range(8))}:{second.removeprefix('list:')}"
    narrow = ("--set", "node.socket_rate=15 GB/s", "--set", "node.l3_size=1 KiB")
    found = table(
        dryfly, "mbw_mr", cores, *how, *narrow, sizes="8388608:8388608", more=("-i", "1", "-x", "1", "-W", "1")
    )
    # A domain carries a quarter of its processor's, read and written, which is less than half of what eight cores ask.
    expected = load("perlmutter-cpu").number("compute.cpu.memory_rate") / 1e6 / 4 / 2
    expected = expected if second.startswith("list:8") else 15_000
    assert 0.95 * expected <= found[8388608] <= 1.001 * expected


@pytest.mark.slow
def test_whose_bytes_are_copied_is_the_same_each_time(dryfly: Dryfly) -> None:
    """Which of its cells a library takes depends on what was before virtual time began: runs once differed by that."""
    source = ROOT / "programs" / "benchmark" / "alltoall.c"
    job = ("run", "--machine", "crusher", "-N", "1", "--ppn", "8", "--compute", "none", *SHARED)
    runs = [dryfly(*job, "--", source, "-m", "4096:65536", "-x", "1", "-i", "2").succeeded() for _ in range(4)]
    assert len({run.results["virtual_time_s"] for run in runs}) == 1
    assert len({run.results["fingerprint"] for run in runs}) == 1
    near = dryfly(*job, "--cpu-bind", "map_cpu:1,2,3,4,5,6,7,9", "--", source, "-m", "4096:4096", "-i", "2")
    far = dryfly(*job, "--cpu-bind", "map_cpu:1,9,17,25,33,41,49,57", "--", source, "-m", "4096:4096", "-i", "2")
    assert near.succeeded().results["fingerprint"] != far.succeeded().results["fingerprint"]

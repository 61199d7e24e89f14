"""Buffers on simulated GPUs, of CUDA and HIP: what Open MPI moves, what copies take, and what no device answers."""

from __future__ import annotations

import re
import signal
import statistics
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import script

from dryfly.mpi import libraries as mpi

# Of data/machines/: the devices of a node and the numbers of their copies; microseconds, GB/s. The first two devices of
# Frontier are in one package, with four links between them.
_DEVICES = {"perlmutter-gpu": 4, "frontier": 8, "alps": 4}
_CALL_US, _QUERY_US = 2, 0.3
_LATENCY_US = {"perlmutter-gpu": 3, "frontier": 12, "alps": 3}
_STEP_US, _LOCAL_US = 2.2, (4, 4.2)
_LINK = {"perlmutter-gpu": 27, "frontier": 36, "alps": 295}
_PEER = {"perlmutter-gpu": 100, "frontier": 38.5, "alps": 150}
_PAGEABLE = 12
_IN_COMMAND = 192  # bytes
_FIRST_TWO = {"perlmutter-gpu": 100, "frontier": 4 * 38.5, "alps": 150}
_MEMORY = {"perlmutter-gpu": 1555, "frontier": 1638.4, "alps": 4000}
# Links between each two devices. Frontier's are drawn in its user guide; where there is none, the way over a third
# device has as many as its narrower hop.
_LINKS = {
    "perlmutter-gpu": "0111101111011110",
    "frontier": "0411112240111121110422111140211111220411112140112211110421111140",
    "alps": "0111101111011110",
}
_CHECKS = Path(__file__).parents[2] / "programs" / "check"
_MBW_MR = Path(__file__).parents[2] / "programs" / "benchmark" / "mbw_mr.c"
_MACHINES = pytest.mark.parametrize("machine", _DEVICES)
# At a device's memory, and none at the host's, with which it is compared.
_ONE_LOOK = ("--set", "host.lookups.openmpi=1", "--set", "node.gpu_lookup_host=0 ns")


def _on(machine: str) -> tuple[str, ...]:
    return ("run", "--machine", machine, "-N", "2", "--compute", "none", *_ONE_LOOK, "--")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("gpu"), mpi.select("openmpi"))


def _latencies(text: str) -> dict[int, float]:
    """Half round trips in microseconds by bytes."""
    return {int(size): float(us) for size, us in re.findall(r"^(\d+) bytes (\S+) us$", text, re.MULTILINE)}


@pytest.mark.parametrize(
    ("machine", "kind"),
    [("perlmutter-gpu", "device"), ("perlmutter-gpu", "pinned"), ("perlmutter-gpu", "managed"), ("frontier", "device"),
     ("lumi-g", "managed"), ("alps", "device")],
)  # fmt: skip
def test_messages_between_gpu_buffers_are_right(machine: str, kind: str, dryfly: Dryfly, built: Programs) -> None:
    run = dryfly(*_on(machine), built.check("gpu_messages.c"), kind, limit_s=120).succeeded()
    assert "ok gpu_messages\n" in run.stdout


@_MACHINES
def test_without_hmem_open_mpi_copies_through_the_host_which_is_slower(
    machine: str, dryfly: Dryfly, built: Programs
) -> None:
    command = (*_on(machine), built.check("gpu_messages.c"), "device")
    direct = _latencies(dryfly(*command, limit_s=120).succeeded().stdout)
    staging = {"OMPI_MCA_mtl_ofi_disable_hmem": "1"}
    staged = _latencies(dryfly(*command, limit_s=120, environment=staging).succeeded().stdout)
    # One copy on each side: what both take beside their bytes is the least that it can add, less what is asked of a
    # buffer that the NIC reads.
    least_us = 2 * (_CALL_US + _LATENCY_US[machine] + _STEP_US) - _look_us(machine) - 0.2
    long = [size for size in direct if size > _IN_COMMAND]
    assert long
    assert direct.keys() == staged.keys()
    assert all(staged[size] >= direct[size] + least_us for size in long)


@_MACHINES
def test_what_goes_into_a_command_is_copied_from_the_device_first_unless_the_nic_fetches_it(
    machine: str, dryfly: Dryfly, built: Programs
) -> None:
    command = (*_on(machine), built.check("gpu_messages.c"))
    fetching = {"FI_CXI_DISABLE_NON_INJECT_MSG_IDC": "1"}
    copied = _latencies(dryfly(*command, limit_s=120).succeeded().stdout)
    fetched = _latencies(dryfly(*command, limit_s=120, environment=fetching).succeeded().stdout)
    host = _latencies(dryfly(*command, "pinned", limit_s=120).succeeded().stdout)
    copy_us = _CALL_US + _LATENCY_US[machine] + _STEP_US
    for size in copied:
        added_us = _look_us(machine) + (copy_us if size <= _IN_COMMAND else 0)
        assert copied[size] == pytest.approx(host[size] + added_us, abs=0.1)
        assert fetched[size] < host[size] + 1


# The MPI library asks whose memory a buffer is, and the provider whether its mapping still holds whenever it is used:
# CUDA, and not ROCr.
def _look_us(machine: str) -> float:
    return 2 * 0.15 if machine in ("perlmutter-gpu", "alps") else 0.15


# What the provider copies itself, microseconds: by a call of the runtime, or by the processor's stores and loads.
def _by_runtime(machine: str, size: int) -> float:
    return _CALL_US + _LATENCY_US[machine] + _STEP_US + size / (1000 * _LINK[machine])


# Microseconds before the first byte, and bytes in a microsecond from then on.
_STORES = {"perlmutter-gpu": (0.4, 9600), "alps": (0.03, 30000)}
_LOADS = {"perlmutter-gpu": (1.4, 530), "alps": (0.03, 30000)}


def _stored(machine: str, size: int) -> float:
    before, rate = _STORES.get(machine, (0.09, 9600))
    return before + size / rate


def _loaded(machine: str, size: int) -> float:
    before, rate = _LOADS.get(machine, (1.7, 530))
    return before + size / rate


_HEAD, _EAGER_MAX, _STORED_MAX = 2048, 18433, 4096  # bytes
_INGRESS_US = 0.33356
_ACCESS = ("--set", "node.gpu_host_access=on")


@pytest.mark.parametrize(
    ("options", "settings", "stored_max"),
    [
        ((), {}, 0),
        (_ACCESS, {}, _STORED_MAX),
        (_ACCESS, {"FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD": "64"}, 64),
        (_ACCESS, {"FI_CXI_DISABLE_HMEM_DEV_REGISTER": "1"}, 0),
        (_ACCESS, {"FI_CXI_FORCE_DEV_REG_COPY": "1"}, 1 << 30),
    ],
)
@_MACHINES
def test_what_came_before_its_receive_is_copied_to_the_device_by_the_runtime_or_the_processor(
    machine: str, options: tuple[str, ...], settings: dict[str, str], stored_max: int, dryfly: Dryfly, built: Programs
) -> None:
    """Eager messages lie in a buffer of the host's and take a copy more than those into the host's memory. Of a
    rendezvous only its head does, which is copied while the NIC gets the rest; the copy begins when an eager message's
    would, less the stage that the NIC has no bytes for."""

    def late(kind: str) -> dict[int, float]:
        command = (*_on(machine)[:-1], *options, "--")
        run = dryfly(*command, built.check("gpu_late.c"), kind, limit_s=120, environment=settings).succeeded()
        assert "ok gpu_late\n" in run.stdout
        return _latencies(run.stdout)

    def copied(size: int) -> float:
        return _stored(machine, size) if size <= stored_max else _by_runtime(machine, size)

    device, host = late("device"), late("pinned")
    assert device.keys() == {0, 8, 64, 512, 4096, 32768, 262144}
    look_us = _look_us(machine)
    for size in (8, 64, 512, 4096):
        assert device[size] == pytest.approx(host[size] + look_us + copied(size), abs=0.002)
    for size in (32768, 262144):
        head_us = host[8] - _INGRESS_US + copied(_HEAD)
        assert device[size] == pytest.approx(max(host[size], head_us) + look_us, abs=0.002)
    read_us = _loaded(machine, 8) if stored_max >= 8 else _CALL_US + _LATENCY_US[machine] + _STEP_US
    assert device[0] == pytest.approx(host[0] + look_us + read_us, abs=0.1)


def test_where_software_matches_each_message_is_copied_to_its_device(dryfly: Dryfly, built: Programs) -> None:
    """All of them come into request buffers: in a ping-pong each is copied out of one device and into the other, and
    what a rank has waited for may be there by then, so that it saves the 0.33 us of waking up."""

    def times(kind: str) -> dict[int, float]:
        settings = {"FI_CXI_RX_MATCH_MODE": "software"}
        run = dryfly(*_on("perlmutter-gpu"), built.check("gpu_late.c"), kind, limit_s=120, environment=settings)
        return _latencies(run.succeeded().stdout)

    device, host = times("device"), times("pinned")
    look_us = _look_us("perlmutter-gpu")
    for size in (8, 64, 512, 4096):
        assert device[size] == pytest.approx(host[size] + look_us + _by_runtime("perlmutter-gpu", size), abs=0.002)
    most_us = look_us + 2 * _by_runtime("perlmutter-gpu", 8)
    assert most_us - 0.33 < device[0] - host[0] < most_us


def test_what_libfabric_is_told_not_to_do_with_devices_ends_or_is_said(dryfly: Dryfly, built: Programs) -> None:
    command = (*_on("perlmutter-gpu"), built.check("gpu_late.c"))
    forced = dryfly(*command, limit_s=120, environment={"FI_CXI_FORCE_DEV_REG_COPY": "1"})
    assert forced.exit_status != 0
    assert "ok gpu_late" not in forced.stdout
    left_out = dryfly(*command, limit_s=120, environment={"FI_HMEM": "system"}).succeeded()
    assert left_out.stderr.count("memory of GPU 0 to libfabric, and FI_HMEM=system leaves its runtime out") == 2
    wrong = dryfly(*command, limit_s=120, environment={"FI_HMEM": "cuda;hip"})
    assert wrong.exit_status == 2
    assert 'FI_HMEM=cuda;hip: unknown HMEM interface specified in FI_HMEM, entry="hip"' in wrong.stderr


@pytest.mark.parametrize(
    ("network", "places"),
    [
        ("packet", "D H"),
        pytest.param("packet", "H D", marks=pytest.mark.slow),
        pytest.param("flow", "D H", marks=pytest.mark.slow),
        pytest.param("flow", "H D", marks=pytest.mark.slow),
    ],
)
def test_nics_of_a_node_share_the_link_of_one_gpu(network: str, places: str, dryfly: Dryfly) -> None:
    """A GPU's link has 31.5 GB/s, and a NIC less, which is what it has of the host's memory."""

    def rate(nics: int, mask: str, places: str = places) -> tuple[float, str]:
        run = dryfly(
            "run", "--machine", "perlmutter-gpu", "--mpi", "openmpi", "--network", network, "-N", "2",
            "--ppn", str(nics), "--compute", "none", "--", str(_MBW_MR), "-d", "cuda", *places.split(),
            "-m", "4194304:4194304", "-W", "16", "-i", "3", "-x", "1", "--check", "0",
            limit_s=120, environment={"CUDA_VISIBLE_DEVICES": mask},
        ).succeeded()  # fmt: skip
        found = re.search(r"^ *4194304 +([\d.]+)", run.stdout, re.MULTILINE)
        assert found is not None, run.stdout
        return float(found[1]) / 1000, run.fingerprint

    of_host = rate(1, "0", "H H")[0]
    assert 22 < of_host < 25
    assert rate(1, "0")[0] == pytest.approx(of_host, rel=0.03)
    assert 0.99 * 31.5 < rate(2, "0")[0] < 1.001 * 31.5
    first, again = (rate(4, "0") for _ in range(2))
    assert 0.99 * 31.5 < first[0] < 1.001 * 31.5
    assert rate(4, "0,1,2,3")[0] == pytest.approx(4 * of_host, rel=0.03)  # each its own
    assert first == again


@pytest.mark.parametrize(("machine", "component"), [("perlmutter-gpu", "cuda"), ("frontier", "rocm")])
def test_open_mpi_selects_the_component_of_the_runtime(
    machine: str, component: str, dryfly: Dryfly, built: Programs
) -> None:
    verbose = {"OMPI_MCA_accelerator_base_verbose": "100"}
    run = dryfly(*_on(machine), built.check("gpu_none.c"), limit_s=120, environment=verbose)
    assert f"selected {component}\n" in run.stderr + run.stdout


def test_the_same_run_gives_the_same_fingerprint(dryfly: Dryfly, built: Programs) -> None:
    command = (*_on("perlmutter-gpu"), built.check("gpu_messages.c"))
    runs = [dryfly(*command, limit_s=120).succeeded() for _ in range(2)]
    assert runs[0].fingerprint == runs[1].fingerprint


@_MACHINES
def test_a_copy_takes_its_closed_form_and_moves_bytes_at_its_end_only(
    machine: str, dryfly: Dryfly, built: Programs
) -> None:
    rates = (table[machine] for table in (_LINK, _FIRST_TWO, _MEMORY))
    numbers = (_CALL_US, _QUERY_US, _LATENCY_US[machine], _STEP_US, *_LOCAL_US, *rates, _PAGEABLE)
    run = dryfly(*_on(machine), built.check("gpu_streams.c"), *map(str, numbers), limit_s=120).succeeded()
    assert "ok gpu_streams\n" in run.stdout
    # Nothing but readings of the clock computes there besides calls of the runtime.
    assert run.results is not None
    rows = run.results["ranks_detail"]
    assert all(
        row["gpu_calls"] > 10 and 0.999 * row["computing_s"] < row["gpu_s"] <= row["computing_s"] for row in rows
    )
    assert f"{sum(row['gpu_calls'] for row in rows):,} calls of the GPU runtime: " in run.stderr


@_MACHINES
def test_a_copy_between_devices_takes_the_links_of_the_pair(machine: str, dryfly: Dryfly, built: Programs) -> None:
    numbers = (_CALL_US, _LATENCY_US[machine] + _STEP_US, _PEER[machine], _LINKS[machine])
    run = dryfly(*_on(machine), built.check("gpu_peers.c"), *map(str, numbers), limit_s=120).succeeded()
    assert "ok gpu_peers\n" in run.stdout


def test_links_are_of_the_devices_that_a_mask_leaves(dryfly: Dryfly, built: Programs) -> None:
    numbers = map(str, (_CALL_US, _LATENCY_US["frontier"] + _STEP_US, _PEER["frontier"]))
    masks = {"ROCR_VISIBLE_DEVICES": "1,6,0", "HIP_VISIBLE_DEVICES": "2,1"}  # 0 and 6, joined by two links
    command = (*_on("frontier"), built.check("gpu_peers.c"), *numbers, "0220")
    dryfly(*command, limit_s=120, environment=masks).succeeded()


# CUDA: devices behind one that does not exist are not seen, and one that is named twice leaves none. HIP's masks:
# gpu/gpu_test.cpp.
@pytest.mark.parametrize(
    ("machine", "masks", "seen"),
    [
        ("perlmutter-gpu", {"CUDA_VISIBLE_DEVICES": "1"}, 1),
        ("perlmutter-gpu", {"CUDA_VISIBLE_DEVICES": "2,0,9,1"}, 2),
        ("perlmutter-gpu", {"CUDA_VISIBLE_DEVICES": "3,2,1,0", "HIP_VISIBLE_DEVICES": "0"}, 4),
        ("frontier", {"ROCR_VISIBLE_DEVICES": "7,5,3,9", "HIP_VISIBLE_DEVICES": "2,0"}, 2),
        ("frontier", {"CUDA_VISIBLE_DEVICES": "1,1,4"}, 2),
    ],
)
def test_a_mask_says_which_devices_are_seen(
    machine: str, masks: dict[str, str], seen: int, dryfly: Dryfly, built: Programs
) -> None:
    command = (*_on(machine), built.check("gpu_messages.c"), "device", str(seen))
    dryfly(*command, limit_s=120, environment=masks).succeeded()


@pytest.mark.parametrize(
    ("machine", "variable", "mask"),
    [
        *(("perlmutter-gpu", "CUDA_VISIBLE_DEVICES", mask) for mask in ("", "-1", "7", "1,1")),
        *(("frontier", "ROCR_VISIBLE_DEVICES", mask) for mask in ("", "8")),
        ("frontier", "HIP_VISIBLE_DEVICES", "-1"),
    ],
)
def test_without_a_device_the_runtime_says_so(
    machine: str, variable: str, mask: str, dryfly: Dryfly, built: Programs
) -> None:
    command = (*_on(machine), built.check("gpu_none.c"))
    run = dryfly(*command, limit_s=120, environment={variable: mask}).succeeded()
    assert "ok gpu_none\n" in run.stdout


def test_each_release_of_hip_has_its_own_words(dryfly: Dryfly, built: Programs) -> None:
    run = dryfly(*_on("frontier"), built.check("gpu_hip.c"), limit_s=120).succeeded()
    assert "ok gpu_hip\n" in run.stdout


# Two dies of a package, two with two links, two without a link of their own, one and the same, and a die and the host.
@pytest.mark.parametrize(
    ("one", "other", "rate"),
    [("0", "1", 154), ("6", "0", 77), ("0", "3", 38.5), ("4", "4", 1638.4 / 2), ("5", "host", 36), ("host", "5", 36)],
)
def test_linkx_copies_within_a_node_from_gpu_to_gpu(
    one: str, other: str, rate: float, dryfly: Dryfly, built: Programs
) -> None:
    job = ("run", "--machine", "crusher", "-N", "1", "--ppn", "2", "--compute", "none", "--provider", "linkx", "--")
    run = dryfly(*job, built.check("gpu_node.c"), one, other, str(rate), limit_s=120).succeeded()
    assert "ok gpu_node\n" in run.stdout
    before_us = sum(_LOCAL_US) if one == other else _LATENCY_US["frontier"] + _STEP_US
    assert before_us < _latencies(run.stdout)[8] < before_us + 3


def test_streams_and_events_that_open_mpi_releases_are_used_again(dryfly: Dryfly, built: Programs) -> None:
    run = dryfly(*_on("perlmutter-gpu"), built.check("gpu_objects.c"), limit_s=120).succeeded()
    assert "ok gpu_objects\n" in run.stdout


@_MACHINES
def test_ranks_of_a_node_show_each_other_their_gpus_memory(machine: str, dryfly: Dryfly, built: Programs) -> None:
    options = ("run", "--machine", machine, "-n", "3", "--ppn", "2", "--compute", "none", "--")
    numbers = (_CALL_US, _LATENCY_US[machine] + _STEP_US, _FIRST_TWO[machine])
    run = dryfly(*options, built.check("gpu_ipc.c"), *map(str, numbers), limit_s=120).succeeded()
    assert "ok gpu_ipc\n" in run.stdout


def test_an_owner_that_dies_leaves_nothing_where_its_memory_was_open(dryfly: Dryfly, built: Programs) -> None:
    options = ("run", "--machine", "perlmutter-gpu", "-n", "3", "--ppn", "2", "--compute", "none", "--")
    program = built.check("gpu_ipc.c")
    run = dryfly(*options, program, "2", "5.2", "100", "dies", limit_s=120)
    assert run.exit_status == 128 + signal.SIGKILL
    running = [path for path in Path("/proc").glob("[0-9]*/exe") if _leads_to(path, program)]
    assert not running


def _leads_to(link: Path, program: Path) -> bool:
    try:
        return link.resolve() == program
    except OSError:
        return False


def test_what_the_runtime_answers_and_waits_for_is_a_real_ones(dryfly: Dryfly, built: Programs) -> None:
    options = ("run", "--machine", "perlmutter-gpu", "-n", "1", "--compute", "none", "--")
    program = built.check("gpu_answers.c")
    run = dryfly(*options, program, "2", limit_s=120).succeeded()
    recorded = (_CHECKS / "gpu_answers.txt").read_text()
    assert run.stdout.splitlines() == recorded.splitlines()


def _seen(text: str) -> list[list[int]]:
    """The node's numbers of the devices that each rank sees, in its order: a device's bus on PCI is one more."""
    lines = re.findall(r"^rank \d+:(.*)$", text, re.MULTILINE)
    return [[int(bus, 16) - 1 for bus in re.findall(r"2000:(\w+):00\.0", line)] for line in lines]


# On Perlmutter GPU 0 is in the last domain, and on Frontier GPU 4 in the first L3 region.
@pytest.mark.parametrize(
    ("machine", "options", "seen"),
    [
        ("perlmutter-gpu", ["--gpu-bind", "closest", "--cpu-bind", "cores", "--depth", "16"], [[3], [2], [1], [0]]),
        ("perlmutter-gpu", ["--gpu-bind", "map_gpu:3,2,1,0"], [[3], [2], [1], [0]]),
        ("perlmutter-gpu", ["--gpu-bind", "single:2"], [[0], [0], [1], [1]]),
        ("perlmutter-gpu", ["--gpu-bind", "per_task:2"], [[0, 1], [2, 3], [0, 1], [2, 3]]),
        ("perlmutter-gpu", ["--gpu-bind", "list:1:0"], [[1], [0], [1], [0]]),
        ("perlmutter-gpu", ["--gpu-bind", "list:3,2:0,1"], [[3, 2], [0, 1], [3, 2], [0, 1]]),
        ("frontier", ["--gpu-bind", "mask_gpu:0x3,0x8,0xc0*2"], [[0, 1], [3], [6, 7], [6, 7]]),
        ("perlmutter-gpu", ["--gpu-bind", "none"], [[0, 1, 2, 3]] * 4),
        ("frontier", ["--gpu-bind", "closest", "--cpu-bind", "cores"], [[4], [5], [2], [3]]),
        ("frontier", ["--gpu-bind", "per_task:1", "--launcher", "prterun"], [[0], [1], [2], [3]]),
    ],
)
def test_a_rank_that_is_bound_to_a_gpu_sees_that_one(
    machine: str, options: list[str], seen: list[list[int]], dryfly: Dryfly, built: Programs
) -> None:
    words = ("run", "--machine", machine, "-N", "1", "--ppn", "4", "--compute", "none", *options)
    run = dryfly(*words, "--", built.check("gpu_devices.c"), limit_s=120).succeeded()
    assert _seen(run.stdout) == seen


# As with srun, whose own mask takes the place of one that was there before it.
def test_a_mask_of_a_wrapper_counts_and_one_from_before_the_start_does_not(
    dryfly: Dryfly, built: Programs, tmp_path: Path
) -> None:
    wrapper = tmp_path / "wrapper.sh"
    wrapper.write_text('#!/bin/sh\n[ $PMIX_RANK = 1 ] && export CUDA_VISIBLE_DEVICES=2,3\nexec "$@"\n')
    wrapper.chmod(0o755)
    words = ("run", "--machine", "perlmutter-gpu", "-n", "2", "--ppn", "2", "--compute", "none", "--gpu-bind")
    command = (*words, "map_gpu:1,0", "--", str(wrapper), built.check("gpu_devices.c"))
    run = dryfly(*command, limit_s=120, environment={"CUDA_VISIBLE_DEVICES": "3"}).succeeded()
    assert _seen(run.stdout) == [[1], [2, 3]]


# CUDA's and HIP's rule: an asynchronous copy is the program's to wait for.
@_MACHINES
def test_what_mpi_sends_before_the_work_on_its_buffer_is_over(machine: str, dryfly: Dryfly, built: Programs) -> None:
    run = dryfly(*_on(machine), built.check("gpu_early.c"), limit_s=120).succeeded()
    assert "ok gpu_early\n" in run.stdout


# Perlmutter's first two ranks of a node, the GPUs of which a wrapper script gives out from the last one on.
@pytest.mark.parametrize("launcher", ["dryfly", "prterun"])
@pytest.mark.parametrize(
    "variable", ["SLURM_LOCALID", "PALS_LOCAL_RANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"]
)
def test_a_wrapper_gives_out_gpus_by_whichever_launchers_number_it_knows(
    variable: str, launcher: str, dryfly: Dryfly, built: Programs, tmp_path: Path
) -> None:
    wrapper = script(
        tmp_path / "wrapper.sh", f'#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=$((3 - {variable}))\nexec "$@"\n'
    )
    words = ("run", "--machine", "perlmutter-gpu", "-N", "2", "--ppn", "2", "--compute", "none", "--launcher", launcher)
    run = dryfly(*words, "--", str(wrapper), built.check("gpu_devices.c"), limit_s=120).succeeded()
    assert _seen(run.stdout) == [[3], [2], [3], [2]]


def test_open_mpis_own_tool_shows_its_component_of_gpus(dryfly: Dryfly) -> None:
    for machine, component in (("perlmutter-gpu", "cuda"), ("frontier", "rocm")):
        words = ("run", "--machine", machine, "--mpi", "openmpi", "-n", "1", "--compute", "none")
        run = dryfly(*words, "--", "ompi_info", "--parsable", limit_s=120)
        assert f"mca:accelerator:{component}:version:" in run.stdout


def _times(text: str) -> dict[str, float]:
    """Microseconds by what was measured and its bytes."""
    return {what: float(us) for what, us in re.findall(r"^(.*, \d+) ([\d.]+)$", text, re.MULTILINE)}


def test_times_are_near_a_real_gpus(dryfly: Dryfly, built: Programs) -> None:
    h100 = ("--set", "node.gpu_copy_rate=54 GB/s", "--set", "compute.gpu.memory_rate=3352 GB/s")
    options = ("run", "--machine", "perlmutter-gpu", "-n", "1", "--compute", "none", *h100, "--")
    run = dryfly(*options, built.check("gpu_times.c"), "1", limit_s=120).succeeded()
    real = _times((_CHECKS / "gpu_times_h100.txt").read_text())
    simulated = _times(run.stdout)
    assert simulated.keys() == real.keys()
    ratios = [simulated[each] / real[each] for each in real]
    assert statistics.median(abs(ratio - 1) for ratio in ratios) < 0.17
    assert sum(0.5 <= ratio <= 2 for ratio in ratios) > 0.91 * len(ratios)


@pytest.mark.parametrize("options", [("-N", "2", "--ppn", "3"), ("-N", "2", "--launcher", "prterun")])
@_MACHINES
def test_reductions_are_made_on_copies_of_what_is_on_the_devices(
    machine: str, options: tuple[str, ...], dryfly: Dryfly, built: Programs
) -> None:
    words = ("run", "--machine", machine, *options, "--compute", "none", "--")
    run = dryfly(*words, built.check("gpu_reductions.c"), limit_s=120).succeeded()
    assert "ok gpu_reductions\n" in run.stdout


# Of data/machines/aurora.toml: GB/s to the host, between two tiles of a GPU and over Xe Link.
_AURORA = tuple(map(str, (_CALL_US, _QUERY_US, 3, _STEP_US, 54, 196, 15)))


@pytest.mark.parametrize(
    ("hierarchy", "shown"),
    [("FLAT", ("12", "1", "64")), ("COMPOSITE", ("6", "2", "128")), ("COMBINED", ("12", "1", "64"))],
)
def test_level_zero_has_devices_memory_and_commands_that_take_their_closed_forms(
    hierarchy: str, shown: tuple[str, ...], dryfly: Dryfly, programs: Programs
) -> None:
    job = ("run", "--machine", "aurora", "-N", "1", "--ppn", "2", "--compute", "none", "--")
    program = programs.check("gpu_level_zero.c")
    environment = {"ZE_FLAT_DEVICE_HIERARCHY": hierarchy}
    run = dryfly(*job, program, *shown, *_AURORA, limit_s=120, environment=environment).succeeded()
    assert "ok gpu_level_zero\n" in run.stdout
    assert "makes a module of Level Zero, whose kernels are not run" in run.stderr


def test_runs_with_level_zero_are_the_same_to_the_picosecond(dryfly: Dryfly, programs: Programs) -> None:
    job = ("run", "--machine", "aurora", "-N", "1", "--ppn", "2", "--compute", "none", "--")
    command = (*job, programs.check("gpu_level_zero.c"), "12", "1", "64", *_AURORA)
    runs = [dryfly(*command, limit_s=120).succeeded() for _ in range(2)]
    assert runs[0].fingerprint == runs[1].fingerprint


# Launch in us, and of a device TF/s in FP64 and TB/s of memory: a tile has half of its GPU's.
@pytest.mark.parametrize(("hierarchy", "rates"), [("FLAT", ("10.415", "1")), ("COMPOSITE", ("20.83", "2"))])
def test_lists_of_level_zero_have_functions_as_kernels_that_take_the_work_announced(
    hierarchy: str, rates: tuple[str, str], dryfly: Dryfly, programs: Programs
) -> None:
    job = ("run", "--machine", "aurora", "-N", "1", "--ppn", "2", "--compute", "none", "--")
    command = (*job, programs.check("gpu_host_kernels.c"), str(_CALL_US), str(_QUERY_US), "5", *rates)
    runs = [dryfly(*command, environment={"ZE_FLAT_DEVICE_HIERARCHY": hierarchy}).succeeded() for _ in range(2)]
    assert all("ok gpu_host_kernels\n" in run.stdout for run in runs)
    assert runs[0].fingerprint == runs[1].fingerprint


@pytest.mark.parametrize(
    ("options", "environment", "answer", "seen"),
    [
        ([], {"ZE_AFFINITY_MASK": "12"}, "2013265921", [[], []]),
        ([], {"ZE_AFFINITY_MASK": "4.1,0", "ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}, "0", [[0, 4]] * 2),
        (["--gpu-bind", "list:5.1:0"], {}, "0", [[5], [0, 0]]),
        (["--gpu-bind", "list:5.1:0"], {"ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}, "0", [[5], [0]]),
    ],
)
def test_level_zeros_mask_leaves_what_it_names(
    options: list[str],
    environment: dict[str, str],
    answer: str,
    seen: list[list[int]],
    dryfly: Dryfly,
    programs: Programs,
) -> None:
    job = ("run", "--machine", "aurora", "-N", "1", "--ppn", "2", "--compute", "none", *options, "--")
    program = programs.check("gpu_level_zero.c")
    run = dryfly(*job, program, answer, limit_s=120, environment=environment).succeeded()
    assert _seen(run.stdout) == seen


@pytest.mark.parametrize("kind", ["sycl", "managed"])
def test_benchmarks_have_buffers_by_level_zero(kind: str, dryfly: Dryfly) -> None:
    program = _CHECKS.parent / "benchmark" / "bibw.c"
    job = ("run", "--machine", "aurora", "-N", "2", "--compute", "none", "--")
    run = dryfly(*job, program, "-d", kind, "-m", "8:4096", "-i", "3", limit_s=120).succeeded()
    assert "# data checked after timing: right" in run.stdout
    assert ("DEVICE (D)" if kind == "sycl" else "MANAGED MEMORY (M)") in run.stdout


@pytest.mark.parametrize(
    ("words", "heading"),
    [
        ("put_bibw.c -w dynamic -s pscw", "# Window creation: MPI_Win_create_dynamic"),
        ("get_bw.c H D", "# Window creation: MPI_Win_create\n"),
        ("acc_latency.c -s fence", "# Window creation: MPI_Win_create\n"),
        ("igatherv.c", "# MPI Igatherv Latency Test"),
        ("overlap.c D H", "# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)"),
    ],
)
def test_benchmarks_of_windows_and_of_overlap_have_buffers_on_gpus(words: str, heading: str, dryfly: Dryfly) -> None:
    name, *options = words.split()
    program = _CHECKS.parent / "benchmark" / name
    run = dryfly(*_on("perlmutter-gpu"), program, "-d", "cuda", "-m", "8:4096", "-i", "2", *options, limit_s=120)
    assert heading in run.succeeded().stdout
    assert "DEVICE (D)" in run.stdout
    assert "# data checked after timing: right" in run.stdout


@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_a_library_asks_whose_memory_the_buffer_of_a_message_is(library: str, dryfly: Dryfly) -> None:
    """ROCr is asked by nobody else: the provider does not look at its mappings."""

    def us_of_a_message(place: str, *options: str) -> float:
        run = dryfly(
            "run", "--machine", "lumi-g", "--mpi", library, "-N", "2", "--compute", "none", *options, "--",
            _CHECKS.parent / "benchmark" / "bw.c", "-d", "rocm", place, place, "-m", "1024:1024", "-i", "4", "-x", "1",
            limit_s=120,
        )  # fmt: skip
        found = re.search(r"^1024 +([\d.]+)", run.succeeded().stdout, re.MULTILINE)
        assert found is not None, run.stdout
        return 1024 / float(found[1])

    slow = ("--set", "node.gpu_lookup=550 ns")
    more_us = us_of_a_message("D", *slow) - us_of_a_message("D")
    assert more_us == pytest.approx(0.4, rel=0.03)  # the receiver's, who takes longest
    assert us_of_a_message("H", *slow) == us_of_a_message("H")
    calls = ("--software", "none")  # the calls' costs are all that a library's own code costs
    assert us_of_a_message("D", *calls, *slow) == us_of_a_message("D", *calls)


def test_a_library_that_knows_nothing_of_gpus_is_named(dryfly: Dryfly, tmp_path: Path) -> None:
    mpich = Programs(tmp_path, mpi.select("mpich"))
    run = dryfly(*_on("perlmutter-gpu"), mpich.check("gpu_pingpong.c"), "device", "64", "3", limit_s=120).succeeded()
    said = r"dryfly: rank \d gave MPI_\w+ memory of GPU 0, and mpich-\S+ knows nothing of GPUs: "
    assert len(re.findall(said, run.stderr)) == 2


@pytest.mark.parametrize(
    ("buffer", "said"),
    [
        ("right", None),
        ("end", "dryfly: rank 0 has a NIC move 1052672 bytes at 0x%x of a GPU's memory, which end behind"),
        ("freed", "dryfly: rank 0 has a NIC move 1048576 bytes at 0x%x of a GPU's memory, which no allocation holds"),
    ],
)
def test_bytes_that_no_allocation_holds_are_told_of(
    buffer: str, said: str | None, dryfly: Dryfly, built: Programs
) -> None:
    run = dryfly(*_on("perlmutter-gpu"), built.check("gpu_range.c"), buffer, limit_s=120).succeeded()
    lines = [line for line in run.stderr.splitlines() if "has a NIC move" in line]
    assert len(lines) == (said is not None)
    assert said is None or re.match(said.replace("0x%x", r"0x[0-9a-f]+"), lines[0])


# What a rank does with its node's others by the memory of the library's own tells the NIC of nothing.
@pytest.mark.parametrize(
    ("family", "options", "words", "said"),
    [
        ("mpich", ("perlmutter-gpu", "--on-node", "shared"), ("latency.c", "cuda"), "MPI_Recv memory of GPU 1, and"),
        ("openmpi", ("aurora",), ("allreduce.c", "sycl"), "MPI_Allreduce memory of GPU 0, and"),
        ("openmpi", ("perlmutter-gpu",), ("latency.c", "cuda"), None),
    ],
)  # fmt: skip
def test_the_call_is_named_whose_buffer_the_library_does_not_take(
    family: str, options: tuple[str, ...], words: tuple[str, str], said: str | None, dryfly: Dryfly
) -> None:
    machine, *others = options
    program, kind = words
    job = ("run", "--machine", machine, "--mpi", family, "-N", "1", "--ppn", "2", "--compute", "none", *others, "--")
    run = dryfly(*job, _CHECKS.parent / "benchmark" / program, "-d", kind, "-m", "8:8", "-i", "2", limit_s=120)
    lines = [line for line in run.succeeded().stderr.splitlines() if "knows nothing of GPUs" in line]
    assert len(lines) == (2 if said is not None else 0)
    assert said is None or any(said in line for line in lines)

"""Intel MPI: what it gives on the simulated network, and with buffers on GPUs. `make test-whole` downloads it (129 MB);
what of it needs no download is in tests/python/test_mpi.py, and Level Zero in test_run_gpu.py."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import CHECK

from dryfly.apps import solver
from dryfly.mpi import libraries as mpi

pytestmark = pytest.mark.whole

_OFFLOAD = {"I_MPI_OFFLOAD": "1"}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    if all(library.family != "impi" for library in mpi.installed()):
        pytest.skip('Intel MPI is not set up ("dryfly mpi add impi-rt==2021.18.1")')
    return Programs(tmp_path_factory.mktemp("intel"), mpi.select("impi"))


def _on(machine: str, nodes: int, per_node: int) -> tuple[str, ...]:
    job = ("run", "--machine", machine, "--mpi", "impi", "-N", str(nodes), "--ppn", str(per_node))
    return (*job, "--compute", "none", "--")


# Natively collectives.c and datatypes.c fail with this library, and it has no windows here: docs/guide/mpi-releases.md.
@pytest.mark.parametrize("places", [(4, 1), (2, 3), (1, 4)])
@pytest.mark.parametrize(
    "name", ["matching", "communicators", "groups", "reductions", "collectives_v", "threads", "many", "nics", "clocks"]
)
def test_the_checks_pass(name: str, places: tuple[int, int], dryfly: Dryfly, built: Programs) -> None:
    run = dryfly(*_on("aurora", *places), built.check(f"{name}.c"), limit_s=300).succeeded()
    assert f"ok {name}\n" in run.stdout


def test_a_program_that_was_built_with_mpich_runs_on_it(dryfly: Dryfly, built: Programs, programs: Programs) -> None:
    built.check("matching.c")
    run = dryfly(*_on("testbed", 4, 1), programs.check("matching.c"), limit_s=300).succeeded()
    assert "ok matching\n" in run.stdout
    assert run.results["mpi"]["name"].startswith("impi-")
    assert all("/impi-" in path for path in run.results["mpi"]["libmpi"])


def _latencies(text: str) -> dict[int, float]:
    """Half round trips in microseconds by bytes."""
    return {int(size): float(us) for size, us in re.findall(r"^(\d+) bytes (\S+) us$", text, re.MULTILINE)}


@pytest.mark.parametrize("places", [(2, 1), (2, 3), (1, 4)])
@pytest.mark.parametrize("machine", ["aurora", "perlmutter-gpu"])
def test_what_is_on_devices_arrives_and_is_added(
    machine: str, places: tuple[int, int], dryfly: Dryfly, built: Programs
) -> None:
    command = (*_on(machine, *places), built.check("gpu_messages.c"))
    device, host = (
        dryfly(*command, kind, "0", "contiguous", limit_s=300, environment=_OFFLOAD).succeeded()
        for kind in ("device", "pinned")
    )
    assert "ok gpu_messages\n" in device.stdout
    slower, faster = _latencies(device.stdout), _latencies(host.stdout)
    # Two copies of a call, a latency and a step each, of whatever size.
    assert all(us >= faster[size] + 2 * (2 + 3 + 2.2) - 0.2 for size, us in slower.items())


@pytest.mark.parametrize("machine", ["aurora", "perlmutter-gpu"])
def test_each_reduction_is_right_and_gaps_on_devices_are_the_librarys_own_error(
    machine: str, dryfly: Dryfly, built: Programs
) -> None:
    run = dryfly(*_on(machine, 2, 2), built.check("gpu_reductions.c"), limit_s=300, environment=_OFFLOAD)
    assert "reductions compared, now a type with gaps\n" in run.stdout
    assert "Non-contigious datatypes support for offloaded buffers has not been implemented yet" in run.stdout
    assert "gpu_reductions.c" not in run.stderr  # where a check would have failed


@pytest.mark.parametrize("machine", ["aurora", "perlmutter-gpu"])
def test_two_runs_are_the_same_to_the_picosecond(machine: str, dryfly: Dryfly, built: Programs) -> None:
    command = (*_on(machine, 2, 2), built.check("gpu_messages.c"), "device", "0", "contiguous")
    runs = [dryfly(*command, limit_s=300, environment=_OFFLOAD).succeeded() for _ in range(2)]
    assert runs[0].fingerprint == runs[1].fingerprint
    assert runs[0].results["virtual_time_s"] == runs[1].results["virtual_time_s"]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", ["dryfly-hpl", "dryfly-mxp"])
@pytest.mark.parametrize("machine", ["aurora", "perlmutter-gpu"])
def test_matrices_in_the_memory_of_gpus_are_solved_by_device_pointers_as_by_copies(
    machine: str, name: str, dryfly: Dryfly, tmp_path: Path
) -> None:
    solver.build(name, mpi=mpi.select("impi"))
    files = []
    for transfers in ("device", "staged", "device"):
        files.append(tmp_path / str(len(files)))
        command = (*_on(machine, 2, 2), name, "-N", "150", "--nb", "16", "--grid", "2x2", "--memory", "gpu")
        command += ("--progress", "none", "--gpu-transfers", transfers, f"--solution={files[-1]}")
        run = dryfly(*command, f"--json={files[-1]}.json", limit_s=300, environment=_OFFLOAD).succeeded()
        assert "...... PASSED" in run.stdout
        files[-1].with_suffix(".fingerprint").write_text(str(run.fingerprint))
    assert len({file.read_bytes() for file in files}) == 1
    of_device, of_staged, again = (file.with_suffix(".fingerprint").read_text() for file in files)
    assert of_device == again != of_staged
    to_host = [
        sum(json.loads(Path(f"{file}.json").read_text(encoding="utf-8"))["runs"][0]["steps_mean_s"]["to_host"])
        for file in files
    ]
    assert 0 < to_host[0] < to_host[1]


@pytest.mark.usefixtures("built")
def test_device_pointers_without_offloading_are_one_sentence(dryfly: Dryfly) -> None:
    solver.build("dryfly-hpl", mpi=mpi.select("impi"))
    run = dryfly(*_on("aurora", 1, 2), "dryfly-hpl", "-N", "100", "--memory", "gpu", environment={"I_MPI_OFFLOAD": "0"})
    assert run.exit_status == 2
    assert "does not take Level Zero's memory; accepted is staged, or I_MPI_OFFLOAD=1\n" in run.stderr


def test_a_mapping_of_a_devices_memory_is_an_error_and_no_lost_data(dryfly: Dryfly, built: Programs) -> None:
    environment = _OFFLOAD | {"I_MPI_OFFLOAD_FAST_MEMCPY": "1"}
    command = (*_on("aurora", 2, 1), built.check("gpu_messages.c"), "device", "0", "contiguous")
    run = dryfly(*command, limit_s=300, environment=environment)
    assert run.exit_status != 0
    assert "failed to mmap handle" in run.stdout


def test_what_virtual_time_cannot_follow_is_refused(dryfly: Dryfly, built: Programs) -> None:
    command = (*_on("testbed", 2, 1)[:-1], "--on-node", "shared", "--", built.check("matching.c"))
    assert "Intel MPI's own shared memory" in dryfly(*command).stderr
    run = dryfly(*_on("testbed", 2, 1), CHECK / "matching.c", environment={"I_MPI_FABRICS": "shm:ofi"})
    assert run.exit_status == 2
    assert "I_MPI_FABRICS=shm:ofi: accepted is ofi" in run.stderr

"""Buffers on simulated GPUs: what Open MPI moves of them, what copies take, and what is said without a device."""

from __future__ import annotations

import re

import pytest
from conftest import Dryfly, Programs

from dryfly.mpi import libraries as mpi

_MACHINE = ("run", "--machine", "perlmutter-gpu", "-N", "2", "--compute", "none")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("gpu"), mpi.select("openmpi"))


def _latencies(text: str) -> dict[int, float]:
    """Half round trips in microseconds by bytes."""
    return {int(size): float(us) for size, us in re.findall(r"^(\d+) bytes (\S+) us$", text, re.MULTILINE)}


@pytest.mark.parametrize("kind", ["device", "pinned", "managed"])
def test_messages_between_gpu_buffers_are_right(kind: str, dryfly: Dryfly, built: Programs) -> None:
    run = dryfly(*_MACHINE, "--", built.check("gpu_messages.c"), kind, "4", limit_s=120).succeeded()
    assert "ok gpu_messages\n" in run.stdout


def test_without_hmem_open_mpi_copies_through_the_host_which_is_slower(dryfly: Dryfly, built: Programs) -> None:
    command = (*_MACHINE, "--", built.check("gpu_messages.c"), "device")
    direct = _latencies(dryfly(*command, limit_s=120).succeeded().stdout)
    staging = {"OMPI_MCA_mtl_ofi_disable_hmem": "1"}
    staged = _latencies(dryfly(*command, limit_s=120, environment=staging).succeeded().stdout)
    # One copy on each side: call and latency of both are the least that it can add.
    call_us, latency_us = 1, 5
    assert direct
    assert direct.keys() == staged.keys()
    assert all(staged[size] >= direct[size] + 2 * (call_us + latency_us) - 0.2 for size in direct)


def test_the_same_run_gives_the_same_fingerprint(dryfly: Dryfly, built: Programs) -> None:
    runs = [dryfly(*_MACHINE, "--", built.check("gpu_messages.c"), limit_s=120).succeeded() for _ in range(2)]
    assert runs[0].fingerprint == runs[1].fingerprint


def test_a_copy_takes_its_closed_form_and_moves_bytes_at_its_end_only(dryfly: Dryfly, built: Programs) -> None:
    numbers = ("1", "5", "31.5", "100", "1555")  # of data/machines/perlmutter-gpu.toml
    run = dryfly(*_MACHINE, "--", built.check("gpu_streams.c"), *numbers, limit_s=120).succeeded()
    assert "ok gpu_streams\n" in run.stdout


# The runtime's rule: devices behind one that does not exist are not seen, and one that is named twice leaves none.
@pytest.mark.parametrize(("mask", "seen"), [("1", 1), ("2,0,9,1", 2), ("3,2,1,0", 4)])
def test_a_mask_says_which_devices_are_seen(mask: str, seen: int, dryfly: Dryfly, built: Programs) -> None:
    command = (*_MACHINE, "--", built.check("gpu_messages.c"), "device", str(seen))
    dryfly(*command, limit_s=120, environment={"CUDA_VISIBLE_DEVICES": mask}).succeeded()


@pytest.mark.parametrize("mask", ["", "-1", "7", "1,1"])
def test_without_a_device_the_runtime_says_so(mask: str, dryfly: Dryfly, built: Programs) -> None:
    command = (*_MACHINE, "--", built.check("gpu_none.c"))
    run = dryfly(*command, limit_s=120, environment={"CUDA_VISIBLE_DEVICES": mask}).succeeded()
    assert "ok gpu_none\n" in run.stdout


def test_streams_and_events_that_open_mpi_releases_are_used_again(dryfly: Dryfly, built: Programs) -> None:
    run = dryfly(*_MACHINE, "--", built.check("gpu_objects.c"), limit_s=120).succeeded()
    assert "ok gpu_objects\n" in run.stdout

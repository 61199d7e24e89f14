"""Reductions that the fabric carries out, through libfabric's own interface: provider/conformance/collectives.c."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly
from harness import ROOT, Ended

from dryfly.mpi.libraries import MpiLibrary

_SOURCE = ROOT / "provider" / "conformance" / "collectives.c"
_RUN = ("run", "--machine", "testbed", "--compute", "none")


@pytest.fixture(scope="module")
def program(library: MpiLibrary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    wrapper = library.wrapper("mpicc")
    assert wrapper is not None
    target = tmp_path_factory.mktemp("collectives") / "collectives"
    folder = Path(library.libfabric).parent
    command = [wrapper, "-std=gnu17", "-O1", "-o", target, _SOURCE, library.libfabric, f"-Wl,-rpath,{folder}", "-lm"]
    built = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return target


def _times(run: Ended) -> tuple[float, float]:
    """Of an allreduce, in microseconds: in the fabric, by the MPI library."""
    found = re.search(r"fabric ([\d.]+) us, MPI ([\d.]+) us", run.succeeded().stdout)
    assert found is not None, run.stdout
    return float(found[1]), float(found[2])


def test_results_refusals_and_events_are_libfabrics_and_repeat(dryfly: Dryfly, program: Path) -> None:
    command = (*_RUN, "-N", "9", "--ppn", "1", "--", program)
    runs = [dryfly(*command).succeeded() for _ in range(2)]
    for rank in range(9):
        assert f"rank {rank}: collectives: all as libfabric says\n" in runs[0].stdout
    assert runs[0].fingerprint == runs[1].fingerprint
    assert runs[0].results["virtual_time_s"] == runs[1].results["virtual_time_s"]


def test_several_end_points_of_a_node_and_an_odd_number_of_them(dryfly: Dryfly, program: Path) -> None:
    run = dryfly(*_RUN, "-N", "3", "--ppn", "3", "--", program).succeeded()
    assert run.stdout.count("collectives: all as libfabric says") == 9


def test_the_time_grows_with_the_depth_of_the_tree_and_less_than_softwares(dryfly: Dryfly, program: Path) -> None:
    # The testbed has 2 nodes on a switch and 8 in a group: trees of one, two and three levels.
    times = [_times(dryfly(*_RUN, "-N", nodes, "--ppn", "1", "--", program, "20")) for nodes in ("2", "8", "32")]
    fabric = [time for time, _ in times]
    assert fabric[0] < fabric[1] < fabric[2]
    # Two levels more cost what two more switches and links do on the way up and down, not five rounds of messages.
    software = [time for _, time in times]
    assert fabric[2] - fabric[0] < software[2] - software[0]
    assert fabric[2] < software[2]


def test_the_radix_of_the_software_tree_counts_when_groups_are_formed(dryfly: Dryfly, program: Path) -> None:
    def time_of(radix: str) -> float:
        environment = {"FI_CXI_ZBCOLL_RADIX": radix}
        run = dryfly(*_RUN, "-N", "16", "--ppn", "1", "--", program, "1", environment=environment).succeeded()
        return float(run.results["virtual_time_s"])

    assert time_of("15") < time_of("2")


def test_a_job_may_have_fewer_groups_than_it_asks_for(dryfly: Dryfly, program: Path) -> None:
    # The program then meets the end of its addresses (2048) where it expects the end of its roots (2049).
    run = dryfly(*_RUN, "-N", "4", "--ppn", "1", "--", program, environment={"FI_CXI_HWCOLL_ADDRS_PER_JOB": "3"})
    assert run.exit_status != 0
    assert "not so: error == 2049" in run.stderr


def test_a_radix_that_libfabric_would_replace_is_refused(dryfly: Dryfly, program: Path) -> None:
    run = dryfly(*_RUN, "-n", "2", "--", program, environment={"FI_CXI_ZBCOLL_RADIX": "1"})
    assert run.exit_status == 2
    assert "FI_CXI_ZBCOLL_RADIX=1: Invalid zbcoll_radix=1: accepted is 2 and more" in run.stderr

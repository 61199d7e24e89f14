"""What FI_CXI_* settings of the provider do to real programs, beyond matching."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import ROOT, Ended

from dryfly.mpi.libraries import MpiLibrary

_COMMON = ("run", "--quiet", "--machine", "testbed", "-n", "2", "--compute", "none")


def test_the_gets_of_software_travel_in_their_own_class(dryfly: Dryfly, programs: Programs) -> None:
    """Fifty-one messages of 100,000 B each way; what is behind the first 2,048 B of each comes by a Get."""
    command = (*_COMMON, "--", programs.micro("pingpong.c"), "bytes=100000", "count=50")
    for mode, expected in (("software", {"bulk_data", "best_effort"}), ("hardware", {"best_effort"})):
        settings = {"FI_CXI_RX_MATCH_MODE": mode, "FI_CXI_RGET_TC": "BULK_DATA"}
        run = dryfly(*command, environment=settings).succeeded()
        carried = {row["class"]: row["bytes"] for row in run.results["traffic_classes"] if row["packets"] > 0}
        assert set(carried) == expected
        if "bulk_data" in carried:
            assert carried["bulk_data"] > 10 * carried["best_effort"]


def _latency_us(ended: Ended) -> float:
    found = re.search(r"latency ([\d.]+) us", ended.succeeded().stdout)
    assert found is not None, ended.stdout
    return float(found[1])


def test_restricted_gets_take_a_word_more_where_software_issues_them(dryfly: Dryfly, programs: Programs) -> None:
    pingpong = ("--", programs.micro("pingpong.c"), "bytes=100000", "count=10")
    times = {
        (gets, protocol): _latency_us(
            dryfly(
                *_COMMON, "--set", f"nic.rendezvous_get={gets}", *pingpong, environment={"FI_CXI_RDZV_PROTO": protocol}
            )
        )
        for gets in ("on", "off")
        for protocol in ("default", "alt_read")
    }
    assert times["on", "default"] == times["on", "alt_read"] < times["off", "default"] < times["off", "alt_read"]


def test_a_command_that_is_fetched_takes_a_read_from_memory_longer(dryfly: Dryfly, programs: Programs) -> None:
    pingpong = ("--", programs.micro("pingpong.c"), "bytes=8", "count=10")
    idle, always, never = (
        _latency_us(dryfly(*_COMMON, *pingpong, environment={"FI_CXI_LLRING_MODE": mode}))
        for mode in ("idle", "always", "never")
    )
    assert idle == always
    assert never == pytest.approx(idle + 0.6, abs=0.1)  # switches draw their latencies


@pytest.mark.parametrize("ranks_per_node", ["1", "2"])
def test_networks_are_kept_apart_and_writes_carry_data(
    ranks_per_node: str, dryfly: Dryfly, library: MpiLibrary, tmp_path: Path
) -> None:
    wrapper = library.wrapper("mpicc")
    assert wrapper is not None
    folder = Path(library.libfabric).parent
    source = ROOT / "provider" / "conformance" / "settings.c"
    command = [str(wrapper), "-std=gnu17", "-Wall", "-Wextra", "-o", str(tmp_path / "settings"), str(source)]
    built = subprocess.run([*command, library.libfabric, f"-Wl,-rpath,{folder}"], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    job = ("run", "--machine", "testbed", "-n", "2", "--ppn", ranks_per_node, "--compute", "none")
    run = dryfly(*job, "--", tmp_path / "settings", environment={"FI_CXI_ENABLE_WRITEDATA": "1"}).succeeded()
    for rank in range(2):
        assert f"rank {rank}: settings: all as libfabric says\n" in run.stdout


@pytest.mark.parametrize("setting", ["FI_CXI_DEVICE_NAME=hsn0", "FI_CXI_DEFAULT_VNI=70000"])
def test_what_names_no_device_or_network_is_refused_before_the_start(setting: str, dryfly: Dryfly) -> None:
    name, _, value = setting.partition("=")
    run = dryfly(*_COMMON, "--", "/bin/true", environment={name: value})
    assert run.exit_status == 2
    assert setting in run.stderr


# A thread of the library's own polls as often as this computer lets it; before, such a run was a deadlock or hung.
@pytest.mark.parametrize("name", ["MPIR_CVAR_ASYNC_PROGRESS", "MPIR_PARAM_ASYNC_PROGRESS", "MPICH_ASYNC_PROGRESS"])
def test_a_progress_thread_of_mpich_is_refused_before_the_start(name: str, dryfly: Dryfly, programs: Programs) -> None:
    program = programs.micro("pingpong.c")
    ended = dryfly(*_COMMON, "--", program, environment={name: "yes"})
    assert ended.exit_status == 2
    assert ended.stderr.startswith(f"dryfly: {name}=yes: a progress thread polls as this computer happens to run it")
    assert ended.stderr.count("\n") == 1
    dryfly(*_COMMON, "--", program, "count=2", environment={name: "0"}).succeeded()


_STARTS_A_THREAD = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int provided;
  if (argc == 1) setenv("MPIR_CVAR_ASYNC_PROGRESS", "1", 1);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (argc > 1) {
    MPIX_Stream stream;
    MPIX_Stream_create(MPI_INFO_NULL, &stream);
    MPIX_Start_progress_thread(stream);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("words", [(), ("call",)])
def test_a_progress_thread_that_a_program_starts_ends_it_with_one_sentence(
    words: tuple[str, ...], dryfly: Dryfly, tmp_path: Path
) -> None:
    source = tmp_path / "starts.c"
    source.write_text(_STARTS_A_THREAD)
    ended = dryfly(*_COMMON, "--", source, *words, environment={"MPIR_CVAR_CH4_RESERVE_VCIS": "1"})
    assert ended.exit_status == 2, ended.stderr
    assert ended.stderr.count("starts a progress thread") == 1


# What Open MPI 5.0 has under that name changes nothing: its own thread is for a fabric of sockets.
@pytest.mark.parametrize("name", ["MPIR_CVAR_ASYNC_PROGRESS", "OMPI_MCA_btl_tcp_progress_thread"])
def test_open_mpi_has_no_progress_thread_to_refuse(name: str, dryfly: Dryfly) -> None:
    command = (*_COMMON, "--mpi", "openmpi", "--", ROOT / "programs" / "micro" / "pingpong.c", "count=2")
    with_it = dryfly(*command, environment={name: "1"}).succeeded()
    assert with_it.fingerprint == dryfly(*command).succeeded().fingerprint

"""The benchmarks of programs/benchmark, and `dryfly compare` and `dryfly bisect` with real MPI libraries."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import ROOT

from dryfly.case.case import Case
from dryfly.mpi.libraries import MpiLibrary
from dryfly.study.trial import Trial

BENCHMARK = ROOT / "programs" / "benchmark"
# The others share their code.
_CHECKED = ("bibw", "mbw_mr", "gather", "scatter", "alltoall", "allgather", "bcast", "reduce_scatter")


@pytest.mark.parametrize("name", _CHECKED)
def test_a_benchmark_moves_the_right_bytes(dryfly: Dryfly, programs: Programs, name: str) -> None:
    """Five ranks: no power of two. 32 KiB goes by rendezvous."""
    program = programs(BENCHMARK / f"{name}.c")
    where = ("--machine", "testbed", "-n", "5", "--compute", "none", "--quiet")
    run = dryfly("run", *where, "--", program, "-c", "-i", "1", "-x", "0", "-m", "4096:32768").succeeded()
    rows = [line for line in run.stdout.splitlines() if not line.startswith("#")]
    assert len(rows) == 4
    assert all(row.endswith("Pass") for row in rows)


def test_bytes_that_do_not_arrive_are_noticed(dryfly: Dryfly, library: MpiLibrary, tmp_path: Path) -> None:
    """The same program, its Alltoall leaving the last byte of each block out."""
    source, target = tmp_path / "less.c", tmp_path / "less"
    less = "#define MPI_Alltoall(a, n, t, b, m, u, c) (MPI_Alltoall)(a, (n)-1, t, b, (m)-1, u, c)"
    source.write_text(f'#include <mpi.h>\n{less}\n#include "alltoall.c"\n')
    wrapper = library.wrapper("mpicc")
    assert wrapper is not None
    subprocess.run([str(wrapper), f"-I{BENCHMARK}", str(source), "-o", str(target)], check=True)
    run = dryfly("run", "-n", "2", "--quiet", "--", target, "-c", "-i", "1", "-m", "8:8")
    assert run.exit_status == 1
    assert "Fail" in run.stdout


def test_two_libraries_are_compared_and_what_was_run_is_kept(dryfly: Dryfly, tmp_path: Path) -> None:
    command = ("compare", "--with", "mpich", "--with", "HAN: openmpi,OMPI_MCA_coll=^sm", "-N", "3", "-m", "128:256")
    command = (*command, "-i", "1", "-o", str(tmp_path / "kept"), "--json", str(tmp_path / "out.json"), "bcast")
    first = dryfly(*command, limit_s=120).succeeded()
    content = json.loads((tmp_path / "out.json").read_text())
    (bcast,) = content["benchmarks"]
    assert (bcast["ranks"], bcast["unit"]) == (3, "us")
    for line in bcast["lines"]:
        assert list(line["figures"]) == ["128", "256"]
        assert line["counts"]["128"] == {"messages": 2, "bytes": 256, "protocols": {"inline": 2}}
        # 192 B is the documented limit of what travels inside the command.
        assert [change["text"] for change in line["changes"]] == ["inline -> eager"]
    # Three ranks on three nodes: the tree has to deliver two messages, no earlier than one after the call.
    assert all(figure > 1 for line in bcast["lines"] for figure in line["figures"].values())
    assert "inline -> eager (seen in counts)" in first.stdout
    assert "<svg" in (tmp_path / "kept" / "compare.html").read_text()
    second = dryfly(*command).succeeded()
    assert second.stderr.count("kept from before") == 4
    assert json.loads((tmp_path / "out.json").read_text()) == content


@pytest.mark.slow
def test_recordings_are_kept_and_can_be_set_beside_each_other(dryfly: Dryfly, tmp_path: Path) -> None:
    slower = "slow switch: mpich,fabric.switch.latency=650 ns"
    command = ("compare", "--with", "mpich", "--with", slower, "-m", "8:8", "-i", "1", "-x", "0", "--no-counts")
    where = ("-o", tmp_path / "out", "--record", tmp_path / "runs", "--trace", tmp_path / "traces")
    command = (*command, *where, "latency")
    dryfly(*command).succeeded()
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["latency-m-8-8-i-1-x-0-mpich", "latency-m-8-8-i-1-x-0-slow-switch"]
    assert sorted(path.stem for path in (tmp_path / "traces").iterdir()) == names
    assert "The runs differ first at" in dryfly("diff", *(tmp_path / "runs" / name for name in names)).stdout
    assert dryfly(*command).succeeded().stderr.count("kept from before") == 2
    shutil.rmtree(tmp_path / "runs" / names[0])  # what is no longer there is run again
    assert dryfly(*command).succeeded().stderr.count("kept from before") == 1
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == names


def test_bisect_keeps_a_recording_of_each_point(dryfly: Dryfly, tmp_path: Path) -> None:
    where = ("--state", tmp_path / "state", "--record", tmp_path / "runs")
    dryfly(
        "bisect", "--over", "nic.eager=4096 B,8192 B", *where, "--", "latency", "-m", "8192:8192", "-i", "1"
    ).succeeded()
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["4096-B", "8192-B"]
    assert (tmp_path / "runs" / "4096-B" / "messages.parquet").is_file()


def test_the_limit_of_eager_messages_is_found_to_the_byte(dryfly: Dryfly, tmp_path: Path) -> None:
    command = ("bisect", "--over", "nic.eager=8191..8193 B", "--state", str(tmp_path / "state"))
    command = (*command, "--json", str(tmp_path / "out.json"), "--", "latency", "-m", "8192:8192", "-i", "1")
    dryfly(*command).succeeded()
    outcome = json.loads((tmp_path / "out.json").read_text())
    assert (outcome["before"], outcome["after"]) == ("8191 B", "8192 B")


def test_open_mpi_uses_each_nic_of_a_node(dryfly: Dryfly) -> None:
    """Four ranks and four NICs: one each. Open MPI deals its ranks itself, so dryfly must not do it as well."""
    where = ("--mpi", "openmpi", "--machine", "perlmutter-gpu", "-N", "2", "--ppn", "4", "--compute", "none")
    run = dryfly(
        "run", *where, "--", BENCHMARK / "mbw_mr.c", "-m", "65536:65536", "-i", "1", "-x", "0", "--check", "0"
    ).succeeded()
    sent = {
        (row["node"], row["index"]): row["counters"].get("hni_tx_ok_2048_to_4095", 0) for row in run.results["nics"]
    }
    senders = [packets for (node, _), packets in sorted(sent.items()) if node == "nid001000"]
    assert senders == [64 * 32] * 4  # 64 messages of 32 packets of 2 KiB


@pytest.mark.slow
def test_no_bandwidth_of_many_pairs_is_above_what_the_node_carries(dryfly: Dryfly) -> None:
    """A node of Aurora has two processors whose PCIe carries 90 GB/s each way (data/machines/aurora.toml)."""
    where = ("--machine", "aurora", "-N", "2", "--ppn", "32", "--compute", "none")
    run = dryfly("run", *where, "--", BENCHMARK / "mbw_mr.c", "-m", "65536:65536", "-i", "2", limit_s=180).succeeded()
    row = next(line.split() for line in run.stdout.splitlines() if line.startswith("65536"))
    assert 0.9 * 180_000 < float(row[1]) <= 180_000


@pytest.mark.usefixtures("library")
def test_a_result_is_of_one_binding_and_one_node() -> None:
    """What the launcher's words make of the machine counts, and they are the same here."""

    def key(*sets: str, cpu_bind: str = "cores") -> str:
        case = Case(program=("true",), machine="frontier", nodes=1, ppn=8, cpu_bind=cpu_bind, sets=sets)
        return Trial(case=case).key()

    keys = {key(), key("node.slurm_socket=socket"), key("node.reserved=none"), key(cpu_bind="threads")}
    assert len(keys) == 4
    assert key() in keys

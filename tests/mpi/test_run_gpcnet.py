"""GPCNeT's tests as a real MPI program, and the skeleton of them that `dryfly predict gpcnet` runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import ROOT

from dryfly.mpi.libraries import MpiLibrary
from dryfly.predict import ask
from dryfly.predict.question import Question

PROGRAM = ROOT / "programs" / "benchmark" / "gpcnet.c"
WHERE = ("--machine", "aurora", "--compute", "none", "--software", "none", "--quiet")
FEW = ("--warmup", "20", "--latency-iterations", "20", "--bandwidth-iterations", "4", "--allreduces", "20")
TESTS = ("latency", "bandwidth", "allreduce")


def test_at_64_ranks_the_skeleton_takes_the_time_of_the_program(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    file = tmp_path / "gpcnet.json"
    job = ("-N", "32", "--ppn", "2")
    run = dryfly(
        "run", *WHERE, *job, "--", programs(PROGRAM), *FEW, "--pass", "8", "--json", str(file), limit_s=240
    ).succeeded()
    assert run.stdout.count("RR latency (8 B)") == 3  # alone, beside congestors, and the factor
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["wrong"] == 0
    assert (found["ranks"], found["congestor_nodes"]) == (64, 12)
    few = ("warmup=20", "latency_iterations=20", "bandwidth_iterations=4", "allreduces=20", "pass=8")
    parameters = tuple((name, value) for name, _, value in (word.partition("=") for word in few))
    answer = ask.ask(Question(workload="gpcnet", nodes=32, ppn=2, parameters=(("congestors", "40 %"), *parameters)))
    for load, prefix in (("isolated", ""), ("congested", "congested_")):
        for test in TESTS:
            unit, scale = ("bytes_per_s", 2.0**-20) if test == "bandwidth" else ("ps", 1e-6)
            predicted = answer.figures[f"{prefix}{test}_mean_{unit}"] * scale
            assert predicted == pytest.approx(found[load][test]["mean"], rel=0.15), (load, test)


def test_without_congestors_all_nodes_run_the_tests(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    file = tmp_path / "gpcnet.json"
    command = ("run", *WHERE, "-N", "5", "--ppn", "1", "--", programs(PROGRAM), *FEW, "--congestors", "0")
    dryfly(*command, "--json", str(file), limit_s=120).succeeded()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["congestor_nodes"] == 0
    assert "congested" not in found
    assert found["isolated"]["latency"]["mean"] > 1


def test_a_budget_is_made_into_counts_that_are_the_same_each_time(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    file = tmp_path / "gpcnet.json"
    command = ("run", *WHERE, "-N", "5", "--ppn", "1", "--", programs(PROGRAM), "--congestors", "0", "--pass", "8")
    said = [dryfly(*command, "--budget", "1", "--json", str(file), limit_s=120).succeeded().stdout for _ in range(2)]
    assert said[0] == said[1]
    latency, bandwidth, allreduce = json.loads(file.read_text(encoding="utf-8"))["iterations"]
    counts = f"{latency} exchanges of 8 B behind {latency} that do not count, {bandwidth} of 131072 B, "
    assert said[0].startswith(f"budget of 1 s: {counts}{allreduce} allreduces\n")
    # A third of a second: 5 ranks, 2 messages of 20 us, twice; 16 of 20 + 64 * 4 * 0.45 us and 3 of 20; 3 of 20.
    assert (latency, bandwidth, allreduce) == (833, 28, 1111)
    refused = dryfly(*command, "--budget", "1", "--warmup", "5")
    assert refused.exit_status == 2


def test_congestors_run_with_open_mpi_too(dryfly: Dryfly, tmp_path: Path) -> None:
    file = tmp_path / "gpcnet.json"
    command = ("run", *WHERE, "-N", "10", "--ppn", "1", "--mpi", "openmpi", "--", str(PROGRAM), *FEW, "--pass", "8")
    dryfly(*command, "--congestors", "0.8", "--json", str(file), limit_s=120).succeeded()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["congestor_nodes"] == 8
    assert found["wrong"] == 0
    assert all(found["factors"][test]["mean"] > 0.5 for test in TESTS)


def test_bytes_that_do_not_arrive_are_noticed(dryfly: Dryfly, library: MpiLibrary, tmp_path: Path) -> None:
    """The same program, its receives leaving the last byte of each message out."""
    source, target = tmp_path / "less.c", tmp_path / "less"
    less = "#define MPI_Isend(b, n, t, to, tag, c, r) (MPI_Isend)(b, (n)-1, t, to, tag, c, r)"
    source.write_text(f'#include <mpi.h>\n{less}\n#include "gpcnet.c"\n')
    wrapper = library.wrapper("mpicc")
    assert wrapper is not None
    subprocess.run([str(wrapper), f"-I{PROGRAM.parent}", str(source), "-o", str(target)], check=True)
    run = dryfly(
        "run", "-n", "2", "--quiet", "--", target, "--congestors", "0", "--bandwidth-iterations", "1", *FEW[:4]
    )
    assert run.exit_status == 1
    assert "data that arrived was wrong" in run.stderr


def test_a_share_that_leaves_too_few_nodes_is_refused(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly("run", "-n", "4", "--quiet", "--", programs(PROGRAM))
    assert run.exit_status == 2
    assert "--congestors: accepted is a share that leaves 2 nodes for the tests" in run.stderr

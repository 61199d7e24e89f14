"""Ranks started by Slurm, on a Slurm of the tests' own (slurm_cluster.py), which needs root: `make test-slurm`."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import slurm_cluster
from conftest import Dryfly, Start
from test_run_launchers import _ENDINGS, Built, built

__all__ = ["built"]

pytestmark = pytest.mark.skipif(bool(slurm_cluster.why_not()), reason=slurm_cluster.why_not() or "never")

_RUN = ("run", "-N", "2", "--ppn", "2", "--compute", "none")


@pytest.fixture(scope="session")
def slurm() -> Iterator[dict[str, str]]:
    with slurm_cluster.running() as environment:
        yield environment


def _jobs(slurm: Mapping[str, str]) -> str:
    return subprocess.run(["squeue", "--noheader"], env=slurm, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_the_run_is_the_same_whoever_starts_it(
    family: str, dryfly: Dryfly, built: Built, slurm: dict[str, str]
) -> None:
    ours = dryfly(*_RUN, "--", built(family)).succeeded()
    theirs = dryfly(*_RUN, "--launcher", "slurm", "--", built(family), environment=slurm).succeeded()
    expected = [f"rank {rank} on {node} {node} sum 6" for rank, node in enumerate(("t0", "t0", "t1", "t1"))]
    assert sorted(theirs.stdout.splitlines()) == expected
    assert theirs.fingerprint == ours.fingerprint


@pytest.mark.parametrize("how", _ENDINGS)
def test_the_rank_that_ends_the_job_is_named(how: str, dryfly: Dryfly, built: Built, slurm: dict[str, str]) -> None:
    run = dryfly(*_RUN, "--launcher", "slurm", "--", built("mpich"), how, environment=slurm)
    status, sentence = _ENDINGS[how]
    assert run.exit_status == status
    assert re.search(sentence, run.stderr), run.stderr


def test_a_batch_job_runs_within_its_allocation(built: Built, slurm: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dryfly", *_RUN, "--launcher", "slurm", "--", str(built("mpich"))]
    script = tmp_path / "job"
    script.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n", encoding="utf-8")
    output = tmp_path / "output"
    subprocess.run(["sbatch", "--wait", "-N1", f"--output={output}", str(script)], env=slurm, check=True, timeout=60)
    assert output.read_text(encoding="utf-8").count("sum 6") == 4


def test_an_allocation_of_several_hosts_is_refused(dryfly: Dryfly, built: Built, slurm: dict[str, str]) -> None:
    several = {**slurm, "SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "2"}
    run = dryfly(*_RUN, "--launcher", "slurm", "--", built("mpich"), environment=several)
    assert run.exit_status == 2
    assert "this allocation has 2 hosts" in run.stderr


@pytest.mark.parametrize("victim", ["launched", "dryfly-conductor", "srun", "dryfly"])
def test_nothing_stays_when_a_process_is_killed(victim: str, start: Start, built: Built, slurm: dict[str, str]) -> None:
    run = start(*_RUN, "--launcher", "slurm", "--", built("mpich"), "stay", environment=slurm)
    run.wait_for_line("rank 0")
    if victim == "srun":  # the first one; the other is its helper
        pid = min(process.pid for process in run.processes() if process.name == victim)
    else:
        pid = run.process.pid if victim == "dryfly" else run.pid_of(victim)
    os.kill(pid, signal.SIGKILL)
    run.wait(limit_s=10)
    run.require_nothing_left()
    assert slurm_cluster.until(lambda: not _jobs(slurm), limit_s=10), _jobs(slurm)


def test_a_job_that_slurm_cancels_ends(start: Start, built: Built, slurm: dict[str, str]) -> None:
    run = start(*_RUN, "--launcher", "slurm", "--", built("mpich"), "stay", environment=slurm)
    run.wait_for_line("rank 0")
    subprocess.run(["scancel", "--name=dryfly"], env=slurm, check=True)
    ended = run.wait(limit_s=10)
    assert ended.exit_status != 0
    assert re.search(r"rank \d on t\d", ended.stderr), ended.stderr
    run.require_nothing_left()

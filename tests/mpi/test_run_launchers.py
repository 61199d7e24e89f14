"""Ranks started by hydra and by prterun instead of by dryfly's own launcher; those of batch systems are in
test_run_batch_launchers.py and slurm_launcher.py."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Dryfly, Programs, Start
from harness import Process, Started

from dryfly.base.errors import UserError
from dryfly.mpi import launchers
from dryfly.mpi import libraries as mpi

_NONE = ("--compute", "none")
_LIBRARY = {"hydra": "mpich", "prterun": "openmpi"}

_SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char** words) {
  const char* how = count > 1 ? words[1] : "well";
  int rank, length, sum = 0;
  char name[MPI_MAX_PROCESSOR_NAME], host[256];
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Get_processor_name(name, &length);
  gethostname(host, sizeof host);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d on %s %s sum %d\n", rank, name, host, sum);
  fflush(stdout);
  if (rank == 2 && strcmp(how, "exit") == 0) exit(7);
  if (rank == 2 && strcmp(how, "crash") == 0) abort();
  if (rank == 2 && strcmp(how, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 5);
  if (rank == 2 && strcmp(how, "leave") == 0) _exit(0);
  while (strcmp(how, "well") != 0) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""

_ENDINGS = {
    "exit": (7, r"rank 2 on t1 \(pid \d+\) exited with status 7"),
    "crash": (128 + signal.SIGABRT, r"rank 2 on t1 \(pid \d+\) was killed by signal 6"),
    "abort": (5, "rank 2 on t1 called MPI_Abort with code 5"),
    "leave": (1, "rank 2 on t1 ended without calling MPI_Finalize"),
}

Built = Callable[[str], Path]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The program for a family of MPI libraries."""
    folder = tmp_path_factory.mktemp("launched")
    source = folder / "launched.c"
    source.write_text(_SOURCE, encoding="utf-8")
    return lambda family: Programs(_made(folder / family), mpi.select(family))(source)


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


# t1 and t0 by turns: what hydra needs its -rankmap for, and prterun its list of hosts.
@pytest.mark.parametrize("launcher", _LIBRARY)
def test_the_run_is_the_same_whoever_starts_it(launcher: str, dryfly: Dryfly, built: Built, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.write_text("t1\nt0\nt1\nt0\n", encoding="utf-8")
    command = ("run", "-n", "4", "--place", place, *_NONE)
    runs = [
        dryfly(*command, "--launcher", name, "--", built(_LIBRARY[launcher]), environment={"TMPDIR": str(tmp_path)})
        for name in (launcher, "dryfly")
    ]
    expected = [f"rank {rank} on {node} {node} sum 6" for rank, node in enumerate(("t1", "t0", "t1", "t0"))]
    for run in runs:
        assert sorted(run.succeeded().stdout.splitlines()) == expected
    assert runs[0].fingerprint == runs[1].fingerprint
    assert [entry.name for entry in tmp_path.iterdir()] == ["place"]


@pytest.mark.parametrize(("launcher", "how"), [("hydra", "crash"), ("hydra", "leave"), ("prterun", "abort")])
def test_the_rank_that_ends_the_job_is_named(launcher: str, how: str, dryfly: Dryfly, built: Built) -> None:
    run = dryfly("run", "-N", "2", "--ppn", "2", *_NONE, "--launcher", launcher, "--", built(_LIBRARY[launcher]), how)
    status, sentence = _ENDINGS[how]
    assert run.exit_status == status
    assert_said(run.stderr, sentence)


def assert_said(errors: str, sentence: str) -> None:
    assert re.search(sentence, errors), errors


def _shim(run: Started) -> int:
    launchers = [process.pid for process in run.processes() if process.name == "dryfly-launch"]
    return next(pid for pid in launchers if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1] == b"--shim")


@pytest.mark.parametrize(
    ("launcher", "victim", "sentence"),
    [
        ("hydra", "mpiexec.hydra", r"the launcher \(hydra\) was killed by signal 9"),
        ("hydra", "shim", r"rank \d on t\d \(pid \d+\) was ended by hydra, or from outside"),
        ("prterun", "dryfly-launch", "dryfly-launch was killed by signal 9"),
    ],
)
def test_nothing_stays_when_a_process_of_the_launcher_is_killed(
    launcher: str, victim: str, sentence: str, start: Start, built: Built
) -> None:
    program = built(_LIBRARY[launcher])
    run = start("run", "-N", "2", "--ppn", "2", *_NONE, "--launcher", launcher, "--", program, "stay")
    run.wait_for_line("rank 0")
    names: list[Process] = run.processes()
    assert sum(process.name == program.name for process in names) == 4
    if victim == "dryfly-launch":
        # Its supervisor, whose parent has no other child.
        pid = sorted(process.pid for process in names if process.name == victim)[1]
    else:
        pid = _shim(run) if victim == "shim" else run.pid_of(victim)
    os.kill(pid, signal.SIGKILL)
    assert_said(run.wait(limit_s=10).stderr, sentence)
    run.require_nothing_left()


@pytest.mark.parametrize(
    ("launcher", "family", "sentence"),
    [
        ("hydra", "openmpi", "it starts programs of MPICH, and openmpi-5"),
        ("prterun", "mpich", "it starts programs of Open MPI, and mpich-5"),
    ],
)
def test_a_launcher_that_cannot_be_used_is_refused(
    launcher: str, family: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match=sentence):
        launchers.prepare(launcher, mpi.select(family), node_of_rank=("t0",))


def test_a_launcher_that_is_not_there_is_refused(tmp_path: Path) -> None:
    library = replace(mpi.select("mpich"), prefix=str(tmp_path))
    with pytest.raises(UserError, match=f"there is no mpiexec.hydra in {tmp_path}/bin"):
        launchers.prepare("hydra", library, node_of_rank=("t0",))


def test_hydra_before_mpich_5_takes_ranks_in_blocks_only() -> None:
    library = replace(mpi.select("mpich"), name="mpich-4.3.2", version="4.3.2")
    launchers.prepare("hydra", library, node_of_rank=("t1", "t1", "t0"))
    with pytest.raises(UserError, match=r"that of mpich-4\.3\.2 puts ranks on nodes in blocks only"):
        launchers.prepare("hydra", library, node_of_rank=("t1", "t0", "t1"))


def test_a_debugger_needs_our_own_launcher(dryfly: Dryfly) -> None:
    run = dryfly("run", "--launcher", "hydra", "--debug", "0:true", "--", "true")
    assert run.exit_status == 2
    assert "--debug goes with --launcher dryfly only" in run.stderr

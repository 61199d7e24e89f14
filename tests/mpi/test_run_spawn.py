"""A run has the ranks that it began with: a program that asks for more is told so in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Dryfly, Programs

from dryfly.mpi import libraries as mpi

_SPAWNS = """\
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int count, char** words) {
  MPI_Comm children;
  char* commands[2] = {words[0], words[0]};
  int counts[2] = {1, 1};
  MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
  int several = strcmp(words[1], "several") == 0, status;
  MPI_Init(&count, &words);
  if (count > 2) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  status = several ? MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 0, MPI_COMM_WORLD, &children,
                                             MPI_ERRCODES_IGNORE)
                   : MPI_Comm_spawn(words[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                                    MPI_ERRCODES_IGNORE);
  printf("%s\\n", status != MPI_SUCCESS ? "got along" : "spawned"); /* in one piece: MPICH buffers nothing */
  return MPI_Finalize();
}
"""


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
@pytest.mark.parametrize(("form", "call"), [("one", "MPI_Comm_spawn"), ("several", "MPI_Comm_spawn_multiple")])
def test_a_program_that_spawns_is_told_why_it_cannot(
    dryfly: Dryfly, tmp_path: Path, family: str, form: str, call: str
) -> None:
    source = tmp_path / "spawns.c"
    source.write_text(_SPAWNS)
    job = ("run", "-n", "2", "--mpi", family, "--", Programs(tmp_path, mpi.select(family))(source), form)
    says = f"spawns calls {call}, which fails, because a run has the ranks that it began with: start all of them at "
    ended = dryfly(*job)
    assert ended.exit_status == 2, ended.stderr
    assert ended.stderr.count(says) == 1
    assert "MPI_ERR" not in ended.stderr
    # As a program that starts helpers where it can.
    went_on = dryfly(*job, "errors return").succeeded()
    assert went_on.stderr.count(says) == 1
    assert went_on.stdout.count("got along\n") == 2

"""Locks of files that ranks wait for, in calls of their own and in MPI's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import Dryfly
from harness import CHECK

# A rank that held virtual time while it waits would be let go after 5 s, or never.
_SOON_S = 4.0


@pytest.mark.parametrize("on_node", ["provider", "shared"])
@pytest.mark.parametrize("kind", ["fcntl", "ofd", "flock", "lockf", "io"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_rank_that_waits_for_a_lock_holds_nobody_up(
    dryfly: Dryfly, tmp_path: Path, mpi: str, kind: str, on_node: str
) -> None:
    """With two ranks on a node and `shared` the one that waits has its node's turn."""
    result = tmp_path / "result.json"
    nodes, per_node = ("4", "1") if kind == "io" else ("2", "2")
    command = ("run", "--machine", "testbed", "--mpi", mpi, "-N", nodes, "--ppn", per_node, "--compute", "none")
    command += ("--on-node", on_node, "--json", str(result), "--", str(CHECK / "file_locks.c"), kind)
    run = dryfly(*command, tmp_path / "locked").succeeded()
    assert "ok file_locks\n" in run.stdout
    found = json.loads(result.read_text())
    assert found["simulator"]["let_go"] == 0
    assert found["simulator"]["wall_ns"] < _SOON_S * 1e9
    waited = [row["count"] for row in found["health"] if row["name"] == "outside_virtual_time"]
    assert found["repeatable"] is not bool(waited)
    if kind != "io":
        assert waited == [1]


@pytest.mark.slow
def test_a_rank_that_the_others_wait_for_in_vain_is_named(dryfly: Dryfly, tmp_path: Path) -> None:
    source = tmp_path / "pauses.c"
    source.write_text(
        "#include <mpi.h>\n#include <unistd.h>\n"
        "int main(void) { int rank; MPI_Init(0, 0); MPI_Comm_rank(MPI_COMM_WORLD, &rank); if (rank == 1) pause();"
        "MPI_Barrier(MPI_COMM_WORLD); MPI_Finalize(); }\n"
    )
    run = dryfly("run", "--machine", "testbed", "-n", "3", "--compute", "none", "--timeout", "25", "--", source)
    assert run.exit_status == 124
    assert re.search(r"rank 1 on t1 \(pid \d+\) sleeps, or waits for a lock of a file, and every other", run.stderr)

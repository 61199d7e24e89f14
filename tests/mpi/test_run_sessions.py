"""MPI sessions: without MPI_Init, one after another, and beside MPI_COMM_WORLD in any order of beginnings and ends."""

from __future__ import annotations

import re

import pytest
from conftest import Dryfly, Programs
from harness import CHECK, Ended

from dryfly.mpi import libraries as mpi

_JOB = ("run", "-n", "3", "--ppn", "1", "--compute", "none")


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp(request.param), mpi.select(request.param))


def _run(dryfly: Dryfly, built: Programs, steps: str, *flags: str) -> Ended:
    return dryfly(*_JOB, *flags, "--", built(CHECK / "sessions.c"), steps).succeeded()


def _seconds(ended: Ended) -> float:
    found = re.fullmatch(r"ok sessions, (\S+) s\n", ended.stdout)
    assert found is not None, ended.stdout
    return float(found.group(1))


def _counts(ended: Ended) -> dict[str, int]:
    return {row["call"]: row["count"] for row in ended.results["profile"]}


# The steps are those of programs/check/sessions.c. Open MPI 5.0.11 itself crashes where its last session was closed
# and another one is opened; here it does not go down in between.
@pytest.mark.parametrize("steps", ["oc", "ooccoc", "oOccoc", "oox"])
def test_sessions_alone_are_a_run(steps: str, dryfly: Dryfly, built: Programs) -> None:
    ended = _run(dryfly, built, steps)
    assert 0 <= _seconds(ended) < 1e-3
    assert ended.results["messages"] > 0
    assert ended.results["repeatable"] is True
    opened = 3 * steps.count("o") + steps.count("O")
    assert _counts(ended)["MPI_Session_init"] == opened
    assert _counts(ended)["MPI_Session_finalize"] == opened
    assert ended.fingerprint == _run(dryfly, built, steps).fingerprint


def test_virtual_time_goes_on_between_sessions_and_not_behind_the_last(dryfly: Dryfly, built: Programs) -> None:
    ended = _run(dryfly, built, "ocsoc")
    assert 1 < _seconds(ended) < 1.001
    assert 1 < ended.results["virtual_time_s"] < 1.001
    assert 1 < ended.results["ranks_detail"][2]["computing_s"] < 1.001


# i and f are MPI_Init and MPI_Finalize: the last to be closed is the end.
@pytest.mark.parametrize("steps", ["iocf", "iofc", "oicf", "oifc", "iococf", "oicocf"])
def test_sessions_and_the_world_come_and_go_in_any_order(steps: str, dryfly: Dryfly, built: Programs) -> None:
    ended = _run(dryfly, built, steps)
    assert 0 < _seconds(ended) < 1e-3
    assert _counts(ended)["MPI_Init"] == 3
    assert ended.results["repeatable"] is True
    # A wait for what is no event of the network: it would last as long as the process manager takes in wall time.
    assert ended.results["simulator"]["standstills"] == 0
    assert ended.fingerprint == _run(dryfly, built, steps).fingerprint


# MPICH shares out its node's memory with the first session, by a barrier that spins on a word of it.
# With several nodes MPICH's ranks meet in the launcher while others wait in their node's memory.
@pytest.mark.parametrize(("nodes", "ppn"), [("1", "3"), ("2", "2")])
def test_sessions_over_the_memory_of_a_node(nodes: str, ppn: str, dryfly: Dryfly, programs: Programs) -> None:
    command = ("run", "-N", nodes, "--ppn", ppn, "--on-node", "shared", "--compute", "none")
    runs = [dryfly(*command, "--", programs(CHECK / "sessions.c"), "oicosoccf").succeeded() for _ in range(2)]
    assert 1 < _seconds(runs[0]) < 1.001
    assert runs[0].fingerprint == runs[1].fingerprint
    assert runs[0].results["repeatable"] is True


def test_a_session_that_stays_open_is_said(dryfly: Dryfly, built: Programs) -> None:
    ended = dryfly(*_JOB, "--", built(CHECK / "sessions.c"), "oco")
    assert ended.exit_status == 1
    assert "ended without calling MPI_Finalize" in ended.stderr

"""The traffic class of a communicator: the hint dryfly_traffic_class, with the real libraries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import Ended

from dryfly.mpi import libraries as mpi

# Eight nodes in each of two groups: the storm takes the two global links between them.
_JOB = ("run", "-N", "16", "--ppn", "1", "--compute", "none", "--set", "fabric.routing.algorithm=minimal")
_RANKS = 16
_ROUNDS, _IN_FLIGHT, _STORM_BYTES = 3, 4, 256 << 10  # of comm_class.c
_STORM = _RANKS * _ROUNDS * (_IN_FLIGHT * _STORM_BYTES + (_RANKS - 1) * _STORM_BYTES // _RANKS)
_SMALL = _RANKS * 4 * 15 * 8  # ranks, rounds of an allreduce of 16 ranks, allreduces, bytes
_APART = ("TC_LOW_LATENCY", "TC_BULK_DATA")


def _allreduce_us(ended: Ended) -> float:
    found = re.search(r"allreduce ([\d.]+) us", ended.succeeded().stdout)
    assert found is not None
    return float(found.group(1))


def _carried(ended: Ended) -> dict[str, int]:
    return {row["class"]: row["bytes"] for row in ended.results["traffic_classes"] if row["packets"] > 0}


@pytest.mark.parametrize("library_name", ["mpich", "openmpi"])
def test_a_low_latency_communicator_is_quick_beside_a_bulk_data_storm_of_the_same_ranks(
    library_name: str, dryfly: Dryfly, tmp_path: Path
) -> None:
    library = mpi.select(library_name)
    program = Programs(tmp_path, library).check("comm_class.c")
    job = (*_JOB, "--mpi", library.name, "--", program)
    apart, together = dryfly(*job, *_APART), dryfly(*job, "none", "none")
    assert 3 * _allreduce_us(apart) < _allreduce_us(together)
    # To the byte, whichever call it was in which a message left.
    carried = _carried(apart)
    assert carried["low_latency"] == _SMALL
    assert carried["bulk_data"] == _STORM
    assert carried["best_effort"] < _STORM // 100  # what made the communicators, and the barriers
    assert set(_carried(together)) == {"best_effort"}


@pytest.mark.parametrize(
    ("hint", "environment", "sentence"),
    [
        ("TC_FAST", {}, "warning: dryfly_traffic_class=TC_FAST: accepted is TC_BEST_EFFORT, "),
        ("TC_SCAVENGER", {}, "the machine's QoS profile has low_latency,bulk_data,best_effort,ethernet only"),
        ("TC_SCAVENGER", {"MPICH_OFI_TCLASS_ERRORS": "silent"}, ""),
    ],
)
def test_a_communicator_with_a_class_that_is_not_there_travels_as_before(
    hint: str, environment: dict[str, str], sentence: str, dryfly: Dryfly, programs: Programs
) -> None:
    job = ("run", "-n", "4", "--compute", "none", "--", programs.check("comm_hint.c"), hint)
    ended = dryfly(*job, environment=environment).succeeded()
    assert set(_carried(ended)) == {"best_effort"}
    if sentence:
        assert sentence in ended.stderr
    assert ended.stderr.count("dryfly_traffic_class") == (1 if sentence else 0)


def test_an_unknown_class_ends_the_job_where_errors_are_asked_for(dryfly: Dryfly, programs: Programs) -> None:
    job = ("run", "-n", "4", "--compute", "none", "--", programs.check("comm_hint.c"), "TC_FAST")
    ended = dryfly(*job, environment={"MPICH_OFI_TCLASS_ERRORS": "error"})
    assert ended.exit_status != 0
    assert "error: dryfly_traffic_class=TC_FAST: accepted is" in ended.stderr

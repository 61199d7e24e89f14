"""Traffic classes by MPICH_OFI_DEFAULT_TCLASS, with the real library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import Ended, script

# Eight nodes in each of two groups: the storm of 8 NICs takes the two global links between them.
_JOB = ("run", "-N", "16", "--ppn", "2", "--compute", "none", "--set", "fabric.routing.algorithm=minimal")
_WRAPPER = """#!/bin/sh
[ $((PMI_RANK % 2)) -eq 1 ] && export MPICH_OFI_DEFAULT_TCLASS=TC_BULK_DATA || export MPICH_OFI_DEFAULT_TCLASS=$QUICK
exec "$@"
"""


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    return script(tmp_path / "wrapper.sh", _WRAPPER)


def _allreduce_us(ended: Ended) -> float:
    found = re.search(r"allreduce ([\d.]+) us", ended.succeeded().stdout)
    assert found is not None
    return float(found.group(1))


def _carried(ended: Ended) -> dict[str, int]:
    return {row["class"]: row["bytes"] for row in ended.results["traffic_classes"] if row["packets"] > 0}


def test_a_low_latency_allreduce_beside_a_bulk_data_storm_is_quicker_than_in_the_same_class(
    dryfly: Dryfly, programs: Programs, wrapper: Path
) -> None:
    program = programs.check("classes.c")
    apart = dryfly(*_JOB, "--", wrapper, program, environment={"QUICK": "TC_LOW_LATENCY"})
    together = dryfly(*_JOB, "--", wrapper, program, environment={"QUICK": "TC_BULK_DATA"})
    assert 3 * _allreduce_us(apart) < _allreduce_us(together)

    storm = 16 * 8 * 4 * (256 << 10)  # ranks, rounds, messages, bytes
    carried = _carried(apart)
    assert set(carried) == {"low_latency", "bulk_data"}
    assert carried["bulk_data"] >= storm > 1000 * carried["low_latency"] > 0
    assert "classes  low_latency" in apart.stderr
    assert list(_carried(together)) == ["bulk_data"]


def test_a_class_that_the_profile_lacks_is_warned_of(dryfly: Dryfly, programs: Programs) -> None:
    environment = {"MPICH_OFI_DEFAULT_TCLASS": "TC_DEDICATED_ACCESS"}
    job = ("run", "-n", "2", "--compute", "none", "--", programs.check("p2p.c"))
    ended = dryfly(*job, environment=environment).succeeded()
    assert "the QoS profile LLBeBdEt of testbed has low_latency, bulk_data, best_effort, ethernet only" in ended.stderr
    assert list(_carried(ended)) == ["best_effort"]
    assert ended.stderr.count("warning: MPICH_OFI_DEFAULT_TCLASS") == 1


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"MPICH_OFI_DEFAULT_TCLASS": "TC_FAST"}, "MPICH_OFI_DEFAULT_TCLASS=TC_FAST: accepted is TC_BEST_EFFORT, "),
        ({"MPICH_OFI_DEFAULT_TCLASS": "TC_DEDICATED_ACCESS", "MPICH_OFI_TCLASS_ERRORS": "error"}, "the QoS profile"),
        ({"MPICH_OFI_TCLASS_ERRORS": "maybe"}, "MPICH_OFI_TCLASS_ERRORS=maybe: accepted is warn, silent or error"),
    ],
)
def test_what_is_no_class_is_refused_before_the_start(
    environment: dict[str, str], sentence: str, dryfly: Dryfly
) -> None:
    ended = dryfly("run", "-n", "2", "--", "true", environment=environment)
    assert ended.exit_status == 2
    assert sentence in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("MPICH_OFI_DEFAULT_TCLASS=TC_FOO", "accepted is TC_BEST_EFFORT, "),
        ("MPICH_OFI_TCLASS_ERRORS=maybe", "accepted is warn, silent or error"),
        ("MPICH_OFI_NIC_POLICY=NEAREST", "accepted is BLOCK, ROUND-ROBIN, NUMA, GPU or USER"),
        ("MPICH_OFI_NIC_VERBOSE=9", "accepted is 0, 1 or 2"),
        ("FI_CXI_RX_MATCH_MODE=foo", "Unrecognized rx_match_mode: foo; accepted is hardware, software or hybrid"),
        ("FI_CXI_DEVICE_NAME=cxi7", "it names no NIC of the node; accepted are cxi0 to cxi0"),
    ],
)
def test_what_a_wrapper_script_sets_wrongly_in_a_rank_ends_the_run_with_one_sentence_about_that_rank(
    setting: str, sentence: str, dryfly: Dryfly, programs: Programs
) -> None:
    script = f'if test $PMI_RANK = 1; then export {setting}; fi; exec "$@"'
    ended = dryfly("run", "--quiet", "-n", "2", "--", "sh", "-c", script, "sh", programs.check("p2p.c"))
    assert ended.exit_status == 2, ended.stderr
    said, how = ended.stderr.splitlines()
    assert said.startswith(f"dryfly: rank 1 on t1: {setting}: {sentence}")
    assert re.fullmatch(r"dryfly: rank 1 on t1 \(pid \d+\) exited with status 2; the job was ended", how)


def test_a_class_of_a_wrapper_script_that_the_profile_lacks_is_warned_of_once(
    dryfly: Dryfly, programs: Programs
) -> None:
    script = 'export MPICH_OFI_DEFAULT_TCLASS=TC_DEDICATED_ACCESS; exec "$@"'
    ended = dryfly("run", "-n", "4", "--", "sh", "-c", script, "sh", programs.check("p2p.c")).succeeded()
    assert ended.stderr.count("warning: MPICH_OFI_DEFAULT_TCLASS=TC_DEDICATED_ACCESS: the machine's QoS profile") == 1


@pytest.mark.parametrize("network", ["packet", "flow"])
@pytest.mark.parametrize("management", ["on", "off"])
def test_a_sender_keeps_what_its_class_is_assured_in_an_incast(
    network: str, management: str, dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    first_is = "[ $PMI_RANK -eq 1 ] && export MPICH_OFI_DEFAULT_TCLASS=TC_DEDICATED_ACCESS"
    wrapper = script(tmp_path / "dedicated.sh", f'#!/bin/sh\n{first_is}\nexec "$@"\n')
    sets = ("--set", "fabric.qos.profile=HPC", "--set", f"fabric.congestion.management={management}")
    job = ("run", "-n", "6", "--compute", "none", "--network", network, *sets, "--", wrapper)
    stdout = dryfly(*job, programs.check("class_shares.c"), "1024").succeeded().stdout
    first, together = (float(re.search(rf"{what} ([\d.]+) GB/s", stdout)[1]) for what in ("first", "all"))  # type: ignore[index]
    # Shares of 50 and 10 of 60 of a link of 25 GB/s.
    assert 19 < first < 20.9
    assert 22 < together < 25

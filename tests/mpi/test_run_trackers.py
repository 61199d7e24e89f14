"""Real jobs that ask more of the NICs' trackers than there is (docs/model/reliability.md)."""

from __future__ import annotations

from conftest import Dryfly, Programs
from harness import CHECK

_COMMON = ("run", "--machine", "testbed", "--compute", "none")
_TRACKERS = "fabric.nic.trackers"


def _rows(health: list[dict[str, object]]) -> set[object]:
    return {row["name"] for row in health if str(row["name"]).startswith("trackers")}


def test_a_many_to_one_job_runs_out_of_target_entries_is_right_and_says_so(dryfly: Dryfly, programs: Programs) -> None:
    """Nine ranks to one another, and three entries at each target; the program checks what it gets."""
    command = ("-n", "9", "--", programs.check("into_one.c"), "messages")
    few = ("--set", f"{_TRACKERS}.target_connections=3")
    run = dryfly(*_COMMON, *few, *command).succeeded()
    trackers = run.results["trackers"]
    assert trackers["target_connections_max"] == 3
    assert trackers["target_refusals"] > 0
    assert _rows(run.results["health"]) == {"trackers_target"}
    assert "target NICs could keep no track of another connection and refused packets" in run.stderr
    assert f"({_TRACKERS}.target_connections)" in run.stderr
    counted = [nic["counters"] for nic in run.results["nics"]]
    assert sum(each.get("pct_no_tct_nacks", 0) for each in counted) == trackers["target_refusals"]
    assert sum(each.get("pct_conn_sct_open", 0) for each in counted) == trackers["connections_opened"]
    assert dryfly(*_COMMON, *few, *command).succeeded().fingerprint == run.fingerprint

    plain = dryfly(*_COMMON, *command).succeeded()
    assert _rows(plain.results["health"]) == set()
    assert plain.results["trackers"]["target_refusals"] == 0
    assert plain.results["virtual_time_s"] < run.results["virtual_time_s"]
    assert plain.results["messages"] == run.results["messages"]
    just_enough = ("--set", f"{_TRACKERS}.target_connections={plain.results['trackers']['target_connections_max']}")
    assert dryfly(*_COMMON, *just_enough, *command).succeeded().fingerprint == plain.fingerprint


def test_a_one_to_many_job_waits_for_entries_of_its_source(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly(
        *_COMMON, "-n", "9", "--set", f"{_TRACKERS}.source_connections=2", "--", programs.micro("alltoall.c"), "count=3"
    ).succeeded()
    assert run.results["trackers"]["source_connections_max"] == 2
    assert run.results["trackers"]["source_waits"] > 0
    assert "trackers_source" in _rows(run.results["health"])


def test_restricted_writes_need_no_results_at_their_target_and_ordered_ones_do(dryfly: Dryfly) -> None:
    """FI_CXI_OPTIMIZED_MRS decides which they are, where the library does not ask for order."""
    command = (*_COMMON, "-n", "5", "--mpi", "openmpi", "--set", f"{_TRACKERS}.results=30")
    program = ("--", CHECK / "into_one.c", "put")
    run = dryfly(*command, *program).succeeded()
    assert run.results["trackers"]["result_refusals"] == 0
    ordered = dryfly(*command, *program, environment={"FI_CXI_OPTIMIZED_MRS": "0"}).succeeded()
    assert ordered.results["trackers"]["result_refusals"] > 0
    assert ordered.results["trackers"]["results_max"] == 30
    assert "trackers_result" in _rows(ordered.results["health"])


def test_trackers_that_cannot_be_are_refused(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly(*_COMMON, "-n", "2", "--set", f"{_TRACKERS}.results=0", "--", programs.micro("pingpong.c"))
    assert run.exit_status == 2
    assert f"{_TRACKERS}.results" in run.stderr
    assert "1 to 1048576" in run.stderr

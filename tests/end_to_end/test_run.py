from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from launched import PROGRAMS, Run

Start = Callable[..., Run]
EXCHANGE = str(PROGRAMS / "exchange.c")
KEYS = (
    "machine nodes ranks virtual_time_s wall_time_s messages bytes packet_hops network_timeouts "
    "seed fingerprint mpi profile ranks_detail"
)


def test_a_c_file_runs_and_its_result_has_the_documented_keys(start: Start) -> None:
    run = start("-N", "4", "--compute", "none", "--", EXCHANGE)
    status, output, errors = run.end()
    assert status == 0, errors
    assert "sum 6" in output  # 0 + 1 + 2 + 3
    result = run.result()
    assert set(KEYS.split()) <= set(result)
    document = (Path(__file__).parents[2] / "docs" / "reference" / "result-json.md").read_text(encoding="utf-8")
    assert [key for key in result if f"`{key}`" not in document] == []
    assert [key for key in result["ranks_detail"][0] if f"`{key}`" not in document] == []
    assert (result["machine"], result["nodes"], result["ranks"]) == ("testbed", 4, 4)
    assert [row["rank"] for row in result["ranks_detail"]] == [0, 1, 2, 3]
    assert result["messages"] >= 200
    calls = {row["call"]: row["count"] for row in result["profile"]}
    assert calls["MPI_Send"] == 200
    assert calls["MPI_Allreduce"] == 4
    assert all("libmpi.so.12" in path for path in result["mpi"]["libmpi"])
    for row in result["ranks_detail"]:
        parts = row["computing_s"] + row["communicating_s"] + row["waiting_s"]
        assert parts == pytest.approx(row["virtual_time_s"], rel=1e-3)
    assert list(run.temporary.iterdir()) == []


@pytest.mark.parametrize("options", [("--mpi", "openmpi"), ("--software", "none")])
def test_eight_bytes_take_the_time_that_the_model_was_calibrated_to(options: tuple[str, ...], start: Start) -> None:
    # Two nodes of one switch: osu_latency of Open MPI, host buffers, 2.34 us. Without counted software all have it.
    _, output, errors = start("-N", "2", "--compute", "none", *options, "--", EXCHANGE).end()
    match = re.search(r"one_way_us ([0-9.]+)", output)
    assert match is not None, errors
    assert float(match.group(1)) == pytest.approx(2.34, abs=0.01)


def test_the_fingerprint_repeats_and_changes_when_one_used_link_gains_a_nanosecond(start: Start) -> None:
    # Ranks 0 and 1 sit on switch 0 and, as the third node, on switch 1: s0>s1 carries half of the messages.
    common = ("-N", "3", "--compute", "none", "--set", "fabric.routing.algorithm=minimal")
    prints = []
    for extra in ((), (), ("--set", "fabric.extra_flight=s0>s1 1 ns")):
        run = start(*common, *extra, "--", EXCHANGE)
        assert run.end()[0] == 0
        prints.append(run.result()["fingerprint"])
    assert prints[0] == prints[1] != prints[2]


def test_two_runs_at_once_do_not_disturb_each_other(start: Start) -> None:
    runs = [start("-N", "2", "--compute", "none", "--", EXCHANGE) for _ in range(2)]
    assert [run.end()[0] for run in runs] == [0, 0]
    assert runs[0].result()["fingerprint"] == runs[1].result()["fingerprint"]


def test_a_program_without_mpi_runs_and_is_named_as_such(start: Start) -> None:
    status, output, errors = start("-n", "3", "--", "echo", "hello").end()
    assert (status, output) == (0, "hello\n" * 3)
    assert "no rank has used MPI" in errors

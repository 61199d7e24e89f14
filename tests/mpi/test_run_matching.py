"""Matching in hardware and software, flow control, and the FI_CXI_* settings of real MPI programs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import CHECK, MICRO, ROOT

from dryfly.apps import benchmarks

_COMMON = ("run", "--quiet", "--machine", "testbed", "-n", "2", "--compute", "none")
_EXAMPLE = ROOT / "docs" / "guide" / "list-entries.md"


def _example() -> list[tuple[str, list[str]]]:
    """Each command of the page with the lines that it shows."""
    blocks = re.findall(r"```console\n\$ (.*?)\n(.*?)```", _EXAMPLE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [(command, lines.splitlines()) for command, lines in blocks]


def test_the_page_on_list_entries_has_examples() -> None:
    assert len(_example()) == 5


@pytest.mark.parametrize(("command", "lines"), _example(), ids=range(len(_example())))
def test_the_page_on_list_entries_shows_what_happens(command: str, lines: list[str], dryfly: Dryfly) -> None:
    words = shlex.split(command)
    settings = {word.partition("=")[0]: word.partition("=")[2] for word in words if word.startswith("FI_CXI_")}
    words = words[len(settings) :]
    assert words[0] == "dryfly"
    run = dryfly(*words[1:], environment=settings, cwd=MICRO)
    status = 0
    for line in lines:
        if line.startswith("status "):
            status = int(line.removeprefix("status "))
        else:
            assert line in run.stdout + run.stderr
    assert run.exit_status == status


def test_a_large_message_needs_its_receiver_in_software_matching_only(dryfly: Dryfly, programs: Programs) -> None:
    """The NIC fetches the payload by itself, or when the receiver's MPI_Wait tells it to; the sender is free anyway."""
    overlap = programs(ROOT / "programs" / "benchmark" / "overlap.c")
    for mode, least, most in (("hardware", 95.0, 100.0), ("software", 0.0, 20.0)):
        command = (*_COMMON, "--", overlap, "-m", "1M:1M", "-i", "3")
        run = dryfly(*command, environment={"FI_CXI_RX_MATCH_MODE": mode}).succeeded()
        ((receive, _, send, _),) = benchmarks.read_rows(run.stdout).values()
        assert least <= receive <= most
        assert send >= 95.0


@pytest.mark.parametrize("mode", ["hardware", "software", "hybrid"])
def test_what_is_matched_does_not_depend_on_who_matches(mode: str, dryfly: Dryfly, programs: Programs) -> None:
    """300 messages, of which 88 headers fit beside MPICH's own nine receives and the provider's three buffers."""
    command = (*_COMMON, "--set", "nic.list_entries=100", "--", programs.micro("unexpected.c"), "messages=300")
    settings = {"FI_CXI_RX_MATCH_MODE": mode}
    run = dryfly(*command, environment=settings).succeeded()
    matching = run.results["matching"]
    assert matching["engine_entries_max"] <= 100
    assert (matching["messages_refused"] > 0) == (mode == "hardware")
    assert matching["messages_refused"] == matching["messages_replayed"]
    assert (matching["to_software_unexpected"] == 1) == (mode == "hybrid")
    assert any(row["name"] == "flow_control" for row in run.results["health"]) == (mode == "hardware")
    assert dryfly(*command, environment=settings).succeeded().fingerprint == run.fingerprint


def test_open_mpi_gets_through_flow_control_too(dryfly: Dryfly) -> None:
    options = (*_COMMON, "--mpi", "openmpi", "--set", "nic.list_entries=100")
    run = dryfly(*options, "--", MICRO / "unexpected.c", "messages=300").succeeded()
    assert run.results["matching"]["flow_control_unexpected"] > 0


def test_messages_that_fill_the_event_queue_of_a_busy_rank_are_refused_and_come_later(
    dryfly: Dryfly, programs: Programs
) -> None:
    settings = {"FI_CXI_DEFAULT_CQ_SIZE": "16", "FI_CXI_DEFAULT_RX_SIZE": "16"}
    program = programs.micro("unexpected.c")
    run = dryfly(*_COMMON, "--", program, "messages=200", "away=1000", environment=settings).succeeded()
    assert run.results["matching"]["flow_control_events_full"] == 1
    assert run.results["matching"]["messages_refused"] > 100
    run = dryfly(*_COMMON, "--", program, "messages=200", "away=1000").succeeded()
    assert run.results["matching"]["messages_refused"] == 0


def test_the_rendezvous_threshold_of_the_environment_holds(dryfly: Dryfly, programs: Programs) -> None:
    command = (*_COMMON, "--", programs.micro("pingpong.c"), "bytes=8192", "count=10")
    for threshold, rendezvous in (("8192", 0), ("4096", 40)):
        settings = {"FI_CXI_RDZV_THRESHOLD": threshold, "FI_CXI_RDZV_GET_MIN": "0"}
        rows = dryfly(*command, environment=settings).succeeded().results["protocols"]
        assert sum(next(row for row in rows if row["protocol"] == "rendezvous")["messages_by_hops"]) == rendezvous


def test_a_setting_that_cxi_would_not_take_is_refused_before_the_start(dryfly: Dryfly) -> None:
    run = dryfly(*_COMMON, "--", "/bin/true", environment={"FI_CXI_RX_MATCH_MODE": "firmware"})
    assert run.exit_status == 2
    assert "FI_CXI_RX_MATCH_MODE=firmware: Unrecognized rx_match_mode: firmware" in run.stderr


# MPICH has 20 bits of a tag over cxi, of which collectives take one (docs/model/mpi.md#mpich-over-cxi).
@pytest.mark.parametrize(("library", "highest"), [("mpich", 2**19 - 1), ("openmpi", 2**31 - 1)])
def test_the_highest_tag_is_that_of_the_library_over_cxi(
    library: str, highest: int, dryfly: Dryfly, tmp_path: Path
) -> None:
    source = tmp_path / "tag.c"
    source.write_text(_HIGHEST_TAG)
    assert dryfly(*_COMMON, "--mpi", library, "--", source).succeeded().stdout == f"up to {highest}, received\n"


_HIGHEST_TAG = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, found, *highest;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &found);
  if (rank == 0) MPI_Send(highest, 1, MPI_INT, 1, *highest, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Status status;
    int value;
    MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (status.MPI_TAG == value && value == *highest) printf("up to %d, received\\n", value);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("how", ["wait", "test"])
@pytest.mark.parametrize("on_node", ["provider", "shared"])
@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_a_send_ends_while_its_receiver_computes_behind_a_full_ring(
    library: str, on_node: str, how: str, dryfly: Dryfly
) -> None:
    """The payload is copied although the receiver cannot learn of it before it comes back. It once hung."""
    dryfly(*_COMMON, "--mpi", library, "--on-node", on_node, "--", CHECK / "late_receiver.c", how).succeeded()

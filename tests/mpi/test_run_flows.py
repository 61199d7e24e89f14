"""Real programs with the network as flows: what is alone takes the same time as packet by packet, and what shares links
nearly the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Dryfly, Programs


def _result(dryfly: Dryfly, network: str, folder: Path, *words: str | Path) -> dict[str, Any]:
    file = folder / f"{network}.json"
    options = ("--machine", "testbed", "--compute", "none", "--network", network, "--json", str(file))
    run = dryfly("run", *options, *words).succeeded()
    assert ("modelled as flows" if network == "flow" else "modelled packet by packet") in run.stderr
    found: dict[str, Any] = json.loads(file.read_text())
    assert found["network"] == network
    return found


def test_short_messages_between_two_nodes_take_the_same_time(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    of = {
        name: _result(dryfly, name, tmp_path, "-N", "2", "--", programs.micro("pingpong.c"))
        for name in ("packet", "flow")
    }
    assert of["flow"]["fingerprint"] == of["packet"]["fingerprint"]


@pytest.mark.parametrize("ppn", ["1", "2"])
def test_an_alltoall_takes_nearly_the_same_time_and_moves_the_same(
    dryfly: Dryfly, programs: Programs, tmp_path: Path, ppn: str
) -> None:
    words = ("-N", "8", "--ppn", ppn, "--", programs.micro("alltoall.c"), "bytes=65536", "count=3")
    packet, flow = (_result(dryfly, name, tmp_path, *words) for name in ("packet", "flow"))
    for member in ("messages", "bytes", "packets"):
        assert flow[member] == packet[member]
    assert flow["virtual_time_s"] == pytest.approx(packet["virtual_time_s"], rel=0.1)
    again = _result(dryfly, "flow", tmp_path, *words)
    assert again["fingerprint"] == flow["fingerprint"]


def test_a_lost_link_is_survived_by_retries_as_flows(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    faults = tmp_path / "faults.toml"
    faults.write_text('[[flap]]\nnode = "t1"\nat = "10 us"\nfor = "4 s"\n')
    words = ("-N", "2", "--faults", str(faults), "--", programs.micro("pingpong.c"))
    packet, flow = (_result(dryfly, name, tmp_path, *words) for name in ("packet", "flow"))
    assert packet["network_timeouts"] > 0
    assert flow["network_timeouts"] == packet["network_timeouts"]
    assert flow["virtual_time_s"] == pytest.approx(packet["virtual_time_s"], rel=0.02)

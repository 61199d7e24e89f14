"""Several NICs in a node: Cray MPICH's policies and MPICH's own use of several NICs, with the real library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Dryfly, Programs
from harness import CHECK, Ended

# Two sockets with two NICs each; two ranks a node, one a socket.
_MACHINE = """
include = ["testbed"]
[topology.group.compute]
nics_per_node = 4
[node]
numa = 2
sockets = 2
nic_numa = "1, 1, 0, 0"
gpu_numa = "1, 0"
"""
_MEGABYTE_PACKETS = 2**20 // 2048


@pytest.fixture
def job(tmp_path: Path) -> tuple[str, ...]:
    machine = tmp_path / "nics.toml"
    machine.write_text(_MACHINE)
    return ("run", "--machine", str(machine), "-N", "2", "--ppn", "2", "--compute", "none")


def _packets(ended: Ended) -> dict[tuple[str, int], int]:
    """Packets of at least a kilobyte by the NIC that sent them: of the large message, and of nothing else."""

    def large(counters: dict[str, Any]) -> int:
        return sum(
            value for name, value in counters.items() if name in ("hni_tx_ok_2048_to_4095", "hni_tx_ok_1024_to_2047")
        )

    found = {(row["node"], row["index"]): large(row["counters"]) for row in ended.results["nics"]}
    return {nic: packets for nic, packets in found.items() if packets > 0}


# Of the 2 ranks of a node the first sends within the node, through the two NICs, and the second to the other node.
@pytest.mark.parametrize(
    ("settings", "first", "second"),
    [
        ({}, 0, 2),  # BLOCK: 1 x 4 / 2
        ({"MPICH_OFI_NIC_POLICY": "NUMA"}, 2, 0),  # the first NICs of domains 0 and 1
        ({"MPIR_CVAR_CH4_OFI_PREF_NIC": "0"}, 0, 0),  # MPICH's own setting is left to the user
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else None,
)
def test_a_rank_uses_the_nic_of_its_policy(
    settings: dict[str, str], first: int, second: int, job: tuple[str, ...], dryfly: Dryfly, programs: Programs
) -> None:
    ended = dryfly(*job, "--", programs.check("nics.c"), environment=settings).succeeded()
    assert set(_packets(ended)) == {(node, nic) for node in ("t0", "t1") for nic in (first, second)}
    if "MPIR_CVAR_CH4_OFI_PREF_NIC" not in settings:
        assert [row["nic"] for row in ended.results["ranks_detail"] if row["rank"] % 2 == 1] == [second, second]


def test_verbose_says_which_nics_there_are_and_who_uses_which(
    job: tuple[str, ...], dryfly: Dryfly, programs: Programs
) -> None:
    ended = dryfly(*job, "--", programs.check("nics.c"), environment={"MPICH_OFI_NIC_VERBOSE": "2"}).succeeded()
    said = sorted(line for line in ended.stderr.splitlines() if line.startswith("PE "))
    assert len(said) == 5  # the NICs once, then each rank's
    assert "4 NICs on t0: cxi0 (1000:01:00.0, NUMA domain 1)" in said[0]
    assert said[2] == "PE 1: MPICH/OFI: local rank 1 on t0 uses cxi2 (policy BLOCK)"


def test_a_wrapper_script_may_choose_for_each_rank(
    job: tuple[str, ...], dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    wrapper = tmp_path / "wrapper.sh"
    wrapper.write_text(
        '#!/bin/sh\nexport MPICH_OFI_NIC_POLICY=USER\nexport MPICH_OFI_NIC_MAPPING="0:0;3:1"\nexec "$@"\n'
    )
    wrapper.chmod(0o755)
    ended = dryfly(*job, "--", wrapper, programs.check("nics.c")).succeeded()
    assert set(_packets(ended)) == {("t0", 0), ("t0", 3), ("t1", 0), ("t1", 3)}


def test_the_hint_on_a_communicator_chooses_the_nic(job: tuple[str, ...], dryfly: Dryfly, programs: Programs) -> None:
    environment = {"MPIR_CVAR_CH4_OFI_MAX_NICS": "-1"}
    ended = dryfly(*job, "--", programs.check("nics.c"), "pref", "3", environment=environment).succeeded()
    assert _packets(ended) == {("t0", 3): 4 * _MEGABYTE_PACKETS, ("t1", 3): 4 * _MEGABYTE_PACKETS}


def test_hashing_spreads_messages_over_the_nics(job: tuple[str, ...], dryfly: Dryfly, programs: Programs) -> None:
    environment = {"MPIR_CVAR_CH4_OFI_MAX_NICS": "-1"}
    ended = dryfly(*job, "--", programs.check("nics.c"), "hashing", environment=environment).succeeded()
    packets = _packets(ended)
    assert len(packets) == 8
    # 32 messages of each rank by tag modulo 4: each NIC has a quarter of its node's 4 MiB.
    assert set(packets.values()) == {_MEGABYTE_PACKETS}


def test_striping_shares_a_message_among_the_nics(
    job: tuple[str, ...], dryfly: Dryfly, programs: Programs, older_wheels: dict[str, str]
) -> None:
    """MPICH 4 stripes; MPICH 5.0 has kept the setting and lost what it did."""
    dryfly("mpi", "add", "mpich==4.3.2", environment=older_wheels, limit_s=120).succeeded()
    environment = {**older_wheels, "MPIR_CVAR_CH4_OFI_MAX_NICS": "4"}
    flags = ("--mpi", "mpich-4.3.2", "--", programs.check("nics.c"), "striping")
    ended = dryfly(*job, *flags, environment=environment).succeeded()
    packets = _packets(ended)
    assert len(packets) == 8
    assert max(packets.values()) - min(packets.values()) <= 2
    assert sum(packets.values()) >= 4 * _MEGABYTE_PACKETS


def test_a_nic_on_the_other_socket_is_further_away(tmp_path: Path, dryfly: Dryfly, programs: Programs) -> None:
    machine = tmp_path / "nics.toml"
    machine.write_text(_MACHINE)
    job = ("run", "--machine", str(machine), "-n", "2", "--compute", "none", "--set", "node.socket_latency=1 us")
    program = (programs.micro("latency.c"), "largest=8")

    def latency_us(policy: str) -> float:
        environment = {"MPICH_OFI_NIC_POLICY": policy}
        lines = dryfly(*job, "--", *program, environment=environment).succeeded().stdout.splitlines()
        return float(next(line.split()[1] for line in lines if line.split()[:1] == ["8"]))

    # The ranks are on socket 0. NIC 0 is on socket 1, NIC 2 on socket 0: one crossing at each end.
    assert latency_us("BLOCK") - latency_us("NUMA") == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize(("library", "how"), [("mpich", "messages"), ("openmpi", "put")])
@pytest.mark.parametrize("senders", [1, 4])
def test_many_large_messages_into_one_nic_have_its_link(library: str, how: str, senders: int, dryfly: Dryfly) -> None:
    """The bus of a socket of Aurora is faster than a link: where one NIC is at work it changes nothing."""
    job = ("run", "--mpi", library, "--machine", "aurora", "-N", str(1 + senders), "--compute", "none")
    program = ("--", CHECK / "into_one.c", how)

    def rate(*settings: str) -> float:
        ended = dryfly(*job, *settings, *program).succeeded()
        return float(ended.stdout.split(" GB/s")[0].split()[-1])

    with_bus = rate()
    assert with_bus == rate("--set", "node.pcie_rate=10 TB/s")
    assert 23.0 < with_bus < 25.0


def test_what_comes_into_a_node_has_no_more_than_its_bus(dryfly: Dryfly) -> None:
    job = ("run", "--machine", "aurora", "-N", "4", "--compute", "none", "--set", "node.pcie_rate=12 GB/s")
    ended = dryfly(*job, "--", CHECK / "into_one.c", "messages").succeeded()
    assert 0.98 * 12 < float(ended.stdout.split(" GB/s")[0].split()[-1]) < 12.0


def test_settings_that_name_no_nic_are_refused_before_the_start(job: tuple[str, ...], dryfly: Dryfly) -> None:
    ended = dryfly(*job, "--", "true", environment={"MPICH_OFI_NIC_POLICY": "NEAREST"})
    assert ended.exit_status == 2
    assert "MPICH_OFI_NIC_POLICY=NEAREST: accepted is BLOCK, ROUND-ROBIN, NUMA, GPU or USER" in ended.stderr
    assert ended.stderr.count("\n") == 1

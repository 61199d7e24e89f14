"""Parts of nodes that are slower than the machine's, under real ranks; and `dryfly validate` with these."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import ROOT

from dryfly.apps import benchmarks
from dryfly.case import near
from dryfly.machine.load import load
from dryfly.validate.asked import Asked
from dryfly.validate.procedure import of_simulated

_COMMON = ("run", "--quiet", "--machine", "crusher", "--compute", "none", "--software", "none")


def figure(dryfly: Dryfly, program: Path, scenario: str, *options: str, size: str = "1M:1M") -> float:
    command = (*_COMMON, *options, *(("--faults", scenario) if scenario else ()), "--", program, "-m", size, "-i", "4")
    ((value, *_),) = benchmarks.read_rows(dryfly(*command).succeeded().stdout).values()
    return value


def beyond_caches(per_node: int) -> str:
    """A size that goes through memory where a node has so many ranks."""
    longer = near.longest_cached(load("crusher"), per_node) + 4096
    return f"{longer}:{longer}"


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    file = tmp_path / "faults.toml"
    file.write_text(
        '[[nic]]\nnic = "n4"\nrate = 0.5\n'
        '[[pcie]]\nnic = "n12"\nwidth = 4\n'
        '[[memory]]\nnode = "crusher003"\nrate = 0.5\n'
        '[[cpu]]\nnode = "crusher005"\nrate = 0.5\n',
        encoding="utf-8",
    )
    return str(file)


def nodes(folder: Path, *names: str) -> tuple[str, ...]:
    file = folder / "nodes"
    file.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    return ("-n", str(len(names)), "--place", str(file))


def test_bandwidth_of_a_slow_nic_and_of_one_with_four_lanes_of_pcie(
    dryfly: Dryfly, programs: Programs, scenario: str, tmp_path: Path
) -> None:
    bw = programs(ROOT / "programs" / "benchmark" / "bw.c")
    usual = figure(dryfly, bw, "", *nodes(tmp_path, "crusher001", "crusher007"))
    assert figure(dryfly, bw, scenario, *nodes(tmp_path, "crusher001", "crusher007")) == usual
    slow = figure(dryfly, bw, scenario, *nodes(tmp_path, "crusher002", "crusher007"))
    assert slow == pytest.approx(12_500, rel=0.03)  # half of 25 GB/s
    into = figure(dryfly, bw, scenario, *nodes(tmp_path, "crusher007", "crusher002"))
    assert into == pytest.approx(12_500, rel=0.03)
    assert figure(dryfly, bw, scenario, *nodes(tmp_path, "crusher004", "crusher007")) == pytest.approx(6_500, rel=0.03)


def test_slow_memory_halves_what_its_node_copies_and_slow_cores_what_they_do(
    dryfly: Dryfly, programs: Programs, scenario: str, tmp_path: Path
) -> None:
    bw = programs(ROOT / "programs" / "benchmark" / "bw.c")
    on_node = {
        name: figure(dryfly, bw, given, *nodes(tmp_path, name, name), "--on-node", "shared", size=beyond_caches(2))
        for name, given in (("crusher001", ""), ("crusher007", scenario), ("crusher003", scenario))
    }
    assert on_node["crusher007"] == pytest.approx(on_node["crusher001"], rel=1e-6)
    assert on_node["crusher003"] == pytest.approx(on_node["crusher001"] / 2, rel=0.02)
    bound = ("--on-node", "shared", "--cpu-bind", "cores")
    both = figure(dryfly, bw, scenario, *nodes(tmp_path, "crusher003", "crusher003"), *bound, size=beyond_caches(2))
    assert both == pytest.approx(on_node["crusher003"], rel=0.02)
    latency = programs(ROOT / "programs" / "benchmark" / "latency.c")
    usual = figure(dryfly, latency, "", *nodes(tmp_path, "crusher001", "crusher007"), size="8:8")
    assert figure(dryfly, latency, scenario, *nodes(tmp_path, "crusher001", "crusher007"), size="8:8") == usual
    slow = figure(dryfly, latency, scenario, *nodes(tmp_path, "crusher005", "crusher007"), size="8:8")
    assert 1.05 * usual < slow < 1.6 * usual  # the network and the other node are as ever


@pytest.mark.slow
def test_each_node_copies_through_its_own_memory_where_ranks_are_bound(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    """Sixteen pairs of a node ask for more than its memory has; those of another node have another memory."""
    program = programs(ROOT / "programs" / "benchmark" / "mbw_mr.c")
    bound = ("--on-node", "shared", "--cpu-bind", "cores")
    one, two = (
        figure(dryfly, program, "", *nodes(tmp_path, *names), *bound, size=beyond_caches(32))
        for names in (["crusher001"] * 32, ["crusher001", "crusher002"] * 32)
    )
    assert one < 0.8 * 16 * 8_900  # what sixteen cores copy by themselves, MB/s
    assert two == pytest.approx(2 * one, rel=0.1)


@pytest.mark.slow
def test_ranks_of_open_mpi_are_at_the_nics_that_their_steps_name() -> None:
    faults: dict[str, object] = {"nic": [{"nic": "n5", "rate": 0.5}], "cpu": [{"node": "crusher001", "rate": 0.5}]}
    outcome = of_simulated(Asked(machine="crusher", nodes=3, mpi="openmpi", faults=faults, level="node")).run()
    assert [(finding.kind, finding.place) for finding in outcome.findings] == [("cpu", "crusher001"), ("nic", "n5")]
    assert any(line.startswith("memory: messages of openmpi-") for line in outcome.not_checked)


@pytest.mark.slow
def test_real_ranks_find_what_is_planted() -> None:
    faults: dict[str, object] = {
        "nic": [{"nic": "n5", "rate": 0.5}],
        "memory": [{"node": "crusher003", "rate": 0.5}],
        "cpu": [{"node": "crusher001", "rate": 0.5}],
    }
    outcome = of_simulated(Asked(machine="crusher", nodes=4, mpi="mpich", faults=faults, level="node")).run()
    assert sorted((finding.kind, finding.place) for finding in outcome.findings) == [
        ("cpu", "crusher001"), ("memory", "crusher003"), ("nic", "n5")
    ]  # fmt: skip
    line, compared = next(finding.evidence for finding in outcome.findings if finding.kind == "nic")
    assert "crusher002 cxi1: telemetry: parbs_tarb_pi_non_posted_blocked_cnt" in line
    assert compared.startswith("dryfly: measured 4 times, ")


def test_time_outs_between_steps_are_found_by_what_nics_count() -> None:
    faults: dict[str, object] = {"flap": [{"link": "n3", "at": "0.3 ms", "for": "2 s"}]}
    outcome = of_simulated(Asked(machine="crusher", nodes=4, mpi="mpich", faults=faults, level="node")).run()
    (found,) = outcome.findings
    assert (found.kind, found.place, found.unit) == ("timeout", "n3", "NICs with time-outs")
    assert "CXI_EVENT_LINK_DOWN (flap)" in found.evidence[0]
    assert all("network time-out" in line for line in found.evidence[1:])


@pytest.mark.slow
def test_a_slow_gpu_is_found_by_device_buffers_of_real_ranks() -> None:
    faults: dict[str, object] = {"gpu": [{"gpu": "crusher002 gpu3", "rate": 0.4}]}
    outcome = of_simulated(Asked(machine="crusher", nodes=2, mpi="openmpi", faults=faults, level="node")).run()
    assert [(found.kind, found.place) for found in outcome.findings] == [("gpu", "crusher002 gpu3")]
    # Both ways at once over two fifths of 36 GB/s each, counted as one way.
    assert outcome.findings[0].measured == pytest.approx(7.2, rel=0.03)


def test_device_buffers_of_real_ranks_find_nothing_wrong_with_gpus_in_order() -> None:
    outcome = of_simulated(Asked(machine="crusher", nodes=2, mpi="openmpi", level="node")).run()
    assert outcome.findings == ()
    assert sum(of["result"] == "pass" for of in outcome.parts["gpus"].values()) == 16

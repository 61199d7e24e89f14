from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.base.paths import data_folder
from dryfly.machine.listing import description, source_keys
from dryfly.machine.load import load, shipped_machines
from dryfly.machine.machine import Machine
from dryfly.machine.topology import ports_needed, summarise

CERTAINTIES = {"H", "M+", "M", "L", "D", "calibrated", "assumed"}
MACHINES = ["alps", "aurora", "crusher", "frontier", "lumi-g", "perlmutter-cpu", "perlmutter-gpu", "polaris", "testbed"]


def leaves(table: dict[str, object], path: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict) and "value" not in value:
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def test_the_machines_of_the_manual_are_shipped() -> None:
    assert shipped_machines() == MACHINES


@pytest.mark.parametrize("file", sorted(data_folder().glob("[hm]a*/*.toml")), ids=lambda file: file.stem)
def test_every_number_says_where_it_comes_from(file: Path) -> None:
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    for path, fact in leaves({key: value for key, value in content.items() if key not in ("title", "include")}):
        assert isinstance(fact, dict), f"{path} is bare"
        assert fact.get("certainty") in CERTAINTIES, path
        for key in str(fact.get("source", "")).split(";"):
            assert key.strip() in source_keys(), f"{path}: unknown source {key!r}"
        if fact["certainty"] in ("D", "calibrated"):
            assert fact.get("note"), f"{path}: a value that is {fact['certainty']} says from what"


def test_aurora_has_the_published_counts() -> None:
    counts = summarise(load("aurora"))
    assert counts.groups == 175
    assert counts.switches == 5_600
    assert counts.nodes == 10_624
    assert counts.nics == 84_992
    assert counts.job_global_links == 27_390  # 166 x 165 / 2 pairs x 2 links
    assert counts.local_links == 175 * 496
    assert counts.injection_bytes_per_s == pytest.approx(2.12e15, rel=0.005)
    assert counts.job_global_bytes_per_s == pytest.approx(1.37e15, rel=0.005)
    assert counts.job_bisection_bytes_per_s == pytest.approx(0.69e15, rel=0.005)


def test_frontier_has_the_published_counts() -> None:
    counts = summarise(load("frontier"))
    assert counts.switches == 2_464
    assert counts.job_global_bytes_per_s == pytest.approx((270 + 270) * 1e12, rel=0.005)
    # 12.8 TB/s of injection and 7.3 TB/s of global links a group
    assert counts.injection_bytes_per_s / 74 == pytest.approx(12.8e12)
    assert counts.job_global_bytes_per_s / 74 == pytest.approx(7.3e12)


def test_lumi_has_the_published_partition_bandwidth() -> None:
    assert summarise(load("lumi-g")).job_global_bytes_per_s == 276 * 10**12


@pytest.mark.parametrize("name", MACHINES)
def test_no_switch_needs_more_ports_than_it_has(name: str) -> None:
    machine = load(name)
    assert all(ports_needed(machine, index) <= 64 for index in range(len(machine.kinds)))


def one_way_ps(machine: Machine, size: int) -> int:
    """8 bytes between two nodes on one switch, from the command to the completion that the target's CPU sees."""
    wire_bytes = size + machine.number("fabric.packet.header")
    return (
        machine.number("nic.command_latency")
        + machine.number("nic.egress_latency")
        + 2 * machine.number("fabric.link.edge_flight")
        + machine.number("fabric.switch.latency")
        + wire_bytes * 10**12 // machine.number("fabric.link.rate")
        + machine.number("nic.ingress_latency")
        + machine.number("nic.completion_latency")
    )


def test_the_calibrated_times_add_up_to_what_they_were_calibrated_to() -> None:
    machine = load("aurora")
    send, receive, completion = (machine.number(f"host.{name}") for name in ("send", "receive", "completion"))
    assert one_way_ps(machine, 8) == 1_640_000  # cxi_send_lat
    assert send + one_way_ps(machine, 8) + completion == 2_340_000  # osu_latency, host buffers
    # 8.8 M messages/s of four ranks: 64 messages of each in 29.09 us. Behind the last one is sent it takes its way, and
    # the receiver's answer its cost and its way.
    assert send == receive + completion
    window = 64 * send + one_way_ps(machine, 8) + completion + send + one_way_ps(machine, 4) + completion
    assert window == pytest.approx(64 * 4_000_000 / 8.8, rel=0.02)
    # Not calibrated: osu_latency of 256 B is 2.91 us; 248 bytes more on the wire and one DMA read make 2.95.
    more = machine.number("nic.dma_read_latency") + 248 * 40
    assert 2_340_000 + more == pytest.approx(2_910_000, rel=0.02)


def test_show_names_value_certainty_and_source() -> None:
    text = description("aurora")
    assert "84,992" in text
    assert "x4000c0s0b0n0" in text
    line = next(line for line in text.splitlines() if line.startswith("fabric.switch.latency"))
    assert "350 ns" in line
    assert "M+" in line
    assert "SC20" in line


def test_set_overrides_one_field_and_says_so() -> None:
    machine = load("aurora", sets=["fabric.link.rate=100 Gb/s"])
    assert machine.number("fabric.link.rate") == 12_500_000_000
    assert load("aurora", sets=['fabric.link.rate="100 Gb/s"']).number("fabric.link.rate") == 12_500_000_000
    assert machine.facts["fabric.link.rate"].source == "--set"
    assert load("aurora").number("fabric.link.rate") == 25_000_000_000


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ("fabric.link.rate", "accepted is path.to.field"),
        ("fabric.link.rat=1 GB/s", "no such field"),
        ("fabric.link.rate=100", "needs a unit"),
        ("fabric.link.rate=100 ns", "no unit of rate"),
        ("nic.inline=256 B", "0 B to 192 B"),
        ("fabric.routing.algorithm=random", "minimal or valiant or adaptive"),
        ("fabric.qos.profile=LL", "HPC or LLBeBdEt"),
        ("fabric.qos.default=dedicated", "LLBeBdEt has the classes low_latency, bulk_data"),
        ("fabric.qos.LLBeBdEt.bulk_data.assured=90 %", "ethernet.assured is 112 %; accepted is at most 100 %"),
        ("fabric.qos.LLBeBdEt.low_latency.assured=6 %", "at most fabric.qos.LLBeBdEt.low_latency.ceiling"),
        ("fabric.qos.LLBeBdEt.ethernet.ceiling=101 %", "0.0001 % to 100 %"),
        ("fabric.switch.latency_spread=400 ns", "at most fabric.switch.latency"),
        ("topology.group.compute.switches=0", "1 to 4096"),
        ("topology.global.compute-compute=2 links", "without a unit"),
        ("topology.group.blue.switches=2", "no such field"),
        ("fabric.switch.input_buffer=64 B", "at least one packet, 2112 B"),
        ("topology.ports_per_switch=8", "needs 58 ports"),
        ("job.nodes_max=10625", "room for 10624"),
        ("host.poll=0 ns", "1 ps to 1 s"),
    ],
)
def test_a_wrong_set_is_refused_with_field_value_and_what_is_accepted(item: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        load("aurora", sets=[item])
    assert item.split("=")[0] in str(caught.value)


def write(tmp_path: Path, text: str) -> str:
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_a_users_file_may_change_a_shipped_machine_in_plain_text(tmp_path: Path) -> None:
    mine = write(tmp_path, 'include = ["aurora"]\n[fabric.switch]\nlatency = "300 ns"\n')
    machine = load(mine)
    assert machine.name == "mine"
    assert machine.number("fabric.switch.latency") == 300_000
    assert summarise(machine) == summarise(load("aurora"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[fabric\n", "not valid TOML"),
        ('include = ["aurora"]\n[fabric.switch]\nlatency = 350\n', "needs a unit"),
        ('include = ["aurora"]\n[fabric.switch]\nlatencey = "350 ns"\n', "did you mean fabric.switch.latency"),
        ('include = ["aurora"]\n[fabric.switch]\nlatency = { value = "1 ns", sauce = "x" }\n', "unknown key sauce"),
        ('include = ["nothing"]\n', "neither a shipped file"),
        ('include = ["mine.toml"]\n', "includes itself"),
        ('include = "aurora"\n', "list of names"),
        ('include = ["slingshot11"]\n', "no group of switches"),
        ('include = ["testbed"]\n[topology.group.extra]\ngroups = 1\n', "topology.group.extra.switches is missing"),
        ('include = ["testbed"]\n[job]\nkinds = "gpu"\n', 'job.kinds names "gpu"'),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        load(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_unknown_machines_are_named_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UserError, match='unknown machine "arora"; known are alps, aurora'):
        load("arora")
    with pytest.raises(UserError, match="does not exist"):
        load(str(tmp_path / "none.toml"))

"""`--storage`: what of a file becomes which lines of the resolved spec, and what is refused in which words."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.case.placement import place
from dryfly.case.resolve import ComputeSpec, resolve
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.scenario import storage

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "example"
MACHINE = str(EXAMPLES / "storage-machine.toml")


def entries(machine: Machine, text: str, *, nodes: int = 2) -> dict[str, str]:
    filled = storage.with_servers(machine)
    placement = place(filled, nodes=nodes)
    streams = storage.parse(tomllib.loads(text), filled, job=placement.nodes, seed=3)
    spec = resolve(filled, placement, seed=1, compute=ComputeSpec(mode="none"), storage=streams)
    return dict(line.split(" ", 1) for line in spec.splitlines() if line.startswith(("storage.", "topology.kind.1")))


def test_a_stream_of_the_job_s_nodes_has_its_rate_on_their_nics() -> None:
    found = entries(load("aurora"), '[[read]]\nrate = "16 GB/s"\ntransfer = "64 KiB"\nat = "1 ms"\nfor = "2 ms"')
    assert found["storage.streams"] == "1"
    assert found["storage.seed"] == "3"
    assert found["topology.kind.1.nodes"] == "128"
    # 166 compute groups of 64 nodes come first; then 8 x 128 servers.
    assert found["storage.servers"] == "10624-11647"
    assert found["storage.server_nic_rate_bytes_per_s"] == "15150000000"  # 30.3 GB/s over two NICs
    assert found["storage.stream.0.direction"] == "read"
    assert found["storage.stream.0.nodes"] == "0-1"
    assert found["storage.stream.0.nic_rate_bytes_per_s"] == "2000000000"  # eight NICs a node
    assert found["storage.stream.0.transfer_bytes"] == "65536"
    assert found["storage.stream.0.from_ps"] == str(10**9)
    assert found["storage.stream.0.until_ps"] == str(3 * 10**9)


def test_nodes_are_the_job_s_the_others_or_named() -> None:
    machine = load(MACHINE)
    text = '[[write]]\nrate = "1 GB/s"\nnodes = '
    assert entries(machine, text + '"others"')["storage.stream.0.nodes"] == "2-31"
    assert entries(machine, text + '"all"')["storage.stream.0.nodes"] == "0-31"
    assert entries(machine, text + '["t9", "t4", "t5"]')["storage.stream.0.nodes"] == "4-5,9"


def test_without_streams_the_servers_are_not_there_and_nothing_of_them_is_in_the_spec() -> None:
    machine = load("aurora")
    spec = resolve(machine, place(machine, nodes=1), seed=1, compute=ComputeSpec(mode="none"))
    assert "storage." not in spec.replace("compute-storage", "")
    assert "topology.kind.1.nodes 0" in spec


def test_the_example_can_be_read() -> None:
    found = entries(load(MACHINE), (EXAMPLES / "storage.toml").read_text())
    assert found["storage.streams"] == "2"
    assert found["storage.seed"] == "7"


@pytest.mark.parametrize(
    ("machine", "sets", "sentence"),
    [
        ("testbed", [], "machine testbed has no storage groups"),
        ("lumi-g", [], "machine lumi-g has no storage groups"),
        (MACHINE, ["storage.kind=service"], 'storage.kind = "service": accepted are its kinds of groups'),
        (MACHINE, ["storage.kind=compute"], 'storage.kind = "compute": jobs run there'),
        (MACHINE, ["storage.servers=400"], "storage.servers = 400: a switch of topology.group.storage would need"),
    ],
)
def test_a_machine_without_storage_groups_is_refused(machine: str, sets: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        storage.with_servers(load(machine, sets=sets))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no stream: give at least one table"),
        ("[[copy]]\nrate = '1 GB/s'", r"unknown table \[\[copy\]\]; accepted are read, write"),
        ("read = 3", r"read is a list of tables: write \[\[read\]\]"),
        ("[[read]]", "read 1: rate is missing"),
        ("[[read]]\nrate = '25 GB/s'", 'read 1: rate = "25 GB/s": accepted is up to 24.24.* GB/s, what the NICs'),
        ("[[read]]\nrate = '1 GB'", 'read 1: rate = "1 GB"'),
        ("[[write]]\nrate = '1 GB/s'\nnodes = ['t32']", '"t32": storage-machine has no such node; its nodes are t0'),
        ("[[write]]\nrate = '1 GB/s'\nnodes = []", "accepted is job, others, all, or a list of names"),
        ("[[write]]\nrate = '1 GB/s'\nfor = '0 s'", 'for = "0 s": accepted is'),
        ("[[write]]\nrate = '1 GB/s'\ntransfer = '0 B'", 'transfer = "0 B": accepted is 1 B to 4 GiB'),
        ("[[write]]\nrate = '1 GB/s'\nclass = 'fast'", 'class = "fast": accepted are dedicated, low_latency'),
        ("[[write]]\nrate = '1 GB/s'\nspeed = 1", "write 1: unknown key speed; accepted are nodes, rate"),
        ("seed = -1\n[[write]]\nrate = '1 GB/s'", "seed = -1: accepted is 0 to"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        entries(load(MACHINE), text)

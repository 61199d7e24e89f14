"""The spec's schema is declared once: what Python resolves is as declared, and the simulator reads all of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.case.bind import bind_served
from dryfly.case.case import Case
from dryfly.case.placement import place
from dryfly.case.resolve import ComputeSpec, resolve
from dryfly.machine.compute_model import lines as compute_lines
from dryfly.machine.load import load, shipped_machines
from dryfly.machine.schema import FIELDS
from dryfly.machine.spec_fields import SPEC_FIELDS, field_of, problems
from dryfly.scenario.faults import load as load_faults
from dryfly.scenario.storage import load as load_storage
from dryfly.scenario.storage import with_servers

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "example"


@pytest.mark.parametrize("name", shipped_machines())
def test_what_a_machine_resolves_to_is_as_declared(name: str) -> None:
    machine = load(name)
    compute = ComputeSpec.parse("none")
    assert problems(resolve(machine, place(machine, nodes=2, ppn=2), seed=1, compute=compute)) == []


def test_faults_storage_and_a_model_of_computing_resolve_as_declared() -> None:
    machine = with_servers(load(str(EXAMPLES / "storage-machine.toml"), sets=("fabric.extra_flight=s0>s1 1 ns",)))
    placement = place(machine, nodes=2)
    storage = load_storage(str(EXAMPLES / "storage.toml"), machine, job=placement.nodes, seed=1)
    compute = ComputeSpec.parse("none")
    text = resolve(machine, placement, seed=1, compute=compute, storage=storage)
    assert "storage.stream.0." in text
    assert "fabric.extra_flight.0.ps 1000" in text
    assert problems(text) == []
    testbed = load("testbed")
    faults = load_faults(str(EXAMPLES / "faults.toml"), testbed, seed=1)
    text = resolve(testbed, place(testbed, nodes=2), seed=1, compute=ComputeSpec.parse("model"), scenario=faults)
    assert "faults.0.kind" in text
    assert "compute.cpu.fp64_per_s" in text
    assert problems(text) == []
    assert problems(bind_served(Case(), processes=4).spec) == []


def test_a_line_that_is_not_as_declared_is_named() -> None:
    assert problems("fabric.nic.window_packets 65537\nfaults.3.kind up\nrun.sead 1\nrun.ranks two\n") == [
        "fabric.nic.window_packets = 65537: accepted is 1 to 65536",
        "faults.3.kind = up: accepted is down or absent or lanes or replays or flaps or drain or load",
        "run.sead is no name of the resolved spec",
        "run.ranks = two: accepted is 1 to 16384",
    ]


def test_a_field_is_found_by_a_name_with_numbers() -> None:
    field = field_of("fabric.qos.class.3.name")
    assert field is SPEC_FIELDS["fabric.qos.class.I.name"]
    assert field_of("fabric.qos.class.x.name") is None


@pytest.mark.parametrize(
    ("flag", "accepted"),
    [
        ("fabric.link.global_flight=2 ms", "1 ps to 1 ms"),
        ("fabric.link.rate=50 MB/s", "100 MB/s to 10 TB/s"),
        ("topology.ports_per_switch=65", "1 to 64"),
        ("fabric.nic.window=65537", "1 to 65536"),
    ],
)
def test_what_the_simulator_would_refuse_is_refused_with_the_machine(flag: str, accepted: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"accepted is {accepted}")):
        load("testbed", sets=(flag,))


def test_a_model_of_the_fastest_node_fits_the_spec() -> None:
    """1024 places of the most that a machine file may say, in 64 bits."""
    sets = [
        f"compute.cpu.{name}={FIELDS[f'compute.cpu.{name}'].most / 10**12:.0f} TF/s"
        for name in ("fp64", "fp32", "half")
    ]
    machine = load("testbed", sets=(*sets, "compute.cpu.count=1024"))
    text = "".join(f"{name} {value}\n" for name, value in compute_lines(machine, skip_numerics=False))
    assert problems(text) == []


def test_every_declared_name_is_read_by_the_simulator() -> None:
    """But those that are there for the reader of a result."""
    source = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("core", "conductor", "app")
        for path in (ROOT / folder).rglob("*.[ch]pp")
        if not path.stem.endswith("_test") and path.name != "fields.hpp"
    )
    read = set(re.findall(r"fields::(\w+)", source))
    names = {"_".join(p for p in name.split(".") if not (len(p) == 1 and p.isupper())) for name in SPEC_FIELDS}
    assert names - read == {"machine", "fabric_qos_profile"}

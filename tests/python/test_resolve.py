from __future__ import annotations

from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.case.placement import place
from dryfly.case.resolve import ComputeSpec, resolve
from dryfly.machine.load import load

GOLDEN = Path(__file__).with_name("testbed.spec")


def test_the_testbed_resolves_to_the_stored_spec() -> None:
    """Refresh it, after thought, with: dryfly spec -N 2 --ppn 2 --compute none > tests/python/testbed.spec"""
    machine = load("testbed")
    text = resolve(machine, place(machine, nodes=2, ppn=2), seed=1, compute=ComputeSpec(mode="none"))
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_each_name_appears_once_and_each_value_is_filled_in() -> None:
    for name in ("aurora", "perlmutter-cpu", "crusher"):
        machine = load(name)
        lines = resolve(machine, place(machine, nodes=3), seed=7, compute=ComputeSpec()).splitlines()
        names = [line.split(" ", 1)[0] for line in lines]
        assert len(set(names)) == len(names)
        assert all(line.split(" ", 1)[1] for line in lines)


def values(machine_name: str, *sets: str, compute: str = "none") -> dict[str, str]:
    machine = load(machine_name, sets=sets)
    text = resolve(machine, place(machine, nodes=1), seed=1, compute=ComputeSpec.parse(compute))
    return dict(line.split(" ", 1) for line in text.splitlines())


def test_set_reaches_the_spec() -> None:
    assert values("testbed", "nic.eager=32 KiB")["nic.eager_bytes"] == "32768"
    assert values("testbed", "run.arena=2 GiB")["run.arena_bytes"] == str(2**31)
    assert values("testbed", "run.cross_memory=off")["run.cross_memory"] == "0"


def test_single_links_can_be_made_longer() -> None:
    spec = values("testbed", "fabric.extra_flight=s0>s1 1 ns, n5>s2 2 ns")
    assert spec["fabric.extra_flight.count"] == "2"
    assert (spec["fabric.extra_flight.0.from"], spec["fabric.extra_flight.0.to"]) == ("s0", "s1")
    assert spec["fabric.extra_flight.1.ps"] == "2000"
    with pytest.raises(UserError, match="s0>s1 1 ns"):
        values("testbed", "fabric.extra_flight=s0-s1 1 ns")


@pytest.mark.parametrize(
    ("compute", "mode", "factor"),
    [
        ("none", "none", "1000000"),
        ("measured", "measured", "1000000"),
        ("measured:0.8", "measured", "800000"),
        ("replay:recorded", "replay", "1000000"),
        ("model", "model", "1000000"),
    ],
)
def test_compute_modes(compute: str, mode: str, factor: str) -> None:
    spec = values("testbed", compute=compute)
    assert (spec["host.compute_mode"], spec["host.compute_factor_ppm"]) == (mode, factor)


@pytest.mark.parametrize(
    "compute", ["some", "none:1", "measured:fast", "measured:0", "measured:-1", "replay", "replay:", "model:1"]
)
def test_wrong_compute_modes_are_refused(compute: str) -> None:
    with pytest.raises(UserError, match="--compute"):
        ComputeSpec.parse(compute)


def test_the_model_of_computing_counts_whole_nodes_and_needs_every_field_of_a_place() -> None:
    spec = values("aurora", "compute.gpu.fp64=20 TF/s", compute="model")
    assert spec["compute.gpu.fp64_per_s"] == str(6 * 20 * 10**12)
    assert spec["compute.cpu.fp64_per_s"] == str(2 * 3_330_000_000_000)
    assert not any(name.startswith("compute.gpu") for name in values("testbed", compute="model"))
    assert not any(name.startswith("compute.") for name in values("aurora"))
    with pytest.raises(UserError, match=r"testbed has no compute\.gpu\.count"):
        values("testbed", "compute.gpu.fp64=1 TF/s", compute="model")

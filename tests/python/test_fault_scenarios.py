from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.case.placement import place
from dryfly.case.resolve import ComputeSpec, resolve
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.scenario import faults

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "example" / "faults.toml"


@pytest.fixture(scope="module")
def testbed() -> Machine:
    return load("testbed")


def entries(machine: Machine, text: str, *, seed: int = 1) -> dict[str, str]:
    scenario = faults.parse(tomllib.loads(text), machine, seed=seed)
    lines = resolve(machine, place(machine, nodes=2), seed=seed, compute=ComputeSpec(mode="none"), scenario=scenario)
    return dict(line.split(" ", 1) for line in lines.splitlines() if line.startswith("faults."))


def test_a_flap_of_a_node_is_its_nics_going_down_for_a_while(testbed: Machine) -> None:
    spec = entries(testbed, '[[flap]]\nnode = "t5"\nat = "2 s"\nfor = "4 s"')
    assert spec == {
        "faults.count": "1",
        "faults.seed": "1",
        "faults.0.kind": "down",
        "faults.0.where": "n5",
        "faults.0.from_ps": str(2 * 10**12),
        "faults.0.until_ps": str(6 * 10**12),
    }


def test_without_a_duration_a_retune_of_3_to_5_s_is_drawn_by_the_seed(testbed: Machine) -> None:
    text = '[[flap]]\nlink = "s0-s1"\nat = "0 s"'
    drawn = {entries(testbed, text, seed=seed)["faults.0.until_ps"] for seed in range(8)}
    assert len(drawn) == 8
    assert all(3 * 10**12 <= int(until) <= 5 * 10**12 for until in drawn)
    assert entries(testbed, "seed = 3\n" + text, seed=1) == entries(testbed, "seed = 3\n" + text, seed=2)


def test_all_nics_of_a_node_of_aurora_are_named_and_nothing_is_written_without_faults() -> None:
    aurora = load("aurora")
    spec = entries(aurora, '[[loss]]\nnode = "x4000c0s1b0n0"\nat = "1 s"')
    assert [spec[f"faults.{n}.where"] for n in range(8)] == [f"n{n}" for n in range(8, 16)]
    assert entries(aurora, "") == {"faults.count": "0"}


def test_parts_of_nodes_become_entries_of_their_own() -> None:
    crusher = load("crusher")
    text = (
        '[[pcie]]\nnic = "n5"\nwidth = 8\n[[nic]]\nnode = "crusher001"\nrate = "25 %"\n'
        '[[memory]]\nnode = "crusher002"\nrate = 0.5\n[[cpu]]\nnode = "crusher002"\nrate = 0.8\n'
    )
    slow = faults.parse(tomllib.loads(text), crusher, seed=1).slow
    assert [(part.kind, part.number, part.share_ppb) for part in slow] == [
        ("nic", 5, 520_000_000), *[("nic", nic, 250_000_000) for nic in range(4)],
        ("memory", 1, 500_000_000), ("cpu", 1, 800_000_000),
    ]  # fmt: skip
    lines = resolve(
        crusher, place(crusher, nodes=2), seed=1, compute=ComputeSpec(mode="none"),
        scenario=faults.parse(tomllib.loads(text), crusher, seed=1),
    ).splitlines()  # fmt: skip
    assert "slow.count 7" in lines
    assert "slow.0.share_ppb 520000000" in lines


def test_gpus_are_counted_over_the_machine_and_named_by_their_nodes() -> None:
    crusher = load("crusher")
    text = '[[gpu]]\ngpu = "crusher003 gpu5"\nrate = "25 %"\n[[gpu]]\nnode = "crusher001"\nrate = 0.5\n'
    scenario = faults.parse(tomllib.loads(text), crusher, seed=1)
    assert [(part.kind, part.number, part.share_ppb) for part in scenario.slow] == [
        ("gpu", 21, 250_000_000), *[("gpu", gpu, 500_000_000) for gpu in range(8)]
    ]  # fmt: skip
    assert scenario.said[0].places == ("node 2 gpu5",)
    for named, sentence in (
        ("crusher003", "accepted is a node and one of its GPUs gpu0 to gpu7"),
        ("crusher003 gpu8", "accepted is a node and one of its GPUs gpu0 to gpu7"),
        ("frontier1 gpu0", "crusher has no such node; its nodes are crusher001 to crusher192"),
    ):
        with pytest.raises(UserError, match=sentence):
            faults.parse({"gpu": [{"gpu": named, "rate": 0.5}]}, crusher, seed=1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[[memory]]\nnic = "n0"\nrate = 0.5', "unknown key nic; accepted are node, rate"),
        ('[[memory]]\nnode = "t1"\nrate = 0', "rate = 0: accepted is 0.001 to 1 of what is usual"),
        ('[[pcie]]\nnic = "n1"', "width, speed or replays is missing"),
        ('[[pcie]]\nnic = "n1"\nwidth = 16.0', "width = 16.0: accepted is 1, 2, 4, 8 or 16 lanes, up to 16"),
        ('[[pcie]]\nnic = "n1"\nspeed = 32', "speed = 32: accepted is 2.5, 5, 8, 16 or 32 GT/s, up to 16"),
        ('[[pcie]]\nnic = "n1"\nreplays = "banana"', 'replays = "banana"'),
        ('[[load]]\nlink = "s0-s1"\nshare = 1', "share = 1: accepted is less than all of the link"),
        ('[[miscabled]]\nlink = "s0-s1"\nwith = "s1-s0"', 'with = "s1-s0": accepted is another cable than link'),
        ('[[miscabled]]\nlink = "n1"\nwith = "s1-s0"', 'link = "n1": accepted is a cable between switches'),
        ('[[node]]\nlink = "n1"', "unknown key link; accepted are node, at"),
        ('[[gpu]]\nnode = "t1"\nrate = 0.5', 'node = "t1": testbed has no GPUs that are simulated'),
    ],
)
def test_faults_of_nodes_that_cannot_be_are_refused(testbed: Machine, text: str, sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        faults.parse(tomllib.loads(text), testbed, seed=1)
    assert sentence in str(refused.value)


def test_the_example_in_the_documentation_can_be_used(testbed: Machine) -> None:
    spec = entries(testbed, EXAMPLE.read_text(encoding="utf-8"))
    kinds = [spec[f"faults.{n}.kind"] for n in range(int(spec["faults.count"]))]
    assert kinds == ["down", "flaps", "lanes", "replays", "down", "drain"]
    assert spec["faults.3.rate_ppb"] == "1000"
    assert spec["faults.1.rate_ppb"] == "556"  # 0.002 / 3600 s, in billionths


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[flip]]\nlink = "n0"', r"unknown table \[\[flip\]\]; accepted are flap, loss"),
        ('[[flap]]\nat = "1 s"', r"flap 1: name one place by one of the keys link, switch, nic, node"),
        ('[[flap]]\nlink = "n0"', r"flap 1: at or per_hour is missing"),
        ('[[flap]]\nlink = "n0"\nat = "1 s"\nlanes = 2', r"flap 1: unknown key lanes"),
        ('[[flap]]\nlink = "n0"\nat = 1', r"at = \"1\".*needs a unit"),
        ('[[flap]]\nlink = "n0"\nat = "1 s"\nfor = "0 s"', r"for = \"0 s\": accepted is 1 ps"),
        ('[[flap]]\nlink = "n32"\nat = "1 s"', r'link = "n32": testbed has the NICs n0 to n31'),
        ('[[flap]]\nlink = "t0"\nat = "1 s"', r'link = "t0": accepted is "s0-s4" for cables'),
        ('[[loss]]\nswitch = "s16"\nat = "1 s"', r'switch = "s16": testbed has the switches s0 to s15'),
        ('[[loss]]\nnode = "t99"\nat = "1 s"', r'node = "t99": testbed has no such node; its nodes are t0 to t31'),
        ('[[loss]]\nnode = "t9"', r"loss 1: at is missing"),
        ('[[lanes]]\nlink = "n0"\nlanes = 0', r"lanes = 0: accepted is 1 to 3"),
        ('[[replays]]\nlink = "all"\nrate = 2', r"rate = 2: accepted is 1e-9 to 1"),
        ("seed = -1", r"seed = -1: accepted is 0"),
        ("flap = 3", r"write \[\[flap\]\]"),
    ],
)
def test_what_cannot_be_used_is_named(testbed: Machine, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        entries(testbed, text)


def test_nodes_that_are_down_get_no_ranks(tmp_path: Path) -> None:
    cabling = tmp_path / "cabling.txt"
    cabling.write_text("t1 down\ns0-s1 down # being replaced\nt2 up\n", encoding="utf-8")
    machine = load("testbed", sets=["fabric.down=t0, n9", f"fabric.cabling={cabling}"])
    for policy in ("packed", "random", "spread"):
        assert not {0, 1} & set(place(machine, nodes=30, policy=policy).nodes)
    assert place(machine, nodes=3).nodes == [2, 3, 4]
    with pytest.raises(UserError, match="32 nodes, of which 2 are down; 31 are asked for"):
        place(machine, nodes=31)
    spec = resolve(machine, place(machine, nodes=2), seed=1, compute=ComputeSpec(mode="none"))
    assert [line.split()[1] for line in spec.splitlines() if ".where " in line] == ["n0", "n9", "n1", "s0-s1"]
    with pytest.raises(UserError, match=r'fabric\.down: "s0_s1": accepted are cables'):
        faults.absent(load("testbed", sets=["fabric.down=s0_s1"]))


def test_a_sentence_about_an_entry_of_the_spec_names_the_place_in_the_file(testbed: Machine) -> None:
    scenario = faults.parse(
        tomllib.loads('[[lanes]]\nlink = "n3"\nlanes = 2\n[[loss]]\nnode = "t5"\nat = "1 s"'), testbed, seed=1
    )
    assert faults.as_said("faults.1: it is cut", testbed, scenario) == 'faults: loss 1: node = "t5": it is cut'
    assert faults.as_said("faults.2: it is cut", testbed, scenario) == "faults.2: it is cut"
    assert faults.as_said("rank 3: it waits", testbed, None) == "rank 3: it waits"

"""`dryfly validate`: schedules, judgement, and what it finds on machines with planted faults."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dryfly.base import signals
from dryfly.base.errors import RunError, UserError
from dryfly.cli.main import cli
from dryfly.machine.load import load
from dryfly.result import result
from dryfly.scenario import faults
from dryfly.validate import LEVELS, console, judge, nodelist, plan, probe, study, told, wiring
from dryfly.validate.asked import Asked
from dryfly.validate.judge import Limits
from dryfly.validate.plan import Probe, Step
from dryfly.validate.probe import Measured
from dryfly.validate.procedure import of_simulated
from dryfly.validate.settings import settings
from dryfly.validate.simulated import Simulated

THREE: dict[str, object] = {
    "lanes": [{"link": "s3-s17", "lanes": 2}],
    "nic": [{"nic": "n13", "rate": "50 %"}],
    "memory": [{"node": "crusher020", "rate": "50 %"}],
}


def findings(**asked: Any) -> list[tuple[str, str]]:
    return [(finding.kind, finding.place) for finding in of_simulated(Asked(**asked)).run().findings]


# --- Schedules


@pytest.mark.parametrize("players", [2, 5, 8, 13])
def test_in_a_tournament_all_meet_once_and_nobody_is_in_two_pairs(players: int) -> None:
    met: list[frozenset[int]] = []
    for round_ in plan.tournament(range(players)):
        busy = [player for pair in round_ for player in pair]
        assert len(busy) == len(set(busy))
        met += [frozenset(pair) for pair in round_]
    assert sorted(map(sorted, met)) == sorted(map(sorted, combinations(range(players), 2)))


@pytest.fixture(scope="module")
def crusher() -> wiring.Wiring:
    return Simulated(Asked(machine="crusher")).subject.wiring


def test_every_level_covers_what_it_is_for_and_no_nic_is_in_two_pairs(crusher: wiring.Wiring) -> None:
    nodes, sizes = range(192), settings().sizes
    covered: dict[str, set[frozenset[int]]] = {}
    for level in LEVELS[1:]:
        for step in plan.level_steps(level, crusher, nodes, sizes):
            ends = [end for each in step.probes for end in (each.a, each.b)]
            assert len(ends) == len(set(ends))
            if step.measure in ("nic", "pair", "system"):
                covered.setdefault(level, set()).update(
                    frozenset((crusher.node_of_nic[each.a], crusher.node_of_nic[each.b])) for each in step.probes
                )
    pairs = {frozenset(pair) for pair in combinations(nodes, 2)}
    within = {pair for pair in pairs if len({crusher.group_of_node(node) for node in pair}) == 1}
    assert covered["group"] == within
    assert covered["system"] == pairs - within
    trunks = {cable.trunk for cable in crusher.cables}
    measured = {
        place
        for level in ("group", "pair")
        for step in plan.level_steps(level, crusher, nodes, sizes)
        for each in step.probes
        for place in each.places
        if step.measure in judge.OF_LINKS
    }
    assert measured == trunks


def test_ends_of_a_cable_are_on_two_nodes_and_on_its_switches(crusher: wiring.Wiring) -> None:
    for turn in range(3):
        for step in plan.link_steps(crusher, range(192), crusher.cables, settings().sizes, turn=turn):
            for each in step.probes:
                at = {crusher.switch_of_nic[each.a], crusher.switch_of_nic[each.b]}
                assert each.places == (f"s{min(at)}-s{max(at)}",)
                assert crusher.node_of_nic[each.a] != crusher.node_of_nic[each.b]


# --- Judgement


def judged(times: dict[str, float], *, measure: str = "nic") -> list[str]:
    found = {(measure, place): time_s for place, time_s in times.items()}
    expected = dict.fromkeys(found, 1.0)
    limits = Limits(tolerance={measure: 0.05}, sigmas=6)
    return [suspect.place for suspect in judge.suspects(found, expected, limits)]


def test_the_little_that_all_share_is_nobody_s_fault_and_what_one_has_alone_is_its() -> None:
    assert judged({"n0": 1.04, "n1": 1.04, "n2": 1.04}) == []
    assert judged({"n0": 1.04, "n1": 1.08, "n2": 1.04}) == []
    assert judged({"n0": 1.04, "n1": 1.1, "n2": 1.04}) == ["n1"]


def test_what_most_share_beyond_the_tolerance_is_held_against_the_model() -> None:
    assert judged({"n0": 1.3, "n1": 1.3, "n2": 1.0}) == ["n0", "n1"]
    assert judged({"n0": 2.0, "n1": 1.0}) == ["n0"]


def test_where_loaded_peers_differ_much_a_part_has_to_differ_more() -> None:
    spread = {f"n{n}": 1 + n % 5 * 0.02 for n in range(50)}
    assert judged(spread, measure="pair") == []
    assert judged({**spread, "n99": 3.0}, measure="pair") == ["n99"]
    assert judged({**spread, "n99": 1.11}, measure="pair") == []


def test_a_part_s_figure_is_the_median_of_its_pairs_and_a_cable_s_the_slower_way() -> None:
    probes = (Probe(a=0, b=1, places=("n0", "n1")),)
    steps = [Step(measure="nic", kind="stream", size=8, count=1, probes=probes) for _ in range(3)]
    ways = [
        Step(measure="link", kind="send", size=8, count=1, probes=(Probe(a=0, b=1, places=("s0-s1",)),))
        for _ in range(2)
    ]
    times = [1.0, 9.0, 2.0, 3.0, 5.0]
    measured = [Measured(begin_s=0, end_s=1, times=((0.0, time_s),)) for time_s in times]
    assert judge.figures([*steps, *ways], measured) == {("nic", "n0"): 2.0, ("nic", "n1"): 2.0, ("link", "s0-s1"): 5.0}


def test_times_are_those_of_the_pair_whose_ranks_they_name_whatever_their_order() -> None:
    probes = (Probe(a=2, b=1, places=("n2",)), Probe(a=0, b=3, places=("n0",)))
    step = Step(measure="nic", kind="stream", size=8, count=1, probes=probes)
    rows = "step 0 0 5000000000000\n0 1 2 1000000000000 2000000000000\n0 3 0 3000000000000 4000000000000\n"
    (measured,) = probe.parse(rows, [step], rank_of=[1, 0, 3, 2])
    assert measured.times == ((3.0, 4.0), (1.0, 2.0))


def test_lists_of_nodes() -> None:
    assert nodelist.slurm(["crusher001", "crusher002", "crusher007"]) == "crusher[001-002,007]"
    names = [f"x4000c{c}s{s}b0n0" for c in range(8) for s in range(8)]
    assert nodelist.slurm(names) == "x4000c[0-7]s[0-7]b0n0"
    assert nodelist.slurm(["t9", "t10", "login"]) == "t[9-10],login"
    assert nodelist.slurm([f"t{number}" for number in range(32)]) == "t[0-31]"
    of_both = ["t08", "t09", "t10", "t8", "t9", "t098", "t99", "t100"]  # each number with the zeros that it has
    assert nodelist.slurm(of_both) == "t[08-10,99],t[8-9],t[098,100]"
    assert sorted(nodelist.names(nodelist.slurm(of_both))) == sorted(of_both)
    assert nodelist.slurm([]) == ""
    assert nodelist.pbs(["a", "b"]) == "1:host=a+1:host=b"


# --- What is found


@pytest.mark.parametrize(
    "network", ["links", *(pytest.param(name, marks=pytest.mark.slow) for name in ("flow", "packet"))]
)
def test_exactly_what_is_planted_is_found_each_with_its_kind(network: str) -> None:
    outcome = of_simulated(Asked(machine="crusher", faults=THREE, network=network, level="group")).run()
    assert [(f.kind, f.place) for f in outcome.findings] == [
        ("memory", "crusher020"), ("nic", "n13"), ("lanes", "s3-s17")
    ]  # fmt: skip
    assert outcome.exclude == ("crusher004", "crusher020")
    for finding in outcome.findings:
        worse = finding.measured < finding.limit if finding.unit == "GB/s" else finding.measured > finding.limit
        assert worse


@pytest.mark.slow
def test_the_same_on_64_nodes_of_aurora_and_on_a_machine_in_order_nothing() -> None:
    of_aurora = {**THREE, "memory": [{"node": "x4000c2s1b0n0", "rate": "50 %"}]}
    assert findings(machine="aurora", nodes=64, faults=of_aurora) == [
        ("memory", "x4000c2s1b0n0"), ("nic", "n13"), ("lanes", "s3-s17")
    ]  # fmt: skip
    assert findings(machine="aurora", nodes=64, noise="machine") == []
    assert findings(machine="crusher", noise="machine") == []


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"pcie": [{"nic": "n300", "width": 8}]}, [("pcie", "n300")]),
        ({"pcie": [{"nic": "n300", "replays": "1 %"}, {"nic": "n301", "replays": "0.9 %"}]}, [("pcie", "n300")]),
        ({"cpu": [{"node": "crusher077", "rate": 0.9}]}, [("cpu", "crusher077")]),
        ({"gpu": [{"gpu": "crusher077 gpu5", "rate": 0.5}]}, [("gpu", "crusher077 gpu5")]),
        (
            {"gpu": [{"gpu": "crusher077 gpu5", "rate": 0.5}], "nic": [{"nic": "n302", "rate": 0.5}]},
            [("gpu", "crusher077 gpu5"), ("nic", "n302")],
        ),
        ({"load": [{"link": "s20-s21", "share": "10 %"}]}, [("load", "s20-s21")]),
        ({"lanes": [{"link": "n100", "lanes": 3}]}, [("lanes", "n100")]),
        ({"lanes": [{"link": "s3-s35.1", "lanes": 3}]}, [("lanes", "s3-s35.1")]),
        ({"lanes": [{"link": "s7>s8", "lanes": 3}]}, [("lanes", "s7-s8")]),
        ({"node": [{"node": "crusher150", "at": "1 ms"}]}, [("node", "crusher150")]),
        ({"loss": [{"link": "n204", "at": "0 s"}]}, [("loss", "n204")]),
        ({"loss": [{"link": "s0-s1", "at": "0 s"}]}, [("loss", "s0-s1")]),
        ({"flap": [{"link": "n200", "per_hour": 8}]}, [("flap", "n200")]),
        ({"miscabled": [{"link": "s1-s2", "with": "s5-s9"}]}, [("miscabled", "s1-s2"), ("miscabled", "s5-s9")]),
        ({"replays": [{"link": "s0-s4", "rate": 0.1}]}, [("replays", "s0-s4")]),
        ({"loss": [{"nic": "n40", "at": "2 ms"}]}, [("loss", "n40")]),
        ({"drain": [{"node": "crusher020", "at": "1 ms"}]}, [("drain", "n76")]),
        ({"nic": [{"nic": "n8", "rate": 0.5}], "replays": [{"link": "n8", "rate": 1e-9}]}, [("nic", "n8")]),
        (
            {"memory": [{"node": "crusher003", "rate": 0.5}], "cpu": [{"node": "crusher003", "rate": 0.5}]},
            [("cpu", "crusher003"), ("memory", "crusher003")],
        ),
    ],
)  # fmt: skip
def test_each_kind_of_fault(fault: dict[str, object], expected: list[tuple[str, str]]) -> None:
    assert sorted(findings(machine="crusher", faults=fault, level="pair")) == expected


def test_what_most_parts_have_is_one_finding_and_excludes_nobody() -> None:
    lanes: dict[str, object] = {"lanes": [{"link": "local", "lanes": 2}]}
    outcome = of_simulated(Asked(machine="crusher", nodes=64, faults=lanes, level="group")).run()
    assert ("lanes", "120 of 120") in [(finding.kind, finding.place) for finding in outcome.findings]
    assert outcome.exclude == ()
    half: dict[str, object] = {"memory": [{"node": f"crusher00{n}", "rate": 0.5} for n in (1, 2, 3, 4)]}
    assert len(findings(machine="crusher", nodes=8, faults=half, level="node")) == 4
    assert len(findings(machine="crusher", nodes=2, faults={"memory": half["memory"][:1]}, level="node")) == 1  # type: ignore[index]


def test_slow_cables_of_a_switch_are_found_and_no_nic_of_it() -> None:
    slow: dict[str, object] = {"lanes": [{"link": f"s3-s{other}", "lanes": 2} for other in range(4, 23)]}
    found = findings(machine="crusher", faults=slow, level="group")
    assert sorted(found) == sorted(("lanes", f"s3-s{other}") for other in range(4, 23))


@pytest.mark.parametrize(
    ("links", "level", "found"), [("edge", "switch", "768 of 768"), ("local", "group", "616 of 616")]
)
def test_above_what_is_slow_everywhere_nothing_is_measured(links: str, level: str, found: str) -> None:
    lanes: dict[str, object] = {"lanes": [{"link": links, "lanes": 2}]}
    outcome = of_simulated(Asked(machine="crusher", faults=lanes)).run()
    assert [(finding.kind, finding.place) for finding in outcome.findings] == [("lanes", found)]
    assert outcome.levels[-1].name == level
    assert outcome.exclude == ()


def test_parallel_cables_are_named_each() -> None:
    lanes: dict[str, object] = {"lanes": [{"link": "s3-s35.0", "lanes": 3}, {"link": "s3-s35.1", "lanes": 2}]}
    assert findings(machine="crusher", faults=lanes, level="pair") == [("lanes", "s3-s35.0"), ("lanes", "s3-s35.1")]


def test_what_begins_after_it_was_measured_is_found_by_the_log() -> None:
    late: dict[str, object] = {"lanes": [{"link": "s3-s17", "lanes": 2, "at": "9 ms"}]}
    (found,) = of_simulated(Asked(machine="crusher", faults=late)).run().findings
    assert (found.kind, found.place, found.level) == ("lanes", "s3-s17", "checks")
    assert findings(machine="crusher", faults=late, level="switch") == []


def test_where_no_way_is_left_the_links_are_found_and_nothing_above_is_measured() -> None:
    loss: dict[str, object] = {"loss": [{"link": "global", "at": "0 s"}]}
    outcome = of_simulated(Asked(machine="crusher", nodes=192, faults=loss)).run()
    kinds = {finding.kind for finding in outcome.findings}
    assert kinds == {"loss", "unreachable"}
    assert outcome.findings[-1].spoken == "n0 (crusher001 cxi0) to n512 (crusher129 cxi0)"
    assert outcome.levels[-1].name == "pair"


def test_where_nodes_have_no_others_near_them_nics_meet_those_of_other_switches() -> None:
    faults: dict[str, object] = {"lanes": [{"link": "n5", "lanes": 2}]}
    outcome = of_simulated(Asked(machine="aurora", nodes=8, place="spread", faults=faults)).run()
    assert [(level.name, level.steps > 0) for level in outcome.levels] == [
        ("node", True), ("switch", True), ("group", False), ("pair", True), ("system", True)
    ]  # fmt: skip
    assert [(finding.kind, finding.place) for finding in outcome.findings] == [("lanes", "n5")]


@pytest.mark.parametrize(
    ("machine", "nodes", "faults", "expected"),
    [
        # A switch with two NICs: the other one is not to blame.
        ("testbed", None, {"lanes": [{"link": "n20", "lanes": 3}]}, {("lanes", "n20")}),
        # The only NIC of a node on its switch: nor are its cables.
        ("crusher", 17, {"lanes": [{"link": "n65", "lanes": 2}]}, {("lanes", "n65")}),
        # The other node of its switch is out.
        (
            "aurora", 16, {"memory": [{"node": "x4000c0s0b0n0", "rate": 0.5}], "lanes": [{"link": "n13", "lanes": 3}]},
            {("memory", "x4000c0s0b0n0"), ("lanes", "n13")},
        ),
        # One direction of a NIC's link.
        ("testbed", None, {"lanes": [{"link": "n5>s2", "lanes": 2}]}, {("lanes", "n5")}),
        ("testbed", None, {"load": [{"link": "s2>n5", "share": 0.5}]}, {("load", "n5")}),
        # Down at the end, for a while.
        ("crusher", 16, {"flap": [{"link": "s0-s1", "at": "4.3 ms", "for": "4 s"}]}, {("flap", "s0-s1")}),
    ],
)  # fmt: skip
def test_who_is_near_a_fault_is_not_blamed_for_it(
    machine: str, nodes: int | None, faults: dict[str, object], expected: set[tuple[str, str]]
) -> None:
    outcome = of_simulated(Asked(machine=machine, nodes=nodes, faults=faults)).run()
    assert {(finding.kind, finding.place) for finding in outcome.findings} == expected


@pytest.mark.parametrize(
    "faults",
    [
        {"loss": [{"link": f"s0-s{other}", "at": "0 s"} for other in (1, 2, 3, 4)]},
        {"lanes": [{"link": "s0-s1", "lanes": 1}]},
    ],
)
def test_a_nic_alone_on_its_switch_is_not_blamed_for_its_cables(faults: dict[str, object], tmp_path: Path) -> None:
    place = tmp_path / "nodes"
    place.write_text("\n".join(f"t{node}" for node in range(0, 12, 2)), encoding="utf-8")
    outcome = of_simulated(Asked(machine="testbed", nodes=6, place=str(place), faults=faults)).run()
    assert {finding.kind for finding in outcome.findings} == set(faults)
    assert outcome.exclude == ()


def test_faults_that_begin_later_are_said() -> None:
    outcome = of_simulated(
        Asked(machine="crusher", nodes=8, level="node", faults={"flap": [{"link": "n1", "at": "9 s"}]})
    )
    assert "1 of its links begins after" in outcome.run().not_checked[-1]


def test_a_flap_that_is_rare_is_none_and_one_that_is_to_come_is_not_yet() -> None:
    rare: dict[str, object] = {"flap": [{"link": "n200", "per_hour": 0.1}, {"link": "n8", "at": "100 s"}]}
    assert findings(machine="crusher", nodes=64, faults=rare, level="switch") == []


def test_time_outs_are_those_of_the_link_that_was_down_meanwhile() -> None:
    faults: dict[str, object] = {
        "flap": [{"link": "n13", "at": "1 ms", "for": "2 s"}, {"link": "n700", "at": "100 s", "for": "2 s"}]
    }
    outcome = of_simulated(Asked(machine="crusher", faults=faults, level="switch")).run()
    (found,) = outcome.findings
    assert (found.kind, found.place, found.level) == ("timeout", "n13", "switch")
    assert "CXI_EVENT_LINK_DOWN (flap)" in found.evidence[0]
    assert outcome.exclude == ()


def test_each_part_has_its_verdict_and_a_cable_that_is_slow_one_way_that_way() -> None:
    faults: dict[str, object] = {
        "lanes": [{"link": "s7>s8", "lanes": 2}, {"link": "s3-s35.1", "lanes": 2}],
        "nic": [{"nic": "n100", "rate": 0.7}],
    }
    outcome = of_simulated(Asked(machine="crusher", faults=faults, level="pair")).run()
    assert [finding.spoken for finding in outcome.findings] == [
        "n100 (crusher026 cxi0)", "s7-s8 (g0s7-g0s8), s7>s8 only", "s3-s35.1 (g0s3-g1s3)"
    ]  # fmt: skip
    failed = {
        kind: {name: each.get("because") for name, each in of.items() if each["result"] == "fail"}
        for kind, of in outcome.parts.items()
    }
    assert failed == {
        "nodes": {"crusher026": ["n100"]},
        "nics": {"n100": None},
        "gpus": {},
        "links": {"s7-s8": None, "s3-s35": ["s3-s35.1"]},
        "groups": {"g0": ["crusher026", "n100", "s3-s35", "s7-s8"], "g1": ["s3-s35"]},
    }
    assert {each["result"] for of in outcome.parts.values() for each in of.values()} == {"pass", "fail"}
    for of in outcome.parts.values():
        for each in of.values():
            if "limit" in each:
                assert (each["slower"] > each["limit"]) == (each["result"] == "fail")


def test_a_part_that_tells_nothing_has_what_was_measured_as_evidence() -> None:
    faults: dict[str, object] = {
        "nic": [{"nic": "n13", "rate": 0.5}],
        "memory": [{"node": "crusher007", "rate": 0.5}],
        "cpu": [{"node": "crusher007", "rate": 0.5}],
    }
    outcome = of_simulated(Asked(machine="crusher", nodes=8, faults=faults, level="node")).run()
    evidence = {finding.kind: finding.evidence for finding in outcome.findings}
    assert re.fullmatch(r"dryfly: measured 4 times, 6\.2\d+ GB/s at best; the median of 31 others: 11\.9\d+",
                        *evidence["nic"])  # fmt: skip
    # What was said of one of the two is not the other's evidence.
    assert ["EDAC" in line for line in evidence["memory"]] == [True, False]
    assert ["throttled" in line for line in evidence["cpu"]] == [True, False]


def test_all_links_that_were_down_while_a_packet_timed_out_are_named() -> None:
    faults: dict[str, object] = {"flap": [{"link": "global", "at": "1 ms", "for": "4 s"}]}
    outcome = of_simulated(Asked(machine="crusher", faults=faults, level="pair")).run()
    (found,) = outcome.findings
    assert found.kind == "timeout"
    assert found.spoken == "s0-s32.0 (g0s0-g1s0) and 63 more"
    assert len(found.places) == 64


@pytest.mark.parametrize("network", ["links", "flow", "packet"])
def test_a_slow_gpu_is_told_from_the_nic_by_which_it_was_measured(network: str) -> None:
    faults: dict[str, object] = {
        "gpu": [{"gpu": "crusher003 gpu5", "rate": 0.5}, {"gpu": "crusher004 gpu0", "rate": 0.9}],
        "nic": [{"nic": "n2", "rate": 0.5}],
    }
    outcome = of_simulated(Asked(machine="crusher", nodes=8, faults=faults, level="node", network=network)).run()
    assert [(f.kind, f.place) for f in outcome.findings] == [("nic", "n2"), ("gpu", "crusher003 gpu5")]
    slow = outcome.findings[1]
    assert slow.measured is not None
    # Both ways at once over half of 36 GB/s each, counted as one way; what is left of 32.4 GB/s is more than a NIC has.
    assert slow.measured == pytest.approx(9.0, rel=0.02)
    assert outcome.exclude == ("crusher001", "crusher003")
    assert outcome.parts["gpus"]["crusher003 gpu5"]["result"] == "fail"
    assert sum(of["result"] == "pass" for of in outcome.parts["gpus"].values()) == 63


def test_on_flows_gpus_near_a_slow_nic_are_in_order() -> None:
    # A crowd of loopbacks takes what the few take that are measured again (docs/model/flows.md#epochs).
    faults = {"lanes": [{"link": "n64", "lanes": 1}]}
    outcome = of_simulated(Asked(machine="crusher", nodes=64, network="flow", level="node", faults=faults)).run()
    assert [(finding.kind, finding.place) for finding in outcome.findings] == [("lanes", "n64")]


def test_where_all_nics_of_a_node_are_slow_nothing_is_said_of_its_gpus() -> None:
    faults: dict[str, object] = {"nic": [{"node": "crusher002", "rate": 0.5}]}
    outcome = of_simulated(Asked(machine="crusher", nodes=8, faults=faults, level="node")).run()
    assert {f.kind for f in outcome.findings} == {"nic"}


def test_machines_without_simulated_gpus_say_so() -> None:
    outcome = of_simulated(Asked(machine="testbed", nodes=4, level="node")).run()
    assert outcome.not_checked == ("gpu: testbed has no GPU runtime that is simulated",)
    assert outcome.parts["gpus"] == {}


def test_two_runs_are_the_same() -> None:
    runs = [of_simulated(Asked(machine="crusher", nodes=64, faults=THREE, noise="machine")).run() for _ in range(2)]
    first, second = ({**run.content(), "wall_s": 0} for run in runs)
    assert first == second


def test_a_folder_keeps_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(machine="crusher", nodes=64, faults=THREE, level="switch", out=str(tmp_path))
    first = of_simulated(asked).run()

    def refuse(*_: object, **__: object) -> list[Measured]:
        raise AssertionError("measured again")

    for file in (tmp_path / "measured").iterdir():  # what is no result is measured again
        whole = file.read_text(encoding="utf-8")
        file.write_text("{}", encoding="utf-8")
        assert {**of_simulated(asked).run().content(), "wall_s": 0} == {**first.content(), "wall_s": 0}
        assert file.read_text(encoding="utf-8") == whole
        break
    monkeypatch.setattr(probe, "run", refuse)
    assert {**of_simulated(asked).run().content(), "wall_s": 0} == {**first.content(), "wall_s": 0}


# --- The command


def run(*words: str) -> tuple[int, str]:
    ended = CliRunner().invoke(cli, ["validate", *words])
    return (2 if isinstance(ended.exception, UserError) else ended.exit_code), ended.output + str(ended.exception)


def test_exit_status_json_page_and_lists(tmp_path: Path) -> None:
    scenario = tmp_path / "faults.toml"
    scenario.write_text('[[nic]]\nnic = "n13"\nrate = 0.5\n', encoding="utf-8")
    files = [str(tmp_path / name) for name in ("v.json", "v.html", "v.lists")]
    status, said = run(
        "--machine", "crusher", "-N", "64", "--level", "switch", "--faults", str(scenario),
        "--json", files[0], "--html", files[1], "--lists", files[2],
    )  # fmt: skip
    assert status == 1
    assert "n13 (crusher004 cxi1)" in said
    content = json.loads(Path(files[0]).read_text(encoding="utf-8"))
    (found,) = content["findings"]
    assert {"kind", "place", "measured", "limit", "evidence"} <= found.keys()
    assert (found["kind"], found["place"]) == ("nic", "n13")
    assert content["exclude"]["slurm"] == "crusher004"
    assert Path(files[1]).read_text(encoding="utf-8").count("<svg") == 6
    assert "exclude.pbs=1:host=crusher004\n" in Path(files[2]).read_text(encoding="utf-8")
    again = tmp_path / "again.html"
    assert CliRunner().invoke(cli, ["report", files[0], "-o", str(again)]).exit_code == 0
    assert again.read_text(encoding="utf-8") == Path(files[1]).read_text(encoding="utf-8")
    assert run("--machine", "crusher", "-N", "64", "--level", "switch")[0] == 0


def test_a_disk_that_is_full_is_no_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise RunError("the result cannot be written to v.json: No space left on device", exit_status=1)

    monkeypatch.setattr(result, "write", full)
    ended = CliRunner().invoke(cli, ["validate", "-N", "4", "--level", "node", "--json", str(tmp_path / "v.json")])
    assert isinstance(ended.exception, RunError)
    assert ended.exception.exit_status == 2
    assert "nothing was found" in ended.output


def test_a_baseline_takes_the_place_of_the_model(tmp_path: Path) -> None:
    good = str(tmp_path / "good.json")
    assert run("--machine", "crusher", "-N", "64", "--level", "group", "--json", good)[0] == 0
    scenario = tmp_path / "faults.toml"
    scenario.write_text('[[lanes]]\nlink = "s3-s9"\nlanes = 2\n', encoding="utf-8")
    words = ("--machine", "crusher", "-N", "64", "--level", "group", "--baseline", good)
    status, said = run(*words, "--faults", str(scenario))
    assert status == 1
    assert "lanes      s3-s9" in said
    assert run(*words)[0] == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--machine", "crusher", "-N", "1"), "-N 1: accepted is 2 or more"),
        (("--machine", "crusher", "-N", "500"), "-N 500: accepted is 2 to 192"),
        (("--machine", "crusher", "-N", "0"), "-N 0: accepted is 2 to 192"),
        (("--network", "latency"), "--network latency: accepted is links, flow, packet"),
        (("--level", "rack"), "--level rack: accepted is node, switch, group, pair, system"),
        (("--node", "t0"), "--node t0 goes with --prolog or --epilog"),
        (("--prolog", "--epilog"), "--prolog --epilog: accepted is one of the two"),
        (("--prolog", "--node", "nobody"), "--node nobody: testbed has no such node"),
        (("--baseline", "nowhere.json"), "--baseline nowhere.json: No such file or directory"),
        (("--json", "nowhere/v.json"), "--json nowhere/v.json"),
        (("--out", "/dev/null/x"), "--out /dev/null/x"),
        (("--seed", "-1"), "--seed -1: accepted is 0 to"),
        (("--prolog", "--html", "v.html"), "--html v.html has no effect on --prolog and --epilog"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(words: tuple[str, ...], sentence: str) -> None:
    status, said = run(*words)
    assert status == 2
    assert sentence in said


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ("s3-s40", 'lanes 1: link = "s3-s40": no link leads from s3 to s40'),
        ("s40>s3", 'lanes 1: link = "s40>s3": no link leads from s40 to s3'),
        ("s17-s3.4", 'lanes 1: link = "s17-s3.4": the links between these two are numbered 0 to 0'),
    ],
)
def test_a_link_that_is_not_there_is_refused_before_anything_is_measured(link: str, sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        of_simulated(Asked(machine="crusher", faults={"lanes": [{"link": link, "lanes": 2}]}))


def test_a_baseline_of_another_machine_is_refused(tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    outcome = of_simulated(Asked(machine="crusher", nodes=64, level="switch")).run()
    good.write_text(json.dumps(outcome.content()), encoding="utf-8")
    with pytest.raises(UserError, match="it is of crusher, and this is testbed"):
        of_simulated(Asked(machine="testbed", baseline=str(good)))
    for change, sentence in (
        ({"result": "fail"}, "something was found in it"),
        ({"network": "flow"}, "it has network flow, and this links"),
        ({"levels": outcome.content()["levels"][:1]}, "it ends with level node"),
    ):
        good.write_text(json.dumps({**outcome.content(), **change}), encoding="utf-8")
        with pytest.raises(UserError, match=sentence):
            of_simulated(Asked(machine="crusher", nodes=64, level="switch", baseline=str(good)))
    good.write_text(json.dumps(outcome.content()), encoding="utf-8")
    with pytest.raises(UserError, match="it is of 64 nodes that are not these 96"):
        of_simulated(Asked(machine="crusher", nodes=96, level="switch", baseline=str(good)))
    good.write_text("{}", encoding="utf-8")
    with pytest.raises(UserError, match="accepted is what --json of a validation has written"):
        of_simulated(Asked(machine="crusher", baseline=str(good)))


def test_before_and_after_a_job(tmp_path: Path) -> None:
    scenario = tmp_path / "faults.toml"
    scenario.write_text(
        '[[nic]]\nnic = "n13"\nrate = 0.5\n[[flap]]\nlink = "n12"\nper_hour = 8\n[[pcie]]\nnic = "n20"\nwidth = 8\n'
        '[[gpu]]\ngpu = "crusher008 gpu7"\nrate = 0.4\n',
        encoding="utf-8",
    )
    words = ("--machine", "crusher", "--faults", str(scenario))
    status, said = run(*words, "--prolog", "--node", "crusher004")
    assert status == 1
    assert "cxi_healthcheck   pass" in said
    assert "slingshot-diag    FAIL: loopback of n13" in said
    assert "cxi_gpu_loopback  pass" in said
    assert run(*words, "--prolog", "--node", "crusher001")[0] == 0
    status, said = run(*words, "--prolog", "--node", "crusher006")
    assert status == 1
    assert "cxi_healthcheck   FAIL: crusher006 cxi0 LnkSta: Speed 16GT/s, Width x8" in said
    status, said = run(*words, "--prolog", "--node", "crusher008")
    assert status == 1
    assert "cxi_gpu_loopback  FAIL: gpu of crusher008 gpu7 takes 1." in said
    scenario.write_text(
        '[[replays]]\nlink = "n16"\nrate = "1 ppm"\n[[pcie]]\nnic = "n17"\nreplays = "0.1 %"\n', encoding="utf-8"
    )
    assert run(*words, "--prolog", "--node", "crusher005")[0] == 0
    limits = tmp_path / "limits.toml"
    limits.write_text("[limit]\nreplays = 1e-6\n", encoding="utf-8")
    status, said = run(*words, "--prolog", "--node", "crusher005", "--limits", str(limits))
    assert status == 1
    assert "crusher005 cxi0 link-level retry: 1e-06 of the frames replayed" in said
    assert "crusher005 cxi1 AER: Replay Timer Timeout, 0.001 of the packets" in said


def test_flaps_of_the_last_hours_are_counted_before_a_job(tmp_path: Path) -> None:
    scenario = tmp_path / "faults.toml"
    scenario.write_text('[[flap]]\nlink = "n12"\nper_hour = 8\n', encoding="utf-8")
    words = ("--machine", "crusher", "--faults", str(scenario))
    status, said = run(*words, "--epilog", "--node", "crusher004")
    assert status == 1
    assert "flaps             FAIL: n12 (crusher004 cxi0)" in said


# --- The console, and the study


def test_the_console_says_what_was_before_and_counts_flaps_from_the_seed_alone(crusher: wiring.Wiring) -> None:
    machine = load("crusher")

    def flaps(seed: int) -> list[float]:
        said = console.Console(crusher, {})
        told.tell(said, crusher, faults.load({"flap": [{"link": "n0", "per_hour": 6}]}, machine, seed=seed))
        return said.flaps()["n0"]

    counts = [len(flaps(seed)) for seed in range(40)]
    assert 50 < sum(counts) / len(counts) < 70  # 60 in ten hours
    assert len(set(counts)) > 5
    again = flaps(3)
    assert len(again) == counts[3]
    assert all(-console.HISTORY_S < at_s < 0 for at_s in again)


def test_cases_of_the_study_follow_from_their_number_and_name_places_that_are_measured() -> None:
    assert study.planted(7) == study.planted(7)
    kinds = {fault["kind"] for case in range(12) for fault in study.planted(case)["truth"]}
    assert kinds == set(study.KINDS)
    row = study.run(4, "links")
    assert row["false_alarms"] == []
    assert row["kinds_named"] == sum(len(fault["found"]) for fault in row["truth"])
    assert all(fault["found"] == fault["places"] for fault in row["truth"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--network", "foo"), "--network foo: accepted is links, flow, packet"),
        (("--network", "links", "--mpi", "mpich"), "--network links: accepted is flow, packet"),
        (("--mpi", "foo"), 'unknown MPI library "foo"'),
        (("--cases", "0"), "--cases 0: accepted is 1 or more"),
        (("--cases", "few"), "argument --cases: invalid int value"),
        (("--first", "-1"), "--first -1: accepted is 0 or more"),
        (("-j", "0"), "--jobs 0: accepted is 1 or more"),
        (("--out", "/nowhere/kept"), "--out /nowhere/kept: the folder /nowhere does not exist"),
    ],
)
def test_what_the_study_cannot_use_is_refused_before_a_case(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        study.main(words)
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.startswith(f"validate-study: {sentence}")
    assert said.err.count("\n") == 1


def test_a_case_that_fails_ends_the_study_with_its_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise RunError("no room", exit_status=1)

    before = {number: signal.getsignal(number) for number in signals.ENDING}
    monkeypatch.setattr(study, "run", fail)
    try:
        assert study.main(["--cases", "1"]) == 2
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "validate-study: case 0: no room\n")


def test_the_study_s_help_has_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        study.main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert all(text in said for text in ("so many; default: 20", "default: flow, with --mpi packet", "default: 2"))


def _row(
    truth: Sequence[tuple[str, float, list[str], list[str]]], false: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    return {
        "case": 0, "machine": "crusher", "nodes": 64, "in_order": False, "kinds_named": 0, "wall_s": 1.0,
        "truth": [{"kind": kind, "share": share, "places": places, "found": found}
                  for kind, share, places, found in truth],
        "false_alarms": [list(each) for each in false],
    }  # fmt: skip


def test_the_study_tells_kinds_by_sizes_nodes_and_links_apart(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        _row([("nic", 0.05, ["n1"], []), ("miscabled", 1.0, ["s1-s2", "s1-s3"], ["s1-s2"])], [("link", "s4-s5")]),
        _row([("nic", 0.05, ["n2"], ["n2"]), ("nic", 0.5, ["n3"], ["n3"]), ("load", 0.1, ["s1-s2"], ["s1-s2"])],
             [("nic", "n9"), ("load", "s3-s4")]),
    ]  # fmt: skip
    assert study.report(rows) == {"recall": 3 / 4, "precision": 4 / 7}
    said = capsys.readouterr().out.splitlines()
    assert [line.split() for line in said[1:8]] == [
        ["nodes", "and", "NICs", "5%", "50%", "recall", "false", "precision"],
        ["nic", "1/2", "1/1", "0.67", "1", "0.67"],
        ["links", "10%", "100%", "recall", "false", "precision"],
        ["load", "1/1", "1.00", "1", "0.50"],
        ["miscabled", "1/2", "0.50", "0", "1.00"],
        ["link", "-", "1", "0.00"],
        ["never", "planted:", "node,", "loss,", "replays,", "drain,", "gpu"],
    ]
    assert {row["kind"] for scenario in rows for row in scenario["truth"]} <= set(study.KINDS)


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_study_that_is_ended_leaves_no_worker_and_keeps_what_is_finished(
    how: signal.Signals, status: int, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    command = [sys.executable, "-m", "dryfly.validate.study", "--network", "links", "--out", str(kept)]
    with subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ran:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and not (kept.is_dir() and list(kept.glob("*.json"))):
            time.sleep(0.05)
        mine = _below(ran.pid)
        assert len(mine) >= 2  # and what these have started
        os.killpg(ran.pid, how)
        out, error = ran.communicate(timeout=60)
    assert (ran.returncode, out) == (status, "")
    # Cases of which not all was found say so before.
    (line,) = [line for line in error.splitlines() if not line.startswith("{")]
    assert line.startswith("validate-study: ended with ")
    assert line.endswith(f" of 22 cases finished; what is finished is kept in {kept}")
    assert list(kept.glob("*.json"))
    deadline = time.monotonic() + 5  # who has died with a worker is waited for by another process
    while any(_runs(pid) for pid in mine) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_runs(pid) for pid in mine)


def _stat(pid: int) -> list[str]:
    """State and parent first; empty where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _runs(pid: int) -> bool:
    return bool(_stat(pid)) and _stat(pid)[0] != "Z"


def _below(pid: int) -> list[int]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    parents = {each: int(stat[1]) for each in pids if (stat := _stat(each))}
    found = {pid}
    while more := {each for each, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {pid})

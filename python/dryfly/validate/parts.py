"""Pass or fail of each node, NIC, link and group, with the number that was worst of it and that number's limit."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dryfly.scenario.faults import gpu_place
from dryfly.validate.finding import Finding, LevelDone
from dryfly.validate.subject import Subject
from dryfly.validate.wiring import nic_place

KINDS = ("nodes", "nics", "gpus", "links", "groups")


def verdicts(
    subject: Subject, levels: Sequence[LevelDone], findings: Sequence[Finding]
) -> dict[str, dict[str, dict[str, Any]]]:
    """By kind and place. `slower`: how many times as long as expected it took, in that `measure` in which it came
    closest to the `limit`, or went furthest beyond it; what was beyond at first and in order when measured again does
    not count. Of what was not measured there is no number. `because`: what has failed of a node or group."""
    wiring, console = subject.wiring, subject.console
    numbers = _numbers(levels)
    failed: defaultdict[str, list[str]] = defaultdict(list)  # by part: what was found there
    for finding in findings:
        for part in (*map(_trunk, finding.places), *finding.nodes):
            failed[part].append(finding.place)
    found: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in KINDS}
    groups: dict[int, list[str]] = {wiring.group_of_node(node): [] for node in subject.nodes}
    for node in subject.nodes:
        name = console.node_name(node)
        found["nodes"][name] = _verdict(name, numbers, failed)
        places = [nic_place(nic) for nic in wiring.nics_of_node[node]]
        found["nics"] |= {place: _verdict(place, numbers, failed) for place in places}
        gpus = [console.public(gpu_place(node, gpu)) for gpu in range(len(wiring.gpus))]
        found["gpus"] |= {place: _verdict(place, numbers, failed) for place in gpus}
        groups[wiring.group_of_node(node)] += [part for part in (name, *places, *gpus) if part in failed]
    for cable in wiring.cables_of_groups(subject.nodes):
        found["links"][cable.trunk] = _verdict(cable.trunk, numbers, failed)
        if cable.trunk in failed and cable.parallel == 0:
            for group in {wiring.group_of_switch[cable.a], wiring.group_of_switch[cable.b]}:
                groups[group].append(cable.trunk)
    found["groups"] = {
        f"g{group}": {"result": "fail", "because": bad} if bad else {"result": "pass"}
        for group, bad in sorted(groups.items())
    }
    return found


def line(parts: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """How many of each kind have passed."""
    words = {"nodes": "nodes", "nics": "NICs", "gpus": "GPUs", "links": "links between switches", "groups": "groups"}
    some = []
    for kind, of in parts.items():
        counts = {word: sum(each["result"] == word for each in of.values()) for word in ("pass", "fail")}
        if of:
            some.append(f"{counts['pass']:,} of {sum(counts.values()):,} {words[kind]}")
    return "passed   " + ", ".join(some)


def _numbers(levels: Iterable[LevelDone]) -> dict[str, list[dict[str, Any]]]:
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for level in levels:
        for measure, ratios in level.ratios.items():
            for place, slower in ratios.items():
                found[place].append({"measure": measure, "slower": slower, "limit": level.limits[measure]})
    return found


def _verdict(
    place: str, numbers: Mapping[str, Sequence[dict[str, Any]]], failed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    some = [each for each in numbers.get(place, ()) if place in failed or each["slower"] <= each["limit"]]
    worst = max(some, key=lambda each: each["slower"] / each["limit"], default={})
    if place in failed:
        because = [part for part in dict.fromkeys(failed[place]) if part != place]
        beyond = worst if worst and worst["slower"] > worst["limit"] else {}
        return {"result": "fail", **({"because": because} if because else {}), **beyond}
    return {"result": "pass" if place in numbers else "not measured", **worst}


def _trunk(place: str) -> str:
    """Of one of the parallel cables between two switches all of them."""
    return re.sub(r"^(s\d+-s\d+)\.\d+$", r"\1", place)

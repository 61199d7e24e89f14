"""The steps in which what has been found slow is measured again, with other partners each turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dryfly.validate import judge, plan
from dryfly.validate.judge import USUAL_KIND, Suspect
from dryfly.validate.plan import Sizes, Step
from dryfly.validate.wiring import Wiring

OF_NODE_ALONE = ("memory", "cpu")  # measures that no message leaves the node in
_OF_NODE = (*OF_NODE_ALONE, "loopback", "gpu")


def measure_of(measure: str) -> str:
    """By which a suspect is measured again: a NIC that has been slow among many pairs, in pairs of its own."""
    return "nic" if measure in judge.LOADED else measure


def needs_partner(measure: str) -> bool:
    """Whether a part is measured again only with one that is not suspected."""
    return measure not in (*_OF_NODE, *judge.OF_LINKS)


def steps(suspects: Sequence[Suspect], wiring: Wiring, nodes: Sequence[int], sizes: Sizes, turn: int) -> list[Step]:
    by_measure: dict[str, list[str]] = {}
    for suspect in suspects:
        by_measure.setdefault(suspect.measure, []).append(suspect.place)
    found: list[Step] = []
    own = {place for measure in _OF_NODE for place in by_measure.get(measure, [])}
    if own:
        some = [
            replace(step, probes=tuple(each for each in step.probes if set(each.places) & own))
            for step in plan.node_level(wiring, nodes, sizes, turn=turn)
        ]
        found += [step for step in some if step.probes]
    links = {place for measure in judge.OF_LINKS for place in by_measure.get(measure, [])}
    if links:
        cables = [cable for cable in wiring.cables if cable.trunk in links]
        found += plan.link_steps(wiring, nodes, cables, sizes, turn=turn)
    nics = {place for measure, places in by_measure.items() if USUAL_KIND[measure] == "nic" for place in places}
    return found + plan.cross_pairs(sorted(int(place[1:]) for place in nics - own), wiring, nodes, sizes, turn)

"""What a machine's model has of each measure of the network: the medians of some nodes of two groups, simulated.

Of memory and cores nothing is taken from it: those of a model have no compiler and no copy through shared memory.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from dryfly.validate import judge, plan, probe
from dryfly.validate.asked import Asked
from dryfly.validate.judge import OF_LINKS
from dryfly.validate.plan import Sizes
from dryfly.validate.simulated import Simulated
from dryfly.validate.wiring import Wiring

_NODES_OF_GROUP = 4
_LEVELS = ("switch", "group", "pair", "system")


def medians(machine: str, sizes: Sizes) -> dict[str, float]:
    """By measure, in seconds. Raises UserError."""
    asked = Asked(machine=machine)
    simulated = Simulated(asked)
    wiring = simulated.subject.wiring
    nodes = _some(wiring, simulated.subject.nodes)
    steps = [step for level in _LEVELS for step in plan.level_steps(level, wiring, nodes, sizes)
             if step.measure not in OF_LINKS]  # fmt: skip
    measured = probe.run(simulated.in_order(), wiring, nodes, steps, network=str(asked.network))
    times: defaultdict[str, list[float]] = defaultdict(list)
    for (measure, _), time_s in judge.figures(steps, measured).items():
        times[measure].append(time_s)
    return {measure: statistics.median(of) for measure, of in times.items()}


def _some(wiring: Wiring, nodes: Sequence[int]) -> list[int]:
    by_group: defaultdict[int, list[int]] = defaultdict(list)
    for node in nodes:
        by_group[wiring.group_of_node(node)].append(node)
    return [node for members in list(by_group.values())[:2] for node in members[:_NODES_OF_GROUP]]

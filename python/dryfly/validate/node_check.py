"""What a scheduler's prolog and epilog ask of one node: an answer in seconds, by the names of the tools that Aurora's
take (S0): cxi_healthcheck, cxi_gpu_loopback and slingshot-diag before a job, flaps, services and node errors after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dryfly.base.errors import UserError
from dryfly.machine.names import NodeNames
from dryfly.scenario.faults import Scenario
from dryfly.validate import judge, plan
from dryfly.validate.asked import Asked
from dryfly.validate.measuring import BySkeleton
from dryfly.validate.settings import settings
from dryfly.validate.simulated import Simulated
from dryfly.validate.wiring import nic_place, node_place

PROLOG, EPILOG = "prolog", "epilog"
_STATES = ("lanes", "pcie", "loss", "replays")  # what a NIC says of itself


@dataclass(frozen=True, kw_only=True)
class Check:
    name: str
    passed: bool | None  # None: not checked
    said: tuple[str, ...]

    def line(self) -> str:
        word = {True: "pass", False: "FAIL", None: "not checked"}[self.passed]
        return f"{self.name:17} {word}" + (": " + "; ".join(self.said) if self.said else "")


def content(when: str, machine: str, node: str, checks: Sequence[Check]) -> dict[str, Any]:
    """For --json."""
    results = {check.passed for check in checks}
    return {
        "when": when, "machine": machine, "node": node,
        "result": "fail" if False in results else "pass" if True in results else "not checked",
        "checks": [
            {"name": check.name, "result": {True: "pass", False: "fail", None: "not checked"}[check.passed],
             "said": list(check.said)}
            for check in checks
        ],
    }  # fmt: skip


class NodeCheck:
    """Raises UserError."""

    def __init__(self, asked: Asked, name: str) -> None:
        self._asked = asked
        self._simulated = Simulated(asked)
        self._measurer = BySkeleton(asked, self._simulated, None)
        machine = self._simulated.machine
        names = NodeNames(machine)
        index = names.index(name)
        if index is None:
            first, last = names.name(0), names.name(machine.nodes_max - 1)
            raise UserError(f"--node {name}: {machine.name} has no such node; its nodes are {first} to {last}")
        self._node = names.number(index)
        self._wiring = self._simulated.subject.wiring
        self._console = self._simulated.subject.console
        self._nics = [nic_place(nic) for nic in self._wiring.nics_of_node[self._node]]

    def run(self, when: str) -> list[Check]:
        if when == PROLOG:
            return [self._health(), self._loopback(), self._gpu_loopback()]
        return [self._flaps(), self._node_errors(), self._services()]

    def content(self, when: str, checks: Sequence[Check]) -> dict[str, Any]:
        return content(when, self._simulated.machine.name, self._console.node_name(self._node), checks)

    def _said(self, kinds: Sequence[str], places: Sequence[str]) -> tuple[str, ...]:
        events = [event for place in places for event in self._console.about(place, 0.0)]
        return tuple(
            f"{event.source} {event.text}"
            for event in sorted(events, key=lambda event: event.at_s)
            if event.kind in kinds
        )

    def _health(self) -> Check:
        """Replays only where they are as many as the limit."""
        limit = settings(limits=self._asked.limits).replays
        bad = {
            f"{event.source} {event.text}"
            for nic in self._nics
            for event in self._console.about(nic, 0.0)
            if event.replayed and event.replayed < limit
        }
        said = tuple(line for line in self._said(_STATES, self._nics) if line not in bad)
        return Check(name="cxi_healthcheck", passed=not said, said=said)

    def _loopback(self) -> Check:
        """Each NIC to itself, and the node's memory and cores, against the machine's model."""
        if self._said(("node",), [node_place(self._node)]):
            return Check(name="slingshot-diag", passed=False, said=("no answer",))
        down = [nic for nic in self._nics if self._said(("loss",), [nic])]
        bad = [f"{self._console.spoken(nic)} does not answer" for nic in down]
        bad += [words for (measure, place), words in self._slow.items() if measure != "gpu" and place not in down]
        return Check(name="slingshot-diag", passed=not bad, said=tuple(bad))

    def _gpu_loopback(self) -> Check:
        """Each GPU by a NIC that is near it, or by the next where that one is slow itself."""
        why = self._simulated.subject.unmeasured.get("gpu")
        if why is not None:
            return Check(name="cxi_gpu_loopback", passed=None, said=(why,))
        if self._said(("node",), [node_place(self._node)]):
            return Check(name="cxi_gpu_loopback", passed=False, said=("no answer",))
        bad = tuple(words for (measure, _), words in self._slow.items() if measure == "gpu")
        return Check(name="cxi_gpu_loopback", passed=not bad, said=bad)

    @cached_property
    def _slow(self) -> dict[tuple[str, str], str]:
        """What of the node is slow, by measure and place, in words. Of a GPU the fastest of all NICs' counts."""
        known = settings(machine=self._simulated.machine, limits=self._asked.limits)
        scenario = Scenario(slow=self._simulated.scenario.slow)
        best: dict[tuple[str, str], float] = {}
        for turn in range(len(self._nics)):
            steps = plan.node_level(self._wiring, [self._node], known.sizes, turn=turn)
            steps = [step for step in steps if turn == 0 or step.measure == "gpu"]
            if turn > 0 and all(
                slower <= 1 + known.limits.tolerance["gpu"] for (measure, _), slower in best.items() if measure == "gpu"
            ):
                break
            measured, expected = self._measurer.against_order(scenario, steps, [self._node], noisy=False)
            for key, time_s in judge.figures(steps, measured).items():
                best[key] = min(best.get(key, math.inf), time_s / expected[key])
        return {
            (measure, place): f"{measure} of {self._console.spoken(place)} takes {slower:.2f} times as long"
            for (measure, place), slower in best.items()
            if slower > 1 + known.limits.tolerance[measure]
        }

    def _flaps(self) -> Check:
        known = settings(limits=self._asked.limits)
        said = []
        for place, instants in self._console.flaps().items():
            if place not in self._nics:
                continue
            many = known.too_many_flaps(instants)
            if many is not None:
                hours, count, limit = many
                said.append(f"{self._console.spoken(place)}: {count} in {hours} h, accepted are fewer than {limit}")
        return Check(name="flaps", passed=not said, said=tuple(said))

    def _node_errors(self) -> Check:
        said = self._said(("node", "memory", "cpu"), [node_place(self._node)])
        return Check(name="node errors", passed=not said, said=said)

    def _services(self) -> Check:
        return Check(name="services", passed=None, said=("a simulated node keeps no CXI service after a job",))

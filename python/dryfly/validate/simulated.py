"""A simulated machine as what is validated: which of its nodes, what is wrong with it, and how it is at an instant."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from dryfly.base.errors import UserError
from dryfly.case import gpus, on_node
from dryfly.case.case import SEED_MAX
from dryfly.case.placement import node_blocks, nodes_listed
from dryfly.case.resolve import resolve_machine
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames
from dryfly.machine.node import most_nics, node_of
from dryfly.mpi import libraries
from dryfly.scenario import faults, noise
from dryfly.scenario.faults import Fault, Scenario, Slow
from dryfly.skeleton import motif
from dryfly.validate import told, wiring
from dryfly.validate.asked import Asked
from dryfly.validate.console import Console
from dryfly.validate.plan import Step
from dryfly.validate.subject import Subject
from dryfly.validate.wiring import node_in

_PS = 10**12
_BETWEEN_SWITCHES = re.compile(r"s(\d+)[->]s(\d+)(?:\.(\d+))?")
_BILLION = 10**9
_STRIDE = 0x9E3779B97F4A7C15 % 2**62  # far from any seed that a user counts up to


def whole(scenario: Scenario) -> Scenario:
    """Nothing is wrong, and what was slow has all that it should have: levels that model the ways to memory only where
    one is slow do so then as well."""
    return Scenario(slow=tuple(replace(part, share_ppb=_BILLION) for part in scenario.slow))


def without_gpus(scenario: Scenario) -> Scenario:
    return replace(scenario, slow=tuple(part for part in scenario.slow if part.kind != "gpu"))


class Simulated:
    """Raises UserError."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.machine: Machine = load(asked.machine, sets=asked.sets)
        self.scenario = Scenario() if asked.faults is None else faults.load(asked.faults, self.machine, seed=asked.seed)
        self._noise = noise.load(asked.noise, self.machine)
        self.library = None if asked.mpi is None else libraries.select(asked.mpi)
        self.family = "" if self.library is None else self.library.family
        no_gpus = self._why_no_gpus()
        if not no_gpus:  # what a GPU's link has of a NIC's
            self._gpu_ppb = self.machine.number("node.gpu_rate") * _BILLION // self.machine.number("fabric.link.rate")
        wired = replace(wiring.read(self.spec(Scenario())), gpus=() if no_gpus else self._nics_near_gpus())
        _check_links(wired, self.scenario)
        console = Console(wired, _names(self.machine))
        told.tell(console, wired, self.scenario)
        self.subject = Subject(
            name=self.machine.name,
            nodes=tuple(self._nodes()),
            wiring=wired,
            console=console,
            timeout_s=self.machine.number("nic.retry.timeout") / _PS,
            unmeasured=self._without_memory() | ({"gpu": no_gpus} if no_gpus else {}),
        )

    def _without_memory(self) -> dict[str, str]:
        """MPICH's messages go by a node's memory, where the release can."""
        if self.library is None or (self.family == "mpich" and on_node.can_share(self.library)):
            return {}
        return {"memory": f"messages of {self.library.name} within a node go through its NICs"}

    def _why_no_gpus(self) -> str:
        """Why buffers on GPUs are not measured; empty: they are."""
        runtime = self.machine.optional("node.gpu_runtime")
        if runtime is None:
            return f"{self.machine.name} has no GPU runtime that is simulated"
        library = self.library
        if library is None:
            return ""
        if not gpus.reaches_devices(library, str(runtime)):
            return f"{library.name} knows nothing of its GPUs"
        # Copies of the runtime are as fast as ever where a link is slow (docs/model/reliability.md#parts-of-nodes).
        return "" if library.family == "openmpi" else f"{library.name} has NICs reach copies on the host only"

    def _nics_near_gpus(self) -> tuple[tuple[int, ...], ...]:
        """Of each GPU the NICs of its node, the nearest first; GPUs that have the same ones begin with one each."""
        node = node_of(self.machine, nics=most_nics(self.machine))
        of_domain: dict[int, int] = {}
        found = []
        for domain in node.gpu_domains:
            turn = of_domain.setdefault(domain, 0)
            of_domain[domain] += 1
            near = node.near_nics(domain)
            first = near[turn % len(near)]
            rest = sorted(range(len(node.nic_domains)), key=lambda nic: node.distance(domain, node.nic_domains[nic]))
            found.append((first, *(nic for nic in rest if nic != first)))
        return tuple(found)

    def _nodes(self) -> list[int]:
        asked = self._asked
        listed = nodes_listed(self.machine, asked.place)
        count = (listed or self.machine.nodes_max) if asked.nodes is None else asked.nodes
        if not 1 <= count <= self.machine.nodes_max:
            raise UserError(f"-N {count}: accepted is 2 to {self.machine.nodes_max}, the nodes of {asked.machine}")
        return node_blocks(self.machine, nodes=count, ppn=1, policy=asked.place, seed=asked.seed)

    def seed(self, run: int) -> int:
        """Each run draws anew: all begin at instant 0, and detours would be where they have been before."""
        return (self._asked.seed + _STRIDE * run) % (SEED_MAX + 1)

    def spec(self, scenario: Scenario, *, run: int = 0, with_noise: bool = False) -> str:
        return resolve_machine(
            self.machine,
            seed=self.seed(run),
            ranks=1,
            scenario=scenario,
            noise=self._noise if with_noise else None,
            network=motif.network_of(str(self._asked.network)),
        )

    def at_gpus(self, scenario: Scenario, step: Step) -> Scenario:
        """Of a step that is at GPUs: its NICs are as slow as those, and GPUs are left out."""
        left = {part.number: part.share_ppb for part in scenario.slow if part.kind == "gpu"}
        slow = list(without_gpus(scenario).slow)
        for each in step.probes:
            node = node_in(each.places[0])
            assert node is not None
            assert each.gpu is not None
            nics = self.subject.wiring.nics_of_node[node]
            share = left.get(node * len(self.subject.wiring.gpus) + each.gpu, _BILLION) * self._gpu_ppb // _BILLION
            if share < _BILLION:
                slow.append(Slow(kind="nic", number=nics[each.a // 2 % len(nics)], share_ppb=max(1, share)))
        return replace(scenario, slow=tuple(slow))

    def in_order(self) -> str:
        """The spec of the machine without faults and noise."""
        return self.spec(Scenario())

    def present(self, at_s: float) -> Scenario:
        """What is wrong from then on. What is down for good by then every route knows; the nodes of NICs without
        a link are out by then."""
        begin = round(at_s * _PS)
        now: list[Fault] = []
        for fault in self.scenario.faults:
            for_good = (fault.kind == "down" and fault.until_ps is None) or fault.kind == "drain"
            if for_good and fault.from_ps <= begin and (fault.until_ps is None or begin < fault.until_ps):
                between = tuple(place for place in fault.places if not place.startswith("n"))
                now.append(replace(fault, kind="absent", places=between, from_ps=0, until_ps=None))
                continue
            if for_good and any(re.fullmatch(r"[ns]\d+|all|edge", place) for place in fault.places):
                continue  # whose NICs are lost then has nobody who sends; what they measured is dropped
            if fault.until_ps is not None and fault.until_ps <= begin:
                continue
            until = None if fault.until_ps is None else fault.until_ps - begin
            now.append(replace(fault, from_ps=max(0, fault.from_ps - begin), until_ps=until))
        return replace(self.scenario, faults=tuple(now))


def _check_links(wired: wiring.Wiring, scenario: Scenario) -> None:
    """Raises UserError for a link between two switches that have none, before anything is measured."""
    parallel = Counter((cable.a, cable.b) for cable in wired.cables)
    for said in scenario.said:
        for place in said.places:
            nic, switch = told.nic_of_link(place), re.search(r"s(\d+)", place)
            if nic is not None and switch is not None and int(switch[1]) != wired.switch_of_nic[nic]:
                raise UserError(f"{said.where}: the link of n{nic} leads to s{wired.switch_of_nic[nic]}")
        for found in filter(None, (_BETWEEN_SWITCHES.fullmatch(place) for place in said.places)):
            a, b = sorted((int(found[1]), int(found[2])))
            count = parallel[a, b]
            if count == 0:
                raise UserError(f"{said.where}: no link leads from s{found[1]} to s{found[2]}")
            if found[3] is not None and int(found[3]) >= count:
                raise UserError(f"{said.where}: the links between these two are numbered 0 to {count - 1}")


def _names(machine: Machine) -> dict[int, str]:
    names = NodeNames(machine)
    return {names.number(index): names.name(index) for index in range(machine.nodes_max)}

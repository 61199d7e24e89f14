"""Measures steps on a simulated machine, as it is and in order: by ranks without a program or by an MPI program's."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.base.store import Store
from dryfly.case import on_node
from dryfly.scenario.faults import Scenario
from dryfly.skeleton import motif
from dryfly.validate import judge, probe, ranks, told
from dryfly.validate.asked import Asked
from dryfly.validate.judge import Figures
from dryfly.validate.plan import Step
from dryfly.validate.probe import Counters, Measured
from dryfly.validate.ranks import RANKS_MOST, Ranks
from dryfly.validate.simulated import Simulated, whole, without_gpus


class Kept:
    """What a folder of an earlier run has is not measured again. `folder`: None: nothing is kept."""

    def __init__(self, folder: str | None) -> None:
        self._store = Store(None if folder is None else Path(folder) / "measured")

    def measured(
        self, about: str, steps: Sequence[Step], measure: Callable[[], tuple[list[Measured], Counters]]
    ) -> tuple[list[Measured], Counters]:
        """`about`: all that the times depend on besides the steps."""
        key = hashlib.sha256((about + probe.text_of(steps)).encode()).hexdigest()[:32]
        content = self._store.get(key)
        found = None if content is None else _read(content, steps)
        if found is not None:
            return found
        measured, counters = measure()
        self._store.put(key, {"steps": [[m.begin_s, m.end_s, m.times] for m in measured], "counters": counters})
        return measured, counters


def _read(content: Mapping[str, Any], steps: Sequence[Step]) -> tuple[list[Measured], Counters] | None:
    """None: it is not what was put there."""
    try:
        rows, counters = content["steps"], content["counters"]
        measured = [Measured(begin_s=b, end_s=e, times=tuple((x, y) for x, y in times)) for b, e, times in rows]
    except (KeyError, TypeError, ValueError):
        return None
    whole = [len(of.times) for of in measured] == [len(step.probes) for step in steps]
    return (measured, counters) if whole else None


class _Measurer(ABC):
    """Expected is what the machine in order has, or the baseline."""

    def __init__(self, asked: Asked, simulated: Simulated, baseline: Figures | None) -> None:
        self._asked = asked
        self._simulated = simulated
        self._baseline = baseline
        self._kept = Kept(asked.out)
        self._run = 0

    @abstractmethod
    def measure(self, steps: Sequence[Step], nodes: Sequence[int], at_s: float) -> tuple[list[Measured], Figures]: ...

    def again(
        self, steps: Sequence[Step], nodes: Sequence[int], at_s: float, common: Mapping[str, float]
    ) -> tuple[list[Measured], Figures]:
        measured, expected = self.measure(steps, nodes, at_s)
        return measured, {key: time_s * common.get(key[0], 1.0) for key, time_s in expected.items()}


class BySkeleton(_Measurer):
    def measure(self, steps: Sequence[Step], nodes: Sequence[int], at_s: float) -> tuple[list[Measured], Figures]:
        self._run += 1
        return self.against_order(self._simulated.present(at_s), steps, nodes, noisy=True)

    def against_order(
        self, scenario: Scenario, steps: Sequence[Step], nodes: Sequence[int], *, noisy: bool
    ) -> tuple[list[Measured], Figures]:
        """The machine with that, and what is expected."""
        runs = self._runs(scenario, steps)
        present = [(self._spec(now, noisy=noisy), numbers) for now, _, numbers in runs]
        if self._baseline is not None:
            return self._of_runs(present, steps, nodes), self._baseline
        in_order = [(self._spec(order, noisy=False), numbers) for _, order, numbers in runs]
        if present == in_order:
            measured = self._of_runs(present, steps, nodes)
            return measured, judge.figures(steps, measured)
        with ThreadPoolExecutor(2) as pool:
            found = pool.submit(self._of_runs, present, steps, nodes)
            usual = pool.submit(self._of_runs, in_order, steps, nodes)
        return found.result(), judge.figures(steps, usual.result())

    def _spec(self, scenario: Scenario, *, noisy: bool) -> str:
        return self._simulated.spec(scenario, run=self._run, with_noise=noisy)

    def _runs(self, present: Scenario, steps: Sequence[Step]) -> list[tuple[Scenario, Scenario, list[int]]]:
        """As the machine is, as it is in order, and the numbers of the steps. A rank without a program has no buffers:
        a NIC that is at a GPU has the lesser of its own way to memory and the GPU's link. So steps at GPUs are runs of
        their own, one for each state of NICs that they make."""
        in_order = whole(present)
        others = [number for number, step in enumerate(steps) if step.measure != "gpu"]
        found: dict[tuple[Scenario, Scenario], list[int]] = {}
        for number, step in enumerate(steps):
            if step.measure == "gpu":
                states = self._simulated.at_gpus(present, step), self._simulated.at_gpus(in_order, step)
                found.setdefault(states, []).append(number)
        runs = [(without_gpus(present), without_gpus(in_order), others)] if others else []
        return runs + [(*states, numbers) for states, numbers in found.items()]

    def _of_runs(
        self, runs: Sequence[tuple[str, list[int]]], steps: Sequence[Step], nodes: Sequence[int]
    ) -> list[Measured]:
        measured: dict[int, Measured] = {}
        for spec, numbers in runs:
            some = self._measured(spec, [steps[number] for number in numbers], nodes)
            measured |= dict(zip(numbers, some, strict=True))
        return [measured[number] for number in range(len(steps))]

    def _measured(self, spec: str, steps: Sequence[Step], nodes: Sequence[int]) -> list[Measured]:
        network, wiring = str(self._asked.network), self._simulated.subject.wiring
        about = json.dumps([spec, list(nodes), network, motif.digest()])
        return self._kept.measured(about, steps, lambda: (probe.run(spec, wiring, nodes, steps, network=network), {}))[
            0
        ]


class ByRanks(_Measurer):
    """One run after the other, for only the main thread runs ranks. Raises UserError where they are too many."""

    def __init__(self, asked: Asked, simulated: Simulated, baseline: Figures | None) -> None:
        super().__init__(asked, simulated, baseline)
        subject = simulated.subject
        count = 2 * sum(len(subject.wiring.nics_of_node[node]) for node in subject.nodes)
        if count > RANKS_MOST:
            raise UserError(
                f"--mpi {asked.mpi}: {len(subject.nodes)} nodes have {count:,} ranks, two for each NIC; accepted are "
                f"up to {RANKS_MOST:,}, or leave --mpi out"
            )
        case = {"machine": asked.machine, "sets": asked.sets, "mpi": asked.mpi, "network": asked.network,
                "noise": asked.noise}  # fmt: skip
        self._ranks = Ranks(
            case=case,
            machine=simulated.machine,
            family=simulated.family,
            shares=simulated.library is not None and on_node.can_share(simulated.library),
            names={node: subject.console.node_name(node) for node in subject.nodes},
        )

    def measure(self, steps: Sequence[Step], nodes: Sequence[int], at_s: float) -> tuple[list[Measured], Figures]:
        self._run += 1
        found, counters = self._measured(self._simulated.present(at_s), steps, nodes, noisy=True)
        took_s = sum(each.end_s - each.begin_s for each in found)
        told.tell_counters(self._simulated.subject.console, counters, at_s + took_s)
        timeouts = {place: of.get(ranks.TIMEOUTS, 0) for place, of in counters.items()}
        told.tell_timeouts(self._simulated.subject.console, timeouts, at_s + took_s)
        if self._baseline is not None:
            return found, self._baseline
        return found, judge.figures(steps, self._measured(Scenario(), steps, nodes, noisy=False)[0])

    def _measured(
        self, scenario: Scenario, steps: Sequence[Step], nodes: Sequence[int], *, noisy: bool
    ) -> tuple[list[Measured], Counters]:
        spec = self._simulated.spec(scenario, run=self._run, with_noise=noisy)
        about = json.dumps([spec, self._asked.mpi, list(nodes), ranks.digest()])
        seed, wiring = self._simulated.seed(self._run), self._simulated.subject.wiring
        return self._kept.measured(
            about, steps, lambda: self._ranks.run(scenario, seed, wiring, nodes, steps, noisy=noisy)
        )

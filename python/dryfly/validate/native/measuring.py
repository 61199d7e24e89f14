"""Measures steps on a real cluster, and says what each part would take in order: by a baseline, by the machine's model,
or by its peers."""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from dryfly.base.errors import RunError
from dryfly.validate import LEVELS, judge, plan
from dryfly.validate.judge import Figures
from dryfly.validate.measuring import Kept
from dryfly.validate.native.cluster import Cluster
from dryfly.validate.native.progress import Bar
from dryfly.validate.plan import Probe, Step
from dryfly.validate.probe import Counters, Measured
from dryfly.validate.ranks import digest
from dryfly.validate.settings import Settings
from dryfly.validate.subject import NodeFailed
from dryfly.validate.wiring import Wiring, nic_place

_PEERS_MOST = 16  # pairs that are measured beside suspects


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What measuring costs in wall time. `step_s` by measure, `start_s` of a run of the launcher."""

    library: str
    step_s: Mapping[str, float]
    start_s: float

    def seconds(self, steps: Sequence[Step], repeats: int) -> float:
        runs = len(list(groupby(steps, key=lambda step: step.on_node)))
        return runs * self.start_s + repeats * sum(self.step_s.get(step.measure, 0.0) for step in steps)


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Steps on a cluster, as often as is asked. `binding`: words for the launcher by ranks of a node."""

    cluster: Cluster
    program: Path
    wiring: Wiring
    binding: Callable[[int], Sequence[str]]

    def run(
        self, steps: Sequence[Step], nodes: Sequence[int], repeats: int, on_step: Callable[[int], None]
    ) -> tuple[list[Measured], str]:
        """Of steps with one `on_node`: of each pair the fastest time. Raises NodeFailed, RunError."""
        many = [step for step in steps for _ in range(repeats)]
        ppn = len(self.wiring.nics_of_node[nodes[0]]) * (2 if steps[0].on_node else 1)
        measured, library = self.cluster.measure(
            self.program, many, self.wiring, nodes, binding=self.binding(ppn),
            on_step=lambda number: on_step(number // repeats),
        )  # fmt: skip
        return [_merged(measured[at : at + repeats]) for at in range(0, len(measured), repeats)], library

    def trial(self, nodes: Sequence[int], level: str, settings: Settings) -> Trial:
        """A step of each measure, the second of two. Raises NodeFailed, RunError."""
        first: dict[str, Step] = {}
        for name in LEVELS[: LEVELS.index(level) + 1]:
            for step in plan.level_steps(name, self.wiring, nodes, settings.sizes):
                first.setdefault(step.measure, step)
        step_s: dict[str, float] = {}
        starts_s, library = [], ""
        for _, group in groupby(first.values(), key=lambda step: step.on_node):
            some = list(group)
            began = time.monotonic()
            measured, library = self.run([step for step in some for _ in range(2)], nodes, 1, lambda _: None)
            took_s = [each.end_s - each.begin_s for each in measured]
            starts_s.append(max(time.monotonic() - began - sum(took_s), 0.0))
            step_s |= {step.measure: second for step, second in zip(some, took_s[1::2], strict=True)}
        return Trial(library=library, step_s=step_s, start_s=statistics.median(starts_s))


def _merged(measured: Sequence[Measured]) -> Measured:
    """Of one step, measured several times: the fastest, for what the operating system and others take is never less
    than nothing, and a part that is slow is so each time."""
    return Measured(
        begin_s=measured[0].begin_s,
        end_s=measured[-1].end_s,
        times=tuple(
            (min(first for first, _ in of_pair), min(second for _, second in of_pair))
            for of_pair in zip(*(each.times for each in measured), strict=True)
        ),
    )


class Natively:
    """`usual`: what is expected by measure and place of a baseline, or by measure of a model; of the rest the median of
    all parts is."""

    def __init__(
        self, runner: Runner, trial: Trial, settings: Settings, *, baseline: Figures | None, model: Mapping[str, float],
        out: str | None, bar: Bar,
    ) -> None:  # fmt: skip
        self._runner, self._trial, self._settings = runner, trial, settings
        self._baseline = baseline
        self._usual = dict(model)  # by measure
        self._of_model = set(model)
        self._kept = Kept(out)
        self._bar = bar
        self._run = 0
        self._done_s = 0.0  # of the time that the trial has all take

    def measure(self, steps: Sequence[Step], nodes: Sequence[int], at_s: float) -> tuple[list[Measured], Figures]:  # noqa: ARG002
        measured = self._measured(steps, nodes)
        found = judge.figures(steps, measured)
        by_measure: defaultdict[str, list[float]] = defaultdict(list)
        for (measure, _), time_s in found.items():
            by_measure[measure].append(time_s)
        for measure, times in by_measure.items():
            if measure not in self._of_model:
                self._usual[measure] = statistics.median(times)
        expected = {key: usual for key in found if (usual := self._usual_of(*key)) is not None}
        return measured, expected

    def again(
        self, steps: Sequence[Step], nodes: Sequence[int], at_s: float, common: Mapping[str, float]  # noqa: ARG002
    ) -> tuple[list[Measured], Figures]:  # fmt: skip
        """Beside peers, at the same time: what all take longer now than before is not the suspects'."""
        suspects = {place for step in steps for each in step.probes for place in each.places}
        beside = [self._with_peers(step, suspects, nodes) for step in steps]
        measured = self._measured(beside, nodes)
        of_peers: defaultdict[str, list[float]] = defaultdict(list)
        for (measure, place), time_s in judge.figures(beside, measured).items():
            if place not in suspects:
                of_peers[measure].append(time_s / (self._usual_of(measure, place) or 1.0))
        own = [
            Measured(begin_s=of.begin_s, end_s=of.end_s, times=of.times[: len(step.probes)])
            for step, of in zip(steps, measured, strict=True)
        ]
        expected: Figures = {}
        for measure, place in judge.figures(steps, own):
            usual = self._usual_of(measure, place)
            if of_peers[measure]:
                expected[measure, place] = (usual or 1.0) * statistics.median(of_peers[measure])
            elif usual is not None:
                expected[measure, place] = usual * common.get(measure, 1.0)
        return own, expected

    def _usual_of(self, measure: str, place: str) -> float | None:
        """None: the measure has not been taken of all parts."""
        if self._baseline is not None:
            return self._baseline.get((measure, place))
        return self._usual.get(measure)

    def _with_peers(self, step: Step, suspects: set[str], nodes: Sequence[int]) -> Step:
        """With pairs behind its own that are not suspected and have nothing else to do in it."""
        if step.on_node:
            own = set(step.probes)
            whole = next(
                full
                for full in plan.node_level(self._runner.wiring, nodes, self._settings.sizes)
                if full.measure == step.measure and own <= set(full.probes)
            )
            return replace(step, probes=(*step.probes, *(each for each in whole.probes if each not in own)))
        wiring = self._runner.wiring
        busy = {wiring.node_of_nic[nic] for each in step.probes for nic in (each.a, each.b)}
        good = [[nic for nic in wiring.nics_of_node[node] if nic_place(nic) not in suspects]
                for node in nodes if node not in busy]  # fmt: skip
        free = [nics[0] for nics in good if nics][: 2 * _PEERS_MOST]
        pairs = zip(free[::2], free[1::2], strict=False)
        return replace(
            step,
            probes=(*step.probes, *(Probe(a=a, b=b, places=(nic_place(a), nic_place(b))) for a, b in pairs)),
        )

    def _measured(self, steps: Sequence[Step], nodes: Sequence[int]) -> list[Measured]:
        found: list[Measured] = []
        for _, group in groupby(steps, key=lambda step: step.on_node):
            for some in self._chunks(list(group)):
                self._run += 1
                found += self._kept.measured(self._about(nodes), some, self._runs(some, nodes))[0]
                self._done_s += self._trial.seconds(some, self._settings.native.repeats)
        self._bar.clear()
        return found

    def _chunks(self, steps: Sequence[Step]) -> list[list[Step]]:
        """Runs of about as long: what one has measured is kept."""
        chunks: list[list[Step]] = [[]]
        seconds = 0.0
        for step in steps:
            step_s = self._trial.seconds([step], self._settings.native.repeats) - self._trial.start_s
            if chunks[-1] and seconds + step_s > self._settings.native.chunk_s:
                chunks.append([])
                seconds = 0.0
            chunks[-1].append(step)
            seconds += step_s
        return chunks

    def _runs(self, steps: Sequence[Step], nodes: Sequence[int]) -> Callable[[], tuple[list[Measured], Counters]]:
        def run() -> tuple[list[Measured], Counters]:
            repeats = self._settings.native.repeats

            def on_step(number: int) -> None:
                self._bar.reached(steps[number].measure, self._done_s + self._trial.seconds(steps[:number], repeats))

            return self._runner.run(steps, nodes, repeats, on_step)[0], {}

        return run

    def _about(self, nodes: Sequence[int]) -> str:
        """All that times depend on besides the steps, and how many runs there were before: what is measured again is to
        be measured, and not found to be there."""
        cluster = self._runner.cluster
        hosts = [cluster.hosts[node] for node in nodes]
        return json.dumps([hosts, cluster.launcher.name, cluster.launcher.options, self._trial.library,
                           digest(), self._settings.native.repeats, self._run])  # fmt: skip


def first_trial(
    runner: Runner, nodes: Sequence[int], level: str, settings: Settings, failed: Callable[[NodeFailed], None]
) -> Trial:
    """Of those nodes on which it runs; the others are told one by one. Raises RunError where none are left."""
    rest = list(nodes)
    while True:
        try:
            return runner.trial(rest, level, settings)
        except NodeFailed as error:
            rest.remove(error.node)
            failed(error)
            if len(rest) < 2:
                host = runner.cluster.hosts[error.node]
                raise RunError(f"no two hosts are left that measure: on {host} ended {error}", exit_status=1) from None

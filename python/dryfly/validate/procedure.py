"""The procedure: checks, then level by level what the plan has, each on what has passed the one below.

What is found slow is measured again, with other partners, before it counts: a NIC whose other partners find it in order
has not been the cause, and noise is never as slow three times.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.store import Store
from dryfly.case.case import SEED_MAX
from dryfly.case.placement import node_blocks, nodes_listed
from dryfly.case.resolve import resolve_machine
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.scenario import faults, noise
from dryfly.scenario.faults import Fault, Scenario
from dryfly.skeleton import motif
from dryfly.validate import console as consoles
from dryfly.validate import judge, plan, probe, wiring
from dryfly.validate.finding import Finding, LevelDone, Outcome, merged
from dryfly.validate.judge import Figures, Suspect
from dryfly.validate.plan import Step
from dryfly.validate.probe import Measured
from dryfly.validate.ranks import RANKS_MOST, Ranks
from dryfly.validate.settings import Settings, settings
from dryfly.validate.wiring import Cable, Wiring

NETWORKS = ("links", "flow", "packet")
_PS = 10**12
_STRIDE = 0x9E3779B97F4A7C15 % 2**62  # far from any seed that a user counts up to
_MOST_NAMED = 8  # of parts that most of their peers are as slow as
_OF_NODE = ("memory", "cpu", "loopback")
_USUAL_KIND = {"memory": "memory", "cpu": "cpu", "loopback": "nic", "nic": "nic", "latency": "nic", "pair": "nic",
               "groups": "nic", "system": "nic", "link": "link", "cable": "link"}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of the flags. Raises UserError where they cannot be."""

    machine: str = "testbed"
    sets: tuple[str, ...] = ()
    nodes: int | None = None
    place: str = "packed"
    seed: int = 1
    faults: str | Mapping[str, object] | None = None
    noise: str = "none"
    network: str | None = None  # None: links, with ranks packet
    mpi: str | None = None  # real ranks by this library; None: ranks without a program
    level: str = plan.LEVELS[-1]  # the last one
    baseline: str | None = None
    out: str | None = None

    def __post_init__(self) -> None:
        if self.network is None:
            object.__setattr__(self, "network", NETWORKS[0] if self.mpi is None else "packet")
        networks = NETWORKS if self.mpi is None else NETWORKS[1:]
        for flag, value, accepted in (("--network", self.network, networks), ("--level", self.level, plan.LEVELS)):
            if value not in accepted:
                raise UserError(f"{flag} {value}: accepted is {', '.join(accepted)}")
        if not 0 <= self.seed <= SEED_MAX:
            raise UserError(f"--seed {self.seed}: accepted is 0 to {SEED_MAX}")


class Validation:
    """One machine, for one run of the procedure. Raises UserError for what cannot be measured."""

    def __init__(self, asked: Asked, *, tell: Callable[[str], None] = lambda _: None) -> None:
        self._asked = asked
        self._tell = tell
        self._runs = 0
        self._settings: Settings = settings()
        self._machine: Machine = load(asked.machine, sets=asked.sets)
        listed = nodes_listed(self._machine, asked.place)
        count = (listed or self._machine.nodes_max) if asked.nodes is None else asked.nodes
        if not 1 <= count <= self._machine.nodes_max:
            raise UserError(f"-N {count}: accepted is 1 to {self._machine.nodes_max}, the nodes of {asked.machine}")
        self._scenario = (
            Scenario() if asked.faults is None else faults.load(asked.faults, self._machine, seed=asked.seed)
        )
        self._noise = noise.load(asked.noise, self._machine)
        self._nodes = node_blocks(self._machine, nodes=count, ppn=1, policy=asked.place, seed=asked.seed)
        self._wiring: Wiring = wiring.read(self._spec(Scenario()))
        self._check_nodes()
        self._console = consoles.Console(self._machine, self._wiring, self._scenario, seed=asked.seed)
        self._baseline = None if asked.baseline is None else self._read_baseline(Path(asked.baseline))
        self._store = Store(None if asked.out is None else Path(asked.out) / "measured")
        self._ranks = None if asked.mpi is None else self._with_ranks(asked.mpi)
        self._clock_s = 0.0
        self._out: dict[int, None] = {}  # nodes that have failed, in that order
        self._names_of_trunk: dict[str, list[str]] = {}
        self._findings: list[Finding] = []
        self._figures: Figures = {}
        self._common: dict[str, float] = {}  # of each measure: what all its parts share

    def run(self) -> Outcome:
        began = time.monotonic()
        levels = []
        self._check_before()
        for name in plan.LEVELS[: plan.LEVELS.index(self._asked.level) + 1]:
            levels.append(self._level(name))
        found = merged(self._findings)
        return Outcome(
            machine=self._machine.name,
            seed=self._asked.seed,
            network=str(self._asked.network),
            sets=self._asked.sets,
            mpi=self._asked.mpi,
            nodes=tuple(self._console.node_name(node) for node in self._nodes),
            levels=tuple(levels),
            findings=tuple(found),
            exclude=tuple(self._console.node_name(node) for node in sorted(self._out)),
            events=tuple(event.line() for event in self._console.events(self._clock_s)),
            uncovered=self._uncovered(),
            figures=self._figures,
            sizes=asdict(self._settings.sizes),
            wall_s=time.monotonic() - began,
        )

    # --- What is there

    def _with_ranks(self, mpi: str) -> Ranks:
        count = 2 * sum(len(self._wiring.nics_of_node[node]) for node in self._nodes)
        if count > RANKS_MOST:
            raise UserError(
                f"--mpi {mpi}: {len(self._nodes)} nodes have {count:,} ranks, two for each NIC; accepted are up to "
                f"{RANKS_MOST:,}, or leave --mpi out"
            )
        case = {"machine": self._asked.machine, "sets": self._asked.sets, "mpi": mpi, "network": self._asked.network,
                "noise": self._asked.noise}  # fmt: skip
        return Ranks(case=case, names={node: self._console.node_name(node) for node in self._nodes})

    def _check_nodes(self) -> None:
        counts = {len(self._wiring.nics_of_node.get(node, ())) for node in self._nodes}
        if 0 in counts or len(counts) > 1:
            raise UserError(
                f"--machine {self._asked.machine}: nodes with {' and '.join(map(str, sorted(counts)))} NICs; accepted "
                "are nodes of one kind, with NICs"
            )
        if len(self._nodes) < 2:
            raise UserError("-N 1: accepted is 2 or more, for a node has no other to be measured with")

    def _read_baseline(self, path: Path) -> Figures:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            of = {"machine": content["machine"], "sizes": content["sizes"]}
            rows = {(str(measure), str(place)): float(time_s) for measure, place, time_s in content["figures"]}
            good = content["result"] == "pass"
            how = {name: content[name] for name in ("network", "sets", "mpi")}
            nodes = {*content["use"]["nodes"], *content["exclude"]["nodes"]}
            levels = [level["name"] for level in content["levels"]]
        except OSError as error:
            raise UserError(f"--baseline {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise UserError(f"--baseline {path}: accepted is what --json of a validation has written") from None
        if of["machine"] != self._machine.name:
            raise UserError(f"--baseline {path}: it is of {of['machine']}, and this is {self._machine.name}")
        if not good:
            raise UserError(f"--baseline {path}: something was found in it; accepted is a run in which nothing was")
        for name, value in how.items():
            own = getattr(self._asked, name)
            if value != (list(own) if name == "sets" else own):
                raise UserError(f"--baseline {path}: it has {name} {value}, and this {own}; accepted is the same")
        if nodes != {self._console.node_name(node) for node in self._nodes}:
            raise UserError(f"--baseline {path}: it is of {len(nodes)} nodes that are not these {len(self._nodes)}")
        if self._asked.level not in levels:
            raise UserError(
                f"--baseline {path}: it ends with level {levels[-1]}; accepted is --level {levels[-1]}, or one below"
            )
        if of["sizes"] != asdict(self._settings.sizes):
            raise UserError(f"--baseline {path}: it was measured with other sizes than data/validate.toml has now")
        return rows

    def _remaining(self) -> list[int]:
        return [node for node in self._nodes if node not in self._out]

    def _uncovered(self) -> int:
        of_switch = self._wiring.nics_of_switches(self._nodes)
        return sum(cable.a not in of_switch or cable.b not in of_switch for cable in self._cables_of_groups())

    def _cables_of_groups(self) -> list[Cable]:
        """Those of which both ends are in groups of the nodes."""
        groups = {self._wiring.group_of_node(node) for node in self._nodes}
        group_of = self._wiring.group_of_switch
        return [cable for cable in self._wiring.cables if group_of[cable.a] in groups and group_of[cable.b] in groups]

    # --- The machine as it is, and as it should be

    def _spec(self, scenario: Scenario, *, with_noise: bool = False) -> str:
        return resolve_machine(
            self._machine,
            seed=(self._asked.seed + _STRIDE * self._runs) % (SEED_MAX + 1),
            ranks=1,
            scenario=scenario,
            noise=self._noise if with_noise else None,
            network=motif.network_of(str(self._asked.network)),
        )

    def _present(self) -> Scenario:
        """What is wrong from now on. What is down for good by now every route knows; the nodes of NICs without a link
        are out by then."""
        begin = round(self._clock_s * _PS)
        now: list[Fault] = []
        for fault in self._scenario.faults:
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
        return replace(self._scenario, faults=tuple(now))

    def _measure(self, steps: Sequence[Step], nodes: Sequence[int]) -> tuple[list[Measured], Figures]:
        """On the machine as it is, and the figures that are expected: of the machine in order, or of the baseline. Each
        run draws anew: all begin at instant 0, and detours would be where they have been before."""
        self._runs += 1
        if self._ranks is not None:
            return self._measure_with(self._ranks, steps, nodes)
        present = self._spec(self._present(), with_noise=True)
        if self._baseline is not None:
            return self._kept(present, steps, nodes), self._baseline
        with ThreadPoolExecutor(2) as pool:
            as_is = pool.submit(self._kept, present, steps, nodes)
            in_order = pool.submit(self._kept, self._spec(Scenario()), steps, nodes)
            return as_is.result(), judge.figures(steps, in_order.result())

    def _measure_with(
        self, ranks: Ranks, steps: Sequence[Step], nodes: Sequence[int]
    ) -> tuple[list[Measured], Figures]:
        """One after the other, for only the main thread runs ranks."""
        measured = self._kept_of_ranks(ranks, steps, nodes, as_is=True)
        if self._baseline is not None:
            return measured, self._baseline
        return measured, judge.figures(steps, self._kept_of_ranks(ranks, steps, nodes, as_is=False))

    def _kept_of_ranks(
        self, ranks: Ranks, steps: Sequence[Step], nodes: Sequence[int], *, as_is: bool
    ) -> list[Measured]:
        scenario = self._present() if as_is else Scenario()
        spec = self._spec(scenario, with_noise=as_is)
        about = json.dumps([spec, self._asked.mpi, list(nodes), ranks.digest()])
        seed = (self._asked.seed + _STRIDE * self._runs) % (SEED_MAX + 1)
        return self._stored(about, steps, lambda: ranks.run(scenario, seed, self._wiring, nodes, steps, noisy=as_is))

    def _kept(self, spec: str, steps: Sequence[Step], nodes: Sequence[int]) -> list[Measured]:
        """What a folder of an earlier run has is not measured again."""
        about = json.dumps([spec, list(nodes), self._asked.network, motif.digest()])
        network = str(self._asked.network)
        return self._stored(about, steps, lambda: probe.run(spec, self._wiring, nodes, steps, network=network))

    def _stored(self, about: str, steps: Sequence[Step], measure: Callable[[], list[Measured]]) -> list[Measured]:
        key = hashlib.sha256((about + probe.text_of(steps)).encode()).hexdigest()[:32]
        found = self._store.get(key)
        if found is not None:
            return [Measured(begin_s=b, end_s=e, times=tuple(map(tuple, times))) for b, e, times in found["steps"]]
        measured = measure()
        self._store.put(key, {"steps": [[m.begin_s, m.end_s, m.times] for m in measured]})
        return measured

    # --- Before anything is measured

    def _check_before(self) -> None:
        """Nodes that do not answer, links that are down, and those that flap more than SHS' health check allows."""
        places = {f"n{nic}" for node in self._nodes for nic in self._wiring.nics_of_node[node]}
        cables = {cable.name for cable in self._cables_of_groups()}
        for event in self._console.events(0.0):
            of_job = [place for place in event.places if place in places or self._node_of(place) in self._nodes]
            if event.kind in ("node", "loss", "drain") and of_job:
                self._add_said(event.kind, of_job[0], "checks", [event])
            elif event.kind in ("loss", "miscabled") and event.places[0] in cables:
                self._add_said(event.kind, event.places[0], "checks", [event])
            elif event.kind == "replays" and (of_job or event.places[0] in cables):
                self._check_replays(event)
        for place, instants in sorted(self._console.flaps().items()):
            if place in places or place.startswith("s"):
                self._check_flaps(place, instants)

    def _check_replays(self, event: consoles.Event) -> None:
        share, limit = event.slower - 1, self._settings.replays
        if share >= limit:
            self._add_said("replays", event.places[0], "checks", [event], measured=share, limit=limit,
                           unit="of the frames replayed")  # fmt: skip

    def _check_flaps(self, place: str, instants: Sequence[float]) -> None:
        for hours, limit in ((1, self._settings.flaps_per_hour), (10, self._settings.flaps_per_10_hours)):
            count = sum(at_s > -3600 * hours for at_s in instants)
            if count >= limit:
                events = self._console.about(place, 0.0)
                unit = f"flaps in {hours} h"
                self._add_said("flap", place, "checks", events, measured=count, limit=limit, unit=unit)
                return

    def _add_said(
        self, kind: str, place: str, level: str, events: Sequence[consoles.Event], *,
        measured: float | None = None, limit: float | None = None, unit: str = "",
    ) -> None:  # fmt: skip
        self._exclude(place)
        self._findings.append(
            Finding(kind=kind, place=self._public(place), spoken=self._console.spoken(place), level=level,
                    measure="console", measured=measured, limit=limit, unit=unit, nodes=self._names_of(place),
                    evidence=tuple(event.line() for event in events[-5:]))
        )  # fmt: skip

    # --- A level

    def _level(self, name: str) -> LevelDone:
        nodes = self._remaining()
        steps = plan.level_steps(name, self._wiring, nodes, self._settings.sizes) if len(nodes) > 1 else []
        begin_s, before = self._clock_s, len(self._findings)
        self._console.mark(begin_s, f"level {name} begins, {len(nodes):,} nodes")
        self._tell(f"level {name}: {len(nodes):,} nodes, {len(steps):,} steps")
        ratios: dict[str, dict[str, float]] = {}
        if steps:
            ratios = self._judged(name, steps, nodes)
        self._console.mark(self._clock_s, f"level {name} ends")
        return LevelDone(
            name=name, nodes=len(nodes), steps=len(steps), probes=sum(len(step.probes) for step in steps),
            begin_s=begin_s, virtual_s=self._clock_s - begin_s, findings=len(self._findings) - before, ratios=ratios,
        )  # fmt: skip

    def _judged(self, level: str, steps: Sequence[Step], nodes: Sequence[int]) -> dict[str, dict[str, float]]:
        measured, expected = self._measure(steps, nodes)
        self._note_timeouts(level, steps, measured)
        died = self._died(level, measured)
        figures = {key: value for key, value in judge.figures(steps, measured).items() if key[1] not in died}
        self._figures.update(figures)
        for measure, place in figures:
            if (measure, place) not in expected:
                raise UserError(f"--baseline {self._asked.baseline}: it has no {measure} of {place}")
        self._note_common(figures, expected)
        suspects = judge.suspects(figures, expected, self._settings.limits)
        suspects = self._without_common(level, suspects, figures)
        for suspect in self._confirmed(level, suspects, nodes):
            self._add_slow(level, suspect)
        ratios = judge.ratios(figures, expected, self._settings.limits)
        return {measure: {self._public(place): ratio for place, ratio in of.items()} for measure, of in ratios.items()}

    def _without_common(self, level: str, suspects: Sequence[Suspect], figures: Figures) -> list[Suspect]:
        """Where most parts of a measure are slow that is one finding, and no part has others to be measured with."""
        rest: list[Suspect] = []
        for measure in dict.fromkeys(suspect.measure for suspect in suspects):
            some = [suspect for suspect in suspects if suspect.measure == measure]
            count = sum(key[0] == measure for key in figures)
            if 2 * len(some) <= count or len(some) < _MOST_NAMED:
                rest += some
                continue
            middle = some[len(some) // 2]
            measured, limit, unit = self._shown(middle)
            events = {event.line(): None for each in some for event in self._of_place(each.place)}
            self._findings.append(
                Finding(kind=self._kind_of_common(middle), place=f"{len(some)} of {count}", level=level,
                        measure=measure, spoken=f"{len(some):,} of {count:,}, {some[0].place} the slowest",
                        measured=measured, limit=limit, unit=unit, nodes=(), evidence=tuple(events)[-5:])
            )  # fmt: skip
        return rest

    def _kind_of_common(self, suspect: Suspect) -> str:
        if suspect.measure in judge.LOADED:
            return "fabric"
        cause = consoles.cause_of(suspect.measure, suspect.slower, self._of_place(suspect.place))
        return _USUAL_KIND[suspect.measure] if cause is None else cause.kind

    def _note_common(self, figures: Figures, expected: Figures) -> None:
        self._common |= judge.common(figures, expected, self._settings.limits)

    def _note_timeouts(self, level: str, steps: Sequence[Step], measured: Sequence[Measured]) -> None:
        """A step that took as long as a packet's time-out has had one. It is the fault of what went down meanwhile: the
        link of one of its NICs, or else one between switches."""
        timeout_s = self._machine.number("nic.retry.timeout") / _PS
        at_s = self._clock_s
        counts: dict[str, int] = {}
        about: dict[str, list[consoles.Event]] = {}
        for step, of_step in zip(steps, measured, strict=True):
            took_s = of_step.end_s - of_step.begin_s
            if took_s >= timeout_s:
                nics = {place for each in step.probes for place in each.places}
                if not step.on_node:
                    nics |= {plan.nic_name(nic) for each in step.probes for nic in (each.a, each.b)}
                down = self._down_between(at_s - timeout_s, at_s + took_s)
                guilty = [event for event in down if nics & set(event.places)]
                guilty += [event for event in down if event.places[0].startswith("s")]
                place = guilty[0].places[0] if guilty else "unknown"
                counts[place] = counts.get(place, 0) + 1
                about.setdefault(place, guilty[:1])
            at_s += took_s
        for place, count in counts.items():
            self._findings.append(
                Finding(kind="timeout", place=place, spoken=self._console.spoken(place), level=level, measure="timeout",
                        measured=count, limit=0, unit="steps with network time-outs", nodes=(),
                        evidence=tuple(event.line() for event in about[place]))
            )  # fmt: skip

    def _down_between(self, from_s: float, until_s: float) -> list[consoles.Event]:
        return [
            event
            for event in self._console.events(until_s)
            if event.kind in ("flap", "loss", "drain") and event.at_s >= from_s
        ]

    def _died(self, level: str, measured: Sequence[Measured]) -> set[str]:
        """Moves the clock on; the places of nodes that failed meanwhile."""
        begin_s = self._clock_s
        self._clock_s += sum(each.end_s - each.begin_s for each in measured)
        places: set[str] = set()
        for event in self._console.events(self._clock_s):
            node = self._node_of(event.places[0]) if event.kind in ("node", "loss", "drain") else None
            if node in self._nodes and node not in self._out and event.at_s > begin_s:
                self._add_said(event.kind, event.places[0], level, [event])
                places |= {event.places[0], *(f"n{nic}" for nic in self._wiring.nics_of_node[int(node or 0)])}
        return places

    def _confirmed(self, level: str, suspects: Sequence[Suspect], nodes: Sequence[int]) -> list[Suspect]:
        """Those that are as slow with other partners; of each place and measure the fastest of the times counts."""
        chosen = {(suspect.measure, suspect.place): suspect for suspect in suspects}
        best: dict[tuple[str, str], tuple[float, Suspect]] = {}
        for turn in range(1, self._settings.again + 1):
            steps = self._again(list(chosen.values()), nodes, turn)
            if not steps:
                break
            measured, expected = self._measure(steps, nodes)
            self._died(level, measured)
            found = judge.figures(steps, measured)
            for key, suspect in chosen.items():
                again = ("nic" if suspect.measure in ("pair", "groups", "system") else suspect.measure, suspect.place)
                if again not in found or again not in expected:
                    continue
                slower = found[again] / expected[again] / self._common.get(again[0], 1.0)
                if key not in best or slower < best[key][0]:
                    seen = replace(suspect, measure=again[0], time_s=found[again], expected_s=expected[again],
                                   slower=slower, limit=1 + self._settings.limits.tolerance[again[0]])  # fmt: skip
                    best[key] = (slower, seen)
        return [seen for slower, seen in best.values() if slower > seen.limit]

    def _again(self, suspects: Sequence[Suspect], nodes: Sequence[int], turn: int) -> list[Step]:
        sizes = self._settings.sizes
        by_measure: dict[str, list[str]] = {}
        for suspect in suspects:
            by_measure.setdefault(suspect.measure, []).append(suspect.place)
        steps: list[Step] = []
        own = {place for measure in _OF_NODE for place in by_measure.get(measure, [])}
        if own:
            some = [
                replace(step, probes=tuple(each for each in step.probes if set(each.places) & own))
                for step in plan.node_level(self._wiring, nodes, sizes)
            ]
            steps += [step for step in some if step.probes]
        links = {place for measure in judge.OF_LINKS for place in by_measure.get(measure, [])}
        if links:
            cables = [cable for cable in self._wiring.cables if cable.trunk in links]
            steps += plan.link_steps(self._wiring, nodes, cables, sizes, turn=turn)
        nics = {place for measure, places in by_measure.items() if _USUAL_KIND[measure] == "nic" for place in places}
        steps += self._cross_pairs(sorted(int(place[1:]) for place in nics - own), nodes, turn)
        return steps

    def _cross_pairs(self, nics: Sequence[int], nodes: Sequence[int], turn: int) -> list[Step]:
        """Each of them with a NIC that is not suspected, of its switch if there is one, another one each turn; and at a
        time one of a node only, for NICs of a node share its PCIe."""
        suspected, node_of, switch_of = set(nics), self._wiring.node_of_nic, self._wiring.switch_of_nic
        good = [nic for node in nodes for nic in self._wiring.nics_of_node[node] if nic not in suspected]
        near: dict[int, list[int]] = {}
        for nic in good:
            near.setdefault(switch_of[nic], []).append(nic)
        sizes = self._settings.sizes
        steps: list[Step] = []
        waiting = list(nics)
        while waiting:
            busy: set[int] = set()  # nodes
            probes, rest = [], []
            for nic in waiting:
                own = node_of[nic]
                free = [
                    each for each in near.get(switch_of[nic], ()) if node_of[each] not in busy and node_of[each] != own
                ]
                free = free or [each for each in good if node_of[each] not in busy and node_of[each] != own]
                if own in busy or not free:
                    rest.append(nic)
                    continue
                other = free[turn % len(free)]
                busy |= {own, node_of[other]}
                probes.append(plan.Probe(a=nic, b=other, places=(plan.nic_name(nic),)))
            if not probes:
                break
            some = tuple(probes)
            steps.append(Step(measure="nic", kind="stream", size=sizes.nic_bytes, count=sizes.nic_count, probes=some))
            steps.append(Step(measure="latency", kind="pingpong", size=8, count=sizes.latency_count, probes=some))
            waiting = rest
        return steps

    # --- What is found

    def _add_slow(self, level: str, suspect: Suspect) -> None:
        events = [
            event
            for event in self._of_place(suspect.place)
            if event.kind != "node" and (event.kind != "flap" or event.at_s >= 0)
        ]
        cause = consoles.cause_of(suspect.measure, suspect.slower, events)
        if suspect.measure in judge.OF_LINKS and cause is not None:
            suspect = replace(suspect, place=cause.places[0])  # which of the parallel ones
        kind = _USUAL_KIND[suspect.measure] if cause is None else cause.kind
        measured, limit, unit = self._shown(suspect)
        self._exclude(suspect.place)
        self._findings.append(
            Finding(kind=kind, place=self._public(suspect.place), spoken=self._console.spoken(suspect.place),
                    level=level, measure=suspect.measure, measured=measured, limit=limit, unit=unit,
                    nodes=self._names_of(suspect.place), evidence=tuple(event.line() for event in events[-5:]))
        )  # fmt: skip

    def _of_place(self, place: str) -> list[consoles.Event]:
        """What was said of it, or of one of the cables between two switches."""
        if not self._names_of_trunk:
            for cable in self._wiring.cables:
                self._names_of_trunk.setdefault(cable.trunk, []).append(cable.name)
        names = self._names_of_trunk.get(place, [place])
        events = [event for name in names for event in self._console.about(name, self._clock_s)]
        return sorted(events, key=lambda event: event.at_s)

    def _shown(self, suspect: Suspect) -> tuple[float, float, str]:
        """As a rate where bytes were streamed, else as a time."""
        sizes = self._settings.sizes
        moved = {
            "memory": sizes.memory_bytes * sizes.memory_count, "loopback": sizes.loopback_bytes * sizes.loopback_count,
            "nic": sizes.nic_bytes * sizes.nic_count,
        }.get(suspect.measure)  # fmt: skip
        usual = suspect.expected_s * self._common.get(suspect.measure, 1.0)
        if moved is None:
            return suspect.time_s * 1e6, usual * suspect.limit * 1e6, "us"
        return moved / suspect.time_s / 1e9, moved / (usual * suspect.limit) / 1e9, "GB/s"

    def _node_of(self, place: str) -> int | None:
        """None: of a link between switches."""
        if re.fullmatch(r"n\d+", place):
            return self._wiring.node_of_nic[int(place[1:])]
        return int(place.removeprefix("node ")) if place.startswith("node ") else None

    def _public(self, place: str) -> str:
        """As scenario files name it: nodes by their names."""
        return self._console.spoken(place) if place.startswith("node ") else place

    def _names_of(self, place: str) -> tuple[str, ...]:
        node = self._node_of(place)
        return () if node is None else (self._console.node_name(node),)

    def _exclude(self, place: str) -> None:
        node = self._node_of(place)
        if node is not None:
            self._out[node] = None

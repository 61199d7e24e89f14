"""The procedure: checks, then level by level what the plan has, each on what has passed the one below.

What is found slow is measured again, with other partners, before it counts: a NIC whose other partners find it in order
has not been the cause, and noise is never as slow three times.
"""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.scenario.faults import gpu_place
from dryfly.validate import LEVELS, again, baseline, judge, parts, plan
from dryfly.validate import console as consoles
from dryfly.validate.asked import Asked
from dryfly.validate.finding import Finding, LevelDone, Outcome, merged
from dryfly.validate.judge import USUAL_KIND, Figures, Suspect
from dryfly.validate.measuring import ByRanks, BySkeleton
from dryfly.validate.plan import Step
from dryfly.validate.probe import Measured, Unreachable
from dryfly.validate.settings import Settings, settings
from dryfly.validate.simulated import Simulated
from dryfly.validate.subject import Measuring, NodeFailed, Subject
from dryfly.validate.wiring import nic_place, node_place

_MOST_NAMED = 8  # of parts that most of their peers are as slow as
_LASTING = ("lanes", "loss", "drain", "load")  # kinds that leave a link as they have made it


def of_simulated(asked: Asked, *, tell: Callable[[str], None] = lambda _: None) -> Validation:
    """Raises UserError for what cannot be measured."""
    simulated = Simulated(asked)
    subject = simulated.subject
    check_nodes(asked, subject)
    known = settings(machine=simulated.machine, network=str(asked.network), limits=asked.limits)
    good = None if asked.baseline is None else baseline.read(Path(asked.baseline), asked, subject, known.sizes)
    measurer = BySkeleton if asked.mpi is None else ByRanks
    return Validation(asked, subject, measurer(asked, simulated, good), known, tell=tell)


def check_nodes(asked: Asked, subject: Subject) -> None:
    """Raises UserError where they cannot be measured with one another."""
    counts = {len(subject.wiring.nics_of_node.get(node, ())) for node in subject.nodes}
    if 0 in counts or len(counts) > 1:
        raise UserError(
            f"--machine {asked.machine}: nodes with {' and '.join(map(str, sorted(counts)))} NICs; accepted are nodes "
            "of one kind, with NICs"
        )
    if len(subject.nodes) < 2:
        raise UserError("-N 1: accepted is 2 or more, for a node has no other to be measured with")


class Validation:
    """One machine, for one run of the procedure."""

    def __init__(
        self, asked: Asked, subject: Subject, measuring: Measuring, known: Settings, *, tell: Callable[[str], None]
    ) -> None:
        self._asked = asked
        self._subject = subject
        self._measuring = measuring
        self._settings = known
        self._tell = tell
        self._nodes, self._wiring, self._console = subject.nodes, subject.wiring, subject.console
        self._clock_s = 0.0
        self._out: dict[int, None] = {}  # nodes that have failed, in that order
        self._findings: list[Finding] = []
        self._figures: Figures = {}
        self._common: dict[str, float] = {}  # of each measure: what all its parts share
        self._stops = ""  # why the levels above have nothing to stand on
        self._limits: dict[str, float] = {}  # of each measure: the ratio up to which a part of it is in order

    def run(self) -> Outcome:
        began = time.monotonic()
        levels = []
        self._check_before()
        for name in LEVELS[: LEVELS.index(self._asked.level) + 1]:
            levels.append(self._level(name))
            if self._stops:
                self._tell(f"no level above {name} is measured: {self._stops}")
                break
        self._check_after()
        found = merged(self._findings)
        return Outcome(
            machine=self._subject.name,
            seed=self._asked.seed,
            network=str(self._asked.network),
            sets=self._asked.sets,
            mpi=self._asked.mpi,
            nodes=tuple(self._console.node_name(node) for node in self._nodes),
            levels=tuple(levels),
            findings=tuple(found),
            exclude=tuple(self._console.node_name(node) for node in sorted(self._out)),
            events=tuple(event.line() for event in self._console.events(self._clock_s)),
            not_checked=(*(f"{name}: {why}" for name, why in self._subject.unmeasured.items()), *self._not_met()),
            parts=parts.verdicts(self._subject, levels, found),
            uncovered=self._wiring.uncovered(self._nodes),
            figures=self._figures,
            sizes=asdict(self._settings.sizes),
            wall_s=time.monotonic() - began,
        )

    # --- Before anything is measured

    def _check_before(self) -> None:
        """Nodes that do not answer, links that are down, and those that flap more than SHS' health check allows."""
        places = {f"n{nic}" for node in self._nodes for nic in self._wiring.nics_of_node[node]}
        cables = {cable.name for cable in self._wiring.cables_of_groups(self._nodes)}
        for event in self._console.events(0.0):
            of_job = [place for place in event.places if place in places or self._wiring.node_at(place) in self._nodes]
            if event.kind in ("node", "loss", "drain") and of_job:
                self._add_said(event.kind, of_job[0], "checks", [event])
            elif event.kind in ("loss", "miscabled") and event.places[0] in cables:
                self._add_said(event.kind, event.places[0], "checks", [event])
            elif event.replayed and (of_job or event.places[0] in cables):
                self._check_replays(event)
        for place, instants in sorted(self._console.flaps().items()):
            if place in places or place.startswith("s"):
                self._check_flaps(place, instants)

    def _check_after(self) -> None:
        """What has begun meanwhile, of parts that had been measured before."""
        found = {place for finding in self._findings for place in finding.places}
        cables = {cable.name for cable in self._wiring.cables_of_groups(self._nodes)}
        nics = {nic_place(nic) for node in self._nodes for nic in self._wiring.nics_of_node[node]}
        for event in self._console.events(self._clock_s):
            place = event.places[0] if event.places else ""
            if self._wiring.node_at(place) in self._out or place in found:
                continue
            is_down = event.kind == "flap" and event.until_s > self._clock_s
            if event.at_s > 0 and (event.kind in _LASTING or is_down) and place in cables | nics:
                found.add(place)
                self._add_said(event.kind, place, "checks", [event])

    def _not_met(self) -> list[str]:
        later = [event.at_s for event in self._console.events(math.inf) if event.at_s > self._clock_s]
        if not later:
            return []
        return [f"faults: {len(later):,} of {'them begin' if len(later) > 1 else 'its links begins'} after the "
                f"{self._clock_s:.3g} s that were looked at, the first at {min(later):.3g} s"]  # fmt: skip

    def _check_replays(self, event: consoles.Event) -> None:
        limit = self._settings.replays
        if event.replayed >= limit:
            of = "packets" if event.kind == "pcie" else "frames"
            self._add_said(event.kind, event.places[0], "checks", [event], measured=event.replayed, limit=limit,
                           unit=f"of the {of} replayed")  # fmt: skip

    def _check_flaps(self, place: str, instants: Sequence[float]) -> None:
        many = self._settings.too_many_flaps(instants)
        if many is not None:
            hours, count, limit = many
            self._add_said("flap", place, "checks", self._console.about(place, 0.0), measured=count, limit=limit,
                           unit=f"flaps in {hours} h")  # fmt: skip

    def _add_said(
        self, kind: str, place: str, level: str, events: Sequence[consoles.Event], *,
        measured: float | None = None, limit: float | None = None, unit: str = "",
    ) -> None:  # fmt: skip
        self._exclude(place)
        self._findings.append(
            Finding(kind=kind, place=self._console.public(place), spoken=self._console.spoken(place), level=level,
                    measure="console", measured=measured, limit=limit, unit=unit, nodes=self._names_of(place),
                    evidence=consoles.evidence(events))
        )  # fmt: skip

    # --- A level

    def _level(self, name: str) -> LevelDone:
        begin_s, before = self._clock_s, len(self._findings)
        ratios: dict[str, dict[str, float]] | None = None
        limits = self._settings.limits
        while ratios is None:
            nodes = [node for node in self._nodes if node not in self._out]
            steps = plan.level_steps(name, self._wiring, nodes, self._settings.sizes) if len(nodes) > 1 else []
            steps = [step for step in steps if step.measure not in self._subject.unmeasured]
            self._console.mark(self._clock_s, f"level {name} begins, {len(nodes):,} nodes")
            self._tell(f"level {name}: {len(nodes):,} nodes, {len(steps):,} steps")
            try:
                ratios = self._judged(name, steps, nodes) if steps else {}
            except NodeFailed as failed:  # of a real machine: the level begins anew with the rest
                self._lost(name, failed)
            except Unreachable as unreachable:
                self._add_unreachable(name, unreachable)
                ratios = {}
        self._console.mark(self._clock_s, f"level {name} ends")
        return LevelDone(
            name=name, nodes=len(nodes), steps=len(steps), probes=sum(len(step.probes) for step in steps),
            begin_s=begin_s, virtual_s=self._clock_s - begin_s, findings=len(self._findings) - before, ratios=ratios,
            limits={measure: judge.limit_of(measure, of, limits) for measure, of in ratios.items()},
        )  # fmt: skip

    def _add_unreachable(self, level: str, unreachable: Unreachable) -> None:
        """No NIC is to blame for it, and what is has been said by the links that are down."""
        ends = " to ".join(self._console.spoken(place) for place in unreachable.places) or "some NICs"
        self._stops = f"nothing gets from {ends}" if unreachable.places else "some messages do not come"
        self._findings.append(
            Finding(kind="unreachable", place="-".join(unreachable.places) or "unknown", spoken=ends, level=level,
                    measure="delivery", measured=None, limit=None, unit="", nodes=(), evidence=(str(unreachable),))
        )  # fmt: skip

    def _lost(self, level: str, failed: NodeFailed) -> None:
        name, place = self._console.node_name(failed.node), node_place(failed.node)
        event = consoles.Event(at_s=self._clock_s, source=name, text=str(failed), kind="node", places=(place,))
        self._console.note(event)
        self._add_said("node", place, level, [event])
        self._tell(f"{name}: {failed}")

    def _judged(self, level: str, steps: Sequence[Step], nodes: Sequence[int]) -> dict[str, dict[str, float]]:
        measured, expected = self._measuring.measure(steps, nodes, self._clock_s)
        self._note_timeouts(level, steps, measured)
        died = self._died(level, measured)
        figures = {key: value for key, value in judge.figures(steps, measured).items() if key[1] not in died}
        self._figures.update(figures)
        for measure, place in figures:
            if (measure, place) not in expected:
                raise UserError(f"--baseline {self._asked.baseline}: it has no {measure} of {place}")
        if self._asked.mpi is not None:
            expected = judge.copied_by_cores(figures, expected, self._settings.limits)
        self._common |= judge.common(figures, expected, self._settings.limits)
        ratios = judge.ratios(figures, expected, self._settings.limits)
        self._limits |= {measure: judge.limit_of(measure, of, self._settings.limits) for measure, of in ratios.items()}
        suspects = judge.suspects(figures, expected, self._settings.limits)
        suspects = self._without_common(level, suspects, figures)
        for suspect in self._with_a_way(self._confirmed(level, suspects, nodes)):
            if not self._is_behind_found_cables(suspect, nodes):
                self._add_slow(level, suspect)
        return {
            measure: {self._console.public(place): ratio for place, ratio in of.items()}
            for measure, of in ratios.items()
        }

    def _without_common(self, level: str, suspects: Sequence[Suspect], figures: Figures) -> list[Suspect]:
        """Where most parts of a measure are slow that is one finding, and no part has others to be measured with."""
        rest: list[Suspect] = []
        for measure in dict.fromkeys(suspect.measure for suspect in suspects):
            some = [suspect for suspect in suspects if suspect.measure == measure]
            count = sum(key[0] == measure for key in figures)
            no_partner = len(some) == count and again.needs_partner(measure)
            if no_partner and count < _MOST_NAMED and measure in judge.LOADED and self._switches_of_found_links():
                continue  # they are slow by that
            if not no_partner and (2 * len(some) <= count or len(some) < _MOST_NAMED):
                rest += some
                continue
            if measure not in again.OF_NODE_ALONE:
                self._stops = f"most are slow by {measure}"
            middle = some[len(some) // 2]
            measured, limit, unit = self._shown(middle)
            events = [event for each in some for event in self._of_place(each.place)]
            self._findings.append(
                Finding(kind=self._kind_of_common(middle), place=f"{len(some)} of {count}", level=level,
                        measure=measure, spoken=f"{len(some):,} of {count:,}, {some[0].place} the slowest",
                        measured=measured, limit=limit, unit=unit, nodes=(), evidence=consoles.evidence(events),
                        places=tuple(self._console.public(each.place) for each in some))
            )  # fmt: skip
            if self._stops:
                break  # what is measured after it goes by way of what is slow
        return rest

    def _switches_of_found_links(self) -> set[int]:
        found = (re.match(r"s(\d+)[->]s(\d+)", finding.place) for finding in self._findings)
        return {int(end) for link in found if link is not None for end in link.groups()}

    def _is_behind_found_cables(self, suspect: Suspect, nodes: Sequence[int]) -> bool:
        """Of a NIC without a neighbour on its switch, all that was measured went by the switch's cables."""
        if again.measure_of(suspect.measure) not in ("nic", "latency"):
            return False
        nic = re.fullmatch(r"n(\d+)", suspect.place)
        at = None if nic is None else self._wiring.switch_of_nic[int(nic[1])]
        if at is None or at not in self._switches_of_found_links():
            return False
        near = self._wiring.nics_of_switches(nodes).get(at, [])
        return len({self._wiring.node_of_nic[each] for each in near}) < 2

    def _with_a_way(self, suspects: Sequence[Suspect]) -> list[Suspect]:
        """Without the GPUs of nodes none of whose NICs is in order: what is slow there is a NIC."""
        slow = {suspect.place for suspect in suspects if USUAL_KIND[suspect.measure] == "nic"}
        return [
            suspect
            for suspect in suspects
            if suspect.measure != "gpu" or not slow.issuperset(self._nics_of(self._wiring.node_at(suspect.place) or 0))
        ]

    def _nics_of(self, node: int) -> list[str]:
        return [nic_place(nic) for nic in self._wiring.nics_of_node[node]]

    def _kind_of_common(self, suspect: Suspect) -> str:
        if suspect.measure in judge.LOADED:
            return "fabric"
        cause = consoles.cause_of(suspect.measure, suspect.slower, self._of_place(suspect.place))
        return USUAL_KIND[suspect.measure] if cause is None else cause.kind

    def _note_timeouts(self, level: str, steps: Sequence[Step], measured: Sequence[Measured]) -> None:
        """A step that took as long as a packet's time-out has had one. It is the fault of what went down meanwhile: the
        link of one of its NICs, or else one between switches."""
        timeout_s = self._subject.timeout_s
        at_s = self._clock_s
        counts: dict[tuple[str, ...], int] = {}
        about: dict[tuple[str, ...], list[consoles.Event]] = {}
        for step, of_step in zip(steps, measured, strict=True):
            took_s = of_step.end_s - of_step.begin_s
            if took_s >= timeout_s:
                nics = {place for each in step.probes for place in each.places}
                if not step.on_node:
                    nics |= {nic_place(nic) for each in step.probes for nic in (each.a, each.b)}
                guilty = self._guilty(nics, at_s - timeout_s, at_s + took_s)
                places = tuple(dict.fromkeys(event.places[0] for event in guilty))
                counts[places] = counts.get(places, 0) + 1
                about.setdefault(places, guilty)
            at_s += took_s
        for places, count in counts.items():
            self._add_timeouts(level, places, count, f"step{'s' if count > 1 else ''} with time-outs", about[places])
        if not counts:
            self._note_counted_timeouts(level, at_s)

    def _note_counted_timeouts(self, level: str, end_s: float) -> None:
        """Of ranks most are between steps, where nobody measures: NICs have counted them."""
        told = [event for event in self._console.events(end_s) if event.kind == consoles.TIMED_OUT]
        told = [event for event in told if event.at_s > self._clock_s]
        if not told:
            return
        nics = {nic_place(nic) for node in self._nodes for nic in self._wiring.nics_of_node[node]}
        guilty = self._guilty(nics, self._clock_s - self._subject.timeout_s, end_s)
        places = tuple(dict.fromkeys(event.places[0] for event in guilty))
        unit = f"NIC{'s' if len(told) > 1 else ''} with time-outs"
        self._add_timeouts(level, places, len(told), unit, [*guilty, *told])

    def _guilty(self, nics: set[str], from_s: float, until_s: float) -> list[consoles.Event]:
        """Who went down: links of these NICs first."""
        down = self._down_between(from_s, until_s)
        guilty = [event for event in down if nics & set(event.places)]
        return guilty + [event for event in down if event.places[0].startswith("s")]

    def _add_timeouts(
        self, level: str, places: Sequence[str], count: int, unit: str, events: Sequence[consoles.Event]
    ) -> None:
        place = places[0] if places else "unknown"
        spoken = self._console.spoken(place) + (f" and {len(places) - 1:,} more" if len(places) > 1 else "")
        self._findings.append(
            Finding(kind="timeout", place=place, spoken=spoken, level=level, measure="timeout", measured=count,
                    limit=0, unit=unit, nodes=(), evidence=consoles.evidence(events), places=tuple(places))
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
            node = self._wiring.node_at(event.places[0]) if event.kind in ("node", "loss", "drain") else None
            if node in self._nodes and node not in self._out and event.at_s > begin_s:
                self._add_said(event.kind, event.places[0], level, [event])
                places |= {event.places[0], *self._nics_of(int(node or 0))}
                places |= {gpu_place(int(node or 0), gpu) for gpu in range(len(self._wiring.gpus))}
        return places

    def _confirmed(self, level: str, suspects: Sequence[Suspect], nodes: Sequence[int]) -> list[Suspect]:
        """Those that are as slow with other partners; of each place and measure the fastest of the times counts."""
        chosen = {(suspect.measure, suspect.place): suspect for suspect in suspects}
        best: dict[tuple[str, str], tuple[float, Suspect]] = {}
        best_way: dict[tuple[str, str], dict[str, float]] = {}
        measured_again: dict[tuple[str, str], int] = {}
        for turn in range(1, self._settings.again + 1):
            steps = again.steps(list(chosen.values()), self._wiring, nodes, self._settings.sizes, turn)
            if not steps:
                break
            measured, expected = self._measuring.again(steps, nodes, self._clock_s, self._common)
            self._died(level, measured)
            found = judge.figures(steps, measured)
            for key, of_ways in judge.ways(steps, measured, self._wiring.switch_of_nic).items():
                known = best_way.setdefault(key, of_ways)
                known |= {way: min(time_s, known.get(way, time_s)) for way, time_s in of_ways.items()}
            for key, suspect in chosen.items():
                measure, place = again.measure_of(suspect.measure), suspect.place
                if (measure, place) not in found or (measure, place) not in expected:
                    continue
                time_s, usual_s = found[measure, place], expected[measure, place]
                slower = time_s / usual_s
                measured_again[key] = measured_again.get(key, 0) + 1
                if key not in best or slower < best[key][0]:
                    limit = self._limits.get(measure, 1 + self._settings.limits.tolerance[measure])
                    seen = replace(suspect, measure=measure, time_s=time_s, slower=slower, limit=limit,
                                   expected_s=usual_s / self._common.get(measure, 1.0))  # fmt: skip
                    best[key] = (slower, seen)
        return [
            self._one_way(replace(seen, times=1 + measured_again[key]), best_way)
            for key, (slower, seen) in best.items()
            if slower > seen.limit
        ]

    def _one_way(self, suspect: Suspect, times: Mapping[tuple[str, str], Mapping[str, float]]) -> Suspect:
        of_ways = times.get((suspect.measure, suspect.place), {})
        usual_s = suspect.expected_s * self._common.get(suspect.measure, 1.0)
        slow = [way for way, time_s in of_ways.items() if time_s > usual_s * suspect.limit]
        return replace(suspect, way=slow[0]) if len(slow) == 1 < len(of_ways) else suspect

    # --- What is found

    def _add_slow(self, level: str, suspect: Suspect) -> None:
        events = [
            event
            for event in self._of_place(suspect.place)
            if event.kind not in ("node", consoles.TIMED_OUT) and (event.kind != "flap" or event.at_s >= 0)
        ]
        if suspect.measure in again.OF_NODE_ALONE:  # the other's cause is not its own
            events = [event for event in events if event.kind == suspect.measure]
        if suspect.measure in judge.OF_LINKS:  # of parallel cables each has its own cause
            causes = consoles.causes_of(suspect.measure, suspect.slower, events)
            for each in causes:
                own = [event for event in events if event.places == each.places]
                self._add(level, replace(suspect, place=each.places[0]), each.kind, own)
            if causes:
                return
        cause = consoles.cause_of(suspect.measure, suspect.slower, events)
        self._add(level, suspect, USUAL_KIND[suspect.measure] if cause is None else cause.kind, events)

    def _add(self, level: str, suspect: Suspect, kind: str, events: Sequence[consoles.Event]) -> None:
        measured, limit, unit = self._shown(suspect)
        spoken = self._console.spoken(suspect.place) + (f", {suspect.way} only" if suspect.way else "")
        self._exclude(suspect.place)
        self._findings.append(
            Finding(kind=kind, place=self._console.public(suspect.place), spoken=spoken,
                    level=level, measure=suspect.measure, measured=measured, limit=limit, unit=unit,
                    nodes=self._names_of(suspect.place),
                    evidence=(*consoles.evidence(events), self._compared(suspect)))
        )  # fmt: skip

    def _compared(self, suspect: Suspect) -> str:
        """What was measured, in words: of a part that tells nothing itself the only evidence."""
        others = [
            time_s
            for (measure, place), time_s in self._figures.items()
            if measure == suspect.measure and place != suspect.place
        ]
        measured, _, unit = self._shown(suspect)
        usual, _, _ = self._shown(replace(suspect, time_s=statistics.median(others or [suspect.expected_s])))
        whose = f"the median of {len(others):,} others" if others else "expected"
        return f"dryfly: measured {suspect.times} times, {measured:.4g} {unit} at best; {whose}: {usual:.4g}"

    def _of_place(self, place: str) -> list[consoles.Event]:
        """What was said of it, or of one of the cables between two switches."""
        names = self._wiring.names_of_trunk(place)
        events = [event for name in names for event in self._console.about(name, self._clock_s)]
        return sorted(events, key=lambda event: event.at_s)

    def _shown(self, suspect: Suspect) -> tuple[float, float, str]:
        """As a rate where bytes were streamed, else as a time."""
        sizes = self._settings.sizes
        moved = {
            "memory": sizes.memory_bytes * sizes.memory_count, "loopback": sizes.loopback_bytes * sizes.loopback_count,
            "gpu": sizes.gpu_bytes * sizes.gpu_count, "nic": sizes.nic_bytes * sizes.nic_count,
        }.get(suspect.measure)  # fmt: skip
        usual = suspect.expected_s * self._common.get(suspect.measure, 1.0)
        if moved is None:
            return suspect.time_s * 1e6, usual * suspect.limit * 1e6, "us"
        return moved / suspect.time_s / 1e9, moved / (usual * suspect.limit) / 1e9, "GB/s"

    def _names_of(self, place: str) -> tuple[str, ...]:
        node = self._wiring.node_at(place)
        return () if node is None else (self._console.node_name(node),)

    def _exclude(self, place: str) -> None:
        node = self._wiring.node_at(place)
        if node is not None:
            self._out[node] = None

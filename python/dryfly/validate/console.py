"""What the machine itself says while it is measured: the lines of its consoles and the counters of its ports, from the
scenario of a simulated machine, in the words in which Linux, the cxi driver and the fabric manager have them.

A slow NIC and traffic of others leave no line: of the one nothing is known but that it is slow, of the other the
counters of the port tell.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames
from dryfly.scenario.faults import Said, Scenario
from dryfly.validate.wiring import Wiring

HISTORY_S = 36_000.0  # before the start: what SHS' limits on flaps look back to
_PS = 1e-12
_BILLION = 1e9
_KINDS_OF_LINKS = {"all": (True, True, True), "edge": (True, False, False), "local": (False, True, False),
                   "global": (False, False, True)}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Event:
    """`at_s`: since the validation began, of what was before it negative. `places`: as findings name them. `slower`:
    how many times as long what is there takes by what was said; 1: nothing was said of that."""

    at_s: float
    source: str
    text: str
    kind: str = ""  # the fault's, or empty for marks
    places: tuple[str, ...] = ()
    slower: float = 1.0

    def line(self) -> str:
        return f"[{self.at_s:14.6f}] {self.source}: {self.text}"


class Console:
    """Of one machine with one scenario, from its history to the end of the validation."""

    def __init__(self, machine: Machine, wiring: Wiring, scenario: Scenario, *, seed: int) -> None:
        self._machine = machine
        self._wiring = wiring
        self._names = NodeNames(machine)
        self._seed = scenario.seed if scenario.seed is not None else seed
        self._index = {self._names.number(index): index for index in range(machine.nodes_max)}
        self._events: list[Event] = []
        for number, said in enumerate(scenario.said):
            self._events += self._of(said, number)
        self._of_place: defaultdict[str, list[Event]] = defaultdict(list)
        for event in self.events():
            for place in event.places:
                self._of_place[place].append(event)

    def mark(self, at_s: float, text: str) -> None:
        self._events.append(Event(at_s=at_s, source="dryfly", text=text))

    def events(self, until_s: float | None = None) -> list[Event]:
        """In order; what was at one instant in the order in which it was noted."""
        some = [event for event in self._events if until_s is None or event.at_s <= until_s]
        return sorted(some, key=lambda event: event.at_s)

    def about(self, place: str, until_s: float | None = None) -> list[Event]:
        """What was said of a link, NIC or node."""
        return [event for event in self._of_place.get(place, ()) if until_s is None or event.at_s <= until_s]

    def flaps(self, until_s: float = 0.0) -> dict[str, list[float]]:
        """When each link of a NIC, or between switches, went down."""
        found: dict[str, list[float]] = {}
        for event in self.events(until_s):
            if event.kind == "flap":
                for place in event.places:
                    found.setdefault(place, []).append(event.at_s)
        return found

    def node_name(self, node: int) -> str:
        index = self._index.get(node)
        return f"node {node}" if index is None else self._names.name(index)

    def nic_words(self, nic: int) -> str:
        node = self._wiring.node_of_nic[nic]
        return f"{self.node_name(node)} cxi{self._wiring.nics_of_node[node].index(nic)}"

    def spoken(self, place: str) -> str:
        """With the names that people know it by."""
        if re.fullmatch(r"n\d+", place):
            return f"{place} ({self.nic_words(int(place[1:]))})"
        ends = re.fullmatch(r"s(\d+)-s(\d+)(?:\.\d+)?", place)
        if ends is None:
            return self.node_name(int(place.removeprefix("node "))) if place.startswith("node ") else place
        return f"{place} ({'-'.join(self._switch_words(int(end)) for end in ends.groups())})"

    def _switch_words(self, switch: int) -> str:
        groups = self._wiring.group_of_switch
        return f"g{groups[switch]}s{switch - groups.index(groups[switch])}"

    def _links(self, said: Said) -> list[str]:
        """The links and NICs that a scenario's places stand for."""
        found: list[str] = []
        for place in said.places:
            if place in _KINDS_OF_LINKS:
                edge, local, remote = _KINDS_OF_LINKS[place]
                found += [f"n{nic}" for nic in range(len(self._wiring.node_of_nic))] if edge else []
                found += [cable.name for cable in self._wiring.cables if (remote if cable.is_global else local)]
            elif re.fullmatch(r"s\d+", place):
                at = int(place[1:])
                found += [cable.name for cable in self._wiring.cables if at in (cable.a, cable.b)]
                found += [f"n{nic}" for nic, of in enumerate(self._wiring.switch_of_nic) if of == at]
            elif place.startswith("n"):
                found.append(place)
            else:
                found += self._cables(place)
        return found

    def _cables(self, place: str) -> list[str]:
        """Of `s0-s4`, `s0>s4` or `s0-s4.1`, in either order."""
        a, b, parallel = re.fullmatch(r"s(\d+)[->]s(\d+)(?:\.(\d+))?", place).groups()  # type: ignore[union-attr]
        ends = {int(a), int(b)}
        return [
            cable.name
            for cable in self._wiring.cables
            if {cable.a, cable.b} == ends and (parallel is None or cable.parallel == int(parallel))
        ]

    def _of(self, said: Said, number: int) -> list[Event]:
        maker = {
            "flap": self._flaps, "loss": self._loss, "lanes": self._lanes, "replays": self._replays,
            "drain": self._drain, "load": self._load, "miscabled": self._miscabled, "pcie": self._pcie,
            "memory": self._memory, "cpu": self._cpu, "node": self._node,
        }.get(said.kind)  # fmt: skip
        return [] if maker is None else maker(said, number)

    def _begin(self, said: Said) -> float:
        """What has always been there was noted long before."""
        return said.from_ps * _PS if said.from_ps > 0 else -HISTORY_S

    def _link_event(
        self, said: Said, place: str, text: str, at_s: float | None = None, *, slower: float = 1.0
    ) -> Event:
        source = self.nic_words(int(place[1:])) if place.startswith("n") else "fabric manager"
        subject = "" if place.startswith("n") else f"link {self.spoken(place)}: "
        at_s = self._begin(said) if at_s is None else at_s
        return Event(at_s=at_s, source=source, text=subject + text, kind=said.kind, places=(place,), slower=slower)

    def _lanes(self, said: Said, _: int) -> list[Event]:
        lanes = int(said.value("lanes") or 4)
        text = f"link degraded, {lanes} of 4 lanes up ({50 * lanes} Gb/s)"
        return [self._link_event(said, place, text, slower=4 / lanes) for place in self._links(said)]

    def _replays(self, said: Said, _: int) -> list[Event]:
        share = (said.value("rate_ppb") or 0) / _BILLION
        return [
            self._link_event(said, place, f"link-level retry: {share:.2g} of the frames replayed", slower=1 + share)
            for place in self._links(said)
        ]

    def _loss(self, said: Said, _: int) -> list[Event]:
        return [
            self._link_event(said, place, "CXI_EVENT_LINK_DOWN" if place.startswith("n") else "link down")
            for place in self._links(said)
        ]

    def _drain(self, said: Said, _: int) -> list[Event]:
        return [self._link_event(said, place, "drained by the operator") for place in self._links(said)]

    def _load(self, said: Said, _: int) -> list[Event]:
        share = (said.value("rate_ppb") or 0) / _BILLION
        return [
            self._link_event(
                said, place, f"port counters: {share:.0%} of the link carries traffic of others", slower=1 / (1 - share)
            )
            for place in self._links(said)
        ]

    def _miscabled(self, said: Said, _: int) -> list[Event]:
        swapped = [re.fullmatch(r"s(\d+)-s(\d+)(?:\.\d+)?", place) for place in said.places]
        (a, b), (c, d) = [(int(m[1]), int(m[2])) for m in swapped if m is not None]
        events = []
        for place, at, expected, found in ((said.places[0], a, b, d), (said.places[1], c, d, b)):
            text = f"port of {self._switch_words(at)}: expected {self._switch_words(expected)}, LLDP has "
            text += f"{self._switch_words(found)}; not used"
            events += [self._link_event(said, name, text) for name in self._cables(place)]
        return events

    def _pcie(self, said: Said, _: int) -> list[Event]:
        width, speed, replays = said.value("width"), said.value("speed"), said.value("replays")
        events = []
        for place in self._links(said):
            text = f"LnkSta: Speed {speed:g}GT/s, Width x{width:g}"
            if replays:
                text += f"; AER: Replay Timer Timeout, {replays:.2g} of the packets"
            events.append(
                Event(
                    at_s=-HISTORY_S,
                    source=self.nic_words(int(place[1:])),
                    text=text,
                    kind="pcie",
                    places=(place,),
                    slower=1 / (said.value("rate") or 1),
                )
            )
        return events

    def _node_event(self, said: Said, text: str, at_s: float) -> Event:
        assert said.node is not None
        place = f"node {said.node}"
        slower = 1 / (said.value("rate") or 1)
        return Event(at_s=at_s, source=self.node_name(said.node), text=text, kind=said.kind, places=(place,),
                     slower=slower)  # fmt: skip

    def _memory(self, said: Said, _: int) -> list[Event]:
        return [self._node_event(said, "EDAC MC0: CE memory read error; memory runs at a lower rate", -HISTORY_S)]

    def _cpu(self, said: Said, _: int) -> list[Event]:
        return [self._node_event(said, "CPU0: Core temperature above threshold, cpu clock throttled", -HISTORY_S)]

    def _node(self, said: Said, _: int) -> list[Event]:
        return [self._node_event(said, "node error: no answer", said.from_ps * _PS)]

    def _flaps(self, said: Said, number: int) -> list[Event]:
        """At its instant, or as many as chance has it, back to HISTORY_S before the start."""
        rate = said.value("rate_ppb")
        events = []
        for place in self._links(said):
            instants = [said.from_ps * _PS] if rate is None else self._drawn(rate / _BILLION, f"{number} {place}")
            for at_s in instants:
                text = "CXI_EVENT_LINK_DOWN (flap)" if place.startswith("n") else "link down (flap)"
                events.append(self._link_event(said, place, text, at_s))
        return events

    def _drawn(self, per_s: float, name: str) -> list[float]:
        """Instants of a Poisson process over the history, from the seed and the place alone."""
        at_s, instants = -HISTORY_S, []
        for turn in range(10**6):
            digest = hashlib.blake2b(f"history {self._seed} {name} {turn}".encode(), digest_size=8).digest()
            at_s -= math.log((int.from_bytes(digest, "big") + 1) / 2**64) / per_s
            if at_s >= 0:
                break
            instants.append(at_s)
        return instants


_WHOLE = ("loss", "miscabled", "drain", "flap")  # a link is not used at all
_EXPLAINED = 0.5  # of what a part takes longer


def cause_of(measure: str, slower: float, events: Sequence[Event]) -> Event | None:
    """Of these the one that can be why a part takes so many times as long; None: none is enough for that."""
    if measure in ("memory", "cpu"):
        events = [event for event in events if event.kind == measure]
    if measure in ("link", "cable"):
        whole = [event for event in events if event.kind in _WHOLE]
        if whole:
            return whole[0]
    likely = max(events, key=lambda event: event.slower, default=None)
    if likely is None or likely.slower - 1 < _EXPLAINED * (slower - 1):
        return None
    return likely

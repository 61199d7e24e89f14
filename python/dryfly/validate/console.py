"""What is said of a machine while it is measured, by instant and place, and the names people know its parts by."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dryfly.validate.wiring import Wiring, node_in, node_place

TELEMETRY = "telemetry"  # the kind of a line that has counters
TIMED_OUT = "timed out"  # and of one that has a NIC's network time-outs
_LINES = 5  # of evidence
HISTORY_S = 36_000.0  # before the start: what SHS' limits on flaps look back to


@dataclass(frozen=True, kw_only=True)
class Event:
    """`at_s`: since the validation began, of what was before it negative. `places`: as findings name them. `slower`:
    how many times as long what is there takes by what was said; 1: nothing was said of that.
    `replayed`: the share of frames or packets that are sent again. `until_s`: of a flap, when the link is up again."""

    at_s: float
    source: str
    text: str
    kind: str = ""  # the fault's, or empty for marks
    places: tuple[str, ...] = ()
    slower: float = 1.0
    replayed: float = 0.0
    until_s: float = 0.0

    def line(self) -> str:
        return f"[{self.at_s:14.6f}] {self.source}: {self.text}"


class Console:
    """Of one machine, from its history to the end of the validation. `names`: of nodes, by number; `nic`: the name of a
    node's n-th NIC."""

    def __init__(self, wiring: Wiring, names: Mapping[int, str], *, nic: str = "cxi{}") -> None:
        self._wiring = wiring
        self._names = names
        self._nic = nic
        self._events: list[Event] = []
        self._of_place: defaultdict[str, list[Event]] = defaultdict(list)

    def note(self, event: Event) -> None:
        self._events.append(event)
        for place in event.places:
            self._of_place[place].append(event)

    def mark(self, at_s: float, text: str) -> None:
        self.note(Event(at_s=at_s, source="dryfly", text=text))

    def events(self, until_s: float | None = None) -> list[Event]:
        """In order; what was at one instant in the order in which it was noted."""
        some = [event for event in self._events if until_s is None or event.at_s <= until_s]
        return sorted(some, key=lambda event: event.at_s)

    def about(self, place: str, until_s: float | None = None) -> list[Event]:
        """What was said of a link, NIC or node, in order."""
        some = [event for event in self._of_place.get(place, ()) if until_s is None or event.at_s <= until_s]
        return sorted(some, key=lambda event: event.at_s)

    def flaps(self, until_s: float = 0.0) -> dict[str, list[float]]:
        """When each link of a NIC, or between switches, went down."""
        found: dict[str, list[float]] = {}
        for event in self.events(until_s):
            if event.kind == "flap":
                for place in event.places:
                    found.setdefault(place, []).append(event.at_s)
        return found

    def node_name(self, node: int) -> str:
        return self._names.get(node, f"node {node}")

    def nic_words(self, nic: int) -> str:
        node = self._wiring.node_of_nic[nic]
        return f"{self.node_name(node)} {self._nic.format(self._wiring.nics_of_node[node].index(nic))}"

    def spoken(self, place: str) -> str:
        """With the names that people know it by."""
        if re.fullmatch(r"n\d+", place):
            return f"{place} ({self.nic_words(int(place[1:]))})"
        ends = re.fullmatch(r"s(\d+)-s(\d+)(?:\.\d+)?", place)
        if ends is None:
            return self.public(place)
        return f"{place} ({'-'.join(self.switch_words(int(end)) for end in ends.groups())})"

    def public(self, place: str) -> str:
        """As scenario files name it: nodes, and GPUs by them, by their names."""
        node = node_in(place)
        return place if node is None else place.replace(node_place(node), self.node_name(node))

    def switch_words(self, switch: int) -> str:
        groups = self._wiring.group_of_switch
        return f"g{groups[switch]}s{switch - groups.index(groups[switch])}"


def evidence(events: Sequence[Event]) -> tuple[str, ...]:
    """The last lines, each once; of counters, which are read again and again, the last reading of a place."""
    latest = {event.places: event for event in events if event.kind == TELEMETRY}
    some = [event for event in events if event.kind != TELEMETRY or latest[event.places] is event]
    return tuple(dict.fromkeys(event.line() for event in some))[-_LINES:]


_WHOLE = ("loss", "miscabled", "drain", "flap")  # a link is not used at all
_EXPLAINED = 0.5  # of what a part takes longer


def causes_of(measure: str, slower: float, events: Sequence[Event]) -> list[Event]:
    """Of each place the one that can be why a part takes so many times as long, where one is enough for that."""
    by_place: dict[tuple[str, ...], list[Event]] = {}
    for event in events:
        by_place.setdefault(event.places, []).append(event)
    found = [cause_of(measure, slower, some) for some in by_place.values()]
    return [cause for cause in found if cause is not None]


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

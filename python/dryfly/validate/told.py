"""What a simulated machine's consoles, ports and fabric manager say of a scenario, in the words in which Linux, the cxi
driver and the fabric manager have them.

A slow NIC and traffic of others leave no line: of the one nothing is known but that it is slow, of the other the
counters of the port tell.
"""

from __future__ import annotations

import hashlib
import math
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace

from dryfly.scenario.faults import Said, Scenario
from dryfly.validate.console import HISTORY_S, TELEMETRY, TIMED_OUT, Console, Event
from dryfly.validate.probe import Counters
from dryfly.validate.wiring import Wiring, nic_place, node_place

_PS = 1e-12
_BILLION = 1e9
_KINDS_OF_LINKS = {"all": (True, True, True), "edge": (True, False, False), "local": (False, True, False),
                   "global": (False, False, True)}  # fmt: skip


_OF_NIC = re.compile(r"n(\d+)(?:[->]s\d+)?|s\d+[->]n(\d+)")


def nic_of_link(place: str) -> int | None:
    """Of `n5`, or of one direction or both between it and its switch; None: a link between switches."""
    found = _OF_NIC.fullmatch(place)
    return None if found is None else int(found[1] or found[2])


def tell(console: Console, wiring: Wiring, scenario: Scenario) -> None:
    teller = _Teller(console, wiring)
    for said in scenario.said:
        for event in teller.makers[said.kind](said) if said.kind in teller.makers else ():
            console.note(event)


# Of a NIC: those that move when something holds it up, and by how much at least before it is worth a line.
_OF_TROUBLE = re.compile(r"parbs_tarb_pi_\w+_blocked_cnt|hni_[rt]x_paused_\d+|hni_llr_\w+|hni_pcs_uncorrected_cw|"
                         r"\w+_timeouts|pct_\w+_nacks|pct_retry_srb_requests")  # fmt: skip
_TIMES_OTHERS = 4


def tell_counters(console: Console, counters: Counters, at_s: float) -> None:
    """Of each NIC the counters of trouble that moved several times as far as those of the median NIC."""
    names = sorted({name for of in counters.values() for name in of if _OF_TROUBLE.fullmatch(name)})
    usual = {name: statistics.median(of.get(name, 0) for of in counters.values()) for name in names}
    for place, of in counters.items():
        moved = [name for name in names if of.get(name, 0) > _TIMES_OTHERS * usual[name]]
        if moved:
            text = "; ".join(f"{name} {of[name]:,}, the median NIC's {usual[name]:,.0f}" for name in moved)
            source = console.nic_words(int(place.removeprefix("n")))
            console.note(Event(at_s=at_s, source=source, text=f"telemetry: {text}", kind=TELEMETRY, places=(place,)))


def tell_timeouts(console: Console, counts: Mapping[str, int], at_s: float) -> None:
    """Of each NIC the network time-outs of what it sent, where there were any."""
    for place, count in counts.items():
        if count:
            source = console.nic_words(int(place.removeprefix("n")))
            text = f"{count} network time-out{'s' if count > 1 else ''}"
            console.note(Event(at_s=at_s, source=source, text=text, kind=TIMED_OUT, places=(place,)))


class _Teller:
    def __init__(self, console: Console, wiring: Wiring) -> None:
        self._console = console
        self._wiring = wiring
        self.makers: dict[str, Callable[[Said], list[Event]]] = {
            "flap": self._flaps, "loss": self._loss, "lanes": self._lanes, "replays": self._replays,
            "drain": self._drain, "load": self._load, "miscabled": self._miscabled, "pcie": self._pcie,
            "memory": self._memory, "cpu": self._cpu, "node": self._node,
        }  # fmt: skip

    def _links(self, said: Said) -> list[str]:
        """The links and NICs that a scenario's places stand for."""
        found: list[str] = []
        for place in said.places:
            if place in _KINDS_OF_LINKS:
                edge, local, remote = _KINDS_OF_LINKS[place]
                found += [nic_place(nic) for nic in range(len(self._wiring.node_of_nic))] if edge else []
                found += [cable.name for cable in self._wiring.cables if (remote if cable.is_global else local)]
            elif re.fullmatch(r"s\d+", place):
                at = int(place[1:])
                found += [cable.name for cable in self._wiring.cables if at in (cable.a, cable.b)]
                found += [nic_place(nic) for nic, of in enumerate(self._wiring.switch_of_nic) if of == at]
            elif (nic := nic_of_link(place)) is not None:
                found.append(nic_place(nic))
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

    def _begin(self, said: Said) -> float:
        """What has always been there was noted long before."""
        return said.from_ps * _PS if said.from_ps > 0 else -HISTORY_S

    def _link_event(
        self, said: Said, place: str, text: str, at_s: float | None = None, *, slower: float = 1.0,
        replayed: float = 0.0,
    ) -> Event:  # fmt: skip
        source = self._console.nic_words(int(place[1:])) if place.startswith("n") else "fabric manager"
        subject = "" if place.startswith("n") else f"link {self._console.spoken(place)}: "
        at_s = self._begin(said) if at_s is None else at_s
        return Event(at_s=at_s, source=source, text=subject + text, kind=said.kind, places=(place,), slower=slower,
                     replayed=replayed)  # fmt: skip

    def _lanes(self, said: Said) -> list[Event]:
        lanes = int(said.value("lanes") or 4)
        text = f"link degraded, {lanes} of 4 lanes up ({50 * lanes} Gb/s)"
        return [self._link_event(said, place, text, slower=4 / lanes) for place in self._links(said)]

    def _replays(self, said: Said) -> list[Event]:
        share = (said.value("rate_ppb") or 0) / _BILLION
        return [
            self._link_event(
                said, place, f"link-level retry: {share:.2g} of the frames replayed", slower=1 + share, replayed=share
            )
            for place in self._links(said)
        ]

    def _loss(self, said: Said) -> list[Event]:
        return [
            self._link_event(said, place, "CXI_EVENT_LINK_DOWN" if place.startswith("n") else "link down")
            for place in self._links(said)
        ]

    def _drain(self, said: Said) -> list[Event]:
        return [self._link_event(said, place, "drained by the operator") for place in self._links(said)]

    def _load(self, said: Said) -> list[Event]:
        share = (said.value("rate_ppb") or 0) / _BILLION
        return [
            self._link_event(
                said, place, f"port counters: {share:.0%} of the link carries traffic of others", slower=1 / (1 - share)
            )
            for place in self._links(said)
        ]

    def _miscabled(self, said: Said) -> list[Event]:
        swapped = [re.fullmatch(r"s(\d+)-s(\d+)(?:\.\d+)?", place) for place in said.places]
        (a, b), (c, d) = [(int(m[1]), int(m[2])) for m in swapped if m is not None]
        events = []
        for place, at, expected, found in ((said.places[0], a, b, d), (said.places[1], c, d, b)):
            text = (
                f"port of {self._console.switch_words(at)}: expected {self._console.switch_words(expected)}, LLDP has "
            )
            text += f"{self._console.switch_words(found)}; not used"
            events += [self._link_event(said, name, text) for name in self._cables(place)]
        return events

    def _pcie(self, said: Said) -> list[Event]:
        width, speed, replays = said.value("width"), said.value("speed"), said.value("replays") or 0.0
        texts = [(f"LnkSta: Speed {speed:g}GT/s, Width x{width:g}", 0.0)] if said.value("degraded") else []
        texts += [(f"AER: Replay Timer Timeout, {replays:.2g} of the packets", replays)] if replays else []
        return [
            Event(at_s=-HISTORY_S, source=self._console.nic_words(int(place[1:])), text=text, kind="pcie",
                  places=(place,), slower=1 / (said.value("rate") or 1), replayed=replayed)
            for place in self._links(said)
            for text, replayed in texts
        ]  # fmt: skip

    def _node_event(self, said: Said, text: str, at_s: float) -> Event:
        assert said.node is not None
        place = node_place(said.node)
        slower = 1 / (said.value("rate") or 1)
        return Event(at_s=at_s, source=self._console.node_name(said.node), text=text, kind=said.kind, places=(place,),
                     slower=slower)  # fmt: skip

    def _memory(self, said: Said) -> list[Event]:
        return [self._node_event(said, "EDAC MC0: CE memory read error; memory runs at a lower rate", -HISTORY_S)]

    def _cpu(self, said: Said) -> list[Event]:
        return [self._node_event(said, "CPU0: Core temperature above threshold, cpu clock throttled", -HISTORY_S)]

    def _node(self, said: Said) -> list[Event]:
        return [self._node_event(said, "node error: no answer", said.from_ps * _PS)]

    def _flaps(self, said: Said) -> list[Event]:
        """At its instant, or as many as chance has it, back to HISTORY_S before the start."""
        rate = said.value("rate_ppb")
        events = []
        for place in self._links(said):
            instants = [said.from_ps * _PS] if rate is None else _drawn(rate / _BILLION, f"{said.draw} {place}")
            for at_s in instants:
                text = "CXI_EVENT_LINK_DOWN (flap)" if place.startswith("n") else "link down (flap)"
                until_s = said.until_ps * _PS if rate is None and said.until_ps is not None else at_s
                events.append(replace(self._link_event(said, place, text, at_s), until_s=until_s))
        return events


def _drawn(per_s: float, name: str) -> list[float]:
    """Instants of a Poisson process over the history, from the name alone."""
    at_s, instants = -HISTORY_S, []
    for turn in range(10**6):
        digest = hashlib.blake2b(f"history {name} {turn}".encode(), digest_size=8).digest()
        at_s -= math.log((int.from_bytes(digest, "big") + 1) / 2**64) / per_s
        if at_s >= 0:
            break
        instants.append(at_s)
    return instants

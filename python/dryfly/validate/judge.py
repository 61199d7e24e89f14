"""From times to low performers: one figure for each part and measure, held against what a machine in order has.

A pair's time tells of both its ends; a part's figure is the median over its pairs, so that one bad partner among
several does not count against it. A measure's figures are then compared by their ratio to what is expected, and that
ratio to the median of all parts: the little that all share (noise, another clock) is nobody's fault.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dryfly.validate.plan import Step
from dryfly.validate.probe import Measured

Figures = dict[tuple[str, str], float]  # by measure and place, in seconds
OF_LINKS = ("link", "cable")  # measures whose places are cables
LOADED = ("pair", "groups", "system")  # those in which many pairs share the fabric
USUAL_KIND = {"memory": "memory", "cpu": "cpu", "loopback": "nic", "gpu": "gpu", "nic": "nic", "latency": "nic",
              "pair": "nic", "groups": "nic", "system": "nic", "link": "link", "cable": "link"}  # fmt: skip
_PEERS_LEAST = 3
_OF_MAD = 1.4826  # a standard deviation, where figures are normally distributed


@dataclass(frozen=True, kw_only=True)
class Limits:
    """`tolerance`: by measure, the share by which a part may be slower; `sigmas`: where peers `scatter` also so many
    robust standard deviations of them; `shared`: the share by which all parts may be slower, None: that of their
    measure (data/validate.toml)."""

    tolerance: Mapping[str, float]
    sigmas: float
    scatter: tuple[str, ...] = LOADED
    shared: float | None = None


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """`time_s` against `expected_s`; `slower`: their ratio over the peers' median, `limit`: the most it may be;
    `times`: how often it was measured."""

    measure: str
    place: str
    time_s: float
    expected_s: float
    slower: float
    limit: float
    times: int = 1
    way: str = ""  # of a cable: the one way that is slow, where it is one


def figures(steps: Sequence[Step], measured: Sequence[Measured]) -> Figures:
    samples: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for step, of_step in zip(steps, measured, strict=True):
        for probe, (first, second) in zip(step.probes, of_step.times, strict=True):
            time_s = first if step.kind == "pingpong" else max(first, second)
            for place in probe.places:
                samples[step.measure, place].append(time_s)
    # Of both ways of a cable the slower one counts.
    return {key: (max if key[0] in OF_LINKS else statistics.median)(times) for key, times in samples.items()}


def ways(
    steps: Sequence[Step], measured: Sequence[Measured], switch_of: Sequence[int]
) -> dict[tuple[str, str], dict[str, float]]:
    """By measure and cable: the time of each of its two ways, by the name that scenario files have for a way.
    `switch_of`: of each NIC."""
    found: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for step, of_step in zip(steps, measured, strict=True):
        if step.measure in OF_LINKS:
            for probe, (_, time_s) in zip(step.probes, of_step.times, strict=True):
                way = f"s{switch_of[probe.a]}>s{switch_of[probe.b]}"
                for place in probe.places:
                    found[step.measure, place][way] = max(time_s, found[step.measure, place].get(way, 0.0))
    return dict(found)


def common(found: Figures, expected: Figures, limits: Limits) -> dict[str, float]:
    """Of each measure what all its parts share: the median of their ratios, where that is no more than they may.
    Beyond, it is not the clock or noise but a fault of most of them, and each is held against the model alone."""
    shared: dict[str, list[float]] = defaultdict(list)
    for key, time_s in found.items():
        if expected.get(key):
            shared[key[0]].append(time_s / expected[key])
    middles = {measure: statistics.median(all_of) for measure, all_of in shared.items()}
    most = {measure: limits.tolerance[measure] if limits.shared is None else limits.shared for measure in middles}
    return {measure: middle if middle <= 1 + most[measure] else 1.0 for measure, middle in middles.items()}


def copied_by_cores(found: Figures, expected: Figures, limits: Limits) -> Figures:
    """Ranks of a program copy by their cores: where these are slow the memory is expected to take as much longer."""
    slow = ratios({key: time_s for key, time_s in found.items() if key[0] == "cpu"}, expected, limits).get("cpu", {})
    over = {place: ratio for place, ratio in slow.items() if ratio > 1 + limits.tolerance["cpu"]}
    return {**expected, **{("memory", place): expected["memory", place] * ratio for place, ratio in over.items()
                           if ("memory", place) in expected}}  # fmt: skip


def ratios(found: Figures, expected: Figures, limits: Limits) -> dict[str, dict[str, float]]:
    """By measure and place: how many times as long as expected, over what all places share."""
    shared = common(found, expected, limits)
    by_measure: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for (measure, place), time_s in found.items():
        usual = expected.get((measure, place))
        if usual:
            by_measure[measure][place] = time_s / usual / shared[measure]
    return dict(by_measure)


def limit_of(measure: str, ratios_of: Mapping[str, float], limits: Limits) -> float:
    """The ratio up to which a part is in order. Where parts are measured alone the tolerance decides, for suspects are
    measured again; where many pairs load the fabric at once, and on real machines, their scatter counts as well. Of two
    none is the other's peer."""
    limit = 1 + limits.tolerance[measure]
    if measure not in limits.scatter or len(ratios_of) < _PEERS_LEAST:
        return limit
    values = list(ratios_of.values())
    return max(limit, 1 + limits.sigmas * spread(values) / statistics.median(values))


def suspects(found: Figures, expected: Figures, limits: Limits) -> list[Suspect]:
    """The slowest of each measure first."""
    rows: list[Suspect] = []
    for measure, all_of in ratios(found, expected, limits).items():
        limit = limit_of(measure, all_of, limits)
        for place, ratio in sorted(all_of.items(), key=lambda row: (-row[1], row[0])):
            if ratio > limit:
                rows.append(
                    Suspect(measure=measure, place=place, time_s=found[measure, place],
                            expected_s=expected[measure, place], slower=ratio, limit=limit)
                )  # fmt: skip
    return rows


def spread(values: Sequence[float]) -> float:
    """A robust standard deviation: from the median of distances to the median."""
    middle = statistics.median(values)
    return _OF_MAD * statistics.median(abs(value - middle) for value in values)

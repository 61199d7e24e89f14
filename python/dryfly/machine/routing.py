"""The registry of routing algorithms: a row for each, with the fields that only this algorithm reads.

An algorithm NAME is a file in core/route/ that defines `make_NAME`, and a row here. From the rows follow what a
machine file may say and, by tool/generate.py, the simulator's table and the reference pages. A field that machine files
need not have is `optional`: the algorithm then says what holds without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dryfly.machine.field import Field, count, size, text


@dataclass(frozen=True, kw_only=True)
class RoutingAlgorithm:
    meaning: str
    fields: Mapping[str, Field] = field(default_factory=dict)


ROUTING_ALGORITHMS: dict[str, RoutingAlgorithm] = {
    "minimal": RoutingAlgorithm(meaning="one of the minimal ways, at random"),
    "valiant": RoutingAlgorithm(meaning="always a detour, by a group or switch drawn at random"),
    "adaptive": RoutingAlgorithm(
        meaning="of two minimal ways the less loaded, unless the less loaded of two detours is better by more than "
        "the bias",
        fields={
            "fabric.routing.bias_shift": count(
                "fabric.routing.bias_shift",
                "a detour is taken if queued(minimal) > (queued(detour) << shift) + bias",
                most=16,
            ),
            "fabric.routing.bias": size("fabric.routing.bias_bytes", "see fabric.routing.bias_shift", most=2**30),
            "fabric.routing.group_load": text(
                'kinds of groups, "storage, service", whose switches choose the third group of a detour by load'
            ),
        },
    ),
}

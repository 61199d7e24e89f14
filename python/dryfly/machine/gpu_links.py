"""The links between the GPUs of a node (node.gpu_links), and how many of them a copy between two GPUs goes over."""

from __future__ import annotations

import re

from dryfly.base.errors import UserError
from dryfly.machine.machine import Machine

_FIELD = "node.gpu_links"
_PAIR = re.compile(r"(\d+)-(\d+):([1-9])")
_FORM = '"0-1:4, 1-2:1", two GPUs and the 1 to 9 links between them'


def links_of(machine: Machine, *, gpus: int) -> list[list[int]] | None:
    """For each two GPUs of a node the links that a copy between them goes over. None: the machine does not say.

    Two GPUs without a link of their own are joined over others, by the fewest hops, and of those ways by the one whose
    narrowest hop has most links. Raises UserError where the field is not of that form, or leaves a GPU alone.
    """
    direct = direct_links(machine, gpus=gpus)
    if direct is None:
        return None
    links = [_from(source, direct) for source in range(gpus)]
    for gpu, each in enumerate(links[0]):
        if gpu != 0 and not each:
            why = f"accepted are links that join all GPUs, but none leads from 0 to {gpu}"
            raise _refusal(machine, str(machine.optional(_FIELD)), why)
    return links


def direct_links(machine: Machine, *, gpus: int) -> list[list[int]] | None:
    """For each two GPUs of a node the links of their own that they have. None: the machine does not say."""
    text = machine.optional(_FIELD)
    if text is None:
        return None
    direct = [[0] * gpus for _ in range(gpus)]
    for part in map(str.strip, str(text).split(",")):
        found = _PAIR.fullmatch(part)
        if found is None:
            raise _refusal(machine, part, f"accepted is a list such as {_FORM}")
        one, other, count = map(int, found.groups())
        if one == other or not max(one, other) < gpus:
            raise _refusal(machine, part, f"accepted are two of the GPUs 0 to {gpus - 1} of node.gpu_numa")
        if direct[one][other]:
            raise _refusal(machine, part, "accepted is each pair of GPUs once")
        direct[one][other] = direct[other][one] = count
    return direct


def _refusal(machine: Machine, value: str, why: str) -> UserError:
    return UserError(f'machine {machine.name}: {_FIELD} = "{value}": {why}')


def _from(source: int, direct: list[list[int]]) -> list[int]:
    """The links from one GPU to each, hop by hop; 0 to itself and to those that are not joined to it."""
    widest = list(direct[source])
    reached = {source, *(gpu for gpu, links in enumerate(widest) if links)}
    edge = reached - {source}
    while edge:
        found: dict[int, int] = {}
        for middle in edge:
            for gpu, links in enumerate(direct[middle]):
                if links and gpu not in reached:
                    found[gpu] = max(found.get(gpu, 0), min(widest[middle], links))
        for gpu, links in found.items():
            widest[gpu] = links
        edge = set(found)
        reached |= edge
    return widest

"""A sequence as loops in loops: what repeats, behind itself, is written once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_LONGEST = 4096  # a body that is looked for


@dataclass(frozen=True, kw_only=True)
class Loop:
    """`body`: places of the sequence, and loops."""

    body: tuple[int | Loop, ...]
    count: int


Part = int | Loop


def fold(sequence: Sequence[Hashable]) -> tuple[Part, ...]:
    """Shortest bodies first. A number is the place of the sequence at which what it stands for is seen first."""
    first: dict[Hashable, int] = {}
    names: dict[Hashable, int] = {}
    symbols = [names.setdefault(one, len(names)) for one in sequence]
    for place, one in enumerate(sequence):
        first.setdefault(one, place)
    parts: list[Part] = [first[one] for one in sequence]
    length = 1
    while length <= min(len(symbols) // 2, _LONGEST):
        found = _runs(symbols, length)
        if not found:
            length += 1
            continue
        new_symbols, new_parts, at = [], [], 0
        for begin, count in found:
            new_symbols += symbols[at:begin]
            new_parts += parts[at:begin]
            body = tuple(symbols[begin : begin + length])
            new_symbols.append(names.setdefault((body, count), len(names)))
            new_parts.append(Loop(body=tuple(parts[begin : begin + length]), count=count))
            at = begin + count * length
        symbols, parts = new_symbols + symbols[at:], new_parts + parts[at:]
        length = 1  # a body that has become shorter may repeat now
    return tuple(parts)


def _runs(symbols: list[int], length: int) -> list[tuple[int, int]]:
    """Where a body of this length repeats, and how often, from the left."""
    found, at = [], 0
    equal = [a == b for a, b in zip(symbols, symbols[length:], strict=False)]
    while at < len(equal):
        run = at
        while run < len(equal) and equal[run]:
            run += 1
        count = (run - at) // length + 1
        if count > 1:
            found.append((at, count))
            at += count * length
        else:
            at = run + 1
    return found

"""Sets of numbers as launchers and Linux write them: lists with ranges, masks in hexadecimal, repetitions."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LONGEST = 2**16
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,8}|[0-9]{1,9}")
_MASK = re.compile(r"(0[xX])?[0-9a-fA-F]+")


def text(numbers: Iterable[int]) -> str:
    """`1-8,53`; `-` for none."""
    parts: list[str] = []
    ordered = sorted(set(numbers))
    place = 0
    while place < len(ordered):
        end = place
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        parts.append(str(ordered[place]) if end == place else f"{ordered[place]}-{ordered[end]}")
        place = end + 1
    return ",".join(parts) or "-"


def mask(numbers: Iterable[int]) -> str:
    """In hexadecimal."""
    return hex(sum(1 << number for number in set(numbers)))


def parse(listed: str) -> frozenset[int] | None:
    """Of `1-8,53`; None where it is none."""
    found: set[int] = set()
    for word in listed.split(","):
        first, dash, last = (part.strip() for part in word.partition("-"))
        last = last if dash else first
        if not first.isdecimal() or not last.isdecimal() or not int(first) <= int(last) < _LONGEST:
            return None
        found |= set(range(int(first), int(last) + 1))
    return frozenset(found)


def parse_number(word: str) -> int | None:
    """Of `9` or `0x9`, as in srun's map_ forms; None where it is none."""
    return int(word, 16 if "x" in word.lower() else 10) if _NUMBER.fullmatch(word) else None


def parse_mask(word: str) -> frozenset[int] | None:
    """Of `0x1fe`, with 0x or without."""
    value = int(word, 16) if _MASK.fullmatch(word) else 1 << _LONGEST
    if value >= 1 << _LONGEST:
        return None
    return frozenset(place for place in range(value.bit_length()) if value >> place & 1)


def repeated(listed: str) -> list[str]:
    """The items of srun's `0*4,8`: 0 four times, then 8; `8*0` stays as it is, for its reader to refuse."""
    items: list[str] = []
    for word in listed.split(","):
        item, star, times = (part.strip() for part in word.partition("*"))
        repeats = star and times.isdecimal() and 0 < int(times) < _LONGEST
        items += [item] * int(times) if repeats else [word.strip()]
    return items

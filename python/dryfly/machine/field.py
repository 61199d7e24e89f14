"""What is known of a field of a machine file: its dimension, its range, and its name in the resolved spec."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dryfly.base import units
from dryfly.base.units import COUNT, OPERATIONS, RATE, RATIO, SIZE, TIME, Dimension

_SECOND = 10**12


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field: a quantity when `dimension` is set, otherwise text (one of `choices`, if any are given)."""

    meaning: str
    dimension: Dimension | None = None
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()
    pattern: str = ""  # of the text, where not any will do; `such_as` is one that fits
    such_as: str = ""
    resolved: str = ""
    required: bool = True

    def takes(self, text: str) -> bool:
        return (not self.choices or text in self.choices) and (
            not self.pattern or re.fullmatch(self.pattern, text) is not None
        )

    def accepted(self) -> str:
        if self.dimension is None:
            return self.such_as or (" or ".join(self.choices) if self.choices else "text")
        return f"{value_text(self.least, self.dimension)} to {value_text(self.most, self.dimension)}"


def value_text(value: int, dimension: Dimension) -> str:
    if dimension is TIME:
        return units.time_text(value)
    if dimension is SIZE:
        return units.size_text(value)
    if dimension is RATE:
        return units.rate_text(value)
    if dimension is OPERATIONS:
        return f"{value:.0e} F/s"
    if dimension is RATIO:
        return f"{value / 10**4:g} %"
    return str(value)


def time(resolved: str, meaning: str, *, least: int = 0, most: int = _SECOND) -> Field:
    return Field(dimension=TIME, least=least, most=most, resolved=resolved, meaning=meaning)


def size(resolved: str, meaning: str, *, least: int = 0, most: int = 2**40) -> Field:
    return Field(dimension=SIZE, least=least, most=most, resolved=resolved, meaning=meaning)


def rate(resolved: str, meaning: str, *, least: int = 10**6) -> Field:
    return Field(dimension=RATE, least=least, most=10**13, resolved=resolved, meaning=meaning)


def count(resolved: str, meaning: str, *, least: int = 0, most: int = 2**31 - 1) -> Field:
    return Field(dimension=COUNT, least=least, most=most, resolved=resolved, meaning=meaning)


def text(meaning: str, *, required: bool = False) -> Field:
    return Field(meaning=meaning, required=required)


def optional(field: Field) -> Field:
    return replace(field, required=False)

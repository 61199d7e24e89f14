"""Text with units <-> whole numbers in base units.

Base units: picoseconds, bytes, bytes per second, millionths. Conversion is exact (fractions): a text that is no
whole number of base units is an error, and so is a number without a unit. Counts are the one thing written without
a unit, because the field's name says what is counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from dryfly.base.errors import UserError

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_NUMBER_AND_UNIT = re.compile(r"\s*([+-]?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*")


@dataclass(frozen=True, kw_only=True)
class Dimension:
    name: str
    example: str
    base: str
    units: dict[str, Fraction]


TIME = Dimension(
    name="time",
    example='"350 ns"',
    base="ps",
    units={
        unit: Fraction(scale)
        for unit, scale in {
            "ps": 1,
            "ns": 10**3,
            "us": 10**6,
            "ms": 10**9,
            "s": 10**12,
            "min": 60 * 10**12,
            "h": 3600 * 10**12,
        }.items()
    },
)
SIZE = Dimension(
    name="size",
    example='"64 KiB"',
    base="B",
    units={prefix + "B": Fraction(scale) for prefix, scale in {**_DECIMAL, **_BINARY}.items()},
)
RATE = Dimension(
    name="rate",
    example='"200 Gb/s"',
    base="B/s",
    units={
        **{prefix + "B/s": Fraction(scale) for prefix, scale in {**_DECIMAL, **_BINARY}.items()},
        **{prefix + "b/s": Fraction(scale, 8) for prefix, scale in _DECIMAL.items()},
    },
)
OPERATIONS = Dimension(
    name="rate of operations",
    example='"21 TF/s"',
    base="F/s",
    units={prefix + "F/s": Fraction(scale) for prefix, scale in _DECIMAL.items()},
)
RATIO = Dimension(
    name="ratio",
    example='"100 %"',
    base="ppm",
    units={"%": Fraction(10**4), "x": Fraction(10**6), "ppm": Fraction(1)},
)
COUNT = Dimension(name="count", example="4", base="", units={"": Fraction(1)})


def parse(text: object, dimension: Dimension) -> int:
    """The whole number of base units that `text` stands for; UserError says what is accepted instead."""
    if dimension is COUNT:
        return _parse_count(text)
    if not isinstance(text, str):
        raise UserError(f"a {dimension.name} needs a unit, such as {dimension.example}")
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match is None:
        raise UserError(f"not a {dimension.name}; accepted is text such as {dimension.example}")
    number, unit = match.group(1), match.group(2)
    if unit is None:
        raise UserError(f"a {dimension.name} needs a unit, such as {dimension.example}")
    if unit not in dimension.units:
        accepted = ", ".join(dimension.units)
        raise UserError(f'"{unit}" is no unit of {dimension.name}; accepted: {accepted}')
    value = Fraction(number.replace("_", "")) * dimension.units[unit]
    if value.denominator != 1:
        raise UserError(f"not a whole number of {dimension.base}")
    return value.numerator


def _parse_count(text: object) -> int:
    if isinstance(text, bool):
        raise UserError("a count is a whole number, such as 4")
    if isinstance(text, int):
        return text
    if isinstance(text, str) and re.fullmatch(r"\s*[+-]?\d+\s*", text):
        return int(text)
    raise UserError("a count is a whole number without a unit, such as 4")


def time_text(picoseconds: int | float) -> str:
    """Short, for people: four significant digits in the unit that fits."""
    return _scaled(picoseconds, [("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3), ("ps", 1)])


def size_text(size: int | float) -> str:
    return _scaled(size, [("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)])


def rate_text(bytes_per_s: int | float) -> str:
    return _scaled(bytes_per_s, [(p + "B/s", s) for p, s in reversed(_DECIMAL.items())])


def _scaled(value: int | float, units: list[tuple[str, int]]) -> str:
    for unit, scale in units:
        if abs(value) >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value:.4g} {units[-1][0]}"

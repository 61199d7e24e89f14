from __future__ import annotations

import pytest

from dryfly.base import units
from dryfly.base.errors import UserError
from dryfly.base.units import COUNT, RATE, RATIO, SIZE, TIME, Dimension


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("350 ns", TIME, 350_000),
        ("333.56 ns", TIME, 333_560),
        ("1.64us", TIME, 1_640_000),
        ("2 h", TIME, 7_200 * 10**12),
        ("64 KiB", SIZE, 65_536),
        ("64 kB", SIZE, 64_000),
        ("200 Gb/s", RATE, 25 * 10**9),  # 200e9 bits / 8
        ("25 GB/s", RATE, 25 * 10**9),
        ("80 %", RATIO, 800_000),
        ("0.5 x", RATIO, 500_000),
        (166, COUNT, 166),
        ("166", COUNT, 166),
    ],
)
def test_text_with_a_unit_becomes_a_whole_number_of_base_units(text: object, dimension: Dimension, value: int) -> None:
    assert units.parse(text, dimension) == value


@pytest.mark.parametrize(
    ("text", "dimension", "says"),
    [
        (350, TIME, "needs a unit"),
        ("350", TIME, "needs a unit"),
        (3.5, SIZE, "needs a unit"),
        ("350 m", TIME, "no unit of time"),
        ("200 Gb", RATE, "no unit of rate"),
        ("64 KB", SIZE, "no unit of size"),  # neither 1000 (kB) nor 1024 (KiB)
        ("0.5 ps", TIME, "not a whole number of ps"),
        ("1 b/s", RATE, "not a whole number of B/s"),
        ("fast", RATE, "accepted is text such as"),
        ("", TIME, "accepted is text such as"),
        ("2 links", COUNT, "without a unit"),
        (True, COUNT, "whole number"),
        (2.5, COUNT, "without a unit"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_is_accepted(text: object, dimension: Dimension, says: str) -> None:
    with pytest.raises(UserError, match=says):
        units.parse(text, dimension)


def test_conversion_is_exact_where_floating_point_is_not() -> None:
    # 0.1 + 0.2 style trouble: 1.1 us as a float is 1100000.0000000002 ps.
    assert units.parse("1.1 us", TIME) == 1_100_000
    assert units.parse("9007199254740993 ps", TIME) == 2**53 + 1


def test_text_for_people_picks_the_unit() -> None:
    assert units.time_text(2_340_000) == "2.34 us"
    assert units.size_text(65_536) == "64 KiB"
    assert units.rate_text(25 * 10**9) == "25 GB/s"
    assert units.time_text(0) == "0 ps"

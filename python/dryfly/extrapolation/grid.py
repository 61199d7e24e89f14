"""Grids of ranks, as MPI_Dims_create and MPI_Cart_create make them, and who is whose neighbour in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

Offset = tuple[int, ...]


@cache
def balanced(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Sides in descending order, as near to each other as their product allows."""
    if dimensions == 1:
        return (ranks,)
    best: tuple[int, ...] = ()
    for first in (side for side in range(1, ranks + 1) if ranks % side == 0):
        sides = (first, *balanced(ranks // first, dimensions - 1))
        if sides[1] <= first and (not best or _uneven(sides) < _uneven(best)):
            best = sides
    return best


def _uneven(sides: tuple[int, ...]) -> tuple[int, int]:
    return sides[0] - sides[-1], sides[0]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A grid without its size. The last side varies fastest; `ascending`: the longest side is the last one."""

    dimensions: int
    ascending: bool = False

    def of(self, ranks: int) -> Grid:
        sides = balanced(ranks, self.dimensions)
        return Grid(sides=sides[::-1] if self.ascending else sides)

    def __str__(self) -> str:
        return f"{self.dimensions}-d grid" + (", longest side last" if self.ascending else "")


@dataclass(frozen=True, kw_only=True)
class Grid:
    sides: tuple[int, ...]

    def place(self, rank: int) -> tuple[int, ...]:
        coordinates = []
        for side in reversed(self.sides):
            coordinates.append(rank % side)
            rank //= side
        return tuple(reversed(coordinates))

    def rank(self, place: tuple[int, ...]) -> int:
        number = 0
        for side, coordinate in zip(self.sides, place, strict=True):
            number = number * side + coordinate
        return number

    def offset(self, source: int, target: int) -> tuple[Offset, Offset]:
        """The shortest way there, and where it goes round: 1 in these dimensions, else 0."""
        way, wraps = [], []
        for side, here, there in zip(self.sides, self.place(source), self.place(target), strict=True):
            straight = there - here
            ways = (straight, straight + side, straight - side)
            step = min(ways, key=lambda one: (abs(one), one != straight, -one))
            way.append(step)
            wraps.append(int(step != straight))
        return tuple(way), tuple(wraps)

    def neighbour(self, rank: int, offset: Offset, closed: Offset) -> int | None:
        """None beyond an end, in dimensions that are not closed."""
        place = []
        for side, here, step, goes_round in zip(self.sides, self.place(rank), offset, closed, strict=True):
            there = here + step
            if not 0 <= there < side and not goes_round:
                return None
            place.append(there % side)
        return self.rank(tuple(place))

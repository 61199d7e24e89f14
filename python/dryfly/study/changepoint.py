"""Finds where a series of figures changes, asking for as few of them as it can. Knows nothing of what they are of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Measure = Callable[[int], float | None]  # of the point with this number; None: it cannot be tested


@dataclass(frozen=True, kw_only=True)
class Found:
    """The change is between `before` and `after`; what lies between them could not be tested."""

    before: int
    after: int


@dataclass(frozen=True, kw_only=True)
class Ends:
    first: int
    last: int
    first_figure: float
    last_figure: float

    def like_last(self, figure: float, threshold: float | None) -> bool:
        """With a threshold: away from the first end by more than that share of it, towards the last. Without: nearer to
        the last end than to the first."""
        if threshold is None:
            return abs(figure - self.last_figure) < abs(figure - self.first_figure)
        away = figure - self.first_figure
        if self.last_figure < self.first_figure:
            away = -away
        return away > threshold * abs(self.first_figure)


def ends(points: int, measure: Measure) -> Ends | None:
    """The outermost points that can be tested; None when there are not two."""
    first = next(((place, figure) for place in range(points) if (figure := measure(place)) is not None), None)
    if first is None:
        return None
    places = range(points - 1, first[0], -1)
    last = next(((place, figure) for place in places if (figure := measure(place)) is not None), None)
    if last is None:
        return None
    return Ends(first=first[0], last=last[0], first_figure=first[1], last_figure=last[1])


def search(between: Ends, measure: Measure, *, threshold: float | None) -> Found:
    """By halves. A point that cannot be tested is replaced by the nearest one to the middle that can."""
    before, after = between.first, between.last
    untestable: set[int] = set()
    while True:
        open_points = [place for place in range(before + 1, after) if place not in untestable]
        if not open_points:
            return Found(before=before, after=after)
        middle = (before + after) / 2
        place = min(open_points, key=lambda point: (abs(point - middle), point))
        figure = measure(place)
        if figure is None:
            untestable.add(place)
        elif between.like_last(figure, threshold):
            after = place
        else:
            before = place

"""What the repetitions of a benchmark say beside their mean: how far they lie apart, and which stand out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

_FENCE = 1.5  # of Tukey's: so many times the distance of the quartiles beyond them
_LEAST = 0.05  # of the median: what is nearer does not stand out, however alike the others are


@dataclass(frozen=True, kw_only=True)
class Spread:
    """`outliers`: (which repetition, from 1; its figure)."""

    values: tuple[float, ...]
    middle: float
    outliers: tuple[tuple[int, float], ...]

    @property
    def share(self) -> float:
        """From the least to the most, of the median."""
        return (max(self.values) - min(self.values)) / self.middle if self.middle else 0.0

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value; fewer than four have no outliers."""
        middle = median(values)
        outside: list[tuple[int, float]] = []
        if len(values) >= 4:
            first, _, third = quantiles(values, n=4, method="inclusive")
            fence = _FENCE * (third - first)
            outside = [
                (number, value)
                for number, value in enumerate(values, 1)
                if not first - fence <= value <= third + fence and abs(value - middle) > _LEAST * middle
            ]
        return cls(values=tuple(values), middle=middle, outliers=tuple(outside))

    def text(self) -> str:
        """Such as `2.31..9.8 (312.1%); number 4: 9.8`."""
        said = f"{min(self.values):.4g}..{max(self.values):.4g} ({self.share:.1%})"
        return "; ".join([said, *(f"number {number}: {value:.4g}" for number, value in self.outliers)])

"""How a number grows with the ranks: the performance model normal form of Extra-P with one term, c + d p^a log2(p)^b.

Source: A. Calotoiu, T. Hoefler, M. Poke and F. Wolf, "Using automated performance modeling to find scalability bugs in
complex codes", SC13. Negative powers are added, for what shrinks as a problem of one size is divided. The error of a fit
is the largest that it makes at a size that it was not given, each of the sizes in turn being left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

EXPONENTS = tuple(
    Fraction(*pair) for pair in ((-1, 1), (-2, 3), (-1, 2), (-1, 3), (0, 1), (1, 3), (1, 2), (2, 3), (1, 1))
)
_LOGS = (0, 1, 2)
_EXACT = 1e-9
_BETTER = 0.5  # by so much a form with more in it has to be


@dataclass(frozen=True, kw_only=True)
class Fit:
    """`error`: relative; of an exact one 0."""

    constant: float
    factor: float = 0.0
    exponent: Fraction = Fraction(0)
    logs: int = 0
    error: float

    def at(self, ranks: int) -> float:
        return self.constant + self.factor * _basis(ranks, self.exponent, self.logs)

    @property
    def grows(self) -> bool:
        return self.factor != 0.0

    def text(self, unit: float = 1.0) -> str:
        """An expression of Python in `p`."""
        terms = [_number(self.constant / unit)] if self.constant or not self.factor else []
        if self.factor:
            words = [_number(self.factor / unit)]
            if self.exponent:
                power = str(self.exponent) if self.exponent.denominator == 1 else f"({self.exponent})"
                words.append("p" if self.exponent == 1 else f"p ** {power}")
            if self.logs:
                words.append("log2(p)" if self.logs == 1 else f"log2(p) ** {self.logs}")
            terms.append(" * ".join(words))
        return " + ".join(terms).replace("+ -", "- ")


def fit(values: Mapping[int, float]) -> Fit:
    """Of three sizes or more. The simplest form is taken unless one with more in it is twice as near."""
    sizes = sorted(values)
    if len(set(values.values())) == 1:
        return Fit(constant=values[sizes[0]], error=0.0)
    best = _made(sizes, values, None, with_constant=True)
    if best.error <= _EXACT:
        return best
    simple = [
        _made(sizes, values, (exponent, logs), with_constant=False)
        for exponent in EXPONENTS
        for logs in _LOGS
        if exponent or logs
    ]
    nearest = min(simple, key=lambda one: one.error)
    if nearest.error < best.error * _BETTER:
        best = nearest
    if best.error <= _EXACT:
        return best
    two = [
        _made(sizes, values, (exponent, logs), with_constant=True)
        for exponent in EXPONENTS
        for logs in _LOGS
        if exponent or logs
    ]
    nearest = min(two, key=lambda one: one.error)
    return nearest if nearest.error < best.error * _BETTER else best


def _basis(ranks: int, exponent: Fraction, logs: int) -> float:
    return float(ranks ** float(exponent) * math.log2(ranks) ** logs) if ranks > 1 or not logs else 0.0


def _made(
    sizes: Sequence[int], values: Mapping[int, float], term: tuple[Fraction, int] | None, *, with_constant: bool
) -> Fit:
    constant, factor = _solved(sizes, values, term, with_constant=with_constant)
    exponent, logs = term or (Fraction(0), 0)
    error = 0.0
    for left_out in sizes:
        others = [one for one in sizes if one != left_out]
        low, slope = _solved(others, values, term, with_constant=with_constant)
        there = low + slope * _basis(left_out, exponent, logs)
        wanted = values[left_out]
        if there != wanted:
            error = max(error, abs(there - wanted) / abs(wanted) if wanted else math.inf)
    if error < _EXACT:
        error = 0.0
    return Fit(constant=constant, factor=factor, exponent=exponent, logs=logs, error=error)


def _solved(
    sizes: Sequence[int], values: Mapping[int, float], term: tuple[Fraction, int] | None, *, with_constant: bool
) -> tuple[float, float]:
    """Least squares of relative errors."""
    rows = []
    for ranks in sizes:
        weight = 1 / max(abs(values[ranks]), 1e-30)
        basis = 0.0 if term is None else _basis(ranks, *term)
        rows.append((weight if with_constant else 0.0, weight * basis, weight * values[ranks]))
    aa = sum(a * a for a, _, _ in rows)
    bb = sum(b * b for _, b, _ in rows)
    ab = sum(a * b for a, b, _ in rows)
    ay = sum(a * y for a, _, y in rows)
    by = sum(b * y for _, b, y in rows)
    if term is None:
        return ay / aa, 0.0
    if not with_constant:
        return 0.0, by / bb if bb else 0.0
    determinant = aa * bb - ab * ab
    if determinant <= 1e-12 * aa * bb:
        return ay / aa, 0.0
    return (bb * ay - ab * by) / determinant, (aa * by - ab * ay) / determinant


def _number(value: float) -> str:
    return f"{value:.6g}"

"""How a number grows with the ranks: the performance model normal form of Extra-P with one term, c + d p^a log2(p)^b.

Source: A. Calotoiu, T. Hoefler, M. Poke and F. Wolf, "Using automated performance modeling to find scalability bugs in
complex codes", SC13. Negative powers are added, for what shrinks as a problem of one size is divided. What the library
works in a collective grows with the rounds of a tree or with the number of partners, and with nothing else. The error
of a fit is the largest that it makes at a size that it was not given, each of the sizes in turn being left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

_EXACT = 1e-9
_BETTER = 0.5  # by so much a form with more in it has to be


def rounds(ranks: int) -> int:
    """Of a tree that reaches so many."""
    return (ranks - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class Term:
    exponent: Fraction = Fraction(0)
    logs: int = 0
    in_rounds: bool = False

    def at(self, ranks: int) -> float:
        if self.in_rounds:
            return float(rounds(ranks))
        return float(ranks ** float(self.exponent) * math.log2(ranks) ** self.logs)

    def text(self, name: str) -> str:
        """An expression of Python."""
        if self.in_rounds:
            return f"rounds({name})"
        words = []
        if self.exponent:
            power = str(self.exponent) if self.exponent.denominator == 1 else f"({self.exponent})"
            words.append(name if self.exponent == 1 else f"{name} ** {power}")
        if self.logs:
            words.append(f"log2({name})" if self.logs == 1 else f"log2({name}) ** {self.logs}")
        return " * ".join(words)


_POWERS = tuple(Fraction(*pair) for pair in ((0, 1), (1, 3), (1, 2), (2, 3), (1, 1)))
OF_PROGRAM = (
    *(Term(exponent=power, logs=logs) for power in _POWERS for logs in (0, 1, 2) if power or logs),
    *(Term(exponent=-power) for power in _POWERS[1:]),
)
OF_COLLECTIVE = (Term(in_rounds=True), Term(exponent=Fraction(1)))


@dataclass(frozen=True, kw_only=True)
class Fit:
    """`error`: relative; of an exact one 0."""

    constant: float
    factor: float = 0.0
    term: Term | None = None
    error: float

    def at(self, ranks: int) -> float:
        return self.constant + (self.factor * self.term.at(ranks) if self.term is not None else 0.0)

    def text(self, *, unit: float = 1.0, name: str = "p") -> str:
        """An expression of Python."""
        if self.term is None:
            return _number(self.constant / unit)
        growing = f"{_number(self.factor / unit)} * {self.term.text(name)}"
        return f"{_number(self.constant / unit)} + {growing}".replace("+ -", "- ") if self.constant else growing


def fit(values: Mapping[int, float], terms: Sequence[Term] = OF_PROGRAM) -> Fit:
    """Of three sizes or more. The simplest form is taken unless one with more in it is twice as near."""
    sizes = sorted(values)
    if len(set(values.values())) == 1:
        return Fit(constant=values[sizes[0]], error=0.0)
    best = _made(sizes, values, None, with_constant=True)
    for with_constant in (False, True):
        found = [_made(sizes, values, term, with_constant=with_constant) for term in terms]
        nearest = min(found, key=lambda one: one.error)
        if nearest.error < best.error * _BETTER:
            best = nearest
    return best


def _made(sizes: Sequence[int], values: Mapping[int, float], term: Term | None, *, with_constant: bool) -> Fit:
    constant, factor = _solved(sizes, values, term, with_constant=with_constant)
    error = 0.0
    for left_out in sizes:
        others = [one for one in sizes if one != left_out]
        low, slope = _solved(others, values, term, with_constant=with_constant)
        there = low + (slope * term.at(left_out) if term is not None else 0.0)
        wanted = values[left_out]
        if there != wanted:
            error = max(error, abs(there - wanted) / abs(wanted) if wanted else math.inf)
    return Fit(constant=constant, factor=factor, term=term, error=0.0 if error < _EXACT else error)


def _solved(
    sizes: Sequence[int], values: Mapping[int, float], term: Term | None, *, with_constant: bool
) -> tuple[float, float]:
    """Least squares of relative errors."""
    rows = []
    for ranks in sizes:
        weight = 1 / max(abs(values[ranks]), 1e-30)
        basis = 0.0 if term is None else term.at(ranks)
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

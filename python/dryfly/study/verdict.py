"""Who is best at each size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dryfly.apps.benchmarks import Table

EQUAL = 0.01  # figures this close count as equal


@dataclass(frozen=True, kw_only=True)
class Verdict:
    best: tuple[str, ...]  # more than one where they are equal
    ahead: float  # how many times better than the next that is not equal; 1 where there is none


def verdict(figures: Mapping[str, float], *, more_is_better: bool) -> Verdict:
    """`figures` by label; those that have none are left out by the caller."""
    best = max(figures.values()) if more_is_better else min(figures.values())
    behind = {label: _behind(best, figure, more_is_better) for label, figure in figures.items()}
    equal = tuple(label for label, factor in behind.items() if factor <= 1 + EQUAL)
    rest = [factor for label, factor in behind.items() if label not in equal]
    return Verdict(best=equal, ahead=min(rest, default=1.0))


def _behind(best: float, figure: float, more_is_better: bool) -> float:
    worse, better = (best, figure) if more_is_better else (figure, best)
    return worse / better if better > 0 else 1.0


def verdicts(tables: Mapping[str, Table], *, more_is_better: bool) -> dict[int, Verdict]:
    """By size, over those that have measured it."""
    found = {}
    for size in all_sizes(list(tables.values())):
        figures = {label: table[size] for label, table in tables.items() if size in table}
        found[size] = verdict(figures, more_is_better=more_is_better)
    return found


def all_sizes(tables: Sequence[Table]) -> list[int]:
    return sorted({size for table in tables for size in table})

"""What a comparison has found, benchmark by benchmark, and its figures as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dryfly.apps.benchmarks import Benchmark, Ranges, Table
from dryfly.study import software_costs
from dryfly.study.changes import Change
from dryfly.study.iterations import Spread
from dryfly.study.software_costs import Costs
from dryfly.study.trial import Result
from dryfly.study.variant import Variant
from dryfly.study.verdict import Verdict, verdicts

SPREAD_TITLE = "Repetitions: the least and the most, how far they lie apart, and which stand out"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One variant in one benchmark."""

    variant: Variant
    table: Table
    result: Result
    changes: tuple[Change, ...]
    ranges: Ranges
    spreads: dict[int, Spread] = field(default_factory=dict)  # by size; with --iterations
    failure: str = ""

    @property
    def software(self) -> Costs | None:
        return software_costs.of(self.result)


@dataclass(frozen=True, kw_only=True)
class Section:
    benchmark: Benchmark
    ranks: int
    nodes: int
    lines: tuple[Line, ...]

    @property
    def tables(self) -> dict[str, Table]:
        return {line.variant.label: line.table for line in self.lines if line.table}

    @property
    def shown(self) -> str:
        return f"{self.benchmark.shown}, {self.ranks} ranks on {self.nodes} nodes"

    def best_text(self, size: int) -> str:
        return best_text(self.verdicts[size], (label for label, table in self.tables.items() if size in table))

    @property
    def changes(self) -> list[str]:
        """A line for each change, with all that change in that way."""
        labels: dict[Change, list[str]] = {}
        for line in self.lines:
            for change in line.changes:
                labels.setdefault(change, []).append(line.variant.label)
        texts = sorted(labels, key=lambda change: (change.at, change.what, change.text))
        everyone = len(self.tables)
        return [change_text("all" if len(labels[c]) == everyone > 1 else ", ".join(labels[c]), c) for c in texts]

    @property
    def software(self) -> dict[str, Costs]:
        """By label, where the library's own code was charged."""
        return {line.variant.label: costs for line in self.lines if (costs := line.software) is not None}

    @property
    def software_notes(self) -> list[str]:
        uncounted = [
            (line.variant.label, line.variant.case.mpi or "")
            for line in self.lines
            if any(row["name"] == "uncounted_software" for row in line.result.get("health", ()))
        ]
        return software_costs.notes(self.software, uncounted)

    @property
    def ranges(self) -> dict[str, Ranges]:
        return {line.variant.label: line.ranges for line in self.lines if line.ranges}

    @property
    def spreads(self) -> dict[str, dict[int, Spread]]:
        return {line.variant.label: line.spreads for line in self.lines if line.spreads}

    def spread_rows(self) -> list[tuple[str, ...]]:
        """For each size what the repetitions of each say."""
        spreads = self.spreads
        sizes = sorted({size for of_label in spreads.values() for size in of_label})
        return [
            (size_text(size), *(each[size].text() if size in each else "-" for each in spreads.values()))
            for size in sizes
        ]

    def cell(self, label: str, size: int) -> str:
        """A figure, and with -f those of the fastest and the slowest rank."""
        text = figure_text(self.tables[label].get(size))
        if size not in self.ranges.get(label, {}):
            return text
        least, most = self.ranges[label][size]
        return f"{text} ({figure_text(least)}..{figure_text(most)})"

    @property
    def verdicts(self) -> dict[int, Verdict]:
        return verdicts(self.tables, more_is_better=self.benchmark.kind.more_is_better)


def size_text(size: int) -> str:
    if size == 0:
        return "-"
    for unit, scale in (("Mi", 2**20), ("Ki", 2**10)):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return str(size)


def figure_text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10_000 else f"{value:,.1f}" if value >= 1000 else f"{value:.2f}"


def best_text(verdict: Verdict, labels: Iterable[str]) -> str:
    """`labels`: of those that have a figure."""
    rest = [label for label in labels if label not in verdict.best]
    if len(verdict.best) > 1 and len(rest) < 2:
        return f"all but {rest[0]}" if rest else "equal"
    return " = ".join(verdict.best)


def change_text(label: str, change: Change) -> str:
    sizes = f"{size_text(change.after)} -> {size_text(change.at)}"
    return f"{label}, {sizes}: {change.what}: {change.text} (seen in {change.seen_in})"

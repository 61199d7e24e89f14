"""`dryfly compare`: the same benchmarks with several MPI libraries and settings, on the same simulated nodes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from dryfly.apps import benchmarks
from dryfly.apps.benchmarks import Benchmark
from dryfly.base.errors import UserError
from dryfly.base.grid import Grid
from dryfly.base.store import Store
from dryfly.case.bind import bind, library_of
from dryfly.mpi import software
from dryfly.result import result
from dryfly.result.capture import check_target
from dryfly.study import changes, software_costs
from dryfly.study.comparison import SPREAD_TITLE, Line, Section, size_text
from dryfly.study.iterations import Spread
from dryfly.study.kept import NOTHING, Entry, Kept
from dryfly.study.plan import Plan
from dryfly.study.trial import Result, Trial, run_all
from dryfly.study.variant import Variant

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Options:
    folder: str = "dryfly-compare"
    json_file: str | None = None
    jobs: int | None = None
    counts: bool = True
    timeout_s: float | None = None
    kept: Kept = NOTHING
    quiet: bool = False


def compare(plan: Plan, options: Options) -> int:
    """0 when every run came to its end, else 1; raises UserError for what is wrong before the first."""
    folder = Path(options.folder)
    _check(folder, options)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    plan = _on_common_ground(plan, console, options)
    jobs = options.jobs or max(1, len(os.sched_getaffinity(0)) // 2)
    store = Store(folder / "runs")
    pairs = [(benchmark, variant) for benchmark in plan.benchmarks for variant in plan.variants]
    entries = options.kept.entries([(benchmark.shown, variant.label) for benchmark, variant in pairs])
    trials = {pair: _trial(plan, *pair, entry, options) for pair, entry in zip(pairs, entries, strict=True)}
    measured = run_all(
        trials.values(), store, jobs=jobs, done=_progress(console, options, len(set(trials.values())), "measured")
    )
    counted: dict[Trial, Result] = {}
    recorded: dict[tuple[Benchmark, Variant], Trial] = {}
    if options.counts:
        for pair, trial in trials.items():
            table = benchmarks.read(measured[trial].get("output", ""))
            if len(table) > 1:
                recorded[pair] = _counting(plan, *pair, sorted(table), options)
        counted = run_all(
            recorded.values(),
            store,
            jobs=jobs,
            done=_progress(console, options, len(set(recorded.values())), "counted"),
        )
    lines = {
        pair: _line(*pair, measured[trial], counted.get(recorded.get(pair, trial))) for pair, trial in trials.items()
    }
    sections = [_section(plan, benchmark, lines) for benchmark in plan.benchmarks]
    content = _content(plan, sections)
    result.write(content, str(folder / "compare.json"))
    _write_page(folder, plan, sections, console, quiet=options.quiet)
    if options.json_file is not None:
        result.write(content, options.json_file)
    if options.json_file != "-":
        show(sections)
    return 1 if any(line.failure for line in lines.values()) else 0


def _check(folder: Path, options: Options) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"-o {folder}: that is a file; a folder is needed")
    base = folder if folder.exists() else folder.absolute().parent
    if not base.is_dir():
        raise UserError(f"-o {folder}: the folder {base} does not exist")
    if not os.access(base, os.W_OK):
        raise UserError(f"-o {folder}: nothing can be written there")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise UserError(f"-o {folder}: the folder cannot be made: {error.strerror}") from None
    if options.json_file not in (None, "-"):
        check_target("--json", str(options.json_file), folder=False)
    options.kept.check()
    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"--jobs {options.jobs}: accepted is 1 or more")
    if options.counts:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise UserError(
                'counting protocols needs pyarrow: pip install "dryfly[record]", or say --no-counts'
            ) from None


def _on_common_ground(plan: Plan, console: Console, options: Options) -> Plan:
    """Libraries that have been counted beside some that have not would differ by how they are charged: where nothing is
    said of it, none is."""
    unsaid = {each: library_of(each.case) for each in plan.variants if each.case.software is None}
    counted = {each for each, library in unsaid.items() if software.charged(None, library) is not None}
    if len(counted) in (0, len(unsaid)):
        return plan
    missing = sorted({library.name for each, library in unsaid.items() if each not in counted})
    if not options.quiet:
        console.print(
            f"dryfly: the instructions of {', '.join(missing)} have not been counted, so a call costs the same in "
            f"each library (--software none); {software.how_to_count(missing[0])} counts them",
            markup=False,
        )
    variants = [
        replace(each, case=replace(each.case, software="none")) if each in unsaid else each for each in plan.variants
    ]
    base = plan.base if plan.base.software is not None else replace(plan.base, software="none")
    return replace(plan, base=base, variants=tuple(variants))


def _trial(plan: Plan, benchmark: Benchmark, variant: Variant, entry: Entry, options: Options) -> Trial:
    return Trial(
        case=plan.case_of(benchmark, variant),
        label=variant.label,
        sources=_sources(benchmark),
        timeout_s=options.timeout_s,
        entry=entry,
    )


def _sources(benchmark: Benchmark) -> tuple[Path, ...]:
    return (benchmark.source, *sorted(benchmark.source.parent.glob("*.h")))


def _counting(plan: Plan, benchmark: Benchmark, variant: Variant, sizes: list[int], options: Options) -> Trial:
    """One timed repetition a size, recorded. Collectives get one before it, in which a library may set itself up."""
    kind = benchmark.kind
    warmup, barriers = ("1", 2) if kind.collective else ("0", kind.barriers)
    case = plan.case_of(benchmark, variant)
    digest = partial(_digest, calls=kind.calls, sizes=sizes, barriers=barriers, last=kind.collective)
    return Trial(
        case=replace(case, program=benchmark.command("-i", "1", "-x", warmup)),
        label=variant.label,
        sources=_sources(benchmark),
        recorded=True,
        digest=digest,
        timeout_s=options.timeout_s,
    )


def _digest(folder: Path, *, calls: frozenset[str], sizes: list[int], barriers: int, last: bool) -> Result:
    counted = changes.count(folder, calls=calls, sizes=sizes, barriers=barriers, last=last)
    return {str(size): row for size, row in counted.items()}


def _progress(console: Console, options: Options, of: int, what: str) -> Callable[[Trial, Result, bool], None]:
    number = 0

    def say(trial: Trial, outcome: Result, kept: bool) -> None:
        nonlocal number
        number += 1
        name = Path(trial.case.program[0]).stem
        how = "kept from before" if kept else f"{outcome['wall_time_s']:.1f} s"
        if outcome["failure"]:
            how = f"failed: {outcome['failure']}"
        if options.quiet and not outcome["failure"]:
            return
        console.print(f"dryfly: {what} {number} of {of}: {name} with {trial.label}: {how}", markup=False)
        for line in outcome.get("said", ()):
            console.print(f"  {line}", markup=False)

    return say


def _line(benchmark: Benchmark, variant: Variant, measured: Result, counted: Result | None) -> Line:
    table = benchmarks.read(measured["output"]) if not measured["failure"] else {}
    failure = measured["failure"]
    if not failure and not table:
        failure = "it printed no table"
    if not failure and counted is not None and counted["failure"]:
        failure = f"its messages were not counted: {counted['failure']}"
    found = changes.from_curve(changes.as_times(table, rate=benchmark.kind.more_is_better))
    counts = counted.get("digest") if counted is not None else None
    if counts:
        certain = changes.from_counts({int(size): row for size, row in counts.items()})
        places = {change.at for change in certain}
        found = sorted([*certain, *(c for c in found if c.at not in places)], key=lambda change: change.at)
    kept = {**measured, "counts": counts}
    ranges = benchmarks.read_ranges(measured["output"]) if table and "-f" in benchmark.options else {}
    each = benchmarks.read_each(measured["output"]) if table else {}
    spreads = {size: Spread.of(values) for size, values in each.items()}
    return Line(
        variant=variant, table=table, result=kept, changes=tuple(found), ranges=ranges, spreads=spreads,
        failure=failure,
    )  # fmt: skip


def _section(plan: Plan, benchmark: Benchmark, lines: dict[tuple[Benchmark, Variant], Line]) -> Section:
    placement = bind(plan.case_of(benchmark, plan.variants[0])).placement
    mine = tuple(lines[benchmark, variant] for variant in plan.variants)
    return Section(benchmark=benchmark, ranks=len(placement.ranks), nodes=len(placement.nodes), lines=mine)


def show(sections: list[Section]) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    for section in sections:
        kind = section.benchmark.kind
        console.print(f"{kind.title}, {kind.unit}: {section.shown}", style="bold", markup=False, soft_wrap=True)
        heads = ("size", *section.tables, "best", "ahead")
        lines: list[tuple[str | Text, ...]] = []
        judged = section.verdicts
        for size, verdict in judged.items():
            cells = [
                Text(section.cell(label, size), style="bold green" if label in verdict.best else "")
                for label in section.tables
            ]
            ahead = "" if verdict.ahead == 1 else f"x {verdict.ahead:.2f}"
            lines.append((size_text(size), *cells, section.best_text(size), ahead))
        if section.tables:
            best = frozenset({len(heads) - 2})
            console.print(Grid(heads=heads, rows=lines, left=best, prose=best, boxed=True), soft_wrap=True)
        for line in section.lines:
            if line.failure:
                console.print(f"{line.variant.label}: failed: {line.failure}", markup=False)
        for text in section.changes:
            console.print(f"  {text}", markup=False, soft_wrap=True)
        if section.spreads:
            console.print(f"  {SPREAD_TITLE}, {kind.unit}", markup=False, soft_wrap=True)
            console.print(
                Grid(heads=("size", *section.spreads), rows=section.spread_rows(), boxed=True), soft_wrap=True
            )
        _show_software(console, section)
        console.print()


def _show_software(console: Console, section: Section) -> None:
    costs = section.software
    if costs:
        console.print("  " + software_costs.TITLE, markup=False, soft_wrap=True)
        rows = software_costs.table(costs)
        console.print(Grid(heads=(software_costs.HEAD, *costs), rows=rows, boxed=True), soft_wrap=True)
    for text in section.software_notes:
        console.print(f"  {text}", markup=False, soft_wrap=True)


def _content(plan: Plan, sections: list[Section]) -> dict[str, Any]:
    base = plan.base
    placement = bind(base).placement
    return {
        "format": FORMAT,
        "machine": base.machine,
        "nodes": len(placement.nodes),
        "ppn": base.ppn,
        "ranks": len(placement.ranks),
        "place": base.place,
        "seed": base.seed,
        "set": list(base.sets),
        "settings": [
            {
                "label": variant.label,
                "mpi": variant.case.mpi,
                "environment": dict(variant.case.environment),
                "set": variant.own_sets(base),
                "flags": variant.own_flags(base),
            }
            for variant in plan.variants
        ],
        "benchmarks": [_section_content(section) for section in sections],
    }


def _section_content(section: Section) -> dict[str, Any]:
    kind = section.benchmark.kind
    return {
        "benchmark": section.benchmark.name,
        "options": list(section.benchmark.options),
        "ranks": section.ranks,
        "nodes": section.nodes,
        "unit": kind.unit,
        "more_is_better": kind.more_is_better,
        "best": {str(size): {"labels": list(v.best), "ahead": v.ahead} for size, v in section.verdicts.items()},
        "lines": [
            {
                "label": line.variant.label,
                "failure": line.failure,
                "figures": {str(size): value for size, value in line.table.items()},
                "iterations": {str(size): list(spread.values) for size, spread in line.spreads.items()},
                "ranges": {str(size): list(values) for size, values in line.ranges.items()},
                "fingerprint": line.result.get("fingerprint", ""),
                "repeatable": line.result.get("repeatable", False),
                "wall_time_s": line.result.get("wall_time_s"),
                "changes": [vars(change) for change in line.changes],
                "counts": line.result.get("counts"),
                "software": None if line.software is None else line.software.content,
            }
            for line in section.lines
        ],
    }


def _write_page(folder: Path, plan: Plan, sections: list[Section], console: Console, *, quiet: bool) -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        console.print('dryfly: no page with plots: pip install "dryfly[record]"', markup=False)
        return
    from dryfly.study import compare_page

    compare_page.write(folder / "compare.html", plan, sections)
    if not quiet:
        console.print(f"dryfly: {folder / 'compare.html'} has the plots, each is a .svg beside it", markup=False)

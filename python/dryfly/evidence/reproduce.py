"""`dryfly reproduce`: published measurements beside what dryfly gives, none left out."""

from __future__ import annotations

import fnmatch
import os
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console

from dryfly.base.errors import DryflyError, UserError
from dryfly.base.fitted import fitted
from dryfly.base.store import Store
from dryfly.case.case import SEED_MAX
from dryfly.evidence.measure import Figures, case_of, check, is_there, measure, noise_of
from dryfly.evidence.prediction import MACHINE, Found, draws
from dryfly.evidence.published import Measurement, Registry, Row, load
from dryfly.result import result
from dryfly.result.capture import check_target
from dryfly.study.kept import NOTHING, Entry, Kept
from dryfly.study.seeds import SEEDS_MAX

_SHOWN = {
    "predicted": "predicted",
    "calibrated": "calibrated",
    "consistent": "consistent",
    "device": "GPU buffers",
    "judged": "judged",
    "ordering": "ordering",
    "untested": "untested",
}


@dataclass(frozen=True, kw_only=True)
class Options:
    only: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)  # fields of Case, for every measurement
    json_file: str | None = None
    timeout_s: float | None = None
    kept: Kept = NOTHING
    quiet: bool = False
    seeds: int | None = None  # of each measurement; None: its own number where it has noise or flaps
    jobs: int | None = None  # measurements at a time; None: half the processors, all of them for predictions alone
    out: str | None = None  # folder in which predictions are kept, and taken from


def reproduce(subject: str, options: Options) -> int:
    only, json_file = options.only, options.json_file
    if json_file not in (None, "-"):
        check_target("--json", str(json_file), folder=False)
    registry = of_this_computer(load(subject))
    if "" in only:
        raise UserError("--only is empty: accepted is a reference, an id, a measurement or words of a quantity")
    chosen = [row for row in registry.rows if _wanted(row, subject, only)]
    if not chosen:
        raise UserError(f"--only {' '.join(only)}: no row has such a reference, measurement or quantity")
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    _check_seeds(options)
    needed = dict.fromkeys(figure.split("/")[0] for row in chosen for figure in row.figures)
    _check_draws([registry.measurements[name] for name in needed], options)
    entries = dict(zip(needed, options.kept.entries([(name,) for name in needed]), strict=True))
    for name, entry in entries.items():
        check(registry.measurements[name], given=options.given, entry=entry)
    options.kept.check()
    answered = store(options.out)
    measured = _measure_all({name: registry.measurements[name] for name in needed}, entries, options, answered, console)
    found, walls = measured.found, measured.walls
    figures = {name: [each.figures for each in of_seeds] for name, of_seeds in found.items()}
    warnings = {name: [text for each in of_seeds for text in each.warnings] for name, of_seeds in found.items()}
    noises = {name: noise_of(registry.measurements[name], options.given) for name in needed}
    failures = {name: f"{name}: {error}" for name, error in measured.failed.items()}
    rows = [_result(registry, row, figures, noises, warnings, failures) for row in chosen]
    summary = summarise(rows)
    if json_file is not None:
        content = {"subject": subject, "given": _shown(options.given), "summary": summary, "rows": rows}
        result.write({**content, "wall_time_s": walls}, json_file)
    if json_file != "-":
        _show(rows, [_wall(row, walls) for row in chosen], summary)
    return next((error.exit_status for error in measured.failed.values()), 0)


def of_this_computer(registry: Registry) -> Registry:
    """Rows that take a library which is not set up are untested, and say how it is had."""
    missing = {name: each.needs for name, each in registry.measurements.items() if not is_there(each)}

    def known(row: Row) -> Row:
        needs = [missing[name] for figure in row.figures if (name := figure.split("/")[0]) in missing]
        return replace(row, kind="untested", figure="", minus="", over="", note=needs[0]) if needs else row

    return replace(registry, rows=tuple(known(row) for row in registry.rows))


def _wall(row: Row, walls: Mapping[str, float]) -> str:
    """Of what measures the row; other rows may have the same."""
    names = {figure.split("/")[0] for figure in row.figures}
    return f"{sum(walls[name] for name in names):,.1f} s" if names else ""


def _check_seeds(options: Options) -> None:
    if options.seeds is not None and not 1 <= options.seeds <= SEEDS_MAX:
        raise UserError(f"--seeds {options.seeds}: accepted is 1 to {SEEDS_MAX}")
    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"--jobs {options.jobs}: accepted is 1 or more")
    first = options.given.get("seed", 1)
    if options.seeds is not None and first + options.seeds - 1 > SEED_MAX:
        raise UserError(f"--seeds {options.seeds}: the last seed would be above {SEED_MAX}")
    if options.seeds is not None and options.seeds > 1 and options.kept != NOTHING:
        raise UserError(f"--record and --trace are of one run, and --seeds {options.seeds} makes several")


def _check_draws(measurements: Sequence[Measurement], options: Options) -> None:
    """Raises UserError."""
    if options.seeds is not None and measurements and not any(map(draws, measurements)):
        raise UserError(
            f"--seeds {options.seeds} has no effect: closed forms and what a machine's file adds up to are the same "
            "with each; leave it out"
        )


def seeds_of(measurement: Measurement, options: Options) -> range:
    """Those with which it is measured: one where nothing depends on it, or where the runs are kept."""
    case = case_of(measurement, options.given)
    count = options.seeds if draws(measurement) else 1
    if count is None:
        by_chance = case.noise != "none" or bool(measurement.faults)
        count = measurement.seeds if by_chance and options.kept == NOTHING else 1
    return range(case.seed, case.seed + count)


def store(folder: str | None) -> Store | None:
    """Of predictions that have been made. Raises UserError."""
    if folder is None:
        return None
    if not folder:
        raise UserError("--out is empty: accepted is a folder")
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {folder}: it cannot be made: {error.strerror}") from None
    return Store(path)


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """By measurement. `found`: in the order of its seeds. `walls`: the seconds that these took together. `failed`: why
    there is nothing, of the first seed that says so."""

    found: Mapping[str, list[Found]]
    walls: Mapping[str, float]
    failed: Mapping[str, DryflyError]


def _measure_all(
    measurements: Mapping[str, Measurement],
    entries: Mapping[str, Entry],
    options: Options,
    answered: Store | None,
    console: Console,
) -> _Measured:
    """Nothing of it depends on how many are measured at a time. One that fails, as for want of time, is told, and the
    others go on."""
    tasks = [(name, seed) for name, each in measurements.items() for seed in seeds_of(each, options)]
    counts = {name: len(seeds_of(each, options)) for name, each in measurements.items()}
    begun: dict[str, int] = {}

    def one(task: tuple[str, int]) -> tuple[Found | DryflyError, float]:
        name, seed = task
        if name not in begun:
            begun[name] = len(begun) + 1
            if not options.quiet:
                times = f", {counts[name]} seeds" if counts[name] > 1 else ""
                console.print(f"dryfly: measuring {name} ({begun[name]} of {len(counts)}){times}", markup=False)
        given = {**options.given, "seed": seed} if counts[name] > 1 else options.given
        began = time.monotonic()
        found: Found | DryflyError
        try:
            found = measure(
                measurements[name], given=given, entry=entries[name], timeout_s=options.timeout_s, answered=answered
            )
        except DryflyError as error:
            found = error
            which = f"{name}, seed {seed}" if counts[name] > 1 else name
            console.print(f"dryfly: {which}: {error}", markup=False)
        return found, time.monotonic() - began

    with ThreadPoolExecutor(max_workers=min(_jobs(measurements.values(), options), len(tasks) or 1)) as pool:
        try:
            done = list(pool.map(one, tasks))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    all_found: dict[str, list[Found]] = {name: [] for name in measurements}
    walls = dict.fromkeys(measurements, 0.0)
    failed: dict[str, DryflyError] = {}
    for (name, _), (found, wall) in zip(tasks, done, strict=True):
        if isinstance(found, DryflyError):
            failed.setdefault(name, found)
        else:
            all_found[name].append(found)
        walls[name] = round(walls[name] + wall, 3)
    return _Measured(found=all_found, walls=walls, failed=failed)


def _jobs(measurements: Iterable[Measurement], options: Options) -> int:
    if str(options.given.get("compute", "none")).startswith("measured"):
        return 1  # runs beside one another would change what is measured
    if options.jobs is not None:
        return options.jobs
    cores = len(os.sched_getaffinity(0))
    return cores if all(each.predict for each in measurements) else max(1, cores // 2)


def _shown(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def _wanted(row: Row, subject: str, only: tuple[str, ...]) -> bool:
    """By heading of docs/model/measurements.md, by id with or without the subject, by measurement, or by the words of
    the quantity; with wildcards."""
    if not only:
        return True
    short = row.id.removeprefix(f"{subject}/")
    names = [row.reference, row.id, *(f.split("/")[0] for f in row.figures)]
    return any(
        pattern in names
        or any(fnmatch.fnmatch(words, pattern) or pattern in words for words in (row.quantity, row.id, short))
        for pattern in only
    )


def _value(row: Row, figures: Mapping[str, Figures]) -> float:
    def figure(path: str) -> float:
        name, _, key = path.partition("/")
        if key not in figures[name]:
            raise UserError(f"measurement {name} has no figure {key}; it has {', '.join(figures[name])}")
        return figures[name][key]

    value = figure(row.figure)
    if row.minus:
        value -= figure(row.minus)
    if row.over:
        value /= figure(row.over)
    return value * row.scale


def _values(row: Row, figures: Mapping[str, Sequence[Figures]]) -> list[float]:
    """Of each seed; what was measured with one only is the same beside all others."""
    names = {figure.split("/")[0] for figure in row.figures}
    count = max(len(figures[name]) for name in names)
    return [
        _value(row, {name: figures[name][min(seed, len(figures[name]) - 1)] for name in names}) for seed in range(count)
    ]


def _error(row: Row, value: float) -> float:
    """Against the published figure, or against the nearer end of a published range; 0 inside it."""
    assert row.least is not None
    assert row.most is not None
    nearest = min(max(value, row.least), row.most)
    return (value - nearest) / nearest if nearest else 0.0


def _result(
    registry: Registry,
    row: Row,
    figures: Mapping[str, Sequence[Figures]],
    noises: Mapping[str, str] = MappingProxyType({}),
    warnings: Mapping[str, Sequence[str]] = MappingProxyType({}),
    failures: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """`figures`: by measurement, of each of its seeds; `warnings`: by measurement, of all of them; `failures`: of those
    measurements that have no figures."""
    noise = [found for figure in row.figures if (found := noises.get(figure.split("/")[0], "none")) != "none"]
    failure = next((failures[name] for figure in row.figures if (name := figure.split("/")[0]) in failures), None)
    measured = row.figures != () and failure is None
    values = _values(row, figures) if measured else []
    value = statistics.median(values) if measured else None
    return {
        "id": row.id,
        "quantity": row.quantity,
        "reference": row.reference,
        "unit": row.unit,
        "published": row.judgement or _numbers(row),
        "dryfly": value,
        "error": None if value is None or row.least is None else _error(row, value),
        "constant": row.constant,
        "constant_error": _error(row, row.constant) if row.constant is not None else None,
        "kind": row.kind,
        "accepts": None if row.accepts is None else list(row.accepts),
        "verdict": verdict_of(registry, row, value) if failure is None else None,
        "failure": failure,
        "noise": noise[0] if noise else "none",
        "seeds": {"count": len(values), "least": min(values), "most": max(values)} if len(values) > 1 else None,
        "source": row.source,
        "certainty": row.certainty,
        "note": row.note,
        "warnings": list(
            dict.fromkeys(text for figure in row.figures for text in warnings.get(figure.split("/")[0], ()))
        ),
        "measured_by": [_how(registry, figure) for figure in row.figures],
    }


COMES_OUT, DOES_NOT, NO_VERDICT = "comes out", "does not", "cannot be tested"


def verdict_of(registry: Registry, row: Row, value: float | None) -> str | None:
    """None: the row asks for no verdict. What is untested counts where others of the file have one."""
    if value is None:
        return NO_VERDICT if any(each.accepts for each in registry.rows) else None
    if row.accepts is None:
        return None
    return COMES_OUT if row.accepts[0] <= value <= row.accepts[1] else DOES_NOT


def _numbers(row: Row) -> float | list[float | None] | None:
    return row.least if row.least == row.most else [row.least, row.most]


def _how(registry: Registry, figure: str) -> str:
    measurement = registry.measurements[figure.split("/")[0]]
    if measurement.predict == MACHINE:
        return f"{figure}: dryfly machines show {measurement.machine}"
    if measurement.predict:
        return f"{figure}: dryfly predict {measurement.predict} on {measurement.nodes:,} nodes of {measurement.machine}"
    program = measurement.program if "/" in measurement.program else f"micro/{measurement.program}"
    what = f"programs/{program}.c" if measurement.program else f"generator {measurement.pattern}"
    return f"{figure}: {what} on {measurement.machine}"


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Predicted rows are those that count; the others are stated beside them, and so is how many failed."""
    there = [row for row in rows if row.get("failure") is None]

    def median(*kinds: str) -> float | None:
        errors = [abs(row["error"]) for row in there if row["kind"] in kinds]
        return statistics.median(errors) if errors else None

    predicted = [abs(row["error"]) for row in there if row["kind"] == "predicted"]
    return {
        "rows": {kind: sum(row["kind"] == kind for row in there) for kind in _SHOWN},
        "rows_failed": len(rows) - len(there),
        "rows_with_noise": sum(row["noise"] != "none" for row in there),
        "rows_of_several_seeds": sum(row["seeds"] is not None for row in there),
        "noise": sorted({row["noise"] for row in there} - {"none"}),
        "verdicts": {
            verdict: sum(row["verdict"] == verdict for row in there) for verdict in (COMES_OUT, DOES_NOT, NO_VERDICT)
        },
        "predicted_median_absolute_error": median("predicted"),
        "predicted_within_10_percent": sum(error <= 0.1 for error in predicted),
        "predicted_and_device_median_absolute_error": median("predicted", "device"),
    }


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _published(row: Mapping[str, Any]) -> str:
    published = row["published"]
    if isinstance(published, list):
        return f"{_number(published[0])} to {_number(published[1])}"
    if isinstance(published, str):
        return published
    return "no number" if published is None else _number(published)


def _show(rows: list[dict[str, Any]], walls: Sequence[str], summary: Mapping[str, Any]) -> None:
    """Plain columns, as wide as they need to be: the table may go into a file. On a terminal its lines are broken."""
    console = Console(highlight=False, soft_wrap=True)
    flat = any(row["constant"] is not None for row in rows)
    judged = any(row["verdict"] is not None for row in rows)
    more = ("flat",) if flat else ()
    verdict = ("verdict",) if judged else ()
    heads = ("ref", "quantity", "published", "dryfly", "unit", "error", *more, *verdict, "kind", "wall", "source")
    lines = [heads]
    warned = {text: number for number, text in enumerate(dict.fromkeys(t for row in rows for t in row["warnings"]), 1)}
    for row, wall in zip(rows, walls, strict=True):
        errors = [_percent(row[name]) for name in ("error", "constant_error")[: 1 + flat]]
        verdicts = (row["verdict"] or "",) if judged else ()
        lines.append(
            (row["id"] or row["reference"], row["quantity"], _published(row), _number(row["dryfly"]), row["unit"],
             *errors, *verdicts, _shown_kind(row, warned), wall, f"{row['source']} [{row['certainty']}]")
        )  # fmt: skip
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    for line in lines:
        cells = [
            cell.rjust(width) if heads[column] in _NUMBERS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        console.print(fitted("  ".join(cells).rstrip()), markup=False)
    _show_warnings(console, warned)
    _show_noted(console, "failed", [(row, row["failure"]) for row in rows])
    _show_notes(console, rows)
    _show_summary(console, summary)


_NUMBERS = ("published", "dryfly", "error", "flat", "wall")


def _percent(error: float | None) -> str:
    return "" if error is None else f"{error:+.1%}"


def _shown_kind(row: Mapping[str, Any], warned: Mapping[str, int] = MappingProxyType({})) -> str:
    """With the numbers of what the row's prediction warned of."""
    kind = _SHOWN[row["kind"]] + ("" if row["noise"] == "none" else ", noise")
    kind += "" if row.get("failure") is None else ", failed"
    return kind + "".join(f" [{warned[text]}]" for text in row.get("warnings", ()) if text in warned)


def _show_warnings(console: Console, warned: Mapping[str, int]) -> None:
    if warned:
        console.print("\nwarnings of predictions", markup=False)
    for text, number in warned.items():
        console.print(fitted(f"  [{number}] {text}"), markup=False)


def _show_notes(console: Console, rows: list[dict[str, Any]]) -> None:
    for kind, title in (
        ("untested", "not tested"),
        ("calibrated", "calibrated"),
        ("predicted", "notes"),
        ("ordering", "orderings"),
        ("judged", "how"),
    ):
        _show_noted(console, title, [(row, row["note"]) for row in rows if row["kind"] == kind])


def _show_noted(console: Console, title: str, rows: Sequence[tuple[Mapping[str, Any], str | None]]) -> None:
    noted: dict[str, list[str]] = {}  # points of a curve have one note
    for row, note in rows:
        if note:
            noted.setdefault(note, []).append(row["quantity"])
    if noted:
        console.print(f"\n{title}", markup=False)
    for note, quantities in noted.items():
        more = f" and {len(quantities) - 1} more" if len(quantities) > 1 else ""
        console.print(fitted(f"  {quantities[0]}{more}: {note}"), markup=False)


def _show_summary(console: Console, summary: Mapping[str, Any]) -> None:
    counts = summary["rows"]
    console.print("")
    median = summary["predicted_median_absolute_error"]
    if median is not None:
        console.print(
            f"{counts['predicted']} predicted rows: median absolute error {median:.1%}, "
            f"{summary['predicted_within_10_percent']} within 10 %",
            markup=False,
        )
    both = summary["predicted_and_device_median_absolute_error"]
    if counts["device"] and both is not None:
        console.print(
            f"{counts['device']} rows published for GPU buffers and measured here with the host's: "
            f"with them the median is {both:.1%}",
            markup=False,
        )
    noisy = summary["rows_with_noise"]
    if noisy:
        console.print(
            f"{noisy} rows measured with noise of the operating system ({', '.join(summary['noise'])}), "
            f"{summary['rows_of_several_seeds']} rows by the median of several seeds",
            markup=False,
        )
    if counts["consistent"]:
        console.print(
            f"{counts['consistent']} rows with which the model is consistent, and no better there than an efficiency "
            "that is kept (flat)",
            markup=False,
        )
    verdicts = summary["verdicts"]
    if any(verdicts.values()):
        console.print(
            f"{sum(verdicts.values())} rows with a verdict: {verdicts[COMES_OUT]} come out, "
            f"{verdicts[DOES_NOT]} do not, {verdicts[NO_VERDICT]} cannot be tested",
            markup=False,
        )
    if counts["judged"]:
        console.print(
            f"{counts['judged']} rows beside a judgement in words, that no number holds against", markup=False
        )
    if summary["rows_failed"]:
        console.print(f"{summary['rows_failed']} rows without a figure, for its measurement failed", markup=False)
    console.print(f"{counts['calibrated']} calibrated rows, {counts['untested']} not tested", markup=False)

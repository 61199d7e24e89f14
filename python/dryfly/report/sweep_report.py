"""`dryfly report FOLDER` of a sweep (`dryfly predict --out FOLDER`): how the workload scales, where its time goes in
each case, and how much each parameter matters."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.predict import figure, sweep
from dryfly.predict.sweep import Axis
from dryfly.report.page import document, section, table

_STACKS_SHOWN = 40
_ROWS_SHOWN = 400
_LINES_SHOWN = 12

Answer = Mapping[str, Any]
Case = tuple[tuple[str, ...], Answer]


def is_one(folder: Path) -> bool:
    return (folder / sweep.SWEEP).is_file()


def page(folder: Path) -> str:
    axes, cases = sweep.read(folder)
    if not cases:
        raise UserError(f"{folder}: nothing of this sweep has been answered yet; run the same command again")
    first = cases[0][1]
    title = f"dryfly predict {first['workload']}"
    parts = [f"<h1><code>{escape(title)}</code></h1>", f'<p class="note">{escape(_about(axes, cases))}</p>']
    parts += [f'<p class="warning">{escape(text)}</p>' for text in _warnings(cases)]
    if any(each.name == "nodes" for each in axes):
        parts.append(_scaling(axes, cases))
    parts.append(_phases(axes, cases))
    sensitivity = sensitivities(axes, cases)
    if sensitivity:
        parts.append(_sensitivity(sensitivity))
    if "n" in first["parameters"] and first["steps"]:
        parts.append(_steps(axes, cases))
    parts.append(_table(axes, cases))
    return document(title, parts)


def _about(axes: Sequence[Axis], cases: Sequence[Case]) -> str:
    first = cases[0][1]
    swept = "; ".join(f"{each.name}: {', '.join(each.values)}" for each in axes) or "one case"
    how = "closed form" if first["level"] is None else f"skeletons, network {first['level']}"
    calibrated = {answer["calibrated"] for _, answer in cases} - {""}
    kind = f"; calibrated: {', '.join(sorted(calibrated))}" if calibrated else "; nothing calibrated"
    kind += "".join(f"; assumed: {each}" for each in sorted({answer.get("assumed", "") for _, answer in cases} - {""}))
    return f"{first['machine']}; {how}; {len(cases):,} cases of {swept}{kind}"


def _warnings(cases: Sequence[Case]) -> list[str]:
    return list(dict.fromkeys(text for _, answer in cases for text in answer["warnings"]))[:8]


def _label(axes: Sequence[Axis], values: Sequence[str], *, without: str = "") -> str:
    return ", ".join(f"{each.name}={value}" for each, value in zip(axes, values, strict=True) if each.name != without)


def main_figure(answer: Answer) -> tuple[str, float]:
    """The workload's rate; where it has none, how often it could be done in a second."""
    for name, value in answer["figures"].items():
        if name.endswith("per_s"):
            return name, float(value)
    time = answer["virtual_time_s"]
    return "per_s", 1.0 / time if time > 0 else 0.0


def curves(axes: Sequence[Axis], cases: Sequence[Case]) -> dict[str, list[tuple[int, float, float]]]:
    """By the other axes: nodes, rate, and efficiency: the rate of a node against that of the curve's fewest nodes."""
    found: dict[str, list[tuple[int, float]]] = {}
    for values, answer in cases:
        label = _label(axes, values, without="nodes")
        found.setdefault(label, []).append((int(answer["nodes"]), main_figure(answer)[1]))
    made = {}
    for label, points in found.items():
        points.sort()
        nodes, rate = points[0]
        made[label] = [(n, r, r / n / (rate / nodes) if rate else 0.0) for n, r in points]
    return made


def _scaling(axes: Sequence[Axis], cases: Sequence[Case]) -> str:
    from dryfly.report import pictures

    found = curves(axes, cases)
    shown = dict(list(found.items())[:_LINES_SHOWN])
    name = main_figure(cases[0][1])[0]
    note = "Above the rate, below what a node does of it, against the fewest nodes of its curve."
    if len(found) > len(shown):
        note += f" The first {len(shown)} of {len(found)} curves."
    return section("Scaling", pictures.scaling(shown, name, figure.value_text), note)


def _phases(axes: Sequence[Axis], cases: Sequence[Case]) -> str:
    from dryfly.report import pictures

    shown = cases[:_STACKS_SHOWN]
    if not any(answer["phases_s"] for _, answer in shown):
        return ""
    rows = [(_label(axes, values) or "the case", answer["phases_s"]) for values, answer in shown]
    note = "Virtual time by phase." + (f" The first {len(shown)} of {len(cases):,} cases." if shown != cases else "")
    return section("Where the time goes", pictures.stacks(rows), note)


def sensitivities(axes: Sequence[Axis], cases: Sequence[Case]) -> list[tuple[str, dict[str, float]]]:
    """Of each axis with several values, but the number of nodes: by value the rate against that of its first value,
    everything else alike, as the median over everything else. The axis that matters most comes first."""
    found = []
    for place, each in enumerate(axes):
        if each.name == "nodes":
            continue
        first = {_others(values, place): main_figure(answer)[1] for values, answer in cases
                 if values[place] == each.values[0]}  # fmt: skip
        ratios: dict[str, list[float]] = {}
        for values, answer in cases:
            base = first.get(_others(values, place), 0.0)
            if base > 0:
                ratios.setdefault(values[place], []).append(main_figure(answer)[1] / base)
        medians = {value: statistics.median(ratios[value]) for value in each.values if value in ratios}
        if len(medians) > 1:
            found.append((each.name, medians))
    return sorted(found, key=lambda pair: min(pair[1].values()) / max(pair[1].values()))


def _others(values: Sequence[str], place: int) -> tuple[str, ...]:
    return (*values[:place], *values[place + 1 :])


def _sensitivity(found: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    from dryfly.report import pictures

    rows = [[f"{name} = {value}", f"{ratio - 1:+.2%}"] for name, medians in found for value, ratio in medians.items()]
    note = (
        "The rate (where there is none, one over the time) against that of each parameter's first value, everything "
        "else alike; the median over everything else. What matters most is on top."
    )
    return section("Sensitivity", pictures.sensitivity(found) + table(["value", "rate"], rows), note)


def _steps(axes: Sequence[Axis], cases: Sequence[Case]) -> str:
    from dryfly.report import pictures

    values, answer = max(cases, key=lambda case: main_figure(case[1])[1])
    note = (
        f"Parts of a step of the fastest case ({_label(axes, values) or 'the only one'}), which go on at the same "
        "time: the topmost bounds it."
    )
    return section("Panel by panel", pictures.parts_of_steps(answer["steps"]), note)


def _table(axes: Sequence[Axis], cases: Sequence[Case]) -> str:
    names = figure.of_all([answer["figures"] for _, answer in cases])
    rows = []
    for values, answer in cases[:_ROWS_SHOWN]:
        figures = answer["figures"]
        cells = [figure.value_text(name, figures[name]) if name in figures else "" for name in names]
        bound = f"{answer['error_bound']:.1%}" if answer["sampled"] else ""
        rows.append([_label(axes, values) or "the case", figure.seconds_text(answer["virtual_time_s"]), bound, *cells])
    note = f"The first {_ROWS_SHOWN} of {len(cases):,}: table.parquet has all." if len(cases) > _ROWS_SHOWN else ""
    return section("Cases", table(["", "virtual time", "within", *map(figure.name_text, names)], rows), note)

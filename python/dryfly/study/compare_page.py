"""The page of a comparison: a plot and a table for each benchmark. It needs nothing beside it; each plot is a file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from dryfly.base.errors import RunError
from dryfly.base.files import write_whole
from dryfly.case.bind import bind
from dryfly.report import pictures
from dryfly.study import software_costs
from dryfly.study.comparison import SPREAD_TITLE, Section, size_text
from dryfly.study.plan import Plan

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1000px; margin: 2em auto; padding: 0 1em; }
h2 { margin-top: 2em; } p, li { color: #444; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .12em .9em .12em 0; } th { border-bottom: 1px solid #bbb; vertical-align: bottom; }
td { white-space: nowrap; } td.among { white-space: normal; text-align: left; max-width: 18em; }
td.best { font-weight: 700; color: #1a7a3a; } td.name { text-align: left; } .failed { color: #a33; }
svg { max-width: 100%; height: auto; }
"""


def write(target: Path, plan: Plan, sections: Sequence[Section]) -> None:
    base = plan.base
    placement = bind(base).placement
    settings = "".join(
        f"<tr><td class=name>{escape(v.label)}</td><td class=name>{escape(v.case.mpi or '')}</td><td class=name>"
        f"{escape(v.shown(base))}</td></tr>"
        for v in plan.variants
    )
    head = (
        f"<h1>MPI libraries on {escape(base.machine)}</h1><p>{len(placement.ranks):,} ranks on "
        f"{len(placement.nodes):,} nodes, {escape(base.place)}, seed {base.seed}; computing takes no time. "
        f"One pair: two ranks on two nodes, or on the one there is.</p><table>{settings}</table>"
    )
    names = [section.benchmark.name for section in sections]
    files = [f"{name}-{k + 1}" if names.count(name) > 1 else name for k, name in enumerate(names)]
    parts = (_section(section, target.parent, name) for section, name in zip(sections, files, strict=True))
    body = "\n".join([head, *parts])
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>dryfly compare</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )
    _put(target, page)


def _put(target: Path, text: str) -> None:
    try:
        write_whole(target, text.encode())
    except OSError as error:
        raise RunError(f"{target} cannot be written: {error.strerror}", exit_status=1) from None


def _section(section: Section, folder: Path, name: str) -> str:
    kind = section.benchmark.kind
    parts = [f"<h2>{escape(kind.title)}</h2>"]
    ranks = f"{section.ranks} ranks on {section.nodes} nodes"
    parts.append(f"<p><code>{escape(section.benchmark.shown)}</code>, {ranks}; {kind.unit}</p>")
    if any(len(table) > 1 for table in section.tables.values()):
        marks = {line.variant.label: {change.at for change in line.changes} for line in section.lines}
        picture = pictures.curves(section.tables, marks, unit=kind.unit)
        _put(folder / f"{name}.svg", picture)
        parts.append(picture)
        parts.append("<p>Rings: protocol or algorithm changes there, or the curve jumps.</p>")
    parts.append(_table(section))
    said = "".join(f"<li>{escape(text)}</li>" for text in section.changes)
    parts.append(f"<ul>{said}</ul>" if said else "")
    parts.append(_spreads(section))
    parts.append(_software(section))
    for line in section.lines:
        if line.failure:
            parts.append(f"<p class=failed>{escape(line.variant.label)}: failed: {escape(line.failure)}</p>")
    return "\n".join(parts)


def _spreads(section: Section) -> str:
    if not section.spreads:
        return ""
    head = "".join(f"<th>{escape(text)}</th>" for text in ("size", *section.spreads))
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>" for cells in section.spread_rows()
    )
    return f"<p>{escape(SPREAD_TITLE)}, {section.benchmark.kind.unit}</p><table><tr>{head}</tr>{rows}</table>"


def _software(section: Section) -> str:
    costs = section.software
    notes = "".join(f"<li>{escape(text)}</li>" for text in section.software_notes)
    said = f"<ul>{notes}</ul>" if notes else ""
    if not costs:
        return said
    head = "".join(f"<th>{escape(text)}</th>" for text in (software_costs.HEAD, *costs))
    rows = "".join(
        f"<tr><td class=name>{escape(name)}</td>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for name, *cells in software_costs.table(costs)
    )
    return f"<p>{escape(software_costs.TITLE)}</p><table><tr>{head}</tr>{rows}</table>{said}"


def _table(section: Section) -> str:
    tables, judged = section.tables, section.verdicts
    head = "".join(f"<th>{escape(text)}</th>" for text in ("size", *tables, "best", "ahead"))
    rows = []
    for size, verdict in judged.items():
        cells = "".join(
            f"<td{' class=best' if label in verdict.best else ''}>{section.cell(label, size)}</td>" for label in tables
        )
        ahead = "" if verdict.ahead == 1 else f"&times; {verdict.ahead:.2f}"
        best = escape(section.best_text(size))
        rows.append(f"<tr><td>{size_text(size)}</td>{cells}<td class=among>{best}</td><td>{ahead}</td></tr>")
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"

"""`dryfly report SEEDS.json`: what the runs of several seeds have in common, from `dryfly run --seeds N --json`:
medians with their intervals, and the least and the most of all runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.base.units import size_text, time_text
from dryfly.report import pictures
from dryfly.report.page import document, section, table

TIME = "virtual time"
_PS_PER_S = 10**12
_FORMAT = "seeds"

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A column of the programs' tables, by message size."""

    name: str
    sizes: tuple[int, ...]
    figures: tuple[Json, ...]
    without: tuple[float, ...] | None  # noise, where there is such a run


def is_one(path: Path) -> bool:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("kind") == _FORMAT


def write(path: Path, target: str) -> bytes:
    if Path(target).suffix.lower() not in (".html", ".htm"):
        raise UserError(f"-o {target}: of several seeds a page is made: accepted is a name that ends with .html")
    content = json.loads(path.read_text(encoding="utf-8"))
    try:
        return _page(content).encode()
    except (KeyError, TypeError, IndexError, ValueError):
        raise UserError(f"{path} is no complete --json of dryfly run --seeds") from None


def curves(content: Json) -> list[Curve]:
    """In the order of the columns."""
    found: dict[int, dict[int, str]] = {}
    for name in content["figures"]:
        if name == TIME:
            continue
        size, _, column = name.partition(", figure ")
        found.setdefault(int(column or 1), {})[int(size)] = name
    without = content.get("figures_without_noise", {})
    result = []
    for column, names in sorted(found.items()):
        sizes = tuple(sorted(names))
        has_all = all(names[size] in without for size in sizes)
        result.append(
            Curve(
                name="figure" if len(found) == 1 else f"figure {column}",
                sizes=sizes,
                figures=tuple(content["figures"][names[size]] for size in sizes),
                without=tuple(without[names[size]] for size in sizes) if has_all else None,
            )
        )
    return result


def _page(content: Json) -> str:
    confidence = content["confidence"]
    seeds = content["seeds"]
    how = (
        f"The bars are intervals of the median, which is in them with at least {confidence:.0%}; the pale ones reach "
        "from the least to the most of all runs."
        if confidence is not None
        else "Too few seeds for an interval of the median: the bars reach from the least to the most of all runs."
    )
    of_seeds = "A point for each seed; the band is the interval of the median, or all runs where there are too few."
    parts = [_head(content, seeds)]
    for curve in curves(content):
        picture = pictures.spreads_by_size(curve.sizes, curve.figures, curve.without)
        title = f"By message size, {curve.name}" if curve.name != "figure" else "By message size"
        parts.append(section(title, picture + _rows(curve), how))
    time = content["figures"][TIME]
    without = content.get("without_noise")
    base = without["result"]["virtual_time_s"] if without else None
    parts.append(section("Virtual time of each seed", pictures.values_by_seed(seeds, time, base), of_seeds))
    return document(f"dryfly: {len(seeds)} seeds of {shlex.join(content['program'])}", parts)


def _head(content: Json, seeds: Sequence[int]) -> str:
    result = content["runs"][0]["result"]
    time = content["figures"][TIME]
    low, high = (_time(value) for value in time["interval"])
    facts = [
        ("machine", f"{result['machine']}, {result['ranks']:,} ranks on {result['nodes']:,} nodes"),
        ("seeds", f"{len(seeds)}, {seeds[0]} to {seeds[-1]}"),
        ("virtual time", f"median {_time(time['median'])}, interval {low} to {high}"),
        ("noise", result["noise"]["of"]),
    ]
    rows = "".join(f"<tr><td>{name}</td><td style='text-align:left'>{escape(text)}</td></tr>" for name, text in facts)
    cost = f"<p>{escape(content['noise_cost']['text'])}.</p>" if "noise_cost" in content else ""
    return f"<h1><code>{escape(shlex.join(content['program']))}</code></h1>\n<table>{rows}</table>{cost}"


def _rows(curve: Curve) -> str:
    heads = ["size", "median", "from", "to", "least", "most", *(["no noise"] if curve.without else [])]
    rows = []
    for at, size in enumerate(curve.sizes):
        figure = curve.figures[at]
        values = [figure["median"], *figure["interval"], figure["least"], figure["most"]]
        values += [curve.without[at]] if curve.without else []
        rows.append([size_text(size), *(f"{value:.6g}" for value in values)])
    return table(heads, rows)


def _time(seconds: float) -> str:
    return time_text(seconds * _PS_PER_S) if seconds > 0 else "0 s"

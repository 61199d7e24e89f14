"""A validation as a page: findings, levels, and heat maps of what each part takes over what is expected of it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.report import page
from dryfly.report.pictures import STYLE
from dryfly.result import result
from dryfly.result.capture import check_target
from dryfly.validate import parts as parts_of
from dryfly.validate import text
from dryfly.validate.asked import NATIVE

_MEASURES = {
    "memory": "Memory of nodes", "cpu": "Cores of nodes", "loopback": "NICs to themselves",
    "gpu": "GPUs, by NICs of their nodes",
    "nic": "NICs of a switch among each other", "latency": "Latency between NICs of a switch",
    "link": "Cables between switches of a group", "cable": "Cables between groups",
    "pair": "NICs with all nodes of their group, loaded", "groups": "NICs with nodes of other groups, group by group",
    "system": "NICs with all nodes of other groups, loaded",
}  # fmt: skip
_PARTS = {"memory": "node", "cpu": "node", "gpu": "GPU", "link": "cable", "cable": "cable"}  # of others: NIC
_SHOWN_MOST = 1.5
_COLUMNS = 64


def write_page(source: str, target: str) -> bool:
    """Of the --json of a validation; False: `source` is something else. Raises UserError, RunError."""
    path = Path(source)
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError):
        return False
    if not isinstance(content, dict) or "validation" not in content:
        return False
    if Path(target).suffix.lower() not in (".html", ".htm"):
        raise UserError(f"-o {target}: of a validation a page is made: accepted is a name that ends with .html")
    check_target("-o", target, folder=False)
    result.write_text(document(content), target)
    return True


def document(content: Mapping[str, Any]) -> str:
    found = content["findings"]
    title = f"Validation of {content['machine']}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="note">{len(content["use"]["nodes"]) + len(content["exclude"]["nodes"]):,} nodes, '
        f"{escape(_how(content))}: {'nothing' if not found else len(found)} found</p>",
        page.section("Findings", _findings(found)),
        page.section("Levels", _levels(content)),
        page.section("Nodes", f"<p>{escape(parts_of.line(content['parts']).capitalize())}.</p>" + _nodes(content)),
    ]
    for level in content["levels"]:
        for measure, ratios in level["slower"].items():
            parts.append(_map(level["name"], measure, ratios))
    events = "<pre>" + escape("\n".join(content["events"])) + "</pre>"
    parts.append(page.section("Event log", events, f"Seconds of {text.clock(content)} since the validation began."))
    return page.document(title, parts)


def _findings(found: Sequence[Mapping[str, Any]]) -> str:
    if not found:
        return "<p>Nothing was found.</p>"
    heads = ("Kind", "Place", "Level", "Measured", "Evidence")
    rows = [
        (row["kind"], row["name"], row["level"], text.figure(row), " | ".join(row["evidence"]) or "none but the figure")
        for row in found
    ]
    return page.table(heads, rows)


def _how(content: Mapping[str, Any]) -> str:
    if content["network"] == NATIVE:
        return f"natively, {content['mpi']}"
    return f"network {content['network']}, seed {content['seed']}"


def _levels(content: Mapping[str, Any]) -> str:
    heads = ("Level", "Nodes", "Steps", "Pairs", text.clock(content).capitalize(), "Result")
    return page.table(
        heads,
        [
            (row["name"], f"{row['nodes']:,}", f"{row['steps']:,}", f"{row['pairs']:,}",
             f"{row['virtual_time_s'] * 1e3:.3f} ms", row["result"])
            for row in content["levels"]
        ],
    )  # fmt: skip


def _nodes(content: Mapping[str, Any]) -> str:
    rows = [(name, content[name]["slurm"] or "none", str(len(content[name]["nodes"]))) for name in ("use", "exclude")]
    return page.table(("", "Slurm", "Nodes"), rows)


def _map(level: str, measure: str, ratios: Mapping[str, float]) -> str:
    worst = max(ratios.items(), key=lambda row: row[1])
    note = (
        f"Level {level}: time over what is expected, over the median of all {len(ratios):,}. The slowest: {worst[0]}, "
        f"{worst[1]:.3f}."
    )
    values, heads = _links(ratios) if measure == "link" else _rows(ratios, measure)
    return page.section(_MEASURES.get(measure, measure), _heat(values, *heads), note)


def _links(ratios: Mapping[str, float]) -> tuple[list[list[float]], tuple[str, str]]:
    """A square for all pairs of switches: groups stand on its diagonal."""
    ends = {name: tuple(map(int, re.findall(r"\d+", name)[:2])) for name in ratios}
    switches = sorted({end for pair in ends.values() for end in pair})
    place = {switch: number for number, switch in enumerate(switches)}
    size = len(switches)
    values = [[float("nan")] * size for _ in range(size)]
    for name, (a, b) in ends.items():
        values[place[a]][place[b]] = values[place[b]][place[a]] = ratios[name]
    return values, ("switch", "switch")


def _rows(ratios: Mapping[str, float], measure: str) -> tuple[list[list[float]], tuple[str, str]]:
    names = sorted(ratios, key=lambda name: [int(number) for number in re.findall(r"\d+", name)])
    values = [ratios[name] for name in names]
    columns = min(_COLUMNS, len(values))
    rows = [values[at : at + columns] for at in range(0, len(values), columns)]
    rows[-1] = rows[-1] + [float("nan")] * (columns - len(rows[-1]))
    kind = _PARTS.get(measure, "NIC")
    return rows, (f"{kind}, in order, from the left", "row")


def _heat(values: Sequence[Sequence[float]], across: str, down: str) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, MaxNLocator

    mpl.rcParams.update(STYLE)
    height = max(1.7, min(7.0, 0.6 + 7.0 * len(values) / max(len(values[0]), 8)))
    figure = Figure(figsize=(7.5, height), layout="constrained")
    axes = figure.subplots()
    axes.grid(visible=False)
    image = axes.imshow(values, vmin=1.0, vmax=_SHOWN_MOST, cmap="viridis_r", aspect="auto", interpolation="nearest")
    for axis, places in ((axes.xaxis, len(values[0])), (axes.yaxis, len(values))):
        axis.set_major_locator(MaxNLocator(integer=True) if places > 1 else FixedLocator([0]))
    axes.set_xlabel(across)
    axes.set_ylabel(down)
    figure.colorbar(image, ax=axes, label="times as long", extend="max")
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]

"""The pictures of a report, as SVG that stands inside the page."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dryfly.base.units import size_text

Columns = Mapping[str, Any]
Figure = Any  # matplotlib's; imported when a picture is made

KINDS = {"injection": "#4c72b0", "local": "#55a868", "global": "#c44e52"}
PROTOCOLS = {
    "inline": "#4c72b0", "eager": "#55a868", "rendezvous": "#c44e52", "put": "#8172b3", "get": "#ccb974",
    "atomic": "#64b5cd",
}  # fmt: skip
BUSIEST = 20
POINTS = 150
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "dryfly", "font.size": 9, "font.family": "sans-serif",
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
}  # fmt: skip


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure as MplFigure

    mpl.rcParams.update(STYLE)
    figure = MplFigure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _svg(figure: Figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]


def scale(longest_s: float) -> tuple[float, str]:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if longest_s * factor >= 1:
            return factor, unit
    return 1e9, "ns"


def time_per_call(profile: Sequence[Mapping[str, Any]]) -> str:
    """Over all ranks; what was waiting is not known by call here, so one bar each."""
    rows = sorted(profile, key=lambda row: row["time_s"])[-12:]
    rows = [row for row in rows if row["time_s"] > 0]
    factor, unit = scale(max((row["time_s"] for row in rows), default=1.0))
    figure, axes = _figure(7, 0.8 + 0.28 * len(rows))
    bars = axes.barh([row["call"] for row in rows], [row["time_s"] * factor for row in rows], color="#4c72b0")
    axes.bar_label(bars, [f" {row['count']:,} calls" for row in rows], fontsize=8, color="#555555")
    axes.set_xlabel(f"virtual time of all ranks [{unit}]")
    axes.margins(x=0.18)
    axes.grid(axis="y", visible=False)
    return _svg(figure)


def bandwidth(links: Columns, steps: Columns) -> str:
    """Data frames, headers included, that links of a kind carried together."""
    kind_of = dict(zip(links["link"], links["kind"], strict=True))
    sums: dict[str, dict[float, float]] = {kind: {} for kind in KINDS}
    for link, at, size in zip(steps["link"], steps["time_s"], steps["data_bytes"], strict=True):
        kind = kind_of[link]
        if kind in sums:
            sums[kind][at] = sums[kind].get(at, 0.0) + size
    step_s = steps["step_s"][0] if steps["step_s"] else 1.0
    longest = max((max(series, default=0.0) for series in sums.values()), default=0.0) + step_s
    factor, unit = scale(longest)
    steps_in_all = round(longest / step_s)
    merged = math.ceil(steps_in_all / POINTS)  # more would be a smear
    figure, axes = _figure(9, 2.8)
    for kind, series in sums.items():
        rates = [0.0] * (math.ceil(steps_in_all / merged) + 1)  # ends at zero
        for at, size in series.items():
            rates[round(at / step_s) // merged] += size / (merged * step_s) / 1e9
        times = [number * merged * step_s * factor for number in range(len(rates))]
        axes.step(times, rates, where="post", label=kind, color=KINDS[kind], linewidth=1.2)
    axes.set_xlabel(f"virtual time [{unit}]")
    axes.set_ylabel("GB/s")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    return _svg(figure)


def heat_map(groups: Columns) -> str:
    """Bytes from group to group; the diagonal is what stayed on links inside a group. It would outshine all else, so
    the colours are those of what goes between groups."""
    numbers = sorted({*groups["from_group"], *groups["to_group"]})
    place = {group: index for index, group in enumerate(numbers)}
    cells = [[math.nan] * len(numbers) for _ in numbers]
    for source, target, size in zip(groups["from_group"], groups["to_group"], groups["data_bytes"], strict=True):
        if size:
            cells[place[source]][place[target]] = size
    side = min(max(3.2, 0.25 * len(numbers) + 2), 9)
    figure, axes = _figure(side + 1.2, side)
    pairs = list(zip(groups["from_group"], groups["to_group"], groups["data_bytes"], strict=True))
    largest = max((size for source, target, size in pairs if source != target), default=0)
    largest = largest or max((size for _, _, size in pairs), default=1) or 1
    image = axes.imshow(cells, cmap="viridis", vmin=0, vmax=largest)
    axes.grid(visible=False)
    shown = range(0, len(numbers), max(1, len(numbers) // 16))
    axes.set_xticks(list(shown), [str(numbers[index]) for index in shown])
    axes.set_yticks(list(shown), [str(numbers[index]) for index in shown])
    axes.set_xlabel("to group")
    axes.set_ylabel("from group")
    if len(numbers) <= 8:
        for row, values in enumerate(cells):
            for column, value in enumerate(values):
                if not math.isnan(value):
                    color = "black" if value > 0.6 * largest else "white"
                    axes.text(column, row, size_text(value), ha="center", va="center", fontsize=7, color=color)
    bar = figure.colorbar(image, ax=axes, shrink=0.85)
    ticks = [largest * part / 4 for part in range(5)]
    bar.set_ticks(ticks, labels=[*(size_text(tick) for tick in ticks[:-1]), f"{size_text(largest)} and more"])
    return _svg(figure)


def latencies(messages: Columns) -> str:
    """The share of messages that took at most so long, by protocol."""
    by_protocol: dict[str, list[float]] = {}
    for protocol, latency in zip(messages["protocol"], messages["latency_s"], strict=True):
        by_protocol.setdefault(protocol, []).append(latency * 1e6)
    figure, axes = _figure(7, 3.2)
    for protocol in (name for name in PROTOCOLS if name in by_protocol):
        ordered = sorted(by_protocol[protocol])
        points = [round(index * (len(ordered) - 1) / 400) for index in range(401)]
        axes.plot(
            [ordered[point] for point in points], [100 * (point + 1) / len(ordered) for point in points],
            label=f"{protocol} ({len(ordered):,})", color=PROTOCOLS[protocol],
        )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="x", which="minor", labelsize=7)
    axes.set_xlabel("from the call to delivery [us]")
    axes.set_ylabel("messages [%]")
    axes.set_ylim(0, 101)
    axes.legend(frameon=False)
    return _svg(figure)


def busiest_over_time(links: Columns, steps: Columns) -> str:
    """The utilisation of the busiest links between switches, a row each."""
    rows = sorted(
        (-busy, name, link)
        for busy, name, link, kind in zip(
            links["utilisation"], links["name"], links["link"], links["kind"], strict=True
        )
        if kind in ("local", "global")
    )[:BUSIEST]
    if not rows:
        return ""
    step_s = steps["step_s"][0]
    place = {link: index for index, (_, _, link) in enumerate(rows)}
    length = round(max(steps["time_s"]) / step_s) + 1
    cells = [[0.0] * length for _ in rows]
    for link, at, share in zip(steps["link"], steps["time_s"], steps["utilisation"], strict=True):
        if link in place:
            cells[place[link]][round(at / step_s)] = 100 * share
    factor, unit = scale(length * step_s)
    figure, axes = _figure(9, 0.9 + 0.2 * len(rows))
    image = axes.imshow(
        cells, aspect="auto", cmap="magma_r", vmin=0, vmax=100, interpolation="nearest",
        extent=(0, length * step_s * factor, len(rows) - 0.5, -0.5),
    )  # fmt: skip
    axes.set_yticks(range(len(rows)), [name for _, name, _ in rows])
    axes.set_xlabel(f"virtual time [{unit}]")
    axes.grid(visible=False)
    figure.colorbar(image, ax=axes, label="busy [%]", pad=0.01)
    return _svg(figure)


def waits(table: Columns) -> str:
    """How many frames waited how long at a switch for their next link."""
    figure, axes = _figure(7, 2.8)
    kinds = [kind for kind in ("ejection", "local", "global") if kind in table["kind"]]
    for number, kind in enumerate(kinds):
        rows = [
            (begin * 1e9, count)
            for which, begin, count in zip(table["kind"], table["from_s"], table["frames"], strict=True)
            if which == kind
        ]
        total = sum(count for _, count in rows)
        reached = [(max(begin, 0.02), 100 * sum(c for b, c in rows if b >= begin) / total) for begin, _ in rows]
        color = {"ejection": "#4c72b0"}.get(kind, KINDS.get(kind))
        style = ("-", "--", ":")[number]
        axes.plot(*zip(*reached, strict=True), marker="o", markersize=3, linestyle=style, color=color, label=kind)
    axes.set_xscale("log")
    axes.set_xlabel("waited at least [ns]; the first point is all frames")
    axes.set_ylabel("frames [%]")
    axes.set_ylim(0, 101)
    if kinds:
        axes.legend(frameon=False, title="next link")
    return _svg(figure)


def curves(
    tables: Mapping[str, Mapping[int, float]], marks: Mapping[str, Sequence[int] | set[int]], *, unit: str
) -> str:
    """A figure over message sizes, a line for each label; rings at the marked sizes."""
    from matplotlib.ticker import LogLocator

    figure, axes = _figure(8, 4.2)
    for number, (label, table) in enumerate(tables.items()):
        sizes = sorted(size for size in table if size > 0)
        color, marker = f"C{number % 10}", "os^Dv<>PX*"[number % 10]
        style = ("-", "--", ":", "-.")[number % 4]
        width = 1.2 + 1.1 * (len(tables) - 1 - number)  # where lines are equal those below show at the sides
        axes.plot(
            sizes,
            [table[size] for size in sizes],
            label=label,
            color=color,
            marker=marker,
            markersize=2 + width,
            linestyle=style,
            linewidth=width,
        )
        ringed = [size for size in sizes if size in marks.get(label, ())]
        axes.plot(ringed, [table[size] for size in ringed], "o", markersize=9, fillstyle="none", color=color)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    shown = sorted({size for table in tables.values() for size in table if size > 0})[::2]
    axes.set_xticks(shown, [size_text(size) for size in shown], rotation=45, fontsize=8)
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.set_xlabel("message size")
    axes.set_ylabel(unit)
    axes.legend(frameon=False)
    return _svg(figure)

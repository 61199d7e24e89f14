"""The pictures of a report, as SVG that stands inside the page."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
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


def spreads_by_size(sizes: Sequence[int], figures: Sequence[Mapping[str, Any]], without: Sequence[float] | None) -> str:
    """Medians with their intervals, by message size, and below that how far both are from the same without noise, or
    from the median where that is not given."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as MplFigure

    mpl.rcParams.update(STYLE)
    figure = MplFigure(figsize=(8, 5.2), layout="constrained")
    values, shares = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    places = list(range(len(sizes)))
    medians = [spread["median"] for spread in figures]
    _bars(values, places, figures, [lambda value: value] * len(places))
    if without is not None:
        values.plot(places, without, color="#555555", linestyle="--", linewidth=1.2, marker="x", markersize=4,
                    label="without noise")  # fmt: skip
        values.legend(frameon=False)
    if min(min(medians), *(spread["least"] for spread in figures)) > 0:
        values.set_yscale("log")
        for of_axis in (values.yaxis.set_major_formatter, values.yaxis.set_minor_formatter):
            of_axis(mpl.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    values.set_ylabel("as the program prints it")
    bases = list(without) if without is not None else medians
    _bars(shares, places, figures, [_percent_of(base) for base in bases])
    shares.axhline(0, color="#555555", linestyle="--", linewidth=1.2)
    shares.set_ylabel("against no noise [%]" if without is not None else "against the median [%]")
    shares.set_xticks(places, [size_text(size) for size in sizes], rotation=45 if len(sizes) > 12 else 0)
    shares.set_xlabel("message size")
    return _svg(figure)


Shown = Callable[[float], float]


def _percent_of(base: float) -> Shown:
    return lambda value: (value / base - 1) * 100 if base else 0.0


def _bars(axes: Any, places: Sequence[int], figures: Sequence[Mapping[str, Any]], shown: Sequence[Shown]) -> None:
    """The least to the most in pale, the interval in front of it, the median as a point."""
    medians = [of(spread["median"]) for of, spread in zip(shown, figures, strict=True)]

    def reach(ends: Sequence[tuple[float, float]]) -> list[list[float]]:
        both = [(of(low), of(high)) for of, (low, high) in zip(shown, ends, strict=True)]
        return [
            [median - low for median, (low, _) in zip(medians, both, strict=True)],
            [high - median for median, (_, high) in zip(medians, both, strict=True)],
        ]

    whole = reach([(spread["least"], spread["most"]) for spread in figures])
    axes.errorbar(places, medians, yerr=whole, color="#4c72b0", alpha=0.3, linewidth=0, elinewidth=7)
    interval = reach([(spread["interval"][0], spread["interval"][1]) for spread in figures])
    axes.errorbar(places, medians, yerr=interval, color="#4c72b0", marker="o", markersize=4, linewidth=1.2,
                  elinewidth=1.6, capsize=4, label="median")  # fmt: skip


def values_by_seed(seeds: Sequence[int], spread: Mapping[str, Any], without: float | None) -> str:
    """A point for each seed, the median as a line, its interval as a band; `without`: the same without noise."""
    factor, unit = scale(max(spread["values"]))
    figure, axes = _figure(8, 2.8)
    low, high = spread["interval"]
    axes.axhspan(low * factor, high * factor, color="#4c72b0", alpha=0.15, label="interval of the median")
    axes.axhline(spread["median"] * factor, color="#4c72b0", linewidth=1.2, label="median")
    axes.plot(seeds, [value * factor for value in spread["values"]], "o", color="#4c72b0", markersize=4)
    if without is not None:
        axes.axhline(without * factor, color="#555555", linestyle="--", linewidth=1.2, label="without noise")
    axes.set_xlabel("seed")
    axes.set_ylabel(f"virtual time [{unit}]")
    axes.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    axes.ticklabel_format(useOffset=False, style="plain")
    return _svg(figure)


def parts_of_loss(parts: Sequence[tuple[str, float, str]]) -> str:
    """One bar: of each part its name, seconds (none below zero) and color."""
    factor, unit = scale(sum(seconds for _, seconds, _ in parts))
    figure, axes = _figure(8, 1.3)
    at = 0.0
    for name, seconds, color in parts:
        axes.barh([""], [seconds * factor], left=at, color=color, label=f"{name}: {seconds * factor:.3g} {unit}")
        at += seconds * factor
    axes.set_xlabel(f"lost by the run [{unit}]")
    axes.grid(axis="y", visible=False)
    axes.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    return _svg(figure)


def waiting_with_and_without(calls: Sequence[tuple[str, float, float]]) -> str:
    """Of each call: its name, seconds of waiting without noise and with it."""
    rows = list(reversed(calls))
    factor, unit = scale(max(max(without, with_noise) for _, without, with_noise in rows))
    figure, axes = _figure(8, 0.9 + 0.42 * len(rows))
    places = range(len(rows))
    for shift, values, label, color in (
        (-0.2, [with_noise for _, _, with_noise in rows], "with noise", "#c44e52"),
        (0.2, [without for _, without, _ in rows], "without", "#4c72b0"),
    ):
        bars = axes.barh([at + shift for at in places], [value * factor for value in values], height=0.38, color=color,
                         label=label)  # fmt: skip
        axes.bar_label(bars, [f" {value * factor:.3g}" for value in values], fontsize=8, color="#555555")
    axes.set_yticks(list(places), [name for name, _, _ in rows])
    axes.set_xlabel(f"waiting of a rank, mean [{unit}]")
    axes.margins(x=0.12)
    axes.grid(axis="y", visible=False)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], frameon=False, loc="lower right")
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


def counted_over_time(counted: Columns, names: Sequence[str]) -> str:
    """Each of these counters of all NICs together, per step."""
    step_s = counted["step_s"][0]
    length = round(max(counted["time_s"]) / step_s) + 1
    merged = math.ceil(length / POINTS)
    sums = {name: [0] * (math.ceil(length / merged) + 1) for name in names}
    for name, at, grown in zip(counted["counter"], counted["time_s"], counted["grown"], strict=True):
        if name in sums:
            sums[name][round(at / step_s) // merged] += grown
    factor, unit = scale(length * step_s)
    figure, axes = _figure(9, 3.2)
    for name, values in sums.items():
        times = [number * merged * step_s * factor for number in range(len(values))]
        axes.step(times, values, where="post", label=name, linewidth=1.2)
    axes.set_yscale("symlog")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"virtual time [{unit}]")
    axes.set_ylabel("grown in a step")
    axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
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


Curve = Sequence[tuple[int, float, float]]


def scaling(curves: Mapping[str, Curve], name: str, text: Callable[[str, float], str]) -> str:
    """Rates by nodes, with a line for what all would do that began the first curve, and the efficiencies below."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as MplFigure

    mpl.rcParams.update(STYLE)
    figure = MplFigure(figsize=(8, 6), layout="constrained")
    rates, shares = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for label, points in curves.items():
        nodes = [point[0] for point in points]
        (line,) = rates.plot(nodes, [point[1] for point in points], marker="o", markersize=4, label=label or None)
        shares.plot(nodes, [100 * point[2] for point in points], marker="o", markersize=4, color=line.get_color())
    first = next(iter(curves.values()))
    most = max(point[0] for points in curves.values() for point in points)
    begun, rate, _ = first[0]
    rates.plot([begun, most], [rate, rate / begun * most], color="#999999", linestyle="--", linewidth=1, label="linear")
    for axes in (rates, shares):
        axes.set_xscale("log", base=2)
        for of_axis in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
            of_axis(mpl.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    rates.set_yscale("log")
    rates.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: text(name, value)))
    rates.legend(frameon=False, fontsize=8)
    shares.set_ylabel("of a node [%]")
    shares.set_ylim(bottom=0)
    shares.set_xlabel("nodes")
    return _svg(figure)


def stacks(rows: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """A bar for each case, of its phases."""
    names = list(dict.fromkeys(name for _, phases in rows for name in phases))
    factor, unit = scale(max(sum(phases.values()) for _, phases in rows) or 1.0)
    figure, axes = _figure(8, 1.4 + 0.28 * len(rows))
    left = [0.0] * len(rows)
    places = list(range(len(rows)))[::-1]
    for name in names:
        widths = [factor * phases.get(name, 0.0) for _, phases in rows]
        axes.barh(places, widths, left=left, label=name, linewidth=0)
        left = [begin + width for begin, width in zip(left, widths, strict=True)]
    axes.set_yticks(places, [label for label, _ in rows])
    axes.set_xlabel(f"virtual time [{unit}]")
    axes.grid(axis="y", visible=False)
    axes.margins(y=0.01)
    figure.legend(frameon=False, ncols=4, fontsize=8, loc="outside upper center")
    return _svg(figure)


def sensitivity(found: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """A bar for each parameter, from the value that makes it slowest to the one that makes it fastest."""
    figure, axes = _figure(8, 0.9 + 0.4 * len(found))
    places = range(len(found))[::-1]
    for place, (_, medians) in zip(places, found, strict=True):
        ends = sorted(medians.items(), key=lambda pair: pair[1])
        (worst, low), (best, high) = ends[0], ends[-1]
        axes.barh(place, 100 * (high - low), left=100 * (low - 1), color="#4c72b0", height=0.5)
        for value, ratio, side in ((worst, low, "right"), (best, high, "left")):
            axes.text(100 * (ratio - 1), place, f" {value} ", va="center", ha=side, fontsize=8, color="#555555")
    axes.axvline(0, color="#555555", linestyle="--", linewidth=1)
    axes.set_yticks(places, [name for name, _ in found])
    axes.grid(axis="y", visible=False)
    axes.use_sticky_edges = False
    axes.margins(x=0.2, y=0.2)
    axes.set_xlabel("rate against the first value [%]")
    return _svg(figure)


def parts_of_steps(steps: Sequence[Mapping[str, Any]]) -> str:
    """Of HPL's closed form."""
    figure, axes = _figure(8, 3.6)
    panels = [step["panel"] for step in steps]
    curves = {
        "GEMM": ([step["gemm"] for step in steps], "#4c72b0"),
        "PFACT + BCAST": ([step["factor"] + step["broadcast"] for step in steps], "#55a868"),
        "SWAP": ([step["swap"] for step in steps], "#c44e52"),
        "copies of the matrix": ([step["copies"] for step in steps], "#8172b3"),
    }
    for name, (values, color) in curves.items():
        if any(values):
            axes.plot(panels, [value if value > 0 else math.nan for value in values], label=name, color=color)
    axes.set_yscale("log")
    axes.set_xlabel("panel")
    axes.set_ylabel("part of a step [s]")
    axes.legend(frameon=False, ncols=4, fontsize=8)
    return _svg(figure)

"""`dryfly report RESULT.json`: where the time of dryfly-hpl and dryfly-mxp went, step by step, from their --json.

Each step's phases are stacked as the mean over the ranks, which adds up to what the step took. The curves below are the
parts that a model of a step takes as going on at the same time, max(gemm, panel + broadcast, swap): from where a part
lies above the products to the end, that part bounds the run. Of a matrix on GPUs the products are what a process waits
for, which bounds nothing, so that is not marked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError

PROGRAMS = ("dryfly-hpl", "dryfly-mxp")
SUFFIXES = (".html", ".png", ".svg")
BARS = 120
_COLORS = {
    "gemm": "#4c72b0", "trsm": "#64b5cd", "panels": "#64b5cd", "swap": "#c44e52", "broadcast": "#ccb974",
    "panel": "#55a868", "diagonal": "#55a868", "to_host": "#8172b3", "to_gpu": "#b5a8d9", "rest": "#dddddd",
}  # fmt: skip
# Against the products: the name of the curve, its phases.
_RIVALS = {"dryfly-hpl": (("swap", ("swap",)), ("panel + broadcast", ("panel", "broadcast"))),
           "dryfly-mxp": (("diagonal + panels + broadcast", ("diagonal", "panels", "broadcast")),)}  # fmt: skip

Steps = Mapping[str, Sequence[float]]


def load(path: Path) -> dict[str, Any]:
    """A solver's --json; refused if it is something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        good = content["program"] in PROGRAMS and all("steps_mean_s" in run for run in content["runs"])
    except (OSError, ValueError, KeyError, TypeError):
        good = False
    if not good or not content["runs"]:
        raise UserError(
            f"{path} is neither a recorded run nor a --json of dryfly run --seeds, dryfly-hpl or dryfly-mxp"
        )
    return dict(content)


def crossover(gemm: Sequence[float], rival: Sequence[float]) -> int:
    """The step from which on, to the end, the rival takes longer than the products; their number if there is none.

    Steps without either, as dryfly-mxp's last one, decide nothing.
    """
    decided = [step for step in range(len(gemm)) if gemm[step] or rival[step]]
    begins = len(gemm)
    while decided and rival[decided[-1]] > gemm[decided[-1]]:
        begins = decided.pop()
    return begins


def figure(program: str, run: Mapping[str, Any]) -> Any:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from dryfly.report.pictures import STYLE

    mpl.rcParams.update(STYLE)
    steps: Steps = run["steps_mean_s"]
    whole = Figure(figsize=(9, 6), layout="constrained")
    upper, lower = whole.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    count = len(steps["wall"])
    each = math.ceil(count / BARS)
    _stack(upper, steps, each)
    gemm = _merged(steps["gemm"], each)
    at = [each * (number + 0.5) for number in range(len(gemm))]
    _curve(lower, at, gemm, "gemm", _COLORS["gemm"])
    for (name, phases), style in zip(_RIVALS[program], ("-", "--"), strict=False):
        rival = [sum(steps[phase][step] for phase in phases) for step in range(count)]
        color = _COLORS[phases[0]]
        _curve(lower, at, _merged(rival, each), name, color)
        begins = crossover(steps["gemm"], rival)
        if begins < count and "to_gpu" not in steps:
            for axes in (upper, lower):
                axes.axvline(begins, color=color, linestyle=style, linewidth=1)
            text = f"{name} above gemm from here: step {begins} of {count}"
            place = 0.98 - 0.1 * (style == "--")
            side = "right" if begins > count / 2 else "left"
            upper.text(begins, place, f" {text} ", transform=upper.get_xaxis_transform(), ha=side, va="top",
                       color=color, fontsize=8, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
    lower.set_yscale("log")
    lower.set_ylabel("part of a step [s]")
    lower.set_xlabel("step" if each == 1 else f"step (means of {each})")
    lower.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.22))
    whole.suptitle(heading(program, run), fontsize=10)
    return whole


def heading(program: str, run: Mapping[str, Any]) -> str:
    rows, columns = run["grid"]
    failed = "NOT TESTED" if run["passed"] is None else "FAILED"
    ending = "PASSED" if run["passed"] else failed if run.get("solved", True) else "NOT SOLVED"
    return (
        f"{program}: N = {run['order']:,}, NB = {run['block']}, grid {rows}x{columns}: {run['time_s']:.4g} s, "
        f"{run['gflops']:,.4g} GF/s, {ending}"
    )


def _merged(values: Sequence[float], each: int) -> list[float]:
    parts = [values[begin : begin + each] for begin in range(0, len(values), each)]
    return [sum(part) / len(part) for part in parts]


def _stack(axes: Any, steps: Steps, each: int) -> None:
    wall = _merged(steps["wall"], each)
    factor, unit = _unit(max(wall))
    bottom = [0.0] * len(wall)
    at = [each * number for number in range(len(wall))]
    for phase in (name for name in _COLORS if name in steps):
        heights = [factor * value for value in _merged(steps[phase], each)]
        axes.bar(at, heights, each, bottom, align="edge", color=_COLORS[phase], label=phase, linewidth=0)
        bottom = [low + high for low, high in zip(bottom, heights, strict=True)]
    rest = [max(0.0, factor * whole - low) for whole, low in zip(wall, bottom, strict=True)]
    axes.bar(at, rest, each, bottom, align="edge", color=_COLORS["rest"], label="rest", linewidth=0)
    axes.set_ylabel(f"mean of the ranks [{unit}]")
    axes.set_xlim(0, len(steps["wall"]))
    axes.set_ylim(0, 1.25 * max(low + high for low, high in zip(bottom, rest, strict=True)) or 1.0)
    axes.grid(axis="x", visible=False)
    axes.legend(frameon=False, ncols=6, loc="upper center", bbox_to_anchor=(0.5, 1.13))


def _curve(axes: Any, at: Sequence[float], values: Sequence[float], name: str, color: str) -> None:
    shown = [value if value > 0 else math.nan for value in values]  # a logarithm has no zero
    axes.plot(at, shown, color=color, label=name, linewidth=1.4)


def _unit(longest_s: float) -> tuple[float, str]:
    from dryfly.report.pictures import scale

    return scale(longest_s)


def write(source: Path, target: str) -> bytes:
    """The page, or with .png and .svg the picture of the last run, as it is to be written."""
    import io

    content = load(source)
    program = content["program"]
    if Path(target).suffix not in SUFFIXES:
        raise UserError(f"-o {target}: accepted for a solver's result is a name that ends in {', '.join(SUFFIXES)}")
    if Path(target).suffix == ".html":
        return page(content).encode()
    out = io.BytesIO()
    metadata = {"Date": None} if Path(target).suffix == ".svg" else None
    figure(program, content["runs"][-1]).savefig(out, format=Path(target).suffix[1:], dpi=130, metadata=metadata)
    return out.getvalue()


def page(content: Mapping[str, Any]) -> str:
    import io
    from html import escape

    from dryfly.report.page import document, section

    parts = [f"<h1><code>{escape(content['program'])}</code></h1>"]
    parts.append(f'<p class="note">{content["ranks"]} ranks; {escape(content.get("blas") or content["kernel"])}</p>')
    note = (
        "Above: each step's phases, mean of all ranks. Below: the parts of a step that can go on at the same time; "
        "from where one is above the products to the end, it bounds the run."
    )
    for run in content["runs"]:
        out = io.StringIO()
        figure(content["program"], run).savefig(out, format="svg", metadata={"Date": None})
        svg = out.getvalue()
        parts.append(section(heading(content["program"], run), svg[svg.index("<svg") :], note))
    return document(content["program"], parts)

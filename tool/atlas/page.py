"""docs/applications.md, from what has been measured of each application."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from atlas import judge, kept
from atlas.application import AS_IT_IS, FOLDER, Application, Finding, names, read
from dryfly.base.files import write_whole

PATH = FOLDER.parent / "docs" / "applications.md"
_HEAD = """\
# An atlas of applications

Applications as they come from Debian and PyPI, on simulated Aurora and Frontier: what they gave, what the run cost,
where its time goes, and one thing about each that whoever runs it there may act on. `make applications` installs them,
runs them and writes this page, `tool/applications.py --only NAME` does so for one. Inputs are in `applications/`;
how to add an application is in [developing](develop/index.md#an-application), how to run your own in
[my application](guide/applications.md).

**Figure of merit**: *equal* to what three native runs gave, to the last digit that is printed, or *within the native
runs*, where they differ. **Wall time** is that of the whole command, start included. **Against compute**: wall time
divided by the time that the ranks' own computing takes on all processors of this computer ({processors}). **Processor
time** of all processes, simulator included, divided by that of the ranks' own computing: other work on the computer
hardly changes it, and it does wall time. **Findings** compare virtual times over three seeds, with the computing of one
recorded run unless something else is said; a difference counts from 5 % on, if each run of the one is apart from each
of the other, and a finding that rests on less is not stated. **Not sure**: how much of the job's virtual time looking
at the CPU clock, which is taken off, may have been taken for computing or the other way round.
"""
_COLUMNS = (
    "application", "package", "ranks", "figure of merit", "machine", "wall, s", "against compute", "processor time",
    "dominates",
)  # fmt: skip


def write(*, check: bool = False) -> int:
    text = render([(each, kept.measured(each)) for each in map(read, names())])
    if check:
        if not PATH.is_file() or PATH.read_text(encoding="utf-8") != text:
            print("docs/applications.md: not as tool/applications.py --page writes it")
            return 1
        return 0
    write_whole(PATH, text.encode())
    return 0


def say_what_does_not_hold(chosen: Iterable[str]) -> bool:
    said = []
    for application in map(read, chosen):
        measured = kept.measured(application)
        said += judge.does_not_hold(application, measured) if measured else []
    for sentence in said:
        print(f"applications: {sentence}", file=sys.stderr)
    return bool(said)


def render(rows: list[tuple[Application, dict[str, Any] | None]]) -> str:
    there = [(each, measured) for each, measured in rows if measured]
    processors = sorted({row["processors"] for _, measured in there for row in measured["machines"].values()}) or [0]
    parts = [_HEAD.format(processors=" or ".join(map(str, processors))), _overview(there)]
    parts += [_section(each, measured) for each, measured in there]
    left_out = [f"* {each.title}: {each.left_out}\n" for each, _ in rows if each.left_out]
    if left_out:
        parts.append("## Left out\n\n" + "".join(left_out))
    return "\n".join(parts)


def _overview(rows: list[tuple[Application, dict[str, Any]]]) -> str:
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    for each, measured in rows:
        for machine, row in measured["machines"].items():
            cells = (
                f"[{each.name}](#{_anchor(each.title)})", measured["version"], str(measured["ranks"]),
                judge.merit(measured["native"]["merit"], row["merit"]), machine, f"{row['wall_s']:.1f}",
                f"{against_compute(row):.1f}", f"{row['cpu_s'] / row['compute_s'] / row['threads']:.1f}",
                _dominates(row),
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _section(application: Application, measured: dict[str, Any]) -> str:
    native = measured["native"]
    machines = measured["machines"]
    libraries = ", ".join(sorted({row["mpi"] for row in machines.values()}))
    command = " ".join([application.program, *application.arguments])
    described = f"applications/{application.name}/application.toml"
    lines = [
        f"## {application.title}",
        "",
        f"{measured['version']}, on {libraries}: `{command}`, {measured['ranks']} ranks, {measured['ppn']} to a node"
        f"{_threads(application)} ([{described}](../{described})).",
        f"Natively {application.merit.name}: {_values(native['merit'])}, "
        f"in {_range(native['wall_s'])} s on this computer.",
        "",
        "| | " + " | ".join(machines) + " |",
        "|---|" + "---|" * len(machines),
    ]
    for title, cell in _CELLS.items():
        lines.append(f"| {title} | " + " | ".join(cell(application, measured, row) for row in machines.values()) + " |")
    machine, row = next(iter(machines.items()))
    lines += ["", f"| MPI call on {machine} | count | bytes | time of all ranks |", "|---|---|---|---|"]
    lines += [
        f"| {call['call']} | {call['count']:,} | {call['bytes']:,} | {_seconds(call['time_s'])} |"
        for call in row["calls"]
    ]
    if application.finding and measured["finding"]:
        lines += ["", *_finding(application.finding, measured["finding"])]
    return "\n".join(lines) + "\n"


def _finding(finding: Finding, found: dict[str, Any]) -> list[str]:
    rows = found["variants"]
    how = {"replay": "", "none": ", with computing that takes no time", "measured": ", with measured computing"}
    lines = [
        f"**{finding.question}**",
        "",
        f"| on {found['machine']}{how[found['compute']]} | virtual time | least to most | against as it is |",
        "|---|---|---|---|",
    ]
    for row in rows:
        spread = f"{_seconds(row['least'])} to {_seconds(row['most'])}"
        against = "" if row["name"] == AS_IT_IS else f"{100 * judge.change(rows, row):+.1f} %"
        if against and not judge.are_apart(rows, row):
            against += ", within the spread"
        lines.append(f"| {row['name']} | {_seconds(row['median'])} | {spread} | {against} |")
    says = finding.says
    for row in rows:
        says = says.replace(f"{{{row['name']}}}", f"{100 * abs(judge.change(rows, row)):.0f} %")
    wrong = judge.claim(finding, rows)
    return [*lines, "", f"No finding: {wrong}." if wrong else says]


def _merit(_: Application, measured: dict[str, Any], row: dict[str, Any]) -> str:
    return f"{row['merit']}: {judge.merit(measured['native']['merit'], row['merit'])}"


def _shares(_: Application, __: dict[str, Any], row: dict[str, Any]) -> str:
    return " / ".join(f"{100 * part:.0f} %" for part in _parts(row).values())


_NOT_MEASURED = "not measured"  # when what stands in measured.json was written
_Cell = Callable[[Application, dict[str, Any], dict[str, Any]], str]
_CELLS: dict[str, _Cell] = {
    "figure of merit": _merit,
    "virtual time": lambda _, __, row: _seconds(row["virtual_time_s"]),
    "computing / communicating / waiting": _shares,
    "messages": lambda _, __, row: f"{row['messages']:,}",
    "bytes": lambda _, __, row: f"{row['bytes']:,}",
    "wall time": lambda _, __, row: (
        f"{row['wall_s']:.1f} s, {row['inside_s']:.1f} of it between MPI_Init and MPI_Finalize"
    ),
    "the ranks' own compute": lambda _, __, row: f"{row['compute_s']:.1f} s",
    "against compute": lambda _, __, row: f"{against_compute(row):.2f}",
    "ranks that compute at once, on average": lambda _, __, row: (
        f"{row['compute_s'] * row['threads'] / row['inside_s']:.2f}"
    ),
    "not sure": lambda _, __, row: f"{100 * row['unsure_share']:.2f} %" if "unsure_share" in row else _NOT_MEASURED,
    "warnings": lambda _, __, row: "; ".join(row.get("warnings", row["health"])) or "none",
    "processor time of all processes": lambda _, __, row: f"{row['cpu_s']:.1f} s",
}


def against_compute(row: dict[str, Any]) -> float:
    """Of a rank's threads only the one that calls MPI is measured; the others are taken to compute as long."""
    at_once = min(row["processors"], row["ranks"] * row["threads"])
    return float(row["wall_s"] / (row["compute_s"] * row["threads"] / at_once))


def _parts(row: dict[str, Any]) -> dict[str, float]:
    total = sum(row["time"].values()) or 1.0
    return {name.removesuffix("_s"): value / total for name, value in row["time"].items()}


def _dominates(row: dict[str, Any]) -> str:
    name, share = max(_parts(row).items(), key=lambda part: part[1])
    text = f"{name} {100 * share:.0f} %"
    if row["calls"]:
        first = row["calls"][0]
        text += f"; of the time in MPI {first['call']} {100 * first['time_s'] / row['calls_time_s']:.0f} %"
    return text


def _threads(application: Application) -> str:
    threads = application.environment.get("OMP_NUM_THREADS", "1")
    return "" if threads == "1" else f", {threads} threads each"


def _values(merits: list[str]) -> str:
    return merits[0] if len(set(merits)) == 1 else ", ".join(merits)


def _range(values: list[float]) -> str:
    least, most = f"{min(values):.1f}", f"{max(values):.1f}"
    return least if least == most else f"{least} to {most}"


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns" if value else "0"


def _anchor(title: str) -> str:
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")

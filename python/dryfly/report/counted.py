"""What NICs and ports of switches have counted, in the page of a recorded run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dryfly.base.units import size_text
from dryfly.report.page import section, table
from dryfly.result import counters, tables
from dryfly.result.tables import Columns

# Those of trouble, which a run without any does not move.
TROUBLE = ("CxiErrStats", "CxiLinkReliability", "CxiCongestion")
_ALWAYS = ("hni_pcs_good_cw",)  # moves with time alone
_PORTS = 20
_NOTE = (
    "All NICs together, from the table counters, which has each NIC in each step. Frames are counted when they have "
    "crossed the NIC's link; cycles are nanoseconds."
)


def shown(folder: Path) -> str:
    if not (folder / "counters.parquet").is_file():  # recorded by a version that had none
        return ""
    from dryfly.report import pictures

    counted = tables.read(folder, "counters")
    parts = []
    if counted["counter"]:
        parts.append(section("What the NICs counted", _by_group(counted), _NOTE))
        names = [name for name in _moved(counted) if set(counters.groups_of(name)) & set(TROUBLE)]
        curves = [name for name in names if name not in _ALWAYS]
        if curves:
            note = f"Per step, all NICs together: what has moved of {', '.join(TROUBLE)}."
            parts.append(section("Trouble over time", pictures.counted_over_time(counted, curves), note))
    ports = tables.read(folder, "switch_ports")
    if ports["switch"]:
        note = (
            "Those that carried most. IfInOctets and IfOutOctets are the names of public telemetry (RFC 3635); frames "
            "have no public name there."
        )
        parts.append(section("Ports of switches", _busiest_ports(ports), note))
    return "".join(parts)


def _moved(counted: Columns) -> list[str]:
    return sorted(set(counted["counter"]))


def _by_group(counted: Columns) -> str:
    sums: dict[str, int] = {}
    most: dict[str, int] = {}
    for name, grown in zip(counted["counter"], counted["grown"], strict=True):
        sums[name] = sums.get(name, 0) + grown
        most[name] = max(most.get(name, 0), grown)
    rows: list[Sequence[str]] = []
    seen: set[str] = set()
    for group in (*counters.GROUPS, ""):
        for name in sorted(sums):
            if name in seen or (group and group not in counters.groups_of(name)):
                continue
            seen.add(name)
            rows.append([group or "other", name, f"{sums[name]:,}", f"{most[name]:,}"])
    return table(["group", "counter", "all NICs", "most by a NIC in a step"], rows)


def _busiest_ports(ports: Columns) -> str:
    sums: dict[tuple[str, int, str, str], list[int]] = {}
    for at, switch in enumerate(ports["switch"]):
        key = (switch, ports["port"][at], ports["kind"][at], ports["leads_to"][at])
        total = sums.setdefault(key, [0] * 4)
        for place, name in enumerate(("IfInOctets", "IfOutOctets", "frames_in", "frames_out")):
            total[place] += ports[name][at]
    order = sorted(sums.items(), key=lambda row: (-row[1][0] - row[1][1], row[0]))[:_PORTS]
    rows = [
        [
            f"{switch} port {port}",
            kind,
            leads_to,
            size_text(total[0]),
            size_text(total[1]),
            *(f"{n:,}" for n in total[2:]),
        ]
        for (switch, port, kind, leads_to), total in order
    ]
    return table(["port", "kind", "leads to", "IfInOctets", "IfOutOctets", "frames in", "frames out"], rows)

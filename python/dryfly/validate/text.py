"""A validation as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dryfly.base.units import time_text
from dryfly.validate import nodelist, parts
from dryfly.validate.asked import NATIVE

_PS = 1e12


def lines(content: Mapping[str, Any]) -> list[str]:
    rows = [f"{'level':8}{'nodes':>7}{'steps':>8}{'pairs':>11}{clock(content):>15}  result"]
    for level in content["levels"]:
        took = time_text(round(level["virtual_time_s"] * _PS)) if level["steps"] else "-"
        found = f", {level['findings']} found" if level["findings"] else ""
        rows.append(
            f"{level['name']:8}{level['nodes']:7,}{level['steps']:8,}{level['pairs']:11,}{took:>15}  "
            f"{level['result']}{found}"
        )
    rows.append("")
    if content["cables_not_covered"]:
        rows.append(
            f"{content['cables_not_covered']:,} cables of these groups have no NIC of these nodes at both ends: not "
            "measured by themselves"
        )
    rows += [f"not checked: {each}" for each in content["not_checked"]]
    rows += findings(content["findings"])
    rows.append(parts.line(content["parts"]))
    exclude = content["exclude"]
    if exclude["nodes"]:
        rows.append(f"exclude  {exclude['slurm']}")
    rows.append(f"use      {content['use']['slurm'] or 'none'}  ({len(content['use']['nodes']):,} nodes)")
    return rows


def clock(content: Mapping[str, Any]) -> str:
    """What its times are."""
    return "time" if content["network"] == NATIVE else "virtual time"


def findings(found: list[Mapping[str, Any]]) -> list[str]:
    if not found:
        return ["nothing was found"]
    rows = []
    for finding in found:
        rows.append(f"{finding['kind']:10} {finding['name']}: {figure(finding)} (level {finding['level']})")
        rows += [f"             {line}" for line in finding["evidence"]]
    return rows


def figure(finding: Mapping[str, Any]) -> str:
    """What was measured, and the limit."""
    measured, limit, unit = finding["measured"], finding["limit"], finding["unit"]
    if unit.startswith("of the "):
        return f"{measured:.2g} {unit}, fewer than {limit:.2g}"
    if measured is None:
        return "no answer" if finding["kind"] == "node" else finding["kind"]
    if finding["kind"] == "timeout":
        return f"{measured:g} {unit}"
    least = "least" if unit == "GB/s" else "fewer than" if unit.startswith("flaps") else "most"
    return f"{finding['measure']} {measured:.4g} {unit}, {least} {limit:.4g}"


def node_lists(content: Mapping[str, Any]) -> str:
    """For files: what to use, then what to exclude, as Slurm and as PBS have it."""
    rows = []
    for name in ("use", "exclude"):
        nodes = content[name]["nodes"]
        rows += [f"{name}.slurm={nodelist.slurm(nodes)}", f"{name}.pbs={nodelist.pbs(nodes)}"]
    return "\n".join(rows) + "\n"

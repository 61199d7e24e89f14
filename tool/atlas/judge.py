"""Whether what has been measured is what the page may say: figures of merit as natively, and what a finding claims."""

from __future__ import annotations

from typing import Any

from atlas.application import AS_IT_IS, Application, Finding

_MATTERS = 0.05  # of the virtual time
_EQUAL = 0.01
_UNFIT = "replay_mismatch"


def merit(native: list[str], here: str) -> str:
    """`equal`, `within the native runs`, or `different`."""
    if set(native) == {here}:
        return "equal"
    try:
        values, value = [float(each) for each in native], float(here)
    except ValueError:
        return "within the native runs" if here in native else "different"
    return "within the native runs" if min(values) <= value <= max(values) else "different"


def change(rows: list[dict[str, Any]], row: dict[str, Any]) -> float:
    """Of the virtual time against the run as it is: -0.1 is a tenth less."""
    base = next(each for each in rows if each["name"] == AS_IT_IS)
    return float(row["median"] / base["median"] - 1)


def are_apart(rows: list[dict[str, Any]], row: dict[str, Any]) -> bool:
    """Every run of it from every run as it is."""
    base = next(each for each in rows if each["name"] == AS_IT_IS)
    return bool(row["most"] < base["least"] or row["least"] > base["most"])


def matters(rows: list[dict[str, Any]], row: dict[str, Any]) -> bool:
    """By 5 % and more, and further than the runs of each are apart."""
    return are_apart(rows, row) and abs(change(rows, row)) >= _MATTERS


def claim(finding: Finding, rows: list[dict[str, Any]]) -> str:
    """Empty where the finding holds, else what does not."""
    if [row["name"] for row in rows] != [AS_IT_IS, *(variant.name for variant in finding.variants)]:
        return "other variants were measured"
    changes = {row["name"]: change(rows, row) if matters(rows, row) else 0.0 for row in rows}
    if finding.compute == "replay" and any(_UNFIT in row["health"] for row in rows):
        return "the program did not do what was recorded"
    return _best(finding, rows, changes) or next(
        (
            f"what it says of {name} is less than {_MATTERS:.0%}, or no more than the runs differ by"
            for name, value in changes.items()
            if f"{{{name}}}" in finding.says and not value
        ),
        "",
    )


def _best(finding: Finding, rows: list[dict[str, Any]], changes: dict[str, float]) -> str:
    if not finding.best:
        return next((f"{name} differs by {value:+.0%}" for name, value in changes.items() if value), "")
    if finding.best == AS_IT_IS:
        better = next((name for name, value in changes.items() if value < 0), "")
        if better:
            return f"{better} is better"
        return "" if any(changes.values()) else "no variant is worse"
    if changes[finding.best] >= 0:
        return f"{finding.best} is not better by {_MATTERS:.0%}"
    medians = {row["name"]: float(row["median"]) for row in rows}
    first = min(medians, key=lambda name: medians[name])
    return f"{first} is better than {finding.best}" if medians[first] < medians[finding.best] * (1 - _EQUAL) else ""


def does_not_hold(application: Application, measured: dict[str, Any]) -> list[str]:
    """A sentence each."""
    native = measured["native"]["merit"]
    said = [
        f"{application.name}: {application.merit.name} is {row['merit']} on {machine}, natively {', '.join(native)}"
        for machine, row in measured["machines"].items()
        if merit(native, row["merit"]) == "different"
    ]
    if application.finding and measured["finding"]:
        rows = measured["finding"]["variants"]
        wrong = claim(application.finding, rows)
        if wrong:
            said.append(f"{application.name}: its finding does not hold: {wrong}")
    return said

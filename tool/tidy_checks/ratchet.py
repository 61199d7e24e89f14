"""Limits that some of the code does not keep yet: the exceptions are listed with the number they may not exceed."""

from __future__ import annotations

from collections.abc import Mapping


def over(values: Mapping[str, int], *, most: int, exceptions: Mapping[str, int], what: str) -> list[str]:
    """Findings for whatever exceeds its limit, and for exceptions that are no longer needed.

    An exception may name only what follows the last space or slash of a name: `Conductor` for
    `conductor/conductor.hpp: Conductor`, so that it outlives a move of the file.
    """
    findings = []
    needed: set[str] = set()
    for name, value in values.items():
        if value <= most:
            continue
        exception = next(
            (key for key in (name, name.rpartition(" ")[2], name.rpartition("/")[2]) if key in exceptions), None
        )
        if exception is None:
            findings.append(f"{name}: {value} {what}, at most {most}")
            continue
        needed.add(exception)
        if value > exceptions[exception]:
            findings.append(f"{name}: {value} {what}, at most {exceptions[exception]} by its exception")
    for name in exceptions:
        if name not in needed:
            findings.append(f"tool/tidy.toml: the exception {name} ({what}) is no longer needed")
    return findings

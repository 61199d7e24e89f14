"""Hosts that answer and cannot be used all the same: one computer by two names, or one without the cores to which the
ranks of the machine in question are bound."""

from __future__ import annotations

from collections.abc import Mapping

from dryfly.base.errors import UserError
from dryfly.binding import sets
from dryfly.validate.native.facts import Facts


def check_twins(answers: Mapping[str, Facts]) -> None:
    """By the hosts' names. Containers and namespaces of one computer are hosts of their own, for they have other names
    or another network. Raises UserError."""
    seen: dict[tuple[str, str, str], str] = {}
    for name, of in answers.items():
        if not of.boot or not of.network:  # there is nothing to tell by
            continue
        twin = seen.setdefault((of.name, of.boot, of.network), name)
        if twin != name:
            raise UserError(f"--hosts: {twin} and {name} are one computer, {of.name}; accepted is each host once")


def check_cores(answers: Mapping[str, Facts], needed: frozenset[int], machine: str) -> None:
    """`needed`: the hardware threads that ranks are bound to, by Linux's numbers. Raises UserError."""
    for name, of in answers.items():
        missing = needed - of.cores if of.cores else frozenset()
        if missing:
            raise UserError(
                f"--machine {machine}: on its nodes ranks are bound to cores {sets.text(needed)}, and {name} has only "
                f"{sets.text(of.cores)}; accepted are hosts with such nodes, or --launcher-options that bind otherwise"
            )

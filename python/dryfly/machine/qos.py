"""The traffic classes of the profile that a machine runs: checked together, and as lines of the resolved spec."""

from __future__ import annotations

from dryfly.base.errors import UserError
from dryfly.machine.machine import Machine
from dryfly.machine.schema import QOS_FIELDS, TRAFFIC_CLASSES

_WHOLE = 10**6


def profiles(machine: Machine) -> dict[str, list[str]]:
    """The classes of each profile that the machine's files describe, in the order of TRAFFIC_CLASSES."""
    found: dict[str, set[str]] = {}
    for path in machine.facts:
        parts = path.split(".")
        if parts[:2] == ["fabric", "qos"] and len(parts) == 5:
            found.setdefault(parts[2], set()).add(parts[3])
    return {name: [each for each in TRAFFIC_CLASSES if each in classes] for name, classes in found.items()}


def check(machine: Machine) -> None:
    known = profiles(machine)
    chosen = machine.text("fabric.qos.profile")
    if chosen not in known:
        raise UserError(
            f'machine {machine.name}: fabric.qos.profile = "{chosen}": accepted is {" or ".join(sorted(known))}'
        )
    classes = known[chosen]
    default = machine.text("fabric.qos.default")
    if default not in classes:
        raise UserError(
            f'machine {machine.name}: fabric.qos.default = "{default}": '
            f"profile {chosen} has the classes {', '.join(classes)}"
        )
    for traffic_class in classes:
        prefix = f"fabric.qos.{chosen}.{traffic_class}"
        for leaf in QOS_FIELDS:
            if f"{prefix}.{leaf}" not in machine.facts:
                raise UserError(f"machine {machine.name}: {prefix}.{leaf} is missing")
        if machine.number(f"{prefix}.assured") > machine.number(f"{prefix}.ceiling"):
            raise UserError(f"machine {machine.name}: {prefix}.assured: accepted is at most {prefix}.ceiling")
    for leaf in ("assured", "fabric"):
        shares = [f"fabric.qos.{chosen}.{traffic_class}.{leaf}" for traffic_class in classes]
        total = sum(machine.number(path) for path in shares)
        if total > _WHOLE:
            raise UserError(
                f"machine {machine.name}: {' + '.join(shares)} is {total / 10**4:g} %; accepted is at most 100 %"
            )


def lines(machine: Machine) -> list[tuple[str, int | str]]:
    chosen = machine.text("fabric.qos.profile")
    classes = profiles(machine)[chosen]
    result: list[tuple[str, int | str]] = [
        ("fabric.qos.profile", chosen),
        ("fabric.qos.default", machine.text("fabric.qos.default")),
        ("fabric.qos.classes", len(classes)),
    ]
    for index, traffic_class in enumerate(classes):
        prefix = f"fabric.qos.class.{index}"
        result.append((f"{prefix}.name", traffic_class))
        result += [
            (f"{prefix}.{field.resolved}", machine.number(f"fabric.qos.{chosen}.{traffic_class}.{leaf}"))
            for leaf, field in QOS_FIELDS.items()
        ]
    return result

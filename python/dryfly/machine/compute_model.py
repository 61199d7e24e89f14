"""What a machine's nodes compute with, for `--compute model`: compute.cpu.* (each processor), compute.gpu.* (each GPU).

preload/clock/work.cpp makes a time of them.
"""

from __future__ import annotations

from dryfly.base.errors import UserError
from dryfly.machine.machine import Machine

_RATES = ("fp64", "fp32", "half")
_TERA = 10**12


def lines(machine: Machine, *, skip_numerics: bool) -> list[tuple[str, int | str]]:
    """Of the resolved spec, where both places are a whole node's."""
    resolved: list[tuple[str, int | str]] = [("compute.numerics_skipped", int(skip_numerics))]
    for place in _places(machine):
        count = _number(machine, f"compute.{place}.count")
        resolved.append((f"compute.{place}.latency_ps", _number(machine, f"compute.{place}.latency")))
        memory = _number(machine, f"compute.{place}.memory_rate")
        resolved.append((f"compute.{place}.memory_bytes_per_s", count * memory))
        resolved += [
            (f"compute.{place}.{name}_per_s", count * _number(machine, f"compute.{place}.{name}")) for name in _RATES
        ]
    return resolved


def node_memory_rate(machine: Machine) -> int | None:
    """Bytes a second that the memory of all processors of a node carries, read and written; None: not known."""
    if "compute.cpu.memory_rate" not in machine.facts or "compute.cpu.count" not in machine.facts:
        return None
    return machine.number("compute.cpu.count") * machine.number("compute.cpu.memory_rate")


def summary(machine: Machine, *, skip_numerics: bool) -> str:
    parts = []
    for place in _places(machine):
        count, rate = _number(machine, f"compute.{place}.count"), _number(machine, f"compute.{place}.fp64")
        parts.append(f"{count} {place.upper()}{'s' if count > 1 else ''} of {rate / _TERA:.3g} TF/s in FP64")
    text = f"model (a node: {' and '.join(parts)}; only work that the program announces takes time)"
    return text + (", its numerics skipped" if skip_numerics else "")


def _places(machine: Machine) -> list[str]:
    """GPUs are optional; a place that is there has all its fields."""
    return ["cpu", "gpu"] if any(path.startswith("compute.gpu.") for path in machine.facts) else ["cpu"]


def _number(machine: Machine, path: str) -> int:
    if path not in machine.facts:
        raise UserError(f"--compute model: machine {machine.name} has no {path}; --set {path}=... gives one")
    return machine.number(path)

"""Figures for people: how one is written follows from the end of its name, which is its base unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryfly.base.units import rate_text, size_text, time_text

_PS_PER_S = 10**12
_PREFIXES = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6))


def flops_text(value: float) -> str:
    for prefix, scale in _PREFIXES:
        if value >= scale:
            return f"{value / scale:.4g} {prefix}F/s"
    return f"{value:.4g} F/s"


def seconds_text(seconds: float) -> str:
    """Long ones as a clock has them too."""
    if seconds <= 0:
        return "0 s"
    if seconds < 600:
        return time_text(seconds * _PS_PER_S)
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"
    return f"{seconds:,.0f} s ({clock})"


def main(figures: Mapping[str, float]) -> dict[str, float]:
    """Without those of each part of a sample."""
    return {name: value for name, value in figures.items() if not name.startswith("stretch ")}


def of_all(answers: Sequence[Mapping[str, float]]) -> list[str]:
    """Names of those that all of these answers have, in the first one's order; where there are none, the first one's
    own."""
    names = list(main(answers[0])) if answers else []
    return [name for name in names if all(name in other for other in answers)] or names


def name_text(name: str) -> str:
    if name.endswith("_s") and not name.endswith("_per_s"):
        return name.removesuffix("_s").replace("_", " ")
    for end in ("_flop_per_s", "_bytes_per_s", "_bytes", "_ps", "_share"):
        if name.endswith(end) and name != end[1:]:
            return name.removesuffix(end).replace("_", " ")
    return "rate" if name == "bytes_per_s" else name.replace("_", " ")


def value_text(name: str, value: float) -> str:
    if name.endswith("flop_per_s"):
        return flops_text(value)
    if name.endswith("bytes_per_s"):
        return rate_text(value)
    if name.endswith(("_bytes", "bytes_of_node")):
        return size_text(value)
    if name.endswith("_s") and not name.endswith("_per_s"):
        return seconds_text(value)
    if name.endswith("_ps"):
        return time_text(value)
    if name.endswith("_share"):
        return f"{value:.2%}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"

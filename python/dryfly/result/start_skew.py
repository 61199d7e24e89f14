"""What of a run's loss to noise may be its start skew, by which ranks leave MPI_Init late, and is no detour's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dryfly.base.units import time_text

_PS_PER_S = 10**12


def last_start_s(result: Mapping[str, Any]) -> float:
    """How late the last rank has left MPI_Init; of an earlier version's result how late it may have."""
    noise = result["noise"]
    return float(noise.get("last_start_s", noise.get("start_skew_s", 0.0)))


def beyond_s(lost_s: float, last_s: float) -> float:
    """Of what a run has lost, what is left where all begin with the last rank: ranks that begin earlier wait for it at
    their first meeting, so that the skew costs a run no more than that. Below zero: they had less to wait."""
    return lost_s - last_s


def amplified(lost_s: float, last_s: float, own_s: float) -> float | None:
    """How many times as much as detours took from a rank itself the run has lost beyond the skew; None: nothing."""
    beyond = beyond_s(lost_s, last_s)
    return beyond / own_s if own_s > 0 and beyond > 0 else None


def text(lost_s: float, last_s: float) -> str:
    """To go behind what the run has lost; empty without skew, and where nothing is lost."""
    if last_s <= 0 or lost_s <= 0:
        return ""
    late = f"the {_time(last_s)} by which the last rank left MPI_Init late"
    beyond = beyond_s(lost_s, last_s)
    return f", no more than {late}" if beyond <= 0 else f", {_time(beyond)} of it beyond {late}"


def _time(seconds: float) -> str:
    return time_text(seconds * _PS_PER_S)

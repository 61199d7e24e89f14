"""What noise has cost a run: what it took from the ranks themselves, and what they then waited for others. Beside the
same run without noise. How to read it: docs/guide/noise.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.base.units import time_text
from dryfly.report.page import section, table
from dryfly.result import start_skew, tables

SHOWN = 16
_PS_PER_S = 10**12
_TITLE = "What noise has cost"
# What has to be the same in both runs: the keys of a result that say how the run was made, in the order in which a
# difference is named. Of a key with names only these, for the rest of it is what came of the run. What flags and files
# have made of the machine (--set, --faults, --storage, --on-node) is in the spec, of which all but the noise counts.
_GIVEN: dict[str, tuple[str, ...]] = {
    "program": (), "machine": (), "network": (), "ranks": (), "nodes": (), "placement": (), "seed": (), "mpi": (),
    "provider": (), "settings": (), "compute": ("mode", "factor", "numerics_skipped"), "software": ("table",),
    "storage": ("direction", "nodes", "rate_bytes_per_s"), "binding": (), "dryfly": (),
}  # fmt: skip
_SPEC, _NOISE = "spec", "noise."

_COLLECTIVES = frozenset(
    kind + variant
    for kind in ("allgather", "allreduce", "alltoall", "barrier", "bcast", "exscan", "gather", "reduce", "scan",
                 "scatter", "reduce_scatter")
    for variant in ("", "v", "w", "_block", "_c")
)  # fmt: skip

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Call:
    """An MPI call, all ranks together, without noise and with it; seconds."""

    name: str
    count: int
    silent_s: float
    noisy_s: float

    @property
    def is_collective(self) -> bool:
        """Also MPI_Iallreduce; what waits for one is MPI_Wait."""
        return self.name.removeprefix("MPI_").removeprefix("I").lower() in _COLLECTIVES

    @property
    def more_s(self) -> float:
        return self.noisy_s - self.silent_s


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of a rank, as a mean over all: what the run has lost is the sum of the other four; seconds."""

    run_s: float  # that the silent run takes
    lost_s: float
    last_start_s: float  # the last rank has left MPI_Init so late
    late_s: float  # ranks have left MPI_Init late
    interrupted_s: float  # detours in what a rank itself did
    delayed_s: float  # detours at the end of its own waits
    waited_s: float  # more waiting for others
    calls: tuple[Call, ...]  # by what more they waited

    @property
    def own_s(self) -> float:
        return self.interrupted_s + self.delayed_s

    @property
    def rest_s(self) -> float:
        """Ranks end at different times, and what they do may depend on when messages come."""
        return self.lost_s - self.late_s - self.own_s - self.waited_s

    @property
    def amplified(self) -> float | None:
        """How many times detours were, by what the run has lost beyond its start skew; None: they were not."""
        times = start_skew.amplified(self.lost_s, self.last_start_s, self.own_s)
        return times if times is not None and times > 1 else None


def load_silent(folder: Path, noisy: Json) -> Json:
    """The result of the run beside it. Raises UserError where it is another run, or not silent."""
    if not (folder / tables.RESULT).is_file():
        raise UserError(f"--silent {folder} is no recorded run; {how_to_get(noisy)}")
    silent: Json = json.loads((folder / tables.RESULT).read_text(encoding="utf-8"))
    if noisy["noise"]["of"] == "none":
        raise UserError("--silent: the run of the report has no noise to compare; give one with --noise")
    if silent["noise"]["of"] != "none":
        raise UserError(f"--silent {folder}: this run has noise ({silent['noise']['of']}); accepted is one without")
    keys = [key for key in (*_GIVEN, _SPEC) if key in noisy and key in silent]  # earlier versions wrote fewer
    own, other = _given(noisy, keys), _given(silent, keys)
    for name in dict.fromkeys([*own, *other]):
        if own.get(name) != other.get(name):
            raise UserError(
                f"--silent {folder}: another {name} than the run of the report has: {_text(other.get(name))}, "
                f"not {_text(own.get(name))}"
            )
    return silent


def _given(result: Json, keys: Iterable[str]) -> dict[str, Any]:
    """How a run was made, by the places in its result, such as `compute.mode`, and the fields of its spec."""
    found: dict[str, Any] = {}
    for key in keys:
        if key == _SPEC:
            fields = dict(line.partition(" ")[::2] for line in result[key].splitlines())
            found |= {name: value for name, value in fields.items() if not name.startswith(_NOISE)}
        else:
            found |= _leaves(key, result[key], _GIVEN[key])
    return found


def _leaves(name: str, value: Any, only: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            if not only or key in only:
                yield from _leaves(f"{name}.{key}", part)
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from _leaves(f"{name}.{at}", part, only)
    else:
        yield name, value


def _text(value: Any) -> str:
    if value is None or value == "":
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def how_to_get(noisy: Json) -> str:
    return f"run the same command with --noise none --seed {noisy['seed']} and a --record FOLDER of its own"


def cost(noisy: Json, silent: Json, noisy_calls: Mapping[str, Any], silent_calls: Mapping[str, Any]) -> Cost:
    ranks = max(1, int(noisy["ranks"]))
    waits, count = _waits(noisy_calls)
    without, _ = _waits(silent_calls)
    calls = [
        Call(name=name, count=count.get(name, 0), silent_s=without.get(name, 0.0), noisy_s=waits.get(name, 0.0))
        for name in sorted(waits.keys() | without.keys())
    ]
    calls.sort(key=lambda call: (-abs(call.more_s), call.name))
    noise = noisy["noise"]
    delayed = noise["delayed_s"] / ranks
    waiting = noisy["time"]["mean"]["waiting_s"] - silent["time"]["mean"]["waiting_s"]
    return Cost(
        run_s=silent["virtual_time_s"],
        lost_s=noisy["virtual_time_s"] - silent["virtual_time_s"],
        last_start_s=start_skew.last_start_s(noisy),
        late_s=noise.get("mean_start_s", 0.0),
        interrupted_s=noise["interrupted_s"] / ranks,
        delayed_s=delayed,
        waited_s=waiting - delayed,
        calls=tuple(calls),
    )


def _waits(calls: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, int]]:
    waits: dict[str, float] = {}
    count: dict[str, int] = {}
    for name, waited in zip(calls["call"], calls["waiting_s"], strict=True):
        waits[name] = waits.get(name, 0.0) + waited
        count[name] = count.get(name, 0) + 1
    return waits, count


def shown(folder: Path, noisy: Json, silent_folder: Path | None) -> str:
    """Empty for a run without noise."""
    if silent_folder is None:
        has_noise = noisy.get("noise", {"of": "none"})["of"] != "none"
        return section(_TITLE, f"<p>{escape(_alone(noisy))}</p>") if has_noise else ""
    silent = load_silent(silent_folder, noisy)
    found = cost(noisy, silent, tables.read(folder, "calls"), tables.read(silent_folder, "calls"))
    return _compared(found, noisy)


def _alone(noisy: Json) -> str:
    noise, ranks = noisy["noise"], max(1, int(noisy["ranks"]))
    own = (noise["interrupted_s"] + noise["delayed_s"]) / ranks
    return (
        f"{noise['detours']:,} detours ({noise['of']}) took {_time(own)} from a rank itself, as a mean. What others "
        f"then waited for shows beside the silent run: {how_to_get(noisy)}, then give it here with --silent FOLDER."
    )


def _compared(found: Cost, noisy: Json) -> str:
    from dryfly.report import pictures

    of_run = found.run_s or 1.0
    late = [("left MPI_Init late", found.late_s)] if found.late_s > 0 else []
    others = _of_others(found)
    rows = [
        [name, _time(value), f"{value / of_run:+.2%}"]
        for name, value in (
            *late,
            ("taken from a rank while it worked", found.interrupted_s),
            ("taken from a rank at the end of its waits", found.delayed_s),
            (f"waited for {others}", found.waited_s),
            ("else", found.rest_s),
            ("lost by the run", found.lost_s),
        )
    ]
    parts = [f"<p>{escape(_summary(found, noisy))}</p>"]
    if found.lost_s > 0:
        parts.append(
            pictures.parts_of_loss(
                [
                    *((name, value, "#8172b2") for name, value in late),
                    ("taken from a rank itself", found.own_s, "#55a868"),
                    (f"waited for {others}", max(0.0, found.waited_s), "#c44e52"),
                    ("else", max(0.0, found.rest_s), "#bbbbbb"),
                ]
            )
        )
    parts.append(table(["mean of all ranks", "", "of the silent run"], rows))
    calls = [call for call in found.calls if call.silent_s > 0 or call.noisy_s > 0][:SHOWN]
    if calls:
        ranks = max(1, int(noisy["ranks"]))
        parts.append("<h3>Waiting in each MPI call</h3>")
        parts.append(
            pictures.waiting_with_and_without([(c.name, c.silent_s / ranks, c.noisy_s / ranks) for c in calls])
        )
        cells = [
            [c.name, f"{c.count:,}", _time(c.silent_s / ranks), _time(c.noisy_s / ranks), _time(c.more_s / ranks)]
            for c in calls
        ]
        parts.append(table(["call", "calls", "without noise", "with noise", "more"], cells))
    note = (
        f"Noise: {noisy['noise']['of']}. Beside the same run without noise. Times of a rank, as a mean; a detour at "
        "the end of a wait is in the call's waiting."
    )
    if noisy.get("compute", {}).get("mode") == "measured":
        note += " Computing was measured in each run, which differs by itself too; with --compute none it does not."
    return section(_TITLE, "\n".join(parts), note)


def _of_others(found: Cost) -> str:
    return "the noise of others, or their start" if found.last_start_s > 0 else "the noise of others"


def _summary(found: Cost, noisy: Json) -> str:
    said = f"The run lost {_time(found.lost_s)}"
    if found.run_s > 0:
        said += f" of {_time(found.run_s)} ({found.lost_s / found.run_s:.2%})"
    late = start_skew.text(found.lost_s, found.last_start_s)
    said += late
    said += f"; {noisy['noise']['detours']:,} detours took {_time(found.own_s)} from a rank itself, as a mean"
    if found.amplified is not None:
        what = "beyond the start these are" if late else "noise is"
        said += f", so {what} amplified {found.amplified:.1f} times"
    waiting = noisy["time"]["mean"]["waiting_s"]
    if waiting > 0 and found.waited_s > 0:
        said += (
            f". Of the {_time(waiting)} that a rank waits {_time(found.waited_s)} ({found.waited_s / waiting:.1%}) are "
            f"for {_of_others(found)}"
        )
    more = [call for call in found.calls if call.more_s > 0]
    total = sum(call.more_s for call in more)
    if total > 0:
        in_collectives = sum(call.more_s for call in more if call.is_collective)
        said += f"; {in_collectives / total:.0%} of the additional waiting is in collectives"
        said += f", {more[0].more_s / total:.0%} in {more[0].name}"
    return said + "."


def _time(seconds: float) -> str:
    if seconds == 0:
        return "0 s"
    return ("-" if seconds < 0 else "") + time_text(abs(seconds) * _PS_PER_S)

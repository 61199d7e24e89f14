"""`dryfly run --seeds N`: a case under N seeds, each a run of its own, and what their figures have in common.

What counts are medians, because a few runs with a long detour would move a mean. The interval of a median is that of
order statistics, which assumes nothing about how figures are distributed.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dryfly.apps import benchmarks
from dryfly.base.errors import UserError
from dryfly.base.grid import Grid
from dryfly.base.printer import Printer
from dryfly.base.store import Store
from dryfly.base.units import time_text
from dryfly.case.case import SEED_MAX, Case
from dryfly.result import result, start_skew
from dryfly.result.capture import check_target
from dryfly.run.runner import Runner
from dryfly.study.trial import Result, Trial, run_all

SEEDS_MAX = 10_000
CONFIDENCE = 0.95
_PS_PER_S = 10**12
_TIME = "virtual time"
# What one run writes or needs for itself; dryfly run keeps none of it for several.
_OF_ONE_RUN = {"trace": "--trace", "record": "--record", "compute_record": "--compute-record", "debug": "--debug"}


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Of one figure over all seeds."""

    values: tuple[float, ...]  # in the order of the seeds

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def has_interval(self) -> bool:
        return outside(len(self.values)) > 0

    @property
    def interval(self) -> tuple[float, float]:
        """The true median is in it with CONFIDENCE at least; where there are too few runs for one, all are in it."""
        left_out = max(0, outside(len(self.values)) - 1)
        ordered = sorted(self.values)
        return ordered[left_out], ordered[len(ordered) - 1 - left_out]


def outside(count: int) -> int:
    """The place k, from 1, so that the true median lies between the k-th least and the k-th largest of so many values
    with CONFIDENCE at least; 0: there is none. As many values are below the median as there are heads in as many
    tosses of a coin."""
    below, place = 0, 0
    for heads in range(count // 2):
        below += math.comb(count, heads)
        if 2 * below > (1 - CONFIDENCE) * 2**count:
            break
        place = heads + 1
    return place


def check(case: Case, count: int, runner: Runner, jobs: int | None) -> None:
    """Raises UserError for what is wrong before the first run."""
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs {jobs}: accepted is 1 or more")
    if jobs is not None and jobs > 1 and case.compute.startswith("measured"):
        raise UserError(
            f"--jobs {jobs} with --compute {case.compute}: runs beside one another would change what is measured; "
            "accepted are --jobs 1, or --compute none, replay:FILE or model"
        )
    if not 2 <= count <= SEEDS_MAX:
        raise UserError(f"--seeds {count}: accepted is 2 to {SEEDS_MAX}")
    if case.seed + count - 1 > SEED_MAX:
        raise UserError(
            f"--seeds {count}: the last seed would be {case.seed + count - 1}; accepted is up to {SEED_MAX}"
        )
    for name, flag in _OF_ONE_RUN.items():
        if getattr(runner, name) is not None:
            raise UserError(f"{flag} is of one run, and --seeds {count} makes several: leave out one of the two")
    if not case.program:
        raise UserError("the program is missing: dryfly run [OPTIONS] -- PROGRAM ARGS...")


def run_seeds(case: Case, count: int, runner: Runner, *, jobs: int | None = None) -> int:
    """The exit status: that of the first run that failed. `jobs`: runs at a time, which changes no result; None: half
    the processors, and one where computing is measured."""
    check(case, count, runner, jobs)
    if runner.json not in (None, "-"):
        check_target("--json", str(runner.json), folder=False)
    if jobs is None:
        jobs = 1 if case.compute.startswith("measured") else max(1, len(os.sched_getaffinity(0)) // 2)
    printer = Printer(quiet=runner.quiet)
    # What the programs print is not shown, so that standard output is free for what they have in common.
    json_only = runner.json == "-"
    answer = Printer(quiet=runner.quiet and json_only, on_stdout=not json_only)
    trials = [
        Trial(case=replace(case, seed=seed), label=f"seed {seed}", whole=True, timeout_s=runner.timeout_s)
        for seed in range(case.seed, case.seed + count)
    ]
    silent = Trial(case=replace(case, noise="none"), label="no noise", whole=True, timeout_s=runner.timeout_s)
    more = [silent] if case.noise != "none" else []

    def done(trial: Trial, outcome: Result, _: bool) -> None:
        if outcome["failure"]:
            printer.say(f"{trial.label}: {outcome['failure']}")
            for line in outcome["said"]:
                printer.line_always(f"  {line}")
        else:
            printer.line(f"dryfly: {trial.label}: virtual time {_time(outcome['virtual_time_s'])}")

    found = run_all([*trials, *more], Store(None), jobs=jobs, done=done)
    failed = next((found[trial]["status"] for trial in [*trials, *more] if found[trial]["failure"]), 0)
    if failed:
        return int(failed)
    outcomes = [found[trial] for trial in trials]
    without = found[silent] if more else None
    spreads = figures(outcomes)
    if runner.json is not None:
        result.write(_content(case, outcomes, spreads, without), runner.json)
    answer.show(_table(spreads, figures([without]) if without is not None else {}))
    how = f"at least {CONFIDENCE:.0%}" if next(iter(spreads.values())).has_interval else "too few seeds: all values"
    answer.line(f"dryfly: {count} seeds, {case.seed} to {case.seed + count - 1}; interval of the median: {how}")
    if without is not None:
        answer.line(f"dryfly: {noise_cost(outcomes, without)['text']}")
        if case.compute.startswith("measured"):
            answer.line(
                "dryfly: with measured computing the run without noise differs by that too; --compute none tells"
            )
    return 0


def figures(outcomes: Sequence[Result]) -> dict[str, Spread]:
    """Of each figure that every run has printed in a table like OSU's, and of the virtual time, in seconds."""
    tables = [
        {_name(size, column): value for size, row in benchmarks.read_rows(outcome["output"]).items()
         for column, value in enumerate(row)}
        for outcome in outcomes
    ]  # fmt: skip
    names = [name for name in tables[0] if all(name in table for table in tables)]
    spreads = {name: Spread(values=tuple(table[name] for table in tables)) for name in names}
    return {**spreads, _TIME: Spread(values=tuple(outcome["virtual_time_s"] for outcome in outcomes))}


def _name(size: int, column: int) -> str:
    return str(size) if column == 0 else f"{size}, figure {column + 1}"


def noise_cost(outcomes: Sequence[Result], without: Result) -> dict[str, Any]:
    """What the median run has lost beside the one without noise, and what detours took from its ranks themselves. The
    start skew is no detour: how many times these were amplified is of what is lost beyond it."""
    base = without["virtual_time_s"]
    lost = statistics.median(outcome["virtual_time_s"] for outcome in outcomes) - base
    own = statistics.median(_own_mean(outcome) for outcome in outcomes)
    last = statistics.median(start_skew.last_start_s(outcome["result"]) for outcome in outcomes)
    late, amplified = start_skew.text(lost, last), start_skew.amplified(lost, last, own)
    times = f"{':' if late else ','} {amplified:.1f} times as much" if amplified is not None else ""
    share = f" ({lost / base:.2%})" if base > 0 else ""
    sign = "-" if lost < 0 else ""
    text = f"noise took {_time(own)} from a rank itself and {sign}{_time(abs(lost))}{share} from the run{late}{times}"
    return {
        "virtual_time_without_s": base,
        "lost_s": lost,
        "last_start_s": last,
        "from_a_rank_s": own,
        "amplified": amplified,
        "text": text,
    }


def _own_mean(outcome: Mapping[str, Any]) -> float:
    noise = outcome["result"]["noise"]
    return float(noise["interrupted_s"] + noise["delayed_s"]) / max(1, int(outcome["result"]["ranks"]))


def _table(spreads: Mapping[str, Spread], without: Mapping[str, Spread]) -> Grid:
    heads = ["figure", "median", "from", "to", "least", "most", *(["no noise"] if without else [])]
    rows = []
    for name, spread in spreads.items():
        low, high = spread.interval
        values = [spread.median, low, high, min(spread.values), max(spread.values)]
        values += [without[name].median] if name in without else []
        cells = [_time(value) if name == _TIME else f"{value:.6g}" for value in values]
        rows.append([name, *cells, *([""] if without and name not in without else [])])
    return Grid(heads=heads, rows=rows)


def _content(
    case: Case, outcomes: Sequence[Result], spreads: Mapping[str, Spread], without: Result | None
) -> dict[str, Any]:
    content: dict[str, Any] = {
        "format": 1,
        "kind": "seeds",
        "program": list(case.program),
        "seeds": [outcome["result"]["seed"] for outcome in outcomes],
        "confidence": CONFIDENCE if next(iter(spreads.values())).has_interval else None,
        "figures": {
            name: {
                "median": spread.median,
                "interval": list(spread.interval),
                "least": min(spread.values),
                "most": max(spread.values),
                "values": list(spread.values),
            }
            for name, spread in spreads.items()
        },
        "runs": [{"output": outcome["output"], "result": outcome["result"]} for outcome in outcomes],
    }
    if without is not None:
        content["noise_cost"] = noise_cost(outcomes, without)
        content["figures_without_noise"] = {name: spread.median for name, spread in figures([without]).items()}
        content["without_noise"] = {"output": without["output"], "result": without["result"]}
    return content


def _time(seconds: float) -> str:
    return time_text(seconds * _PS_PER_S) if seconds > 0 else "0 s"

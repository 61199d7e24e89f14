"""dryfly from Python: what `dryfly run` does, with the result in hand. docs/reference/python.md is its page.

import dryfly

case = dryfly.Case(program=("./solver",), machine="aurora", nodes=4, ppn=6, compute="none",
                   faults={"flap": [{"node": "x4102c0s0b0n0", "at": "2 s"}]})
result = dryfly.run_case(case)
print(result.virtual_time_s, result.network_timeouts)

Only the main thread of a process may run cases.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypedDict, Unpack

from dryfly.apps import solver
from dryfly.base.errors import RunFailed, UserError
from dryfly.base.paths import programs_folder
from dryfly.base.store import Store
from dryfly.case import program as programs
from dryfly.case.case import Case
from dryfly.result.details import Result
from dryfly.run.run import execute
from dryfly.run.runner import Runner
from dryfly.study.trial import Trial, run_all


class How(TypedDict, total=False):
    """How a case is run, which changes nothing that is found; the names of flags of `dryfly run`."""

    json: str | None
    compute_record: str | None
    trace: str | None
    record: str | None
    timeout_s: float | None
    debug: str | None
    quiet: bool
    verbose: bool
    progress: bool


def run_case(case: Case, **how: Unpack[How]) -> Result:
    """Runs a case; `how`: fields of How, such as timeout_s=60 or record="folder". Only warnings and errors are
    printed, unless quiet=False; the program's own output goes where it always goes.

    Raises UserError for input that cannot be used, before anything starts, and RunFailed if the job fails.
    """
    _must_be_case("run_case", case)
    _must_be_main_thread("run_case")
    names = {each.name for each in fields(Runner)}
    if unknown := how.keys() - names:
        accepted = ", ".join(sorted(names))
        raise UserError(f"dryfly.run_case: {', '.join(sorted(unknown))}: accepted are {accepted}")
    ways: dict[str, Any] = {"quiet": True, **how}
    ended = execute(case, Runner(**ways))
    if ended.result is None:
        raise RunFailed(ended.failure, exit_status=ended.exit_status, details=ended.details)
    if ended.exit_status != 0 and not case.skip_numerics:
        raise RunFailed(f"the job ended with exit status {ended.exit_status}", exit_status=ended.exit_status)
    return Result(case=case, raw=ended.result)


def simulate(program: Sequence[str], **options: Any) -> dict[str, Any]:
    """As run_case, with the fields of Case and of Runner together, and the raw result."""
    names = {each.name for each in fields(Case)} - {"program"}
    if isinstance(program, str):
        program = (program,)
    if not isinstance(program, Sequence):
        raise UserError(f"dryfly.simulate: program={program!r}: accepted is a program and its arguments")
    ways = {each.name for each in fields(Runner)}
    if unknown := options.keys() - names - ways:
        accepted = ", ".join(sorted(names | ways))
        raise UserError(f"dryfly.simulate: {', '.join(sorted(unknown))}: accepted are {accepted}")
    case = Case(program=tuple(program), **{name: options[name] for name in options.keys() & names})
    how: dict[str, Any] = {name: options[name] for name in options.keys() & ways}
    return dict(run_case(case, **how).raw)


def sweep(
    cases: Iterable[Case], *, parallel: int = 1, cache: str | Path | None = None, timeout_s: float | None = None
) -> list[Result]:
    """The result of each, in their order; a case that is there twice is run once.

    Each is run in a process of its own, `parallel` of them at a time; what the programs print is in the results.
    `cache`: a folder with results, from which a case is taken that has been run before with the same program, machine,
    MPI library and dryfly. Files that the program reads are not looked at.

    The first run that fails ends it with RunFailed; what has been run by then is in the cache. Raises UserError.
    """
    if isinstance(cases, Case | str) or not isinstance(cases, Iterable):
        raise UserError(f"dryfly.sweep: cases={cases!r}: accepted are several Cases, such as a list of them")
    if not isinstance(parallel, int) or isinstance(parallel, bool) or parallel < 1:
        raise UserError(f"dryfly.sweep: parallel={parallel!r}: accepted is a whole number, 1 or more")
    _must_be_main_thread("sweep")
    if cache is not None and not isinstance(cache, str | Path):
        raise UserError(f"dryfly.sweep: cache={cache!r}: accepted is a folder, as a text or a path")
    if cache is not None and Path(cache).exists() and not Path(cache).is_dir():
        raise UserError(f'dryfly.sweep: cache="{cache}": accepted is a folder, which this is not')
    Runner(timeout_s=timeout_s)  # refuses what is no time
    trials = [_trial(case, timeout_s) for case in cases]
    for trial in trials:
        if cache is not None and trial.case.compute.partition(":")[0] == "measured":
            raise UserError('dryfly.sweep: cache: a case with compute="measured" is not repeatable, and is not kept')
    found = run_all(trials, Store(None if cache is None else Path(cache)), jobs=parallel, done=_must_be_well)
    outcomes = [found[trial] for trial in trials]
    return [
        Result(case=trial.case, raw=outcome["result"], output=outcome["output"])
        for trial, outcome in zip(trials, outcomes, strict=True)
    ]


def _must_be_case(where: str, case: object) -> None:
    if not isinstance(case, Case):
        raise UserError(f"dryfly.{where}: {case!r}: accepted is a dryfly.Case")


def _must_be_main_thread(where: str) -> None:
    if threading.current_thread() is not threading.main_thread():
        raise UserError(f"dryfly.{where}: only the main thread of a process may run cases: it gets the signals")


def _trial(case: Case, timeout_s: float | None) -> Trial:
    _must_be_case("sweep", case)
    if not case.program:
        raise UserError("dryfly.sweep: a case has no program")
    if case.program[0] in solver.NAMES:
        folders = (programs_folder() / name for name in ("hpl", "mxp"))
        sources = tuple(sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()))
    else:
        sources = (programs.find(case.program[0]),)
    return Trial(case=case, sources=sources, whole=True, timeout_s=timeout_s)


def _must_be_well(trial: Trial, outcome: Mapping[str, Any], _: bool) -> None:
    if outcome["failure"]:
        name = " ".join(trial.case.program)
        # Before its start, as run_case would say it; a rank may end with that status too.
        if outcome["status"] == 2 and not any("exited with status 2" in line for line in outcome["said"]):
            raise UserError(f"{name}: {outcome['failure']}")
        raise RunFailed(f"{name}: {outcome['failure']}", exit_status=outcome["status"], details=tuple(outcome["said"]))

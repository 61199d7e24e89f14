"""dryfly from Python: what `dryfly run` does, with the result in hand.

import dryfly

result = dryfly.simulate(["./solver"], machine="aurora", nodes=4, ppn=6, compute="none",
                         faults={"flap": [{"node": "x4102c0s0b0n0", "at": "2 s"}]})
print(result["virtual_time_s"], result["network_timeouts"])
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError, UserError
from dryfly.case.case import Case
from dryfly.run.run import run as run_job
from dryfly.run.runner import Runner


def simulate(program: Sequence[str], **options: Any) -> dict[str, Any]:
    """Runs a program and returns its result, with the keys of docs/reference/result-json.md.

    `program`: the program and its arguments. `options`: those of `dryfly run`, by the names of the fields of
    `Case` and `Runner`; `faults` and `storage` take a file, or a dict of the same form. Only warnings and errors
    are printed, unless `quiet=False`; the program's own output goes where it always goes. Only the main thread of a
    process may call this.

    Raises UserError for input that cannot be used, before anything starts, and RunError if the job fails, with its
    `exit_status`; the reason has been printed.
    """
    with tempfile.TemporaryDirectory(prefix="dryfly-") as folder:
        target = Path(folder) / "result.json"
        names = {each.name for each in fields(Case)} - {"program"}
        ways = {each.name for each in fields(Runner)} - {"json"}
        if unknown := options.keys() - names - ways:
            accepted = ", ".join(sorted(names | ways))
            raise UserError(f"dryfly.simulate: {', '.join(sorted(unknown))}: accepted are {accepted}")
        case = Case(program=tuple(program), **{name: options[name] for name in options.keys() & names})
        how = {"quiet": True, **{name: options[name] for name in options.keys() & ways}}
        status = run_job(case, Runner(json=str(target), **how))
        if status != 0 or not target.is_file():
            raise RunError(f"the job ended with exit status {status}", exit_status=status)
        result: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
        return result


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run has found; `raw` is all of it, with the keys of docs/reference/result-json.md."""

    case: Case
    raw: Mapping[str, Any]

    @property
    def virtual_time_s(self) -> float:
        """The job's time on the simulated machine, in seconds."""
        return float(self.raw["virtual_time_s"])

    @property
    def messages(self) -> int:
        return int(self.raw["messages"])

    @property
    def bytes(self) -> int:
        """Of all messages."""
        return int(self.raw["bytes"])

    @property
    def ranks(self) -> int:
        return int(self.raw["ranks"])

    @property
    def fingerprint(self) -> str:
        """Equal for equal runs, where `repeatable`."""
        return str(self.raw["fingerprint"])

    @property
    def repeatable(self) -> bool:
        return bool(self.raw["repeatable"])


def run_case(case: Case, **how: Any) -> Result:
    """Runs a case; `how`: fields of Runner but `json`, such as timeout_s=60. Raises what `simulate` raises.

    run_case(Case(program=("./solver",), machine="aurora", nodes=4, compute="none")).virtual_time_s
    """
    options = {each.name: getattr(case, each.name) for each in fields(Case) if each.name != "program"}
    clash = sorted(how.keys() & options.keys())
    if clash:
        raise UserError(f"dryfly.run_case: {', '.join(clash)}: these are fields of the case")
    return Result(case=case, raw=simulate(case.program, **options, **how))


def sweep(cases: Iterable[Case], **how: Any) -> list[Result]:
    """One after the other, in their order; a case that is there twice is run once. The first failure ends it."""
    results: list[tuple[Case, Result]] = []
    for case in cases:
        known = next((result for other, result in results if other == case), None)
        results.append((case, known if known is not None else run_case(case, **how)))
    return [result for _, result in results]

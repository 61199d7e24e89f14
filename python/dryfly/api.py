"""dryfly from Python: what `dryfly run` does, with the result in hand.

import dryfly

result = dryfly.simulate(["./solver"], machine="aurora", nodes=4, ppn=6, compute="none",
                         faults={"flap": [{"node": "x4102c0s0b0n0", "at": "2 s"}]})
print(result["virtual_time_s"], result["network_timeouts"])
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError, UserError
from dryfly.case.case import Case
from dryfly.run.run import Runner
from dryfly.run.run import run as run_case


def simulate(program: Sequence[str], **options: Any) -> dict[str, Any]:
    """Runs a program and returns its result, with the keys of docs/result-json.md.

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
        status = run_case(case, Runner(json=str(target), **how))
        if status != 0 or not target.is_file():
            raise RunError(f"the job ended with exit status {status}", exit_status=status)
        result: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
        return result

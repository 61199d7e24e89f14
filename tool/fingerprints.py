#!/usr/bin/env python3
"""Does a change change a result? Runs the cases of tests/fingerprints/cases.toml and compares what they give.

fingerprints.py record            writes tests/fingerprints/recorded.toml; only where results are meant to change
fingerprints.py compare           runs all cases; each difference is a line, and the exit status is then 1
   --quick                        only the cases marked so (the tests compare these)
   --only WORD                    only cases with this word in their name; may be repeated
   --jobs N                       so many at a time
   --to FILE                      another file of results

The MPI library's own code costs nothing unless the case says `--software measured`: else a new table would
change all.

A case repeats: `--compute none` or `replay`, or simulation without processes. What it gives does not depend on the
computer, but on the MPI library, whose release cases.toml names, and on the programs in programs/.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "fingerprints"
CASES = FOLDER / "cases.toml"
RECORDED = FOLDER / "recorded.toml"
BUILD = ROOT / "build"

Case = dict[str, Any]
Result = dict[str, str | int]

# What is kept of a run's result. Times are kept as picoseconds: a decimal fraction would hide a difference.
_COUNTS = ("messages", "bytes", "packets", "packet_hops", "network_timeouts", "unexpected_messages")


def cases(*, quick: bool, only: list[str]) -> list[Case]:
    found: list[Case] = tomllib.loads(CASES.read_text(encoding="utf-8"))["case"]
    names = [case["name"] for case in found]
    if len(set(names)) != len(names):
        raise SystemExit("fingerprints: two cases have the same name")
    return [
        case
        for case in found
        if (case.get("quick", False) or not quick) and (not only or any(word in case["name"] for word in only))
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _checked(command: list[str], *, environment: dict[str, str] | None = None, status: int = 0, text: str = "") -> str:
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, input=text, capture_output=True, text=True
    )
    if done.returncode != status:
        said = (done.stderr or done.stdout).strip()[-600:]
        raise RuntimeError(f"{shlex.join(command)}: exit status {done.returncode}\n{said}")
    return done.stdout


def _of_program(case: Case, folder: Path) -> Result:
    """A job of real processes."""
    result = folder / "run.json"
    command = [sys.executable, "-m", "dryfly", "run", "--quiet", "--json", str(result)]
    options = shlex.split(case["run"])
    if "--compute" not in options:
        options = ["--compute", "none", *options]
    if "--software" not in options:
        options = ["--software", "none", *options]
    _checked([*command, *options], environment=case.get("environment"), status=case.get("status", 0))
    found = json.loads(result.read_text(encoding="utf-8"))
    if not found["repeatable"]:
        raise RuntimeError("the run says that it is not repeatable")
    kept: Result = {
        "fingerprint": found["fingerprint"],
        "virtual_time_ps": round(found["virtual_time_s"] * 1e12),
        **{name: found[name] for name in _COUNTS},
    }
    # Everything else that is virtual, in one number each.
    for name in ("protocols", "traffic_classes", "storage", "nics", "faults", "matching"):
        kept[f"{name}_digest"] = _digest(json.dumps(found[name], sort_keys=True))
    times = [
        [row[name] for name in ("virtual_time_s", "computing_s", "communicating_s", "waiting_s")]
        for row in found["ranks_detail"]
    ]
    kept["ranks_digest"] = _digest(json.dumps(times))
    return kept


def _executable(name: str) -> Path:
    found = [path for path in BUILD.rglob(name) if path.is_file() and os.access(path, os.X_OK)]
    if not found:
        raise RuntimeError(f"{name} is not built (make build)")
    return found[0]


def _of_pattern(case: Case, folder: Path) -> Result:
    """Commands given to NICs, without processes."""
    spec = folder / "spec"
    options = shlex.split(case.get("options", ""))
    words = [sys.executable, "-m", "dryfly", "spec", "--compute", "none", *options]
    spec.write_text(_checked(words), encoding="utf-8")
    ranks = folder / "ranks"
    ranks.write_text("".join(f"{nic}\n" for nic in case.get("nics", [])), encoding="utf-8")
    words = [word.replace("RANKS", str(ranks)) for word in shlex.split(case["pattern"])]
    printed = json.loads(_checked([str(_executable("dryfly-generator")), str(spec), *words]))
    return {name: value if isinstance(value, int) else repr(value) for name, value in printed.items()}


_KEEPER = """#!/bin/sh
# Passes standard input to the program and keeps what that prints.
"{program}" "$@" >"{folder}/one"
status=$?
cat "{folder}/one" >>"{folder}/all"
cat "{folder}/one"
exit $status
"""


def _of_scenario(case: Case, folder: Path) -> Result:
    """A scenario of scenario/: every figure that it prints, in the order of its cases."""
    keeper = folder / "keeper"
    keeper.write_text(_KEEPER.format(program=_executable("fabric-traffic"), folder=folder), encoding="utf-8")
    keeper.chmod(0o755)
    path = ROOT / "scenario" / case["scenario"]
    _checked([sys.executable, str(ROOT / "scenario" / "run.py"), str(keeper), str(path)])
    lines = (folder / "all").read_text(encoding="utf-8").splitlines()
    return {"figures": len(lines), "digest": _digest("\n".join(lines)), "first": lines[0], "last": lines[-1]}


def _of_spec(case: Case, _: Path) -> Result:
    """The resolved spec of a command: what the simulator is told."""
    printed = _checked([sys.executable, "-m", "dryfly", "spec", *shlex.split(case["spec"])])
    return {"lines": printed.count("\n"), "digest": _digest(printed)}


def measured(case: Case) -> Result:
    kinds = {"run": _of_program, "pattern": _of_pattern, "scenario": _of_scenario, "spec": _of_spec}
    kind = next(of for name, of in kinds.items() if name in case)
    with tempfile.TemporaryDirectory(prefix="fingerprint-") as folder:
        return kind(case, Path(folder))


def written(results: dict[str, Result]) -> str:
    lines = ["# Written by tool/fingerprints.py record. The cases are in cases.toml.\n"]
    for name, result in results.items():
        lines.append(f"\n[{json.dumps(name)}]\n")
        lines += [f"{key} = {json.dumps(value)}\n" for key, value in result.items()]
    return "".join(lines)


def differences(name: str, old: Result, new: Result) -> list[str]:
    return [
        f"{name}: {key} was {old.get(key, 'not there')}, is {new.get(key, 'not there')}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--to", type=Path, default=RECORDED)
    arguments = parser.parse_args()

    def one(case: Case) -> tuple[str, Result | Exception, float]:
        start = time.monotonic()
        try:
            result: Result | Exception = measured(case)
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            result = error
        return case["name"], result, time.monotonic() - start

    chosen = cases(quick=arguments.quick, only=arguments.only)
    recorded: dict[str, Result] = {}
    if arguments.to.is_file():
        recorded = tomllib.loads(arguments.to.read_text(encoding="utf-8"))
    results: dict[str, Result] = {}
    wrong: list[str] = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for name, result, seconds in pool.map(one, chosen):
            print(f"{seconds:6.1f} s  {name}", file=sys.stderr, flush=True)
            if isinstance(result, Exception):
                wrong.append(f"{name}: {result}")
                continue
            results[name] = result
            if arguments.what == "compare":
                wrong += differences(name, recorded.get(name, {}), result)
    if arguments.what == "record" and not wrong:
        whole = {case["name"] for case in cases(quick=False, only=[])}
        kept = {name: result for name, result in recorded.items() if name in whole}
        arguments.to.write_text(written({**kept, **results}), encoding="utf-8")
    print("".join(f"{line}\n" for line in wrong) + f"{len(chosen)} cases, {len(wrong)} differences or failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

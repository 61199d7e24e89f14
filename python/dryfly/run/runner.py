"""How a case is run, and the command that runs one in a process of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dryfly.base import toml
from dryfly.base.checked import check_fields
from dryfly.base.errors import UserError
from dryfly.case.case import Case

_CASE_FLAGS = {
    "machine": "--machine",
    "nodes": "-N",
    "ppn": "--ppn",
    "ranks": "-n",
    "network": "--network",
    "place": "--place",
    "seed": "--seed",
    "mpi": "--mpi",
    "cpu_bind": "--cpu-bind",
    "mem_bind": "--mem-bind",
    "gpu_bind": "--gpu-bind",
    "nic_bind": "--nic-bind",
    "depth": "--depth",
    "on_node": "--on-node",
    "provider": "--provider",
    "compute": "--compute",
    "software": "--software",
    "faults": "--faults",
    "storage": "--storage",
    "noise": "--noise",
    "service": "--service",
    "launcher": "--launcher",
    "launcher_options": "--launcher-options",
}
_RUNNER_FLAGS = {
    "json": "--json",
    "compute_record": "--compute-record",
    "trace": "--trace",
    "record": "--record",
    "timeout_s": "--timeout",
    "debug": "--debug",
}


@dataclass(frozen=True, kw_only=True)
class Runner:
    """None of this changes what the simulation finds."""

    json: str | None = None
    compute_record: str | None = None
    trace: str | None = None
    record: str | None = None
    timeout_s: float | None = None
    debug: str | None = None
    quiet: bool = False
    verbose: bool = False
    progress: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.timeout_s is not None and self.timeout_s <= 0:
            raise UserError(f"timeout_s={self.timeout_s}: accepted is a number of seconds above 0")


def case_words(case: Case) -> list[str]:
    """All but the program and the environment. `faults`, `storage`, `noise` and `service` must be no content."""
    words = _words(case, _CASE_FLAGS)
    words += [word for item in case.sets for word in ("--set", item)]
    return [*words, *(["--skip-numerics"] if case.skip_numerics else [])]


def with_files(case: Case, folder: Path) -> Case:
    """Content that is no file yet becomes one in the folder."""
    files: dict[str, Any] = {}
    for name in ("faults", "storage", "noise", "service"):
        content = getattr(case, name)
        if isinstance(content, Mapping):
            files[name] = str(folder / f"{name}.toml")
            (folder / f"{name}.toml").write_text(toml.text(content), encoding="utf-8")
    return replace(case, **files)


def command_line(case: Case, runner: Runner) -> list[str]:
    """It needs `environment_of` too."""
    ways = [*_words(runner, _RUNNER_FLAGS), *(["--quiet"] if runner.quiet else []),
            *(["--verbose"] if runner.verbose else []),
            *(["--progress"] if runner.progress else [])]  # fmt: skip
    return [sys.executable, "-m", "dryfly", "run", *ways, *case_words(case), "--", *case.program]


def environment_of(case: Case) -> dict[str, str]:
    return {**os.environ, **dict(case.environment)}


def _words(of: Case | Runner, flags: Mapping[str, str]) -> list[str]:
    values = ((flag, getattr(of, name)) for name, flag in flags.items())
    return [word for flag, value in values if value is not None for word in (flag, _text(value))]


def _text(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)

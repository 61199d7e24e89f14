"""A command that is run in a folder, and none of whose processes stays when it ends, or this one."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dryfly.base.errors import RunError
from dryfly.base.signals import dying_with_parent

_LIMIT_S = 1800
_TO_END_S = 10


@dataclass(frozen=True, kw_only=True)
class Ran:
    output: str
    errors: str
    wall_s: float  # of the whole command
    cpu_s: float  # of all its processes


def run(command: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> Ran:
    """Raises RunError, one sentence with the last line that was said, where it does not end well."""
    shown = " ".join(Path(command[0]).name if n == 0 else word for n, word in enumerate(command))
    started, spent_s = time.monotonic(), _cpu_of_children_s()
    try:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environment}, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, preexec_fn=dying_with_parent(),
        )  # fmt: skip
    except OSError as error:
        raise RunError(f"{command[0]} cannot be executed: {error.strerror}", exit_status=1) from None
    try:
        output, errors = process.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise RunError(f"{shown} has not ended within {_LIMIT_S} s", exit_status=1) from None
    finally:
        _end(process)
    if process.returncode != 0:
        said = [line for line in (errors or output).splitlines() if line.strip()][-3:]
        raise RunError(f"{shown} ended with status {process.returncode}: {' / '.join(said)}", exit_status=1)
    wall_s, cpu_s = time.monotonic() - started, _cpu_of_children_s() - spent_s
    return Ran(output=output, errors=errors, wall_s=wall_s, cpu_s=cpu_s)


def _cpu_of_children_s() -> float:
    """Of those that have ended, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _end(process: subprocess.Popen[str]) -> None:
    """A launcher ends its ranks when it is told to end; whoever is left in its group is killed."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_TO_END_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

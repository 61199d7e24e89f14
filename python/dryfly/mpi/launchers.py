"""Launchers other than dryfly's own that may start the ranks: those of MPI libraries, MPICH's hydra and Open MPI 5's
prterun, here, and those of batch systems in batch_launchers.py.

Each starts a shim for every rank (launch/shim.hpp); what the rank needs comes from dryfly-launch, so here is only the
launcher's own command. hydra and prterun also serve PMI or PMIx, with a daemon for each simulated node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.paths import PRELOAD, native
from dryfly.mpi import batch_launchers
from dryfly.mpi.libraries import MpiLibrary
from dryfly.mpi.starter import Job, Starter

OWN = "dryfly"
_RANKMAP_SINCE = 5  # before it hydra reads -rankmap and does not follow it


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
    if name in batch_launchers.NAMES:
        command = batch_launchers.check(name)
        return lambda _folder, _variables: command(len(node_of_rank))
    make = _MAKERS[name]
    program = _CHECKS[name](library, node_of_rank)
    return lambda folder, variables: make(
        program, Job(library=library, node_of_rank=node_of_rank, folder=folder, variables=variables, options=options)
    )


def binding_words(options: Sequence[str]) -> str | None:
    """Those of prterun's that have it bind ranks: --bind-to, and a mapping by so many cores a rank (PE=2) or by a list
    of them, with which it binds unasked; None: it binds nobody."""
    for word, value in pairwise((*options, "")):
        by_list = re.search(r"(?i)(^|:)pe(-list)?=", value)
        if (word == "--bind-to" and value.partition(":")[0].lower() != "none") or (word == "--map-by" and by_list):
            return f"{word} {value}"
    return None


def _bundled(launcher: str, file: str, family: str, library: MpiLibrary) -> str:
    if library.family != family:
        known = {"mpich": "MPICH", "openmpi": "Open MPI", "impi": "Intel MPI"}
        fitting = {"mpich": "hydra, ", "openmpi": "prterun, ", "impi": ""}[library.family]
        raise UserError(
            f"--launcher {launcher}: it starts programs of {known[family]}, and {library.name} is "
            f"{known[library.family]}; accepted are {fitting}{', '.join(batch_launchers.NAMES)} and {OWN}"
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
    if "--bind-to" not in job.options and binding_words(job.options) is None:
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


_CHECKS: dict[str, Callable[[MpiLibrary, tuple[str, ...]], str]] = {"hydra": _check_hydra, "prterun": _check_prterun}
_MAKERS: dict[str, Callable[[str, Job], Starter]] = {"hydra": _hydra, "prterun": _prterun}
NAMES = (OWN, *_CHECKS, *batch_launchers.NAMES)

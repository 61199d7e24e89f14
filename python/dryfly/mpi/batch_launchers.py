"""The launchers of batch systems: Slurm's srun, the mpiexec of HPE's PALS, flux run.

To each of them the one host of `dryfly run` is one node that runs all the ranks, so it is told to leave PMI and binding
alone: dryfly-launch serves PMI or PMIx to the ranks as it does for those that it starts itself.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.mpi.starter import Starter

Command = Callable[[int], Starter]  # for so many ranks


def check(name: str) -> Command:
    """Raises UserError where it is not there, is another program, or would go to other hosts."""
    return _CHECKS[name]()


def _on_path(launcher: str, program: str, remedy: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise UserError(f"--launcher {launcher}: {program} is not found on PATH; {remedy}, or use dryfly")
    return path


def _ask(launcher: str, *command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"--launcher {launcher}: {command[0]} cannot be run: {error.strerror}") from None


def _require_one_host(launcher: str, hosts: str, remedy: str) -> None:
    if hosts != "1":
        raise UserError(
            f"--launcher {launcher}: this allocation has {hosts} hosts, and every rank runs on the host of dryfly run; "
            f"ask for one ({remedy})"
        )


# Slurm.


def _check_slurm() -> Command:
    path = _on_path("slurm", "srun", "install Slurm's client")
    _require_one_host("slurm", os.environ.get("SLURM_JOB_NUM_NODES", "1"), "salloc -N 1")
    return partial(_slurm, path, _slurm_configuration())


def _slurm_configuration() -> str:
    asked = _ask("slurm", "scontrol", "show", "config")
    if asked.returncode != 0:
        reason = (asked.stderr.strip().splitlines() or ["scontrol gave no reason"])[-1]
        raise UserError(f"--launcher slurm: Slurm does not answer: {reason}")
    return asked.stdout


def _slurm(program: str, configuration: str, ranks: int) -> Starter:
    command = [program, "--quiet", "--nodes=1", f"--ntasks={ranks}", "--overcommit"]
    command += ["--mpi=none", "--input=0", "--kill-on-bad-exit=0", "--export=ALL"]
    # Where there is nothing that could bind processes, srun complains of being told not to.
    if re.search(r"^TaskPlugin\s*=\s*task/none", configuration, re.MULTILINE) is None:
        command.append("--cpu-bind=none")
    if "SLURM_JOB_ID" in os.environ:
        command += ["--overlap"]
    else:
        command += [f"--nodelist={socket.gethostname().partition('.')[0]}", "--job-name=dryfly"]
    return Starter(command=tuple(command), rank_variable="SLURM_PROCID", serves_pmi=False)


# PALS.


def _check_pals() -> Command:
    path = _on_path("pals", "mpiexec", "load PALS' module (cray-pals)")
    asked = _ask("pals", path, "--version")
    said = (asked.stdout or asked.stderr).strip()
    # That of MPICH and its kin says "HYDRA build details", that of Open MPI has its name in parentheses.
    if re.match(r"mpiexec version \d", said) is None:
        first = said.partition("\n")[0] or "nothing"
        raise UserError(
            f'--launcher pals: {path} is not the mpiexec of PALS, which says "mpiexec version" and a number: '
            f'its --version says "{first}"; load PALS\' module (cray-pals), or use dryfly'
        )
    hosts = _pbs_hosts() or [socket.gethostname()]
    _require_one_host("pals", str(len(hosts)), "qsub -l select=1")
    return partial(_pals, path, hosts[0])


def _pbs_hosts() -> Sequence[str]:
    """Of the allocation; none outside of one."""
    file = os.environ.get("PBS_NODEFILE")
    if not file:
        return ()
    try:
        lines = Path(file).read_text(encoding="utf-8").split()
    except (OSError, ValueError) as error:
        raise UserError(
            f"--launcher pals: PBS_NODEFILE, {file}, cannot be read: {getattr(error, 'strerror', error)}"
        ) from None
    return tuple(dict.fromkeys(lines))  # a host has a line for each of its ranks


def _pals(program: str, host: str, ranks: int) -> Starter:
    command = [program, "-n", str(ranks), "--ppn", str(ranks), "--hosts", host, "--envall", "--no-transfer"]
    command += ["--pmi", "none", "--cpu-bind", "none", "--line-buffer", "--no-abort-on-failure", "--"]
    return Starter(command=tuple(command), rank_variable="PALS_RANKID", serves_pmi=False)


# Flux.


def _check_flux() -> Command:
    path = _on_path("flux", "flux", "install flux-core")
    asked = _ask("flux", path, "getattr", "size")
    if asked.returncode != 0:
        reason = (asked.stderr.strip().splitlines() or ["flux getattr size gave no reason"])[-1]
        raise UserError(
            f"--launcher flux: there is no Flux instance here ({reason}); run it within one, "
            "as flux alloc -N 1 or flux start make it, or use dryfly"
        )
    _require_one_host("flux", asked.stdout.strip(), "flux alloc -N 1")
    return partial(_flux, path)


def _flux(program: str, ranks: int) -> Starter:
    # The whole host: a task that asks for cores has as many as it asks for, and there may be fewer than ranks.
    command = [program, "run", "--nodes=1", "--exclusive", f"--tasks-per-node={ranks}"]
    command += ["-o", "cpu-affinity=off", "-o", "gpu-affinity=off", "-o", "mpi=none", "-o", "pmi=off"]
    return Starter(command=tuple(command), rank_variable="FLUX_TASK_RANK", serves_pmi=False)


_CHECKS: dict[str, Callable[[], Command]] = {"slurm": _check_slurm, "pals": _check_pals, "flux": _check_flux}
NAMES = tuple(_CHECKS)

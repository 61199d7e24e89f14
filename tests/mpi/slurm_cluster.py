"""A Slurm of its own on this host: munged, slurmctld and slurmd with their files in one temporary folder.

    python tests/mpi/slurm_cluster.py COMMAND...     runs the command with SLURM_CONF pointing to it, then ends it all

Of one node, this host, or of the hosts of a cluster of namespaces (namespaces.py), with a slurmd on each.

Needs root (slurmd starts jobs as their users) and Debian's slurm-wlm with munge. Nothing in /etc is read or written;
a Slurm that runs here already is left alone: key, sockets and ports are this one's.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from namespaces import LOGIN, Hosts

_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo", "squeue", "scancel")
_PR_SET_PDEATHSIG = 1

_CONFIGURATION = """\
ClusterName=dryfly
SlurmctldHost={host}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={control_port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
ReturnToService=2
KillWait=5
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def why_not() -> str:
    """Why there can be none here; empty if there can."""
    missing = [name for name in _PROGRAMS if _program(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed (Debian: slurm-wlm, munge)"
    return "" if os.geteuid() == 0 else "slurmd needs root"


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _start(*command: str, folder: Path, at: Sequence[str] = (), name: str = "") -> subprocess.Popen[bytes]:
    """`at`: words before the command, which enter a host."""
    path = _program(command[0])
    assert path is not None
    with (folder / f"{command[0]}{name}.output").open("wb") as output:
        return subprocess.Popen(
            [*at, path, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "SLURM_CONF": str(folder / "slurm.conf")},
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )


def until(condition: Callable[[], bool], *, limit_s: float) -> bool:
    """False if it does not hold within the time."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _wait_until_idle(
    environment: Mapping[str, str], folder: Path, at: Sequence[str], count: int, *, limit_s: float
) -> None:
    def is_idle() -> bool:
        command = [*at, "sinfo", "--noheader", "--Node", "--format=%T"]
        states = subprocess.run(command, env=environment, capture_output=True, check=False).stdout.split()
        return states == count * [b"idle"]

    if until(is_idle, limit_s=limit_s):
        return
    logs = [
        file.read_text(errors="replace")[-1500:] for pattern in ("*.output", "*.log") for file in folder.glob(pattern)
    ]
    raise RuntimeError("Slurm did not come up:\n" + "\n".join(logs))


def _end_all_jobs(environment: Mapping[str, str], at: Sequence[str]) -> None:
    """What watches a job's processes outlives slurmd."""
    cancel = [*at, "scancel", "--quiet", f"--user={os.geteuid()}"]
    subprocess.run(cancel, env=environment, capture_output=True, check=False)
    list_jobs = [*at, "squeue", "--noheader"]
    until(lambda: not subprocess.run(list_jobs, env=environment, capture_output=True, check=False).stdout, limit_s=10)


@contextlib.contextmanager
def running(hosts: Hosts | None = None) -> Iterator[dict[str, str]]:
    """The environment in which srun finds it; of `hosts` on their login host."""
    at = [] if hosts is None else hosts.on(LOGIN)
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # munged wants nobody else to be able to write here
        for part in ("state", "spool"):
            (folder / part).mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        control_port, node_port = _free_ports(2)
        here = socket.gethostname().partition(".")[0]
        cpus = os.cpu_count() or 1
        if hosts is None:
            host, names, address = here, [here], "127.0.0.1"
            nodes = f"NodeName={here} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN"
        else:
            host, names, address = LOGIN, list(hosts.names), hosts.address(LOGIN)
            nodes = "\n".join(
                f"NodeName={name} NodeHostname={name} NodeAddr={hosts.address(name)} CPUs={max(2, cpus)} State=UNKNOWN"
                for name in names
            )
        for name in names:
            (folder / "spool" / name).mkdir()
        text = _CONFIGURATION.format(
            host=host, address=address, folder=folder, control_port=control_port, node_port=node_port, nodes=nodes
        )
        (folder / "slurm.conf").write_text(text, encoding="utf-8")
        environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        daemons: list[subprocess.Popen[bytes]] = []
        try:
            munge_files = [f"--{part}-file={folder}/munge.{part}" for part in ("key", "pid", "log", "seed")]
            daemons.append(
                _start(
                    "munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *munge_files, folder=folder
                )
            )
            daemons.append(_start("slurmctld", "-D", folder=folder, at=at))
            for name in names:
                enter = [] if hosts is None else hosts.on(name)
                daemons.append(_start("slurmd", "-D", "-N", name, folder=folder, at=enter, name=name))
            _wait_until_idle(environment, folder, at, len(names), limit_s=30)
            yield environment
        finally:
            _end_all_jobs(environment, at)
            for daemon in reversed(daemons):
                daemon.terminate()
            for daemon in daemons:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    daemon.wait(timeout=10)
                daemon.kill()
                daemon.wait()


if __name__ == "__main__":
    if reason := why_not():
        sys.exit(f"no Slurm here: {reason}")
    with running() as variables:
        sys.exit(subprocess.run(sys.argv[1:], env=variables, check=False).returncode)

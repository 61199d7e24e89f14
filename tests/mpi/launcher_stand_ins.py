"""Stand-ins for the commands of PALS and of Flux, where these are not installed.

    python launcher_stand_ins.py mpiexec|flux WORDS...

Each takes the options that `dryfly run` may give the real command, with the meaning that is documented for it, and
refuses every other option: PALS' by HPE's public client of it, Flux' by flux-run(1). The ranks run on this host as
children of the command, where the real ones are started by a daemon; rank 0 alone reads the command's input.

`FLUX_URI` says that there is a Flux instance, `STAND_IN_HOSTS` of how many hosts.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType


def _run(command: Sequence[str], ranks: Sequence[Mapping[str, str]], *, abort_on_failure: bool) -> int:
    """The highest exit status of all."""
    tasks: list[subprocess.Popen[bytes]] = []

    def end_all() -> None:
        for task in tasks:
            if task.poll() is None:
                task.terminate()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        end_all()
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    for rank, variables in enumerate(ranks):
        stdin = None if rank == 0 else subprocess.DEVNULL
        tasks.append(subprocess.Popen(command, stdin=stdin, env={**os.environ, **variables}))
    worst = 0
    running = {task.pid: task for task in tasks}
    while running:
        pid, ended = os.wait()
        status = os.waitstatus_to_exitcode(ended)
        task = running.pop(pid)
        task.returncode = status
        worst = max(worst, status if status >= 0 else 128 - status)
        if status != 0 and abort_on_failure:
            end_all()
    return worst


def _parser(name: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(prog=name, allow_abbrev=False)


def _mpiexec(words: Sequence[str]) -> int:
    parser = _parser("mpiexec")
    parser.add_argument("--version", action="version", version="mpiexec version 1.8.0 revision 0 (a stand-in)")
    parser.add_argument("-n", "-np", "--np", type=int, default=1)
    parser.add_argument("-ppn", "--ppn", type=int, default=0)
    parser.add_argument("-host", "--host", "-hosts", "--hosts", "-hostlist", "--hostlist", default=socket.gethostname())
    parser.add_argument("-envall", "--envall", action="store_true")
    parser.add_argument("--transfer", action=argparse.BooleanOptionalAction)
    parser.add_argument("--pmi", choices=("cray", "pmix", "none"), default="cray")
    parser.add_argument("--cpu-bind", choices=("none",), required=True)
    parser.add_argument("--line-buffer", action=argparse.BooleanOptionalAction)
    parser.add_argument("--abort-on-failure", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("command")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = parser.parse_args(words)
    hosts = asked.host.split(",")
    if asked.np > len(hosts) * (asked.ppn or asked.np):
        parser.error(f"{asked.np} ranks do not fit {len(hosts)} hosts with {asked.ppn} each")
    if hosts != [socket.gethostname()]:
        parser.error(f"{asked.host} is not this host")
    ranks = [{"PALS_RANKID": str(rank), "PALS_LOCAL_RANKID": str(rank), "PALS_NODEID": "0"} for rank in range(asked.np)]
    if asked.pmi == "cray":
        for rank, variables in enumerate(ranks):
            variables |= {"PMI_RANK": str(rank), "PMI_SIZE": str(asked.np), "PMI_CONTROL_PORT": "1"}
    return _run([asked.command, *asked.arguments], ranks, abort_on_failure=asked.abort_on_failure)


def _flux(words: Sequence[str]) -> int:
    if "FLUX_URI" not in os.environ:
        print("flux: flux_open: No such file or directory", file=sys.stderr)
        return 1
    hosts = int(os.environ.get("STAND_IN_HOSTS", "1"))
    if words == ["getattr", "size"]:
        print(hosts)
        return 0
    if words[:1] != ["run"]:
        print(f"flux: `{' '.join(words)}' is not a flux command of this stand-in", file=sys.stderr)
        return 1
    parser = _parser("flux run")
    parser.add_argument("-N", "--nodes", type=int, choices=range(1, hosts + 1), required=True)
    parser.add_argument("-x", "--exclusive", action="store_true", required=True)
    parser.add_argument("--tasks-per-node", type=int, required=True)
    parser.add_argument("-o", "--setopt", action="append", default=[])
    parser.add_argument("command")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = parser.parse_args(words[1:])
    known = {"cpu-affinity", "gpu-affinity", "mpi", "pmi"}
    if unknown := {option.partition("=")[0] for option in asked.setopt} - known:
        parser.error(f"unknown shell options {unknown}")
    size = asked.nodes * asked.tasks_per_node
    ranks = [{"FLUX_TASK_RANK": str(rank), "FLUX_JOB_SIZE": str(size)} for rank in range(size)]
    if "pmi=off" not in asked.setopt:
        for rank, variables in enumerate(ranks):
            variables |= {"PMI_RANK": str(rank), "PMI_SIZE": str(size), "PMI_FD": "99"}
    return _run([asked.command, *asked.arguments], ranks, abort_on_failure=False)


@contextlib.contextmanager
def on_path() -> Iterator[dict[str, str]]:
    """The environment in which the commands are found, in a Flux instance of one host."""
    with tempfile.TemporaryDirectory(prefix="stand-ins-") as folder:
        for name in ("mpiexec", "flux"):
            file = Path(folder, name)
            file.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {name} "$@"\n', encoding="utf-8")
            file.chmod(0o755)
        yield {"PATH": f"{folder}:{os.environ['PATH']}", "FLUX_URI": "local:///nowhere"}


if __name__ == "__main__":
    sys.exit({"mpiexec": _mpiexec, "flux": _flux}[sys.argv[1]](sys.argv[2:]))

"""A cluster of hosts on this one: each has network, name and /etc/hosts of its own, and all are plugged into a switch.

    python tests/mpi/namespaces.py COUNT [HOST=RATE...] -- COMMAND...   runs the command on the login host,
                                                                     where launchers find the others

The hosts are node1, node2 and so on, 10.77.0.N, and `login`. They share files, processes and processors with this host,
and go with the process that made them: a namespace lives as long as what is in it. Needs root.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LOGIN = "login"
_SWITCH = "switch"
_PROGRAMS = ("ip", "tc", "nsenter", "unshare")
_PR_SET_PDEATHSIG = 1
_LOGIN_ADDRESS = 100


def why_not() -> str:
    """Why there can be none here; empty if there can."""
    missing = [name for name in _PROGRAMS if _program(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed (Debian: iproute2, util-linux)"
    if os.geteuid() != 0:
        return "namespaces need root"
    made = subprocess.run(["unshare", "--net", "--uts", "--mount", "sh", "-c", _TRY], capture_output=True, check=False)
    return "" if made.returncode == 0 else "this kernel makes no bridges and slow links in namespaces"


_TRY = (
    "mount --make-rprivate / && hostname a && ip link add br0 type bridge && ip link add v0 type veth peer name v1 "
    "&& tc qdisc add dev v0 root tbf rate 1mbit burst 32kb latency 50ms"
)


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Hosts:
    folder: Path
    names: tuple[str, ...]  # without the login host
    keepers: dict[str, subprocess.Popen[bytes]] = field(repr=False)  # of the namespaces

    @property
    def agent(self) -> Path:
        """In place of ssh."""
        return self.folder / "agent"

    def address(self, host: str) -> str:
        return f"10.77.0.{_LOGIN_ADDRESS if host == LOGIN else self.names.index(host) + 1}"

    def on(self, host: str, *command: str) -> list[str]:
        """The command, to be run there."""
        return ["nsenter", f"--target={self.keepers[host].pid}", "--net", "--uts", "--mount", *command]

    def run(self, host: str, *command: str) -> None:
        subprocess.run(self.on(host, *command), check=True, capture_output=True)

    def slow_down(self, host: str, rate: str) -> None:
        """Its link, both ways; `rate` as tc has it, such as 200mbit."""
        words = ("root", "tbf", "rate", rate, "burst", "64kb", "latency", "50ms")
        self.run(host, "tc", "qdisc", "replace", "dev", "eth0", *words)
        self.run(_SWITCH, "tc", "qdisc", "replace", "dev", host, *words)

    def in_order(self, host: str) -> None:
        self.run(host, "tc", "qdisc", "del", "dev", "eth0", "root")
        self.run(_SWITCH, "tc", "qdisc", "del", "dev", host, "root")

    def unplug(self, host: str) -> None:
        self.run(_SWITCH, "ip", "link", "set", host, "down")


_AGENT = """#!/bin/sh
while case $1 in -*) true ;; *) false ;; esac; do shift; done
host=$1
shift
case $host in
{cases}
*) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255 ;;
esac
"""


@contextlib.contextmanager
def running(count: int) -> Iterator[Hosts]:
    with tempfile.TemporaryDirectory(prefix="hosts-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        names = tuple(f"node{number}" for number in range(1, count + 1))
        hosts = Hosts(folder=folder, names=names, keepers={})
        table = folder / "etc-hosts"
        lines = ["127.0.0.1 localhost", *(f"{hosts.address(host)} {host}" for host in (LOGIN, *names))]
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            for host in (_SWITCH, LOGIN, *names):
                hosts.keepers[host] = _keep(host, table)
            hosts.run(_SWITCH, "ip", "link", "add", "br0", "type", "bridge")
            hosts.run(_SWITCH, "ip", "link", "set", "br0", "up")
            for host in (LOGIN, *names):
                _plug_in(hosts, host)
            cases = [f'{host}) exec {shlex.join(hosts.on(host, "sh", "-c"))} "$*" ;;' for host in (LOGIN, *names)]
            hosts.agent.write_text(_AGENT.format(cases="\n".join(cases)), encoding="utf-8")
            hosts.agent.chmod(0o755)
            yield hosts
        finally:
            for keeper in hosts.keepers.values():
                keeper.kill()
                keeper.wait()


def _keep(host: str, table: Path) -> subprocess.Popen[bytes]:
    script = (
        f"hostname {host} && mount --bind {table} /etc/hosts && ip link set lo up && echo up && exec sleep infinity"
    )
    keeper = subprocess.Popen(
        ["unshare", "--net", "--uts", "--mount", "--propagation=private", "sh", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        preexec_fn=_die_with_parent,
    )
    assert keeper.stdout is not None
    with keeper.stdout as said:
        if said.readline() != b"up\n":
            raise RuntimeError(f"no namespaces for {host}")
    return keeper


def _plug_in(hosts: Hosts, host: str) -> None:
    peer = ("peer", "name", "eth0", "netns", str(hosts.keepers[host].pid))
    hosts.run(_SWITCH, "ip", "link", "add", host, "type", "veth", *peer)
    hosts.run(_SWITCH, "ip", "link", "set", host, "master", "br0", "up")
    hosts.run(host, "ip", "addr", "add", f"{hosts.address(host)}/24", "dev", "eth0")
    hosts.run(host, "ip", "link", "set", "eth0", "up")


def _main(words: Sequence[str], environment: Mapping[str, str]) -> int:
    own, command = list(words[: words.index("--")]), list(words[words.index("--") + 1 :])
    with running(int(own[0])) as hosts:
        for word in own[1:]:
            hosts.slow_down(*word.split("=", 1))
        started = time.monotonic()
        agent = str(hosts.agent)
        of_launchers = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": agent, "PRTE_MCA_plm_ssh_agent": agent}
        variables = {**of_launchers, **environment, "HOSTS_AGENT": agent}
        there = ("sh", "-c", 'cd "$0" && exec "$@"', str(Path.cwd()), *command)  # a namespace begins in its root
        status = subprocess.run(hosts.on(LOGIN, *there), env=variables, check=False).returncode
        sys.stderr.write(f"namespaces: {time.monotonic() - started:.1f} s\n")
        return status


if __name__ == "__main__":
    if reason := why_not():
        sys.exit(f"no hosts here: {reason}")
    sys.exit(_main(sys.argv[1:], os.environ))

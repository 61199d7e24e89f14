"""What a scheduler's prolog and epilog ask of the real node they run on: by the tools of the Slingshot Host Software
where they are installed, by what the driver has in sysfs, and by nothing where there is neither."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.validate.asked import NATIVE, Asked
from dryfly.validate.native import facts
from dryfly.validate.native.facts import NicFacts
from dryfly.validate.node_check import PROLOG, Check, content
from dryfly.validate.settings import settings

# By the name of the check: the programs that are it, the first that is there.
_TOOLS = {
    "cxi_healthcheck": ("cxi_healthcheck",),
    "slingshot-diag": ("slingshot-diag",),
    "cxi_gpu_loopback": ("cxi_gpu_loopback", "cxi_gpu_loopback_bw"),
}
_EDAC = Path("/sys/devices/system/edac/mc")
_LINES_SAID = 3


class HostCheck:
    """Of this computer. `cxi`, `edac`: where the drivers' files are. Raises UserError."""

    def __init__(self, asked: Asked, name: str, *, cxi: str = facts.CXI, edac: Path = _EDAC) -> None:
        own = socket.gethostname()
        if name.partition(".")[0] != own.partition(".")[0]:
            raise UserError(f"--node {name}: this is {own}; with --native accepted is the node it runs on")
        self._name = name
        self._known = settings(native=True, limits=asked.limits)
        self._machine = asked.native.model if asked.native is not None and asked.native.model else NATIVE
        self._edac = edac
        said = subprocess.run(["sh", "-c", facts.script(cxi)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={"PATH": os.environ.get("PATH", os.defpath)}, check=False)  # fmt: skip
        answer = facts.parse(said.stdout.splitlines()).get(0)
        self._nics: dict[int, NicFacts] = {} if answer is None else answer.nics

    def run(self, when: str) -> list[Check]:
        if when == PROLOG:
            return [*(self._tool(name) for name in _TOOLS), self._said_of_nics()]
        return [self._flaps(), self._node_errors(), self._services()]

    def content(self, when: str, checks: Sequence[Check]) -> dict[str, Any]:
        return content(when, self._machine, self._name, checks)

    def _tool(self, name: str) -> Check:
        path = next((found for program in _TOOLS[name] if (found := shutil.which(program)) is not None), None)
        if path is None:
            return Check(name=name, passed=None, said=("not installed",))
        status, lines = self._answer([path])
        said = () if status == 0 else tuple(lines[-_LINES_SAID:]) or (f"exit status {status}",)
        return Check(name=name, passed=status == 0, said=said)

    def _answer(self, command: Sequence[str]) -> tuple[int, list[str]]:
        """Exit status, and what was said."""
        limit_s = self._known.native.tool_s
        try:
            ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace", timeout=limit_s, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return 124, [f"it has not ended within {limit_s:g} s"]
        except OSError as error:
            return 126, [f"{command[0]} cannot be run: {error.strerror}"]
        return ended.returncode, [line.strip() for line in ended.stdout.splitlines() if line.strip()]

    def _said_of_nics(self) -> Check:
        said = tuple(f"cxi{nic} {text}" for nic, of in sorted(self._nics.items()) for _, text, _ in of.complaints())
        return self._of_nics("NICs", said)

    def _of_nics(self, name: str, said: tuple[str, ...]) -> Check:
        if not self._nics:
            return Check(name=name, passed=None, said=("no Slingshot NIC",))
        return Check(name=name, passed=not said, said=said)

    def _flaps(self) -> Check:
        said = []
        for nic, of in sorted(self._nics.items()):
            many = self._known.too_many_flaps([-float(age_s) for age_s in of.flaps])
            if many is not None:
                hours, count, limit = many
                said.append(f"cxi{nic}: {count} in {hours} h, accepted are fewer than {limit}")
        return self._of_nics("flaps", tuple(said))

    def _node_errors(self) -> Check:
        """Of the memory's controllers: what they could not correct."""
        counts = {
            file.parent.name: file.read_text(encoding="ascii").strip() for file in self._edac.glob("mc*/ue_count")
        }
        if not counts:
            return Check(name="node errors", passed=None, said=("no memory controller that counts errors",))
        said = tuple(f"{name}: {count} uncorrected memory errors" for name, count in sorted(counts.items())
                     if count not in ("0", ""))  # fmt: skip
        return Check(name="node errors", passed=not said, said=said)

    def _services(self) -> Check:
        """CXI services that a job has left are deleted: all but the default one and the system's."""
        tool = shutil.which("cxi_service")
        if tool is None:
            return Check(name="services", passed=None, said=("cxi_service not installed",))
        passed, said = True, []
        for nic in sorted(self._nics) or [0]:
            status, lines = self._answer([tool, "list", "-d", f"cxi{nic}"])
            if status != 0:
                passed = False
                said.append(f"cxi{nic}: {(lines or [f'exit status {status}'])[-1]}")
            for service in _left(lines):
                status, words = self._answer([tool, "delete", "-d", f"cxi{nic}", "-s", service])
                passed = passed and status == 0
                how = "deleted" if status == 0 else f"cannot be deleted: {(words or [f'exit status {status}'])[-1]}"
                said.append(f"cxi{nic}: service {service} was left, {how}")
        return Check(name="services", passed=passed, said=tuple(said))


def _left(lines: Sequence[str]) -> list[str]:
    """The ids of services in what `cxi_service list` prints that are neither the default one nor the system's."""
    found: dict[str, bool] = {}
    service = ""
    for line in lines:
        if head := re.match(r"ID:\s*(\d+)\s*(\(DEFAULT\))?", line):
            service = head[1]
            found[service] = head[2] is None
        elif service and re.match(r"System Service\s*:\s*Yes", line):
            found[service] = False
    return [service for service, is_left in found.items() if is_left]

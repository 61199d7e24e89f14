"""What a scheduler's prolog and epilog ask of the real node they run on: by the tools of the Slingshot Host Software
where they are installed, by what the driver has in sysfs, and by nothing where there is neither."""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError, UserError
from dryfly.validate.asked import NATIVE, Asked
from dryfly.validate.native import facts, job
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
        self._cxi, self._edac = cxi, edac
        self._limit_s = self._end_s = 0.0
        self._nics: dict[int, NicFacts] = {}
        self._late = ""  # why it is not known which NICs there are

    def run(self, when: str) -> list[Check]:
        """Within prolog_s or epilog_s of the limits."""
        self._limit_s = self._known.native.prolog_s if when == PROLOG else self._known.native.epilog_s
        self._end_s = time.monotonic() + self._limit_s
        self._read_nics()
        if when == PROLOG:
            return [*(self._tool(name) for name in _TOOLS), self._said_of_nics()]
        return [self._flaps(), self._node_errors(), self._services()]

    def content(self, when: str, checks: Sequence[Check]) -> dict[str, Any]:
        return content(when, self._machine, self._name, checks)

    def _read_nics(self) -> None:
        # Without variables that launchers set: the script takes the rank from them.
        environment = {"PATH": os.environ.get("PATH", os.defpath)}
        status, lines = self._answer(["sh", "-c", facts.script(self._cxi)], environment)
        answer = facts.parse(lines).get(0)
        self._late = lines[-1] if status != 0 and answer is None and lines else ""
        self._nics = {} if answer is None else answer.nics

    def _tool(self, name: str) -> Check:
        path = next((found for program in _TOOLS[name] if (found := shutil.which(program)) is not None), None)
        if path is None:
            return Check(name=name, passed=None, said=("not installed",))
        status, lines = self._answer([path])
        said = () if status == 0 else tuple(lines[-_LINES_SAID:]) or (f"exit status {status}",)
        return Check(name=name, passed=status == 0, said=said)

    def _answer(self, command: Sequence[str], environment: Mapping[str, str] = os.environ) -> tuple[int, list[str]]:
        """Exit status, and what was said; of what has not ended in time that it has not."""
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            return 124, [f"has not begun, for {self._limit_s:g} s were over"]
        try:
            ended = job.answer(command, environment=environment, within_s=left_s)
        except RunError as error:
            return 126, [str(error)]
        if ended.too_long:
            return ended.status, [f"has not ended in {self._limit_s:g} s"]
        return ended.status, [line.strip() for line in ended.lines if line.strip()]

    def _said_of_nics(self) -> Check:
        said = tuple(f"cxi{nic} {text}" for nic, of in sorted(self._nics.items()) for _, text, _ in of.complaints())
        return self._of_nics("NICs", said)

    def _of_nics(self, name: str, said: tuple[str, ...]) -> Check:
        if self._late:
            return Check(name=name, passed=False, said=(f"reading sysfs {self._late}",))
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
        limit = self._known.native.memory_errors
        said = tuple(
            f"{name}: {count} uncorrected memory errors, accepted are fewer than {limit}"
            for name, count in sorted(counts.items())
            if count.isdecimal() and int(count) >= limit
        )
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

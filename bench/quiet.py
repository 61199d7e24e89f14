"""How busy other processes were during a measurement: beside more than a tenth of a processor it is not one."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

OTHERS_MOST = 0.1  # CPUs


class Others:
    """CPUs that processes other than this one's children use, from its construction on."""

    def __init__(self) -> None:
        self._busy, self._own, self._wall = _busy_s(), _own_s(), time.monotonic()

    def note(self) -> str:
        wall = time.monotonic() - self._wall
        cpus = max(0.0, (_busy_s() - self._busy - (_own_s() - self._own)) / wall)
        return f"others used {cpus:.2f} CPUs" + ("" if cpus <= OTHERS_MOST else " - NOT QUIET")


def _busy_s() -> float:
    user, nice, system, _, _, irq, soft_irq = (int(word) for word in Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + soft_irq) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        total += used.ru_utime + used.ru_stime
    return total

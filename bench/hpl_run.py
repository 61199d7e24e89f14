"""What the benches of dryfly-hpl share: a run on this computer, and how busy other processes were meanwhile."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ORDER = 12_000
OTHERS_MOST = 0.1  # CPUs; a measurement beside more than that is not one


@dataclass(frozen=True, kw_only=True)
class HplRun:
    gflops: float
    gemm_gflops: float  # of all ranks together, at the same time, mean of before and after
    others_cpus: float


class Others:
    """CPUs that processes other than this one's children use, from its construction on."""

    def __init__(self) -> None:
        self._busy, self._own, self._wall = _busy_s(), _own_s(), time.monotonic()

    def cpus(self) -> float:
        wall = time.monotonic() - self._wall
        return max(0.0, (_busy_s() - self._busy - (_own_s() - self._own)) / wall)


def _busy_s() -> float:
    user, nice, system, _, _, irq, soft_irq = (int(word) for word in Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + soft_irq) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        total += used.ru_utime + used.ru_stime
    return total


def run_hpl(*, ranks: int, block: int = 256) -> HplRun:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "result.json"
        command = ["dryfly", "hpl", "-n", str(ranks), "-N", str(ORDER), "--nb", str(block), "--grid", f"1x{ranks}"]
        command += ["--screen", "yes", "--progress", "none", "--json", str(target)]
        others = Others()
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{ended.stdout}{ended.stderr}ended with status {ended.returncode}")
        result: dict[str, Any] = json.loads(target.read_text())["runs"][0]
        gemm = statistics.mean(result["screening_gflops"]) * ranks
        return HplRun(gflops=result["gflops"], gemm_gflops=gemm, others_cpus=others.cpus())


def say(number: int, run: HplRun) -> None:
    note = "" if run.others_cpus <= OTHERS_MOST else " - NOT QUIET"
    print(
        f"round {number}: HPL {run.gflops:.2f} GF/s, dgemm {run.gemm_gflops:.2f} GF/s, "
        f"ratio {run.gflops / run.gemm_gflops:.3f}, others used {run.others_cpus:.2f} CPUs{note}",
        flush=True,
    )


def against_gemm(*, ranks: int, rounds: int) -> None:
    """The round with the median ratio is the figure: speed and anchor of one process, seconds apart."""
    from measured_run import figure

    runs = []
    for number in range(1, rounds + 1):
        runs.append(run_hpl(ranks=ranks))
        say(number, runs[-1])
    middle = sorted(runs, key=lambda run: run.gflops / run.gemm_gflops)[rounds // 2]
    figure(middle.gflops, "GF/s", "dgemm" if ranks == 1 else f"{ranks}-x-dgemm", middle.gemm_gflops)
